//! A disk in memory that forgets what was not synced, and fails when told to.
//!
//! Each file and each directory has a durable state and a list of changes since its last sync. A
//! [crash](MemFs::crash) keeps the durable states and any part of the changes: none, some, all,
//! in no order between files, and a write torn at any byte. All chance comes from the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fs::{File, FileSystem, OpenHow};
use crate::random::Random;

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct MemFs {
    disk: Arc<Mutex<Disk>>,
}

/// A file on a [`MemFs`].
#[derive(Debug)]
pub struct MemFile {
    disk: Arc<Mutex<Disk>>,
    inode: usize,
    path: PathBuf,
}

/// A lock on a [`MemFs`].
#[derive(Debug)]
pub struct MemLock {
    disk: Arc<Mutex<Disk>>,
    path: PathBuf,
}

/// What the disk does when it is told to fail at an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This operation fails; those after it work again. A write may have been done in part; a sync that
    /// fails drops the writes that it was to make durable, as Linux does, and the next one
    /// succeeds without them.
    Once(ErrorKind),
    /// This operation and all later ones fail: the process is dead, or the disk is. A change that fails
    /// may still survive a crash.
    Forever(ErrorKind),
}

/// A kind of operation, for the record of what was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named as the functions of the seam.
pub enum OperationKind {
    Open,
    Create,
    Read,
    Write,
    SetLen,
    Allocate,
    SyncData,
    DropCache,
    SetReadOnly,
    Rename,
    Remove,
    CreateDir,
    SyncDir,
    List,
    Lock,
}

/// An operation that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What.
    pub kind: OperationKind,
    /// On which file or directory; for a rename, the new name.
    pub path: PathBuf,
}

/// What a [crash](MemFs::crash) made of the changes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CrashReport {
    /// A part of a write to a segment survived, and the rest did not.
    pub has_torn_log: bool,
    /// A change survived, and an earlier one to another file or directory did not.
    pub is_out_of_order: bool,
}

#[derive(Debug, Default)]
struct Disk {
    inodes: Vec<Inode>,
    dirs: BTreeMap<PathBuf, Dir>,
    locks: BTreeSet<PathBuf>,
    operations: usize,
    /// Numbers the changes over all files and directories.
    changes: u64,
    report: CrashReport,
    /// What was done, if anybody wants to know.
    record: Option<Vec<Operation>>,
    faults: BTreeMap<usize, Fault>,
    dead: Option<ErrorKind>,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    durable: Vec<u8>,
    current: Vec<u8>,
    changes: Vec<(u64, Change)>,
    read_only: bool,
}

#[derive(Clone, Debug)]
enum Change {
    Write { position: u64, bytes: Vec<u8> },
    SetLen(u64),
}

#[derive(Clone, Debug, Default)]
struct Dir {
    durable: BTreeMap<String, Entry>,
    current: BTreeMap<String, Entry>,
    changes: Vec<(u64, DirChange)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    File(usize),
    Dir,
}

#[derive(Clone, Debug)]
enum DirChange {
    Add(String, Entry),
    Remove(String),
    Rename { from: String, to: String, entry: Entry },
}

impl MemFs {
    /// An empty disk with these directories and their parents.
    pub fn new<P: AsRef<Path>>(dirs: impl IntoIterator<Item = P>) -> MemFs {
        let fs = MemFs::default();
        {
            let mut disk = fs.lock_disk();
            for dir in dirs {
                let above: Vec<&Path> = dir.as_ref().ancestors().collect();
                for pair in above.windows(2) {
                    let [dir, parent] = pair else { continue };
                    disk.dirs.entry((*dir).to_owned()).or_default();
                    let parent = disk.dirs.entry((*parent).to_owned()).or_default();
                    if let Some(name) = dir.file_name() {
                        let name = name.to_string_lossy().into_owned();
                        parent.durable.insert(name.clone(), Entry::Dir);
                        parent.current.insert(name, Entry::Dir);
                    }
                }
            }
        }
        fs
    }

