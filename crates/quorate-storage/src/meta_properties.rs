//! `meta.properties`: whose directory this is.
//!
//! Written last when a directory is formatted, so a directory that has it is whole. The cluster id is
//! any text and compared as written.

use std::io::Read;
use std::path::{Path, PathBuf};

use quorate_core::{DirectoryId, NodeId};
use quorate_wire::Uuid;

use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::small_file;

/// The file's name in each log directory.
pub const FILE_NAME: &str = "meta.properties";

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaProperties {
    /// `cluster.id`.
    pub cluster: String,
    /// `node.id`.
    pub node: NodeId,
    /// `directory.id`; formatters before Kafka 3.7 wrote none. With kraft.version 0 whoever finds it missing makes one
    /// and writes the file again; with kraft.version 1 there is nothing to replace it.
    pub directory: Option<DirectoryId>,
}

/// Reads the file from a metadata log directory; `None` if there is none.
///
/// # Errors
///
/// Another version than 1, a missing or unreadable field, a reserved directory id.
pub fn read<F: FileSystem>(fs: &F, dir: &Path) -> Result<Option<MetaProperties>, StorageError> {
    let path = path(dir);
    match small_file::read(fs, &path)? {
        Some(content) => parse(&content, &path).map(Some),
        None => Ok(None),
    }
}

/// Replaces the file durably. `now_ms`, milliseconds since 1970, goes into its comment.
///
/// # Errors
///
/// Those of the disk.
pub fn write<F: FileSystem>(
    fs: &F,
    dir: &Path,
    meta: &MetaProperties,
    now_ms: i64,
) -> Result<(), StorageError> {
    small_file::replace(fs, &path(dir), format(meta, now_ms).as_bytes())
}

/// Kafka's text form of a uuid: URL-safe base64, 22 characters, or 24 with padding.
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    // Java takes all of the padding or none.
    let whole = !text.ends_with('=') || text.len() == 24;
    text.parse().ok().filter(|_| whole).map(|Uuid(bytes)| bytes)
}

/// Whether Kafka keeps this id for itself: high half zero, low half below 100 as a signed number.
pub fn is_reserved(directory: &[u8; 16]) -> bool {
    let bits = u128::from_be_bytes(*directory);
    // The low half is signed in Java, so those with the top bit set are reserved too.
    bits >> 64 == 0 && (bits < 100 || bits >> 63 == 1)
}

fn path(dir: &Path) -> PathBuf {
    dir.join(FILE_NAME)
}

fn parse(content: &[u8], path: &Path) -> Result<MetaProperties, StorageError> {
    let refuse = |field: &str, reason: String| StorageError::unreadable(path, field, reason);
    // Java knows no byte order mark; our reader takes the first bytes for one, and panics where one is cut short.
    // Blanks before a key do not count.
    let fields = java_properties::read(b" ".chain(content)).map_err(|error| {
        let line = error.line_number().map_or("text".to_owned(), |n| format!("line {n}"));
        refuse(&line, error.to_string())
    })?;
    let field = |name: &str| {
        fields.get(name).ok_or_else(|| {
            refuse(name, "is missing; restore the file, or format an empty directory".to_owned())
        })
    };
    match fields.get("version").map(|version| version.trim()) {
        Some("1") => {}
        None | Some("0") => {
            let reason = "version 0 is the layout of ZooKeeper times; this directory never was a KRaft \
                          controller's: format another one";
            return Err(refuse("version", reason.to_owned()));
        }
        Some(other) => {
            let reason = format!("{other:?} is not known (1 is); a newer release wrote it");
            return Err(refuse("version", reason));
        }
    }
    let cluster = field("cluster.id")?.clone();
    let node = field("node.id")?;
    let node = match node.trim().parse::<i32>() {
        Ok(id) if id >= 0 => NodeId(id),
        _ => return Err(refuse("node.id", format!("{node:?} is no node id"))),
    };
    let directory = match fields.get("directory.id") {
        None => None,
        Some(text) => {
            let bytes = parse_uuid(text.trim()).ok_or_else(|| {
                refuse("directory.id", format!("{text:?} is no base64 uuid of 16 bytes"))
            })?;
            if is_reserved(&bytes) {
                let reason = format!(
                    "{text} is reserved; remove the line if voters are static, else format an empty directory"
                );
                return Err(refuse("directory.id", reason));
            }
            DirectoryId::from_bytes(bytes)
        }
    };
    Ok(MetaProperties { cluster, node, directory })
}

/// As Kafka writes it: two comment lines, and the keys in the order of its hash map.
fn format(meta: &MetaProperties, now_ms: i64) -> String {
    let MetaProperties { cluster, node, directory } = meta;
    let directory = match directory {
        Some(directory) => format!("directory.id={directory}\n"),
        None => String::new(),
    };
    format!(
        "#\n#{}\nnode.id={node}\n{directory}version=1\ncluster.id={}\n",
        java_date(now_ms),
        escape(cluster)
    )
}

/// A value as `java.util.Properties` stores it.
fn escape(value: &str) -> String {
    let mut out = String::new();
    for (i, c) in value.chars().enumerate() {
        match c {
            ' ' if i == 0 => out.push_str("\\ "),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{c}' => out.push_str("\\f"),
            '\\' | '=' | ':' | '#' | '!' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04X}"));
                }
            }
        }
    }
    out
}

/// A time as `java.util.Date` prints it in UTC: `Thu Jan 01 00:00:00 UTC 2026`.
fn java_date(now_ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = now_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years that begin in March, eras of 400 years: the leap day comes last in each.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 2, 0) } else { (month - 10, 1) };
    let year = year_of_era + era * 400 + later;
    let name = |names: &[&'static str], i: i64| {
        usize::try_from(i).ok().and_then(|i| names.get(i).copied()).unwrap_or("?")
    };
    format!(
        "{} {} {day:02} {:02}:{:02}:{:02} UTC {year}",
        name(&DAYS, days.rem_euclid(7)),
        name(&MONTHS, month),
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}
