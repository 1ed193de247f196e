//! The commit thread, and readers beside it.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use quorate_core::Offset;
use quorate_core::io::WriteId;

use super::{META, data, election, formatted, log_file, open, open_mem, opening, run};
use crate::mem_fs::Fault;
use crate::verify::verify;
use crate::{
    File, FileSystem, OpenHow, Options, RealFs, RollLimits, StorageError, Store, StoreEvent,
    StoreWrite, start,
};

const WAIT: Duration = Duration::from_secs(20);

#[test]
fn cold_reads_give_whole_batches_from_any_offset() {
    // Many small segments; and few, with entries in their indexes.
    for segment_bytes in [600, 12_000, 1 << 30] {
        cold_reads(segment_bytes);
    }
}

fn cold_reads(segment_bytes: u64) {
    let fs = formatted();
    let limits = RollLimits { segment_bytes, ..RollLimits::default() };
    let options = Options { dir: super::DIR.into(), node: super::NODE, limits };
    let mut store = Store::open(fs, options).unwrap().store;
    let mut log = vec![opening(0, 1)];
    for n in 0..120 {
        let base = log.last().unwrap().end.0;
        log.push(data(base, 1, 1 + n % 3, 5 + 3 * (n % 40)));
    }
    run(
        &mut store,
        1,
        std::iter::once(election(1)).chain(log.iter().cloned().map(StoreWrite::Append)),
    )
    .unwrap();
    let reader = store.reader();
    let end = log.last().unwrap().end;
    for from in 0..end.0 {
        // Batches come from one segment at a time: read on until the end.
        let mut at = Offset(from);
        let expected: Vec<_> = log.iter().filter(|batch| batch.end > at).collect();
        let mut found = Vec::new();
        while at < end {
            let some = reader.read(at, end, 300).unwrap();
            assert!(!some.is_empty());
            let bytes: usize = some.iter().map(bytes::Bytes::len).sum();
            assert!(some.len() == 1 || bytes <= 300);
            found.extend(some);
            at = expected[found.len() - 1].end;
        }
        assert!(found.iter().eq(expected.iter().map(|batch| &batch.bytes)), "from {from}");
        let begins = log.iter().any(|batch| batch.base == Offset(from));
        assert_eq!(reader.is_boundary(Offset(from)).unwrap(), begins, "at {from}");
    }
    assert_eq!(reader.read(end, Offset(end.0 + 5), 300).unwrap(), Vec::<bytes::Bytes>::new());
    let third = &log[2];
    assert_eq!(
        reader.read(third.base, Offset(third.end.0 - 1), 300).unwrap().len(),
        0,
        "not beyond `to`"
    );

    // Any boundary of batches can be found to cut at, from the end down to the start.
    for batch in log.iter().rev() {
        run(&mut store, 1, [StoreWrite::Truncate { to: batch.base }]).unwrap();
        assert_eq!(reader.read(batch.base, end, 300).unwrap().len(), 0);
    }
    run(&mut store, 1, [election(2), StoreWrite::Append(opening(0, 2))]).unwrap();
    assert_eq!(reader.read(Offset(0), end, 300).unwrap(), [opening(0, 2).bytes]);
}

#[test]
fn a_batch_that_rots_is_not_served() {
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    run(
        &mut store,
        1,
        [election(1), StoreWrite::Append(opening(0, 1)), StoreWrite::Append(data(1, 1, 1, 50))],
    )
    .unwrap();
    let reader = store.reader();
    // Below the store: the open file is another inode now, so write through the same one.
    let log = fs.open(&log_file("00000000000000000000.log"), OpenHow::Write).unwrap();
    let at = opening(0, 1).bytes.len() as u64 + 70;
    log.write_all_at(&[std::io::IoSlice::new(b"!")], at).unwrap();
    assert_eq!(reader.read(Offset(0), Offset(1), 300).unwrap().len(), 1);
    let error = reader.read(Offset(1), Offset(2), 300).unwrap_err();
    assert!(matches!(error, StorageError::Corrupt { .. }), "{error}");
}