    /// The disk as it may be found after a power cut at this moment. This disk stays as it is.
    pub fn crash(&self, seed: u64) -> MemFs {
        let mut random = Random::new(seed);
        // Some disks keep nearly everything, some nearly nothing.
        let percent = [0, 20, 50, 80, 100].get(random.below(5)).copied().unwrap_or(50);
        let disk = self.lock_disk();
        let mut fates = Fates::default();
        let inodes = disk
            .inodes
            .iter()
            .enumerate()
            .map(|(n, inode)| inode.crash(&mut random, percent, &mut fates.of(n)))
            .collect();
        let mut left = Disk { inodes, changes: disk.changes, ..Disk::default() };
        // Parents come before their children.
        for (n, (path, dir)) in disk.dirs.iter().enumerate() {
            if path.parent().is_none_or(|parent| parent == Path::new(""))
                || left.entry(path) == Some(Entry::Dir)
            {
                let fates = &mut fates.of(disk.inodes.len() + n);
                left.dirs.insert(path.clone(), dir.crash(&mut random, percent, fates));
            }
        }
        left.report = CrashReport {
            has_torn_log: fates.torn.iter().any(|inode| disk.is_log(*inode)),
            is_out_of_order: fates.is_out_of_order(),
        };
        MemFs { disk: Arc::new(Mutex::new(left)) }
    }

    /// The disk as the next process finds it when this one is killed but the machine runs on: with
    /// everything that was written, synced or not. What was not synced still is not.
    pub fn kill(&self) -> MemFs {
        let disk = self.lock_disk();
        let (inodes, dirs, changes) = (disk.inodes.clone(), disk.dirs.clone(), disk.changes);
        MemFs { disk: Arc::new(Mutex::new(Disk { inodes, dirs, changes, ..Disk::default() })) }
    }

    /// What became of unsynced changes in the crash that left this disk.
    pub fn crash_report(&self) -> CrashReport {
        self.lock_disk().report
    }

    /// A bit of a file goes wrong, on the medium and for whoever reads; whether it has that byte.
    pub fn damage(&self, path: &Path, position: usize, bit: u8) -> bool {
        let mut disk = self.lock_disk();
        let Ok(inode) = disk.find(path) else { return false };
        let inode = disk.inode(inode);
        let mut is_there = false;
        for content in [&mut inode.durable, &mut inode.current] {
            if let Some(byte) = content.get_mut(position) {
                *byte ^= 1 << (bit % 8);
                is_there = true;
            }
        }
        is_there
    }

    /// Fails the n-th operation from now, the first being 0.
    pub fn fail_at(&self, n: usize, fault: Fault) {
        let mut disk = self.lock_disk();
        let at = disk.operations + n;
        disk.faults.insert(at, fault);
    }

    /// How many operations were asked for so far, failed ones too.
    pub fn operations(&self) -> usize {
        self.lock_disk().operations
    }

    /// From now on notes every operation.
    pub fn start_record(&self) {
        self.lock_disk().record = Some(Vec::new());
    }

    /// What was noted since [`start_record`](MemFs::start_record).
    pub fn record(&self) -> Vec<Operation> {
        self.lock_disk().record.clone().unwrap_or_default()
    }

    /// Puts a file there, durably.
    pub fn install(&self, path: &Path, content: &[u8]) {
        let (dir, name) = split(path);
        let mut disk = self.lock_disk();
        let (durable, current) = (content.to_vec(), content.to_vec());
        disk.inodes.push(Inode { durable, current, changes: Vec::new(), read_only: false });
        let entry = Entry::File(disk.inodes.len() - 1);
        let dir = disk.dirs.entry(dir).or_default();
        dir.durable.insert(name.clone(), entry);
        dir.current.insert(name, entry);
    }

