//! The one checksum of logs and snapshots.

/// CRC-32C (Castagnoli).
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}
