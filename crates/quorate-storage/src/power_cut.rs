//! The real disk with a power switch: what is not synced stays in this process, so that `kill -9`
//! loses it as a power cut would. A test build; never part of what is shipped.
//!
//! Reads see everything. Of the changes that are not synced each one reaches the disk at once with some
//! probability, whole or torn, because after a power cut any part of them may be there. Syncs
//! take a little longer, so that kills land inside them.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::fs::{File, FileSystem, OpenHow};
use crate::random::Random;
use crate::real_fs::{RealFile, RealFs, RealLock};

/// The seed comes from this environment variable, a number, plus the process id.
pub const SEED_VARIABLE: &str = "QUORATE_POWER_CUT_SEED";

/// How many of a hundred unsynced changes reach the disk at once.
const SURVIVE_PERCENT: usize = 30;

/// The real disk behind a power switch. Clones are the same.
#[derive(Clone, Debug)]
pub struct PowerCutFs {
    state: Arc<Mutex<State>>,
}

/// A file behind the power switch.
#[derive(Debug)]
pub struct PowerCutFile {
    state: Arc<Mutex<State>>,
    inode: usize,
}

#[derive(Debug)]
struct State {
    random: Random,
    /// Syncs take up to this long.
    max_sync_delay: Duration,
    inodes: Vec<Inode>,
    /// The files that this process has met, by the directory and name under which it sees them. `None`: the
    /// disk has a file of this name, but this process has removed it.
    names: HashMap<PathBuf, BTreeMap<String, Option<usize>>>,
    /// Under which name the disk has an inode.
    on_disk: HashMap<PathBuf, usize>,
    /// The directories that this process has made and the disk does not have yet, nor anything in them. `true`:
    /// what is in them is there with them, because they were synced themselves.
    new_dirs: BTreeMap<PathBuf, bool>,
    scratch: u64,
}

/// A file: what the disk has, and what is to be done to it at the next sync.
#[derive(Debug)]
struct Inode {
    content: Content,
    changes: Vec<Change>,
    read_only: bool,
}

/// What would be left of a file, if it had a name, after a power cut.
#[derive(Debug)]
enum Content {
    /// A file on the disk.
    Disk(RealFile),
    /// Its name is not on the disk, so neither is it.
    Memory(Vec<u8>),
}

#[derive(Clone, Debug)]
enum Change {
    Write { position: u64, bytes: Vec<u8> },
    SetLen(u64),
}

impl PowerCutFs {
    /// With the seed from the environment, and slow syncs.
    pub fn from_env() -> PowerCutFs {
        let seed: u64 =
            std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
        let seed = seed.wrapping_mul(1 << 22).wrapping_add(u64::from(std::process::id()));
        PowerCutFs::new(seed, Duration::from_millis(4))
    }

    /// With this seed, and syncs that take up to this much longer.
    pub fn new(seed: u64, max_sync_delay: Duration) -> PowerCutFs {
        let state = State {
            random: Random::new(seed),
            max_sync_delay,
            inodes: Vec::new(),
            names: HashMap::new(),
            on_disk: HashMap::new(),
            new_dirs: BTreeMap::new(),
            scratch: 0,
        };
        PowerCutFs { state: Arc::new(Mutex::new(state)) }
    }

    /// Waits a random part of the time that a sync may take. Nobody else waits.
    fn linger(state: &Mutex<State>) {
        let delay = {
            let mut state = lock(state);
            let micros = usize::try_from(state.max_sync_delay.as_micros()).unwrap_or(0);
            Duration::from_micros(state.random.below(micros + 1) as u64)
        };
        std::thread::sleep(delay);
    }
}

impl FileSystem for PowerCutFs {
    type File = PowerCutFile;
    type Lock = RealLock;