    /// The content of a file as a running process sees it.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let disk = self.lock_disk();
        let inode = disk.find(path).ok()?;
        disk.inodes.get(inode).map(|inode| inode.current.clone())
    }

    /// Whether a power cut that loses all that was not synced leaves a file in this directory whose name and
    /// content are like this.
    pub fn any_on_media(&self, dir: &Path, is_it: impl Fn(&str, &[u8]) -> bool) -> bool {
        let disk = self.lock_disk();
        let is_durable = |path: &Path| match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => disk.dirs.get(parent).is_some_and(|parent| {
                parent.durable.get(&*name.to_string_lossy()) == Some(&Entry::Dir)
            }),
            _ => true,
        };
        dir.ancestors().filter(|path| *path != Path::new("")).all(is_durable)
            && disk.dirs.get(dir).is_some_and(|dir| {
                dir.durable.iter().any(|(name, entry)| match entry {
                    Entry::File(inode) => {
                        disk.inodes.get(*inode).is_some_and(|inode| is_it(name, &inode.durable))
                    }
                    Entry::Dir => false,
                })
            })
    }

    fn lock_disk(&self) -> MutexGuard<'_, Disk> {
        lock(&self.disk)
    }
}

impl FileSystem for MemFs {
    type File = MemFile;
    type Lock = MemLock;

    fn open(&self, path: &Path, how: OpenHow) -> io::Result<MemFile> {
        let mut disk = self.lock_disk();
        let there = disk.find(path);
        let creates = matches!(how, OpenHow::Create | OpenHow::Truncate)
            && matches!(&there, Err(error) if error.kind() == ErrorKind::NotFound);
        let empties = how == OpenHow::Truncate && there.is_ok();
        let kind = match how {
            OpenHow::Read | OpenHow::Write => OperationKind::Open,
            OpenHow::Create | OpenHow::Truncate => OperationKind::Create,
        };
        let failed = disk.begin(kind, path);
        let inode = if creates {
            disk.inodes.push(Inode::default());
            let inode = disk.inodes.len() - 1;
            let (dir, name) = split(path);
            disk.change_dir(&dir, DirChange::Add(name, Entry::File(inode)))?;
            inode
        } else {
            there?
        };
        if how != OpenHow::Read && disk.inode(inode).read_only {
            return Err(ErrorKind::PermissionDenied.into());
        }
        if empties {
            disk.change(inode, Change::SetLen(0));
        }
        failed?;
        Ok(MemFile { disk: self.disk.clone(), inode, path: path.to_owned() })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.lock_disk();
        let failed = disk.begin(OperationKind::Rename, to);
        let ((dir, from), (to_dir, to)) = (split(from), split(to));
        if dir != to_dir {
            return Err(ErrorKind::CrossesDevices.into());
        }
        let entry = disk.dir(&dir)?.current.get(&from).copied().ok_or(ErrorKind::NotFound)?;
        disk.change_dir(&dir, DirChange::Rename { from, to, entry })?;
        failed
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.lock_disk();
        let failed = disk.begin(OperationKind::Remove, path);
        disk.find(path)?;
        let (dir, name) = split(path);
        disk.change_dir(&dir, DirChange::Remove(name))?;
        failed
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.lock_disk();
        let failed = disk.begin(OperationKind::CreateDir, path);
        if disk.dirs.contains_key(path) && disk.entry(path).is_some() {
            return failed;
        }
        let (parent, name) = split(path);
        if disk.dir(&parent)?.current.contains_key(&name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        disk.change_dir(&parent, DirChange::Add(name, Entry::Dir))?;
        disk.dirs.insert(path.to_owned(), Dir::default());
        failed
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.lock_disk();
        let failed = disk.begin(OperationKind::SyncDir, path);
        let dead = disk.dead.is_some();
        let dir = disk.dir(path)?;
        match failed {
            Ok(()) => dir.changes.iter().for_each(|(_, change)| change.apply(&mut dir.durable)),
            Err(_) if dead => return failed,
            Err(_) => {}
        }
        dir.changes.clear();
        failed
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut disk = self.lock_disk();
        disk.begin(OperationKind::List, path)?;
        Ok(disk.dir(path)?.current.keys().cloned().collect())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<MemLock>> {
        drop(self.open(path, OpenHow::Create)?);
        let mut disk = self.lock_disk();
        disk.begin(OperationKind::Lock, path)?;
        let free = disk.locks.insert(path.to_owned());
        Ok(free.then(|| MemLock { disk: self.disk.clone(), path: path.to_owned() }))
    }
}

impl Drop for MemLock {
    fn drop(&mut self) {
        lock(&self.disk).locks.remove(&self.path);
    }
}

impl MemFile {
    fn begin(&self, kind: OperationKind) -> (MutexGuard<'_, Disk>, io::Result<()>) {
        let mut disk = lock(&self.disk);
        let failed = disk.begin(kind, &self.path);
        (disk, failed)
    }
}

impl File for MemFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let (mut disk, failed) = self.begin(OperationKind::Read);
        failed?;
        let content = &disk.inode(self.inode).current;
        let rest = usize::try_from(position).ok().and_then(|at| content.get(at..)).unwrap_or(&[]);
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn write_all_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        let (mut disk, failed) = self.begin(OperationKind::Write);
        let dead = disk.dead.is_some();
        let mut bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        if failed.is_err() && !dead {
            // A disk that is full takes what still fits.
            bytes.truncate(bytes.len() / 2);
        }
        disk.change(self.inode, Change::Write { position, bytes });
        failed
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let (mut disk, failed) = self.begin(OperationKind::SetLen);
        disk.change(self.inode, Change::SetLen(len));
        failed
    }

    fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        let (mut disk, failed) = self.begin(OperationKind::Allocate);
        assert_eq!(
            disk.inode(self.inode).current.len() as u64,
            from,
            "room is made at the end of a file"
        );
        // A disk that is full may give a part.
        let to = if failed.is_ok() { to } else { from + (to - from) / 2 };
        disk.change(self.inode, Change::SetLen(to));
        failed
    }

    fn size(&self) -> io::Result<u64> {
        let mut disk = lock(&self.disk);
        Ok(disk.inode(self.inode).current.len() as u64)
    }

    fn sync_data(&self) -> io::Result<()> {
        let (mut disk, failed) = self.begin(OperationKind::SyncData);
        let dead = disk.dead.is_some();
        let inode = disk.inode(self.inode);
        match failed {
            // Not the whole content: what a failed sync has dropped stays lost, though readers see it.
            Ok(()) => {
                inode.changes.iter().for_each(|(_, change)| change.apply(&mut inode.durable));
            }
            Err(_) if dead => return failed,
            // The journal keeps lengths: only content is lost.
            Err(_) => {
                inode.changes.retain(|(_, change)| matches!(change, Change::SetLen(_)));
                return failed;
            }
        }
        inode.changes.clear();
        failed
    }

    fn drop_cache(&self) -> io::Result<()> {
        let (mut disk, failed) = self.begin(OperationKind::DropCache);
        failed?;
        let inode = disk.inode(self.inode);
        let mut content = inode.durable.clone();
        inode.changes.iter().for_each(|(_, change)| change.apply(&mut content));
        // The length is remembered beside the content, which has a hole where a write was lost.
        if content.len() < inode.current.len() {
            content.resize(inode.current.len(), 0);
        }
        inode.current = content;
        Ok(())
    }

    fn set_read_only(&self) -> io::Result<()> {
        let (mut disk, failed) = self.begin(OperationKind::SetReadOnly);
        disk.inode(self.inode).read_only = true;
        failed
    }
}

impl Disk {
    /// Records an operation, and fails it if it is to fail.
    fn begin(&mut self, kind: OperationKind, path: &Path) -> io::Result<()> {
        let n = self.operations;
        self.operations += 1;
        if let Some(record) = &mut self.record {
            record.push(Operation { kind, path: path.to_owned() });
        }
        match self.faults.remove(&n) {
            Some(Fault::Forever(error)) => self.dead = Some(error),
            Some(Fault::Once(error)) => return Err(error.into()),
            None => {}
        }
        self.dead.map_or(Ok(()), |error| Err(error.into()))
    }