// The CRC of a batch covers neither its offset nor its epoch.
#[test]
fn a_batch_with_a_wrong_offset_or_epoch_is_not_served() {
    let fs = formatted();
    let limits = crate::RollLimits { segment_bytes: 64 << 10, ..Default::default() };
    let options = crate::Options { dir: super::DIR.into(), node: super::NODE, limits };
    let mut store = crate::Store::open(fs.clone(), options).unwrap().store;
    run(&mut store, 1, [election(1), StoreWrite::Append(opening(0, 1))]).unwrap();
    run(&mut store, 3, (0..20).map(|i| StoreWrite::Append(data(1 + 2 * i, 1, 2, 500)))).unwrap();
    run(&mut store, 23, [election(2), StoreWrite::Append(opening(41, 2))]).unwrap();
    run(&mut store, 25, [StoreWrite::Append(data(42, 2, 1, 10))]).unwrap();
    let reader = store.reader();
    let (head, size) = (opening(0, 1).bytes.len(), data(1, 1, 2, 500).bytes.len());
    let path = log_file("00000000000000000000.log");
    // Each batch of two records is read by itself, from both its offsets, with a wrong bit in its offset and in its epoch.
    for (i, base) in (0..20).map(|i| (i, 1 + 2 * i64::try_from(i).unwrap())) {
        for byte in (0..8).chain(12..16) {
            for bit in 0..8 {
                let position = head + i * size + byte;
                assert!(fs.damage(&path, position, bit));
                for from in [base, base + 1] {
                    let found = reader.read(Offset(from), Offset(base + 2), 0);
                    assert!(
                        matches!(found, Err(StorageError::Corrupt { .. })),
                        "bit {bit} of byte {byte} of the batch at {base}, from {from}: {found:?}"
                    );
                }
                assert!(fs.damage(&path, position, bit));
                assert_eq!(reader.read(Offset(base), Offset(base + 2), 0).unwrap().len(), 1);
            }
        }
    }
    // The first of an epoch.
    let position = head + 20 * size + 15;
    assert!(fs.damage(&path, position, 0));
    let error = reader.read(Offset(41), Offset(42), 0).unwrap_err().to_string();
    assert!(error.contains("epoch 3, the log has epoch 2"), "{error}");
}

/// Readers beside truncations and overwrites get the old log, the new one, or nothing.
#[test]
fn reads_beside_truncations_are_never_mixed() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("meta.properties"), META).unwrap();
    let mut store = open(&RealFs, dir.path()).unwrap().store;
    let reader = store.reader();
    let (stop, stopped) = mpsc::channel::<()>();
    run(&mut store, 1, [election(1), StoreWrite::Append(opening(0, 1))]).unwrap();
    let read = thread::spawn(move || {
        let mut reads = 0;
        while stopped.try_recv().is_err() {
            let mut at = Offset(1);
            let mut last_epoch = 0;
            while let Some(first) = reader.read(at, Offset(i64::MAX), 2000).unwrap().first() {
                let (batch, _) = quorate_wire::batch::Batch::parse(first).unwrap();
                assert_eq!(batch.base_offset(), at.0);
                // A later read may see a later epoch, but no read an older one.
                assert!(batch.leader_epoch() >= last_epoch);
                last_epoch = batch.leader_epoch();
                at = Offset(batch.end_offset());
                reads += 1;
            }
        }
        reads
    });
    for epoch in 2..40 {
        let batches = (2..9).map(|base| StoreWrite::Append(data(base, epoch, 1, 150)));
        let writes =
            [election(epoch), StoreWrite::Append(opening(1, epoch))].into_iter().chain(batches);
        run(&mut store, 1, writes).unwrap();
        run(&mut store, 1, [StoreWrite::Truncate { to: Offset(1) }]).unwrap();
    }
    stop.send(()).unwrap();
    assert!(read.join().unwrap() > 0);
}