    fn open(&self, path: &Path, how: OpenHow) -> io::Result<PowerCutFile> {
        let mut state = lock(&self.state);
        let inode = match state.find(path)? {
            Some(inode) => inode,
            None if matches!(how, OpenHow::Create | OpenHow::Truncate) => state.create(path)?,
            None => return Err(ErrorKind::NotFound.into()),
        };
        if how != OpenHow::Read && state.inode(inode).read_only {
            return Err(ErrorKind::PermissionDenied.into());
        }
        if how == OpenHow::Truncate {
            state.change(inode, Change::SetLen(0))?;
        }
        Ok(PowerCutFile { state: self.state.clone(), inode })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = lock(&self.state);
        let inode = state.find(from)?.ok_or(ErrorKind::NotFound)?;
        state.find(to)?;
        state.set_name(from, None);
        state.set_name(to, Some(inode));
        if state.survives() {
            state.bring_to_disk(to)?;
            state.bring_to_disk(from)?;
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.find(path)?.ok_or(ErrorKind::NotFound)?;
        state.set_name(path, None);
        if state.survives() { state.bring_to_disk(path) } else { Ok(()) }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.state);
        if state.new_dirs.contains_key(path) {
            return Ok(());
        }
        let (parent, name) = split(path);
        if state.names.get(&parent).and_then(|names| names.get(&name)).is_some_and(Option::is_some)
        {
            return Err(ErrorKind::AlreadyExists.into());
        }
        // What is there, and what cannot be there, is the disk's to tell.
        if !state.new_dirs.contains_key(&parent) && (path.exists() || !parent.is_dir()) {
            return RealFs.create_dir(path);
        }
        state.new_dirs.insert(path.to_owned(), false);
        if state.survives() { state.bring_to_disk(path) } else { Ok(()) }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        PowerCutFs::linger(&self.state);
        let mut state = lock(&self.state);
        if let Some(is_synced) = state.new_dirs.get_mut(path) {
            *is_synced = true;
            return Ok(());
        }
        state.bring_all_to_disk(path)?;
        RealFs.sync_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = lock(&self.state);
        let none = BTreeMap::new();
        let own = state.names.get(path).unwrap_or(&none);
        let mut names =
            if state.new_dirs.contains_key(path) { Vec::new() } else { RealFs.list(path)? };
        names.extend(state.new_dirs_in(path));
        names.retain(|name| !own.contains_key(name) && !name.ends_with(SCRATCH_SUFFIX));
        names.extend(own.iter().filter(|(_, inode)| inode.is_some()).map(|(name, _)| name.clone()));
        Ok(names)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<RealLock>> {
        RealFs.lock(path)
    }
}

impl File for PowerCutFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        lock(&self.state).inode(self.inode).read_at(buffer, position)
    }

    fn write_all_at(&self, slices: &[IoSlice<'_>], mut position: u64) -> io::Result<()> {
        let mut state = lock(&self.state);
        // Slice by slice, as the pages of one write may reach the disk one by one.
        for slice in slices {
            state.change(self.inode, Change::Write { position, bytes: slice.to_vec() })?;
            position += slice.len() as u64;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        lock(&self.state).change(self.inode, Change::SetLen(len))
    }

    fn allocate(&self, _from: u64, to: u64) -> io::Result<()> {
        self.set_len(to)
    }

    fn size(&self) -> io::Result<u64> {
        lock(&self.state).inode(self.inode).size()
    }

    fn sync_data(&self) -> io::Result<()> {
        PowerCutFs::linger(&self.state);
        lock(&self.state).inode(self.inode).sync()
    }

    fn drop_cache(&self) -> io::Result<()> {
        // No sync fails here, so nothing is shown that the disk will not have.
        Ok(())
    }

    fn set_read_only(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        let inode = state.inode(self.inode);
        inode.read_only = true;
        match &inode.content {
            Content::Disk(file) => file.set_read_only(),
            Content::Memory(_) => Ok(()),
        }
    }
}

/// Files are put together under such a name, so that the disk never has half of one under its own.
const SCRATCH_SUFFIX: &str = ".power-cut";

impl State {
    fn inode(&mut self, inode: usize) -> &mut Inode {
        &mut self.inodes[inode]
    }

    fn survives(&mut self) -> bool {
        self.random.below(100) < SURVIVE_PERCENT
    }

    /// The file that this process sees under a name.
    fn find(&mut self, path: &Path) -> io::Result<Option<usize>> {
        let (dir, name) = split(path);
        if let Some(inode) = self.names.get(&dir).and_then(|names| names.get(&name)) {
            return Ok(*inode);
        }
        let file = match RealFs.open(path, OpenHow::Write) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                (RealFs.open(path, OpenHow::Read)?, true)
            }
            Err(error) => return Err(error),
        };
        let (file, read_only) = file;
        self.inodes.push(Inode { content: Content::Disk(file), changes: Vec::new(), read_only });
        let inode = self.inodes.len() - 1;
        self.names.entry(dir).or_default().insert(name, Some(inode));
        self.on_disk.insert(path.to_owned(), inode);
        Ok(Some(inode))
    }

    fn create(&mut self, path: &Path) -> io::Result<usize> {
        let content = Content::Memory(Vec::new());
        self.inodes.push(Inode { content, changes: Vec::new(), read_only: false });
        let inode = self.inodes.len() - 1;
        self.set_name(path, Some(inode));
        if self.survives() {
            self.bring_to_disk(path)?;
        }
        Ok(inode)
    }

    fn set_name(&mut self, path: &Path, inode: Option<usize>) {
        let (dir, name) = split(path);
        self.names.entry(dir).or_default().insert(name, inode);
    }

    fn change(&mut self, inode: usize, change: Change) -> io::Result<()> {
        if self.survives() {
            let torn = match &change {
                Change::Write { position, bytes }
                    if !bytes.is_empty() && self.random.below(3) == 0 =>
                {
                    let keep = self.random.below(bytes.len());
                    Change::Write { position: *position, bytes: bytes[..keep].to_vec() }
                }
                change => change.clone(),
            };
            self.inode(inode).content.apply(&torn)?;
        }
        // Done once more at the sync, in order: what survived too early is then overwritten.
        self.inode(inode).changes.push(change);
        Ok(())
    }

    /// The names of new directories in this one.
    fn new_dirs_in(&self, dir: &Path) -> Vec<String> {
        let new = self.new_dirs.keys().map(|path| split(path));
        new.filter(|(parent, _)| parent == dir).map(|(_, name)| name).collect()
    }

    /// Makes the disk's entries in a directory what this process sees.
    fn bring_all_to_disk(&mut self, dir: &Path) -> io::Result<()> {
        let mut names = self.new_dirs_in(dir);
        names.extend(self.names.get(dir).into_iter().flat_map(|names| names.keys().cloned()));
        names.iter().try_for_each(|name| self.bring_to_disk(&dir.join(name)))
    }

    /// Makes the disk's entry of this name what this process sees; it cannot have one in a directory that it does
    /// not have.
    fn bring_to_disk(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = split(path);
        if self.new_dirs.contains_key(&dir) {
            return Ok(());
        }
        if let Some(is_synced) = self.new_dirs.remove(path) {
            RealFs.create_dir(path)?;
            return if is_synced { self.bring_all_to_disk(path) } else { Ok(()) };
        }
        let Some(wanted) = self.names.get(&dir).and_then(|names| names.get(&name)).copied() else {
            return Ok(());
        };
        if self.on_disk.get(path).copied() == wanted {
            return Ok(());
        }
        let Some(inode) = wanted else {
            RealFs.remove(path)?;
            self.on_disk.remove(path);
            return Ok(());
        };
        let elsewhere = self.on_disk.iter().find(|(_, there)| **there == inode);
        if let Some(from) = elsewhere.map(|(from, _)| from.clone()) {
            RealFs.rename(&from, path)?;
            self.on_disk.remove(&from);
        } else {
            self.scratch += 1;
            let scratch =
                dir.join(format!("{}-{}{SCRATCH_SUFFIX}", std::process::id(), self.scratch));
            let file = RealFs.open(&scratch, OpenHow::Truncate)?;
            let content = self.inode(inode).content.read()?;
            file.write_all_at(&[IoSlice::new(&content)], 0)?;
            if self.inode(inode).read_only {
                file.set_read_only()?;
            }
            RealFs.rename(&scratch, path)?;
            self.inode(inode).content = Content::Disk(file);
        }
        self.on_disk.insert(path.to_owned(), inode);
        Ok(())
    }
}

