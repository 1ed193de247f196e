//! Small files that are replaced as a whole: written beside, synced, renamed over the old one.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

use crate::error::StorageError;
use crate::fs::{File, FileSystem, OpenHow};

/// No small file is larger; what is, is not ours.
const MAX_LEN: u64 = 16 << 20;

/// Reads a whole file; `None` if there is none.
pub(crate) fn read<F: FileSystem>(fs: &F, path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    let file = match fs.open(path, OpenHow::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StorageError::io("open", path)(error)),
    };
    let len = file.size().map_err(StorageError::io("read", path))?;
    if len > MAX_LEN {
        let reason = format!("{len} bytes are more than this file ever has ({MAX_LEN})");
        return Err(StorageError::unreadable(path, "size", reason));
    }
    let mut content = vec![0; usize::try_from(len).unwrap_or(0)];
    let n = file.read_at(&mut content, 0).map_err(StorageError::io("read", path))?;
    content.truncate(n);
    Ok(Some(content))
}

/// Reads a whole text file; `None` if there is none.
pub(crate) fn read_text<F: FileSystem>(
    fs: &F,
    path: &Path,
) -> Result<Option<String>, StorageError> {
    let Some(content) = read(fs, path)? else { return Ok(None) };
    match String::from_utf8(content) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Err(StorageError::unreadable(path, format!("byte {at}"), "is not UTF-8"))
        }
    }
}

/// Replaces a file so that after a crash it has the old content or the new one: writes `NAME.tmp`,
/// syncs it, renames it. It is durable once the directory is synced, by the caller.
pub(crate) fn replace_unsynced<F: FileSystem>(
    fs: &F,
    path: &Path,
    content: &[u8],
) -> Result<(), StorageError> {
    let tmp = tmp_path(path);
    let file = fs.open(&tmp, OpenHow::Truncate).map_err(StorageError::io("create", &tmp))?;
    file.write_all_at(&[IoSlice::new(content)], 0).map_err(StorageError::io("write", &tmp))?;
    file.sync_data().map_err(StorageError::io("sync", &tmp))?;
    fs.rename(&tmp, path).map_err(StorageError::io("rename to", path))
}

/// As [`replace_unsynced`], and syncs the directory.
pub(crate) fn replace<F: FileSystem>(
    fs: &F,
    path: &Path,
    content: &[u8],
) -> Result<(), StorageError> {
    replace_unsynced(fs, path, content)?;
    sync_parent(fs, path)
}

/// Makes the entry of a file in its directory durable.
pub(crate) fn sync_parent<F: FileSystem>(fs: &F, path: &Path) -> Result<(), StorageError> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs.sync_dir(parent).map_err(StorageError::io("sync", parent))
}

fn tmp_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}