#[test]
fn the_thread_reports_what_is_durable_in_order() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("meta.properties"), META).unwrap();
    let store = open(&RealFs, dir.path()).unwrap().store;
    let (events, reports) = mpsc::channel();
    let (submitter, reader) = start(store, move |event| {
        let _ = events.send(event);
    })
    .unwrap();
    submitter
        .submit(vec![(WriteId(1), election(1)), (WriteId(2), StoreWrite::Append(opening(0, 1)))]);
    for n in 1..200 {
        submitter.submit(vec![(
            WriteId(2 + n),
            StoreWrite::Append(data(i64::try_from(n).unwrap(), 1, 1, 20)),
        )]);
    }
    let mut last = 0;
    let mut count = 0;
    while last < 201 {
        match reports.recv_timeout(WAIT).unwrap() {
            StoreEvent::Durable(WriteId(through)) => {
                assert!(through > last);
                last = through;
                count += 1;
            }
            StoreEvent::Failed(error) => panic!("{error}"),
        }
    }
    assert!(count < 201, "appends share syncs");
    assert_eq!(submitter.queued_bytes(), 0);
    assert!(!reader.read(Offset(0), Offset(200), 100).unwrap().is_empty());

    // What is submitted before `close` is done by it.
    submitter.submit(vec![(WriteId(202), StoreWrite::Append(data(200, 1, 1, 20)))]);
    submitter.close().unwrap();
    assert!(matches!(reports.recv().unwrap(), StoreEvent::Durable(WriteId(202))));
    assert!(!dir.path().join(".lock").exists());
    let opened = open(&RealFs, dir.path()).unwrap();
    assert_eq!((opened.log_end, opened.notes.as_slice()), (Offset(201), [].as_slice()));
}

#[test]
fn the_thread_reports_a_failure_once_and_does_nothing_more() {
    let fs = formatted();
    let store = open_mem(&fs).unwrap().store;
    let (events, reports) = mpsc::channel();
    fs.fail_at(0, Fault::Once(std::io::ErrorKind::StorageFull));
    let (submitter, _) = start(store, move |event| {
        let _ = events.send(event);
    })
    .unwrap();
    submitter
        .submit(vec![(WriteId(1), election(1)), (WriteId(2), StoreWrite::Append(opening(0, 1)))]);
    let StoreEvent::Failed(error) = reports.recv_timeout(WAIT).unwrap() else {
        panic!("not durable")
    };
    let operations = fs.operations();
    submitter.submit(vec![(WriteId(3), election(2))]);
    assert_eq!(submitter.queued_bytes(), 0);
    assert_eq!(submitter.close().unwrap_err().to_string(), error.to_string());
    assert!(reports.recv().is_err(), "one report, and the thread has ended");
    assert_eq!(fs.operations(), operations);
}

/// A disk on which something happens at the next read.
#[derive(Clone, Debug)]
struct Interrupted {
    disk: crate::mem_fs::MemFs,
    at_next_read: Arc<Mutex<Option<Interruption>>>,
}

type Interruption = mpsc::Sender<mpsc::Sender<()>>;

#[derive(Debug)]
struct InterruptedFile(crate::mem_fs::MemFile, Interrupted);

impl FileSystem for Interrupted {
    type File = InterruptedFile;
    type Lock = crate::mem_fs::MemLock;

