//! Kafka's frames: a length in four bytes, big end first, and as many bytes.
//!
//! Memory follows what has come, never what was announced: a frame gets its first 64 KiB when its
//! length is known, and the rest only when those are there. Frames beyond the connection's own small
//! buffer also need a share of a budget that all connections have in common.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use quorate_wire::frame::{FrameError as SizeError, SIZE_LEN, frame_size};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What each connection reads into; most requests fit.
const OWN_BUFFER: usize = 4 << 10;
/// What a larger frame gets at first.
const FIRST_SHARE: usize = 64 << 10;
/// How many slices one system call writes.
const SLICES: usize = 64;

/// Bytes that all connections of a process may hold at a time.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    permits: Arc<Semaphore>,
    total: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Budget {
        let total = bytes.min(Semaphore::MAX_PERMITS);
        Budget { permits: Arc::new(Semaphore::new(total)), total }
    }

    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// A share at once, or none. What is larger than the whole budget takes the whole budget.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        self.permits.clone().try_acquire_many_owned(self.permits_for(bytes)).ok()
    }

    async fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        self.permits.clone().acquire_many_owned(self.permits_for(bytes)).await.ok()
    }

    fn permits_for(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.min(self.total)).unwrap_or(u32::MAX)
    }
}

/// Why there is no frame.
#[derive(Debug)]
pub(crate) enum FrameError {
    /// The other side ended the connection between two frames.
    Closed,
    /// The other side ended the connection within a frame.
    CutShort { have: usize, announced: usize },
    /// The length is not above 0, above the limit, or no length at all.
    Size(SizeError),
    /// The connection failed.
    Io(io::Error),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Closed => f.write_str("the connection was closed"),
            FrameError::CutShort { have, announced } => {
                write!(f, "the connection ended after {have} bytes of a frame of {announced}")
            }
            FrameError::Size(SizeError::Tls) => {
                f.write_str("looks like TLS on a plaintext listener")
            }
            FrameError::Size(SizeError::Http) => f.write_str("looks like HTTP"),
            FrameError::Size(error) => write!(f, "{error}"),
            FrameError::Io(error) => write!(f, "{error}"),
        }
    }
}

/// One frame without its length, and its share of the budget.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

/// Reads frames from one connection. Every method may be cancelled at any await: what has come stays.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    buffer: BytesMut,
    share: Option<OwnedSemaphorePermit>,
}

impl FrameReader {
    /// Waits until a frame has begun.
    pub(crate) async fn wait<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
    ) -> Result<(), FrameError> {
        while self.buffer.is_empty() {
            if self.fill(stream).await.map_err(FrameError::Io)? == 0 {
                return Err(FrameError::Closed);
            }
        }
        Ok(())
    }

    /// Whether [`FrameReader::fill`] can take in more without asking for memory. Never so while there
    /// is no buffer at all.
    pub(crate) fn has_room(&self) -> bool {
        self.buffer.len() < self.buffer.capacity()
    }

    /// Reads what is there; zero means that the other side ended the connection.
    pub(crate) async fn fill<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> io::Result<usize> {
        if !self.has_room() {
            self.buffer.reserve(OWN_BUFFER);
        }
        stream.read_buf(&mut self.buffer).await
    }

    /// Reads one frame of at most `limit` bytes.
    pub(crate) async fn read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        limit: usize,
        budget: Option<&Budget>,
    ) -> Result<Frame, FrameError> {
        loop {
            // Checked before anything is reserved for it.
            let announced = frame_size(&self.buffer, limit).map_err(FrameError::Size)?;
            let Some(announced) = announced else {
                self.fill_or_end(stream, 0).await?;
                continue;
            };
            if self.buffer.len() >= SIZE_LEN + announced {
                return Ok(self.take(announced));
            }
            self.make_room(announced, budget).await;
            self.fill_or_end(stream, announced).await?;
        }
    }

    async fn make_room(&mut self, announced: usize, budget: Option<&Budget>) {
        let whole = SIZE_LEN + announced;
        if self.has_room() && whole <= OWN_BUFFER {
            return;
        }
        let target = if self.buffer.len() < FIRST_SHARE { whole.min(FIRST_SHARE) } else { whole };
        if let Some(budget) = budget
            && whole > OWN_BUFFER
        {
            let held = self.share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            let wanted = target.min(budget.total());
            if held < wanted
                && let Some(more) = budget.take(wanted - held).await
            {
                match &mut self.share {
                    Some(share) => share.merge(more),
                    None => self.share = Some(more),
                }
            }
        }
        self.buffer.reserve(target.saturating_sub(self.buffer.len()));
    }

    async fn fill_or_end<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        announced: usize,
    ) -> Result<(), FrameError> {
        if self.fill(stream).await.map_err(FrameError::Io)? > 0 {
            return Ok(());
        }
        Err(match self.buffer.len() {
            0 => FrameError::Closed,
            have => FrameError::CutShort { have, announced },
        })
    }

    fn take(&mut self, announced: usize) -> Frame {
        let mut bytes = self.buffer.split_to(SIZE_LEN + announced).freeze();
        bytes.advance(SIZE_LEN);
        if self.buffer.is_empty() && announced > OWN_BUFFER {
            // The rest of a large buffer would keep all of it alive.
            self.buffer = BytesMut::new();
        }
        Frame { bytes, _share: self.share.take() }
    }
}