impl Inode {
    fn size(&self) -> io::Result<u64> {
        let mut len = self.content.size()?;
        for change in &self.changes {
            len = match change {
                Change::Write { bytes, .. } if bytes.is_empty() => len,
                Change::Write { position, bytes } => len.max(position + bytes.len() as u64),
                Change::SetLen(len) => *len,
            };
        }
        Ok(len)
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let len = self.size()?;
        let wanted = usize::try_from(len.saturating_sub(position)).unwrap_or(usize::MAX);
        let wanted = wanted.min(buffer.len());
        let buffer = &mut buffer[..wanted];
        buffer.fill(0);
        self.content.read_at(buffer, position)?;
        let end = position + wanted as u64;
        for change in &self.changes {
            match change {
                Change::Write { position: start, bytes } => {
                    let from = position.max(*start);
                    let to = end.min(start + bytes.len() as u64);
                    if from < to {
                        let (there, here) = (
                            range(from - start, to - start),
                            range(from - position, to - position),
                        );
                        buffer[here].copy_from_slice(&bytes[there]);
                    }
                }
                Change::SetLen(len) if *len < end => {
                    let from = len.saturating_sub(position);
                    buffer[range(from, end - position)].fill(0);
                }
                Change::SetLen(_) => {}
            }
        }
        Ok(wanted)
    }