    fn open(&self, path: &Path, how: OpenHow) -> io::Result<InterruptedFile> {
        Ok(InterruptedFile(self.disk.open(path, how)?, self.clone()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Self::Lock>> {
        self.disk.lock(path)
    }
}

impl File for InterruptedFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let interruption = self.1.at_next_read.lock().unwrap().take();
        if let Some(interruption) = interruption {
            let (done, wait) = mpsc::channel();
            interruption.send(done).unwrap();
            wait.recv_timeout(WAIT).unwrap();
        }
        self.0.read_at(buffer, position)
    }

    fn write_all_at(&self, slices: &[io::IoSlice<'_>], position: u64) -> io::Result<()> {
        self.0.write_all_at(slices, position)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        self.0.allocate(from, to)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.0.drop_cache()
    }

    fn set_read_only(&self) -> io::Result<()> {
        self.0.set_read_only()
    }
}

#[test]
fn a_read_that_a_truncation_overtakes_gives_nothing() {
    let fs = Interrupted { disk: formatted(), at_next_read: Arc::default() };
    let mut store = open(&fs, Path::new(super::DIR)).unwrap().store;
    let append = StoreWrite::Append;
    run(&mut store, 1, [election(1), append(opening(0, 1)), append(data(1, 1, 1, 50))]).unwrap();
    let reader = store.reader();
    let (interruption, interrupted) = mpsc::channel();
    *fs.at_next_read.lock().unwrap() = Some(interruption);
    let read = thread::spawn(move || reader.read(Offset(1), Offset(2), 300).unwrap());

    // The reader knows its place and is about to read: another batch takes that place.
    let go_on: mpsc::Sender<()> = interrupted.recv_timeout(WAIT).unwrap();
    let overwrite = [StoreWrite::Truncate { to: Offset(1) }, election(2), append(opening(1, 2))];
    run(&mut store, 4, overwrite).unwrap();
    go_on.send(()).unwrap();
    assert_eq!(read.join().unwrap().len(), 0);
    assert_eq!(store.reader().read(Offset(1), Offset(2), 300).unwrap(), [opening(1, 2).bytes]);
}

// Room for more is zeros, and may be batches when it is looked at again.
#[test]
fn a_batch_that_is_written_while_a_tool_looks_at_its_place_is_no_damage() {
    // Where zeros are met, the next read is to tell whether they are all: in between they become a batch.
    for (tool, at) in [("dump", 2), ("verify", 1)] {
        let fs = Interrupted { disk: formatted(), at_next_read: Arc::default() };
        let limits = RollLimits { segment_bytes: 1 << 20, ..RollLimits::default() };
        let options = Options { dir: super::DIR.into(), node: super::NODE, limits };
        let mut store = Store::open(fs.clone(), options).unwrap().store;
        run(&mut store, 1, [election(1), StoreWrite::Append(opening(0, 1))]).unwrap();
        for base in 1..=20 {
            run(&mut store, 10, [StoreWrite::Append(data(base, 1, 1, 50))]).unwrap();
        }
        let look = fs.clone();
        let (interruption, interrupted) = mpsc::channel();
        *fs.at_next_read.lock().unwrap() = Some(interruption);
        let looking = thread::spawn(move || match tool {
            "dump" => super::batches(&look, Path::new(super::DIR)).len(),
            _ => {
                let found = verify(&look, &super::log_dir(), &mut |_| ()).unwrap();
                assert_eq!(found.damage, []);
                usize::try_from(found.batches).unwrap()
            }
        });
        let mut go_on: mpsc::Sender<()> = interrupted.recv_timeout(WAIT).unwrap();
        let (mut base, mut reads) = (21, 1);
        loop {
            let (interruption, interrupted) = mpsc::channel();
            *fs.at_next_read.lock().unwrap() = Some(interruption);
            go_on.send(()).unwrap();
            match interrupted.recv_timeout(Duration::from_millis(300)) {
                Ok(next) => go_on = next,
                Err(_) => break,
            }
            reads += 1;
            if (reads - 1) % 3 == at && base < 30 {
                run(&mut store, 50, [StoreWrite::Append(data(base, 1, 1, 50))]).unwrap();
                base += 1;
            }
        }
        let found = looking.join().unwrap();
        assert!(found >= 22 && base > 21, "{found} batches, the last is {base}");
    }
}
