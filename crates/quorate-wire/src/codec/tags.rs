//! Tagged fields that a message does not know.

use bytes::Bytes;

use super::{Ctx, Reader, tag_len};
use crate::error::{DecodeError, EncodeError};

/// Tagged fields that the struct they stand in does not know, ascending by tag. They are kept when
/// read and written back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::box_collection)] // One word in every struct of every message.
pub struct UnknownTags(Option<Box<Vec<(u32, Bytes)>>>);

impl UnknownTags {
    /// Adds a field behind those with the same tag.
    pub fn push(&mut self, tag: u32, data: Bytes) {
        let tags = self.0.get_or_insert_default();
        let at = tags.partition_point(|(other, _)| *other <= tag);
        tags.insert(at, (tag, data));
    }

    /// The content of the last field with this tag.
    pub fn get(&self, tag: u32) -> Option<&Bytes> {
        self.iter().filter(|(other, _)| *other == tag).last().map(|(_, data)| data)
    }

    /// All of them, ascending by tag.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Bytes)> {
        self.0.iter().flat_map(|tags| tags.iter()).map(|(tag, data)| (*tag, data))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.as_ref().map_or(0, |tags| tags.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    #[doc(hidden)]
    pub fn read(&mut self, tag: u32, size: usize, reader: &mut Reader) -> Result<(), DecodeError> {
        reader.charge(size_of::<(u32, Bytes)>())?;
        let data = reader.take(size)?;
        self.0.get_or_insert_default().push((tag, data));
        Ok(())
    }

    /// Puts in order what was read in any.
    #[doc(hidden)]
    pub fn sort(&mut self) {
        if let Some(tags) = &mut self.0 {
            tags.sort_by_key(|(tag, _)| *tag);
        }
    }

    #[doc(hidden)]
    pub fn wire_len(&self, ctx: Ctx, known: &[u32]) -> Result<usize, EncodeError> {
        let mut len = 0;
        for (tag, data) in self.iter() {
            if !ctx.flexible {
                return Err(EncodeError::unsupported("tagged fields", ctx.version));
            }
            if known.contains(&tag) {
                return Err(EncodeError::known_tag(tag));
            }
            if u32::try_from(data.len()).is_err() {
                return Err(EncodeError::too_long(data.len()));
            }
            len += tag_len(tag, data.len());
        }
        Ok(len)
    }
}