    fn sync(&mut self) -> io::Result<()> {
        for change in std::mem::take(&mut self.changes) {
            self.content.apply(&change)?;
        }
        match &self.content {
            Content::Disk(file) if !self.read_only => file.sync_data(),
            _ => Ok(()),
        }
    }
}

impl Content {
    fn apply(&mut self, change: &Change) -> io::Result<()> {
        match (self, change) {
            (_, Change::Write { bytes, .. }) if bytes.is_empty() => Ok(()),
            (Content::Disk(file), Change::Write { position, bytes }) => {
                file.write_all_at(&[IoSlice::new(bytes)], *position)
            }
            (Content::Disk(file), Change::SetLen(len)) => file.set_len(*len),
            (Content::Memory(content), Change::Write { position, bytes }) => {
                let here = range(*position, position + bytes.len() as u64);
                if content.len() < here.end {
                    content.resize(here.end, 0);
                }
                content[here].copy_from_slice(bytes);
                Ok(())
            }
            (Content::Memory(content), Change::SetLen(len)) => {
                content.resize(range(0, *len).end, 0);
                Ok(())
            }
        }
    }

    fn size(&self) -> io::Result<u64> {
        match self {
            Content::Disk(file) => file.size(),
            Content::Memory(content) => Ok(content.len() as u64),
        }
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        match self {
            Content::Disk(file) => file.read_at(buffer, position),
            Content::Memory(content) => {
                let rest = content.get(range(position, u64::MAX).start..).unwrap_or(&[]);
                let n = rest.len().min(buffer.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
        }
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut content = vec![0; range(0, self.size()?).end];
        let n = self.read_at(&mut content, 0)?;
        content.truncate(n);
        Ok(content)
    }
}

fn range(from: u64, to: u64) -> std::ops::Range<usize> {
    usize::try_from(from).unwrap_or(usize::MAX)..usize::try_from(to).unwrap_or(usize::MAX)
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn split(path: &Path) -> (PathBuf, String) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    (path.parent().unwrap_or(Path::new("")).to_owned(), name.unwrap_or_default())
}