/// Writes all slices, as many as possible in one system call.
pub(crate) async fn write_all<S: AsyncWrite + Unpin>(
    stream: &mut S,
    slices: &[Bytes],
) -> io::Result<()> {
    let (mut index, mut offset) = (0, 0);
    while let Some(first) = slices.get(index) {
        if offset >= first.len() {
            (index, offset) = (index + 1, 0);
            continue;
        }
        let mut batch = [io::IoSlice::new(&[]); SLICES];
        let rest = slices.iter().skip(index);
        let count = batch
            .iter_mut()
            .zip(rest)
            .enumerate()
            .map(|(i, (slot, slice))| {
                let from = if i == 0 { offset } else { 0 };
                *slot = io::IoSlice::new(slice.get(from..).unwrap_or(&[]));
            })
            .count();
        let mut written = stream.write_vectored(batch.get(..count).unwrap_or(&[])).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while let Some(slice) = slices.get(index) {
            let left = slice.len() - offset;
            if written < left {
                offset += written;
                break;
            }
            written -= left;
            (index, offset) = (index + 1, 0);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(body: &[u8]) -> Vec<u8> {
        let mut bytes = i32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend_from_slice(body);
        bytes
    }

    #[tokio::test]
    async fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let bodies: Vec<Vec<u8>> =
            [1usize, 2, 4091, 4092, 4093, 70_000, 3].iter().map(|n| vec![7u8; *n]).collect();
        let stream: Vec<u8> = bodies.iter().flat_map(|body| frame(body)).collect();
        for step in [1, 3, 4096, 1 << 20] {
            let (mut near, mut far) = tokio::io::duplex(step);
            let bytes = stream.clone();
            let writer = tokio::spawn(async move {
                near.write_all(&bytes).await.unwrap();
            });
            let mut reader = FrameReader::default();
            let budget = Budget::new(1 << 20);
            for body in &bodies {
                let frame = reader.read(&mut far, 1 << 20, Some(&budget)).await.unwrap();
                assert_eq!(frame.bytes, body.as_slice());
            }
            assert_eq!(budget.permits.available_permits(), budget.total());
            writer.await.unwrap();
            assert!(matches!(reader.read(&mut far, 1 << 20, None).await, Err(FrameError::Closed)));
        }
    }

    #[tokio::test]
    async fn an_announced_length_costs_no_memory_before_the_bytes_come() {
        let (mut near, mut far) = tokio::io::duplex(1 << 20);
        near.write_all(&(64i32 << 20).to_be_bytes()).await.unwrap();
        let mut reader = FrameReader::default();
        let budget = Budget::new(100 << 20);
        let read = reader.read(&mut far, 100 << 20, Some(&budget));
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), read).await.is_err());
        assert!(reader.buffer.capacity() <= FIRST_SHARE + OWN_BUFFER);
        assert_eq!(budget.permits.available_permits(), budget.total() - FIRST_SHARE);
        drop(reader);
        assert_eq!(budget.permits.available_permits(), budget.total());
    }

    #[tokio::test]
    async fn an_exhausted_budget_makes_a_large_frame_wait_and_lets_a_small_one_pass() {
        let (mut near, mut far) = tokio::io::duplex(1 << 20);
        let budget = Budget::new(10_000);
        let held = budget.try_take(5_000).unwrap();
        let mut reader = FrameReader::default();
        near.write_all(&frame(&[1; 100])).await.unwrap();
        assert_eq!(reader.read(&mut far, 1 << 20, Some(&budget)).await.unwrap().bytes.len(), 100);
        near.write_all(&frame(&[1; 9_000])).await.unwrap();
        let wait = std::time::Duration::from_millis(20);
        let read = reader.read(&mut far, 1 << 20, Some(&budget));
        assert!(tokio::time::timeout(wait, read).await.is_err());
        drop(held);
        assert_eq!(reader.read(&mut far, 1 << 20, Some(&budget)).await.unwrap().bytes.len(), 9_000);
    }

    #[tokio::test]
    async fn many_slices_are_written_in_order() {
        let slices: Vec<Bytes> =
            (0..200u8).map(|i| Bytes::from(vec![i; usize::from(i % 5)])).collect();
        let expected: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        let (mut near, mut far) = tokio::io::duplex(7);
        let writer = tokio::spawn(async move { write_all(&mut near, &slices).await });
        let mut got = Vec::new();
        far.read_to_end(&mut got).await.unwrap();
        writer.await.unwrap().unwrap();
        assert_eq!(got, expected);
    }

    #[tokio::test]
    async fn what_is_no_length_is_named() {
        for (bytes, text) in [
            (*b"GET ", "looks like HTTP"),
            ([0x16, 3, 1, 2], "looks like TLS on a plaintext listener"),
            ([0xff; 4], "-1 bytes"),
            ([0x7f, 0xff, 0xff, 0xff], "2147483647 bytes is larger than 9"),
        ] {
            let mut reader = FrameReader { buffer: BytesMut::from(&bytes[..]), share: None };
            let error = reader.read(&mut tokio::io::empty(), 9, None).await.unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
