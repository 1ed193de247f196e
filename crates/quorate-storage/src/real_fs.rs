//! The real disk.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FlockOperation;

use crate::fs::{File, FileSystem, OpenHow};

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFs;

/// A file on the real disk.
#[derive(Debug)]
pub struct RealFile(fs::File);

/// An fcntl lock. It ends when this value is dropped, and also, by the rules of POSIX, when this
/// process closes any other descriptor of the same file: nothing else may open a lock file.
#[derive(Debug)]
pub struct RealLock {
    file: fs::File,
    inode: (u64, u64),
}

/// The lock files that this process holds, by device and inode. An fcntl lock does not exclude its own
/// process, and opening a held lock file only to look at it would drop the lock on close.
static HELD: Mutex<Option<HashSet<(u64, u64)>>> = Mutex::new(None);

impl FileSystem for RealFs {
    type File = RealFile;
    type Lock = RealLock;

    fn open(&self, path: &Path, how: OpenHow) -> io::Result<RealFile> {
        let mut options = OpenOptions::new();
        options.read(true).mode(0o644);
        match how {
            OpenHow::Read => &mut options,
            OpenHow::Write => options.write(true),
            OpenHow::Create => options.write(true).create(true).truncate(false),
            OpenHow::Truncate => options.write(true).create(true).truncate(true),
        };
        options.open(path).map(RealFile)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            result => result,
        }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<RealLock>> {
        let mut held = held();
        let held = held.get_or_insert_default();
        loop {
            if let Ok(there) = fs::metadata(path)
                && held.contains(&(there.dev(), there.ino()))
            {
                return Ok(None);
            }
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o644)
                .open(path)?;
            match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            // Whoever held it before removes the file while it still holds the lock, so the lock may be on a file
            // that nobody will find any more.
            let ours = file.metadata()?;
            let inode = (ours.dev(), ours.ino());
            match fs::metadata(path) {
                Ok(there) if (there.dev(), there.ino()) == inode => {
                    held.insert(inode);
                    return Ok(Some(RealLock { file, inode }));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for RealLock {
    fn drop(&mut self) {
        let mut held = held();
        // Closing would unlock it too, but only after the entry is gone.
        let _ = rustix::fs::fcntl_lock(&self.file, FlockOperation::Unlock);
        held.get_or_insert_default().remove(&self.inode);
    }
}

fn held() -> MutexGuard<'static, Option<HashSet<(u64, u64)>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let rest = buffer.get_mut(done..).unwrap_or_default();
            match self.0.read_at(rest, position + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_all_at(&self, slices: &[IoSlice<'_>], mut position: u64) -> io::Result<()> {
        let mut rest: Vec<IoSlice<'_>> = slices.to_vec();
        let mut rest = rest.as_mut_slice();
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let some = rest.get(..MAX_SLICES).unwrap_or(rest);
            match rustix::io::pwritev(&self.0, some, position) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    position += n as u64;
                    IoSlice::advance_slices(&mut rest, n);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    #[cfg(target_os = "linux")]
    fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        use rustix::fs::FallocateFlags;
        let len = to.saturating_sub(from);
        loop {
            match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), from, len) {
                Err(rustix::io::Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn allocate(&self, _from: u64, _to: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    #[cfg(target_os = "linux")]
    fn drop_cache(&self) -> io::Result<()> {
        use rustix::io::Errno;
        match rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::DontNeed) {
            // A file system that keeps nothing, or a kernel that takes no advice.
            Ok(()) | Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn drop_cache(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_read_only(&self) -> io::Result<()> {
        self.0.set_permissions(fs::Permissions::from_mode(0o400))
    }
}

/// Linux takes no more slices in one call (IOV_MAX).
const MAX_SLICES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_excludes_its_own_process_and_ends_with_its_value() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let lock = RealFs.lock(&path).unwrap();
        assert!(lock.is_some());
        assert!(RealFs.lock(&path).unwrap().is_none());
        drop(lock);
        assert!(RealFs.lock(&path).unwrap().is_some());
    }

    #[test]
    fn slices_beyond_the_systems_limit_are_written_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealFs.open(&dir.path().join("f"), OpenHow::Create).unwrap();
        let parts: Vec<[u8; 2]> = (0..3000u16)
            .map(|i| [u8::try_from(i % 251).unwrap(), u8::try_from(i % 13).unwrap()])
            .collect();
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        file.write_all_at(&slices, 5).unwrap();
        let mut back = vec![0; 6005];
        assert_eq!(file.read_at(&mut back, 0).unwrap(), 6005);
        assert_eq!(back[5..], parts.concat());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn room_is_zeros_behind_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealFs.open(&dir.path().join("f"), OpenHow::Create).unwrap();
        file.write_all_at(&[IoSlice::new(b"abc")], 0).unwrap();
        file.allocate(3, 5000).unwrap();
        assert_eq!(file.size().unwrap(), 5000);
        assert!(file.0.metadata().unwrap().blocks() * 512 >= 5000, "no hole");
        let mut back = vec![1; 6000];
        assert_eq!(file.read_at(&mut back, 0).unwrap(), 5000);
        assert_eq!(&back[..3], b"abc");
        assert!(back[3..5000].iter().all(|byte| *byte == 0));
    }

    // Whether something is synced shows only when the power goes; that the kernel was asked shows where it cannot.
    #[test]
    fn syncs_reach_the_kernel() {
        let invalid = Some(rustix::io::Errno::INVAL.raw_os_error());
        let null = RealFs.open(Path::new("/dev/null"), OpenHow::Write).unwrap();
        assert_eq!(null.sync_data().unwrap_err().raw_os_error(), invalid);
        assert_eq!(RealFs.sync_dir(Path::new("/proc")).unwrap_err().raw_os_error(), invalid);
        let dir = tempfile::tempdir().unwrap();
        RealFs.sync_dir(dir.path()).unwrap();
        RealFs.open(&dir.path().join("f"), OpenHow::Create).unwrap().sync_data().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn advice_about_the_cache_reaches_the_kernel() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let pipe = RealFs.open(&pipe, OpenHow::Write).unwrap();
        let illegal = Some(rustix::io::Errno::SPIPE.raw_os_error());
        assert_eq!(pipe.drop_cache().unwrap_err().raw_os_error(), illegal);

        // What waits to be written is never dropped.
        let file = RealFs.open(&dir.path().join("f"), OpenHow::Create).unwrap();
        file.write_all_at(&[IoSlice::new(b"kept")], 0).unwrap();
        file.drop_cache().unwrap();
        let mut back = [0; 4];
        assert_eq!(file.read_at(&mut back, 0).unwrap(), 4);
        assert_eq!(&back, b"kept");
    }
}