    fn dir(&mut self, path: &Path) -> io::Result<&mut Dir> {
        self.dirs.get_mut(path).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        let (dir, name) = split(path);
        self.dirs.get(&dir)?.current.get(&name).copied()
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        match self.entry(path) {
            Some(Entry::File(inode)) => Ok(inode),
            Some(Entry::Dir) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn inode(&mut self, inode: usize) -> &mut Inode {
        &mut self.inodes[inode]
    }

    fn change(&mut self, inode: usize, change: Change) {
        self.changes += 1;
        let at = self.changes;
        let inode = self.inode(inode);
        change.apply(&mut inode.current);
        inode.changes.push((at, change));
    }

    fn change_dir(&mut self, dir: &Path, change: DirChange) -> io::Result<()> {
        self.changes += 1;
        let at = self.changes;
        let dir = self.dir(dir)?;
        change.apply(&mut dir.current);
        dir.changes.push((at, change));
        Ok(())
    }

    /// Whether this is a segment.
    fn is_log(&self, inode: usize) -> bool {
        let entries = self.dirs.values().flat_map(|dir| &dir.current);
        entries
            .filter(|(_, entry)| **entry == Entry::File(inode))
            .any(|(name, _)| name.ends_with(".log"))
    }
}

/// What becomes of changes in a crash.
#[derive(Debug, Default)]
struct Fates {
    /// For each change: its number, whose it is, whether it survived.
    changes: Vec<(u64, usize, bool)>,
    /// The files with torn writes.
    torn: Vec<usize>,
}

impl Fates {
    fn of(&mut self, whose: usize) -> FatesOf<'_> {
        FatesOf { all: self, whose }
    }

    fn is_out_of_order(&self) -> bool {
        let is_kept = |kept: bool| self.changes.iter().filter(move |(.., was)| *was == kept);
        is_kept(true)
            .any(|(kept, of, _)| is_kept(false).any(|(lost, other, _)| lost < kept && other != of))
    }
}

/// The fates of the changes to one file or directory.
struct FatesOf<'a> {
    all: &'a mut Fates,
    whose: usize,
}

impl FatesOf<'_> {
    fn note(&mut self, change: u64, is_kept: bool) {
        self.all.changes.push((change, self.whose, is_kept));
    }
}

impl Inode {
    fn crash(&self, random: &mut Random, percent: usize, fates: &mut FatesOf<'_>) -> Inode {
        let mut content = self.durable.clone();
        for (at, change) in &self.changes {
            let is_kept = random.below(100) < percent;
            fates.note(*at, is_kept);
            if !is_kept {
                continue;
            }
            match change {
                Change::Write { position, bytes } if !bytes.is_empty() && random.below(3) == 0 => {
                    // Torn: any one stretch of it.
                    let from = random.below(2) * random.below(bytes.len());
                    let to = from + random.below(bytes.len() - from + 1);
                    let position = position + from as u64;
                    if from > 0 || to < bytes.len() {
                        fates.all.torn.push(fates.whose);
                    }
                    let bytes = bytes[from..to].to_vec();
                    Change::Write { position, bytes }.apply(&mut content);
                }
                change => change.apply(&mut content),
            }
        }
        let (durable, current) = (content.clone(), content);
        Inode { durable, current, changes: Vec::new(), read_only: self.read_only }
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write { bytes, .. } if bytes.is_empty() => {}
            Change::Write { position, bytes } => {
                let from = usize::try_from(*position).expect("files in memory are small");
                let to = from + bytes.len();
                if content.len() < to {
                    content.resize(to, 0);
                }
                content[from..to].copy_from_slice(bytes);
            }
            Change::SetLen(len) => {
                content.resize(usize::try_from(*len).expect("files in memory are small"), 0);
            }
        }
    }
}

impl Dir {
    fn crash(&self, random: &mut Random, percent: usize, fates: &mut FatesOf<'_>) -> Dir {
        let mut entries = self.durable.clone();
        for (at, change) in &self.changes {
            let is_kept = random.below(100) < percent;
            fates.note(*at, is_kept);
            if is_kept {
                change.apply(&mut entries);
            }
        }
        Dir { durable: entries.clone(), current: entries, changes: Vec::new() }
    }
}

impl DirChange {
    fn apply(&self, entries: &mut BTreeMap<String, Entry>) {
        match self {
            DirChange::Add(name, entry) => {
                entries.insert(name.clone(), *entry);
            }
            DirChange::Remove(name) => {
                entries.remove(name);
            }
            DirChange::Rename { from, to, entry } => {
                entries.remove(from);
                entries.insert(to.clone(), *entry);
            }
        }
    }
}

fn lock(disk: &Mutex<Disk>) -> MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn split(path: &Path) -> (PathBuf, String) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    (path.parent().unwrap_or(Path::new("")).to_owned(), name.unwrap_or_default())
}
