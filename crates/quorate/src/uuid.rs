//! Kafka's random uuids: 16 random bytes, not of RFC 9562, printed as 22 characters of URL-safe base64.

use quorate_core::DirectoryId;
use quorate_storage::meta_properties;

use crate::failure::{Exit, Failure};

/// A fresh id whose text has no `-`, so that it can stand as an argument anywhere, and that is not reserved.
pub(crate) fn random() -> Result<DirectoryId, Failure> {
    loop {
        let bytes = random_bytes()?;
        if let Some(id) = DirectoryId::from_bytes(bytes)
            && !meta_properties::is_reserved(&bytes)
            && !id.to_string().contains('-')
        {
            return Ok(id);
        }
    }
}

/// Random bytes of the operating system.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
                .map_err(|error| {
                    Failure::new(format!("the system gives no random numbers: {error}"))
                        .exit(Exit::Internal)
                })?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_uuid_reads_back_and_has_no_dash() {
        for _ in 0..1000 {
            let id = random().expect("random");
            let text = id.to_string();
            assert!(text.len() == 22 && !text.contains('-'), "{text}");
            assert_eq!(meta_properties::parse_uuid(&text).as_ref(), Some(id.as_bytes()));
        }
    }
}
