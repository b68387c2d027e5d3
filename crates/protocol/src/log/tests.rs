use std::fs::File;
use std::io::Read;
use std::time::Duration;

use loadline_analysis::record::TrialPhase;
use proptest::prelude::*;

use super::*;
use crate::{TrialEnding, TrialProgress};

fn empty(directory: &tempfile::TempDir) -> File {
    let path = directory.path().join("log");
    let mut options = File::options();
    let options = options.read(true).append(true).create_new(true);
    options.open(path).unwrap()
}

/// A small trial's log: its bytes, and where each record begins.
fn written() -> (Vec<u8>, Vec<usize>) {
    let directory = tempfile::tempdir().unwrap();
    let log = EventLog::begin_log(empty(&directory)).unwrap();
    let path = directory.path().join("log");
    let mut begins = Vec::new();
    let mut note = || begins.push(std::fs::metadata(&path).unwrap().len() as usize);
    note();
    let phase = TrialPhase::Start;
    log.append_event(&TrialEvent::Phase { phase, at_ns: 7 })
        .unwrap();
    note();
    log.append_chunk(ChunkContent::Output, 1, b"Started in 3 s\n");
    note();
    log.append_chunk(ChunkContent::File(2), 0, &[0; 1000]);
    note();
    log.append_event(&TrialEvent::Progress(TrialProgress {
        phase,
        elapsed: Duration::from_secs(1),
        p99: None,
        rate: Some(2.0),
    }))
    .unwrap();
    note();
    let evidence = TrialEnding::Measured(Box::default());
    log.append_event(&TrialEvent::Ended(evidence)).unwrap();
    note();
    assert!(log.chunk_failure().is_none());
    (std::fs::read(path).unwrap(), begins)
}

/// All records, and what ended the reading.
fn all(bytes: &[u8]) -> (Vec<LogEntry>, Option<LogError>) {
    let mut reader = EventLogReader::new(bytes);
    let mut records = Vec::new();
    loop {
        match reader.next_entry() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => return (records, None),
            Err(error) => return (records, Some(error)),
        }
    }
}

#[test]
fn what_is_written_is_read_in_order() {
    let (bytes, begins) = written();
    let (records, error) = all(&bytes);
    assert!(error.is_none());
    assert_eq!(records.len(), begins.len() - 1);
    assert_eq!(
        records[0],
        LogEntry::Event(TrialEvent::Phase {
            phase: TrialPhase::Start,
            at_ns: 7
        })
    );
    let LogEntry::Piece(piece) = &records[1] else {
        panic!("{:?}", records[1]);
    };
    assert_eq!((piece.content, piece.instance), (ChunkContent::Output, 1));
    assert_eq!(piece.unpacked_bytes().unwrap(), b"Started in 3 s\n");
    assert!(matches!(
        records[4],
        LogEntry::Event(TrialEvent::Ended(TrialEnding::Measured(_)))
    ));
}

#[test]
fn a_long_file_is_cut_into_pieces_and_comes_back_whole() {
    let directory = tempfile::tempdir().unwrap();
    let log = EventLog::begin_log(empty(&directory)).unwrap();
    let file: Vec<u8> = (0..3 * PIECE + 5).map(|n| (n * n % 251) as u8).collect();
    log.append_chunk(ChunkContent::GcLog, 0, &file);
    log.append_chunk(ChunkContent::GcLog, 1, b"another's");
    let mut back = Vec::new();
    let mut joined = log
        .open_reader()
        .unwrap()
        .join_chunks(ChunkContent::GcLog, 0);
    joined.read_to_end(&mut back).unwrap();
    assert!(back == file);
    let mut reader = log.open_reader().unwrap();
    for _ in 0..5 {
        assert!(reader.next_chunk().unwrap().is_some());
    }
    assert!(reader.next_chunk().unwrap().is_none());
    // A log that grows is read on.
    log.append_chunk(ChunkContent::GcLog, 0, b"more");
    let more = reader
        .next_chunk()
        .unwrap()
        .map(|p| p.unpacked_bytes().unwrap());
    assert_eq!(more.as_deref(), Some(b"more".as_slice()));
}

#[test]
fn reading_goes_on_at_any_record() {
    let (bytes, begins) = written();
    let (records, _) = all(&bytes);
    for (number, begin) in begins.iter().enumerate() {
        let mut reader = EventLogReader::resume_at(&bytes[*begin..], *begin as u64);
        assert_eq!(reader.next_entry().unwrap().as_ref(), records.get(number));
        let next = begins.get(number + 1).unwrap_or(begin);
        assert_eq!(reader.offset(), *next as u64);
    }
}

#[test]
fn a_file_of_another_kind_or_one_that_is_not_empty_is_refused() {
    let (_, error) = all(b"LLSF1\nxxxxxxxxxxxx");
    assert!(matches!(error, Some(LogError::Foreign)), "{error:?}");
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("used"), "x").unwrap();
    let used = File::options()
        .append(true)
        .open(directory.path().join("used"));
    assert!(EventLog::begin_log(used.unwrap()).is_err());
}

fn piece(packed: Vec<u8>) -> FileChunk {
    FileChunk {
        content: ChunkContent::Output,
        instance: 0,
        packed,
    }
}

#[test]
fn a_body_that_says_no_size_takes_no_more_memory_than_it_has() {
    let packed = zstd::encode_all(&b"Started in 3 s\n"[..], 3).unwrap();
    let body = piece(packed).unpacked_bytes().unwrap();
    assert_eq!(body, b"Started in 3 s\n");
    assert!(body.capacity() < PIECE, "{}", body.capacity());
}

#[test]
fn a_few_bytes_do_not_become_hundreds_of_mebibytes() {
    let packed = zstd::encode_all(io::repeat(0).take(LARGEST_BODY as u64 + 1), 3).unwrap();
    assert!(packed.len() < PIECE, "{}", packed.len());
    let refused = piece(packed).unpacked_bytes().unwrap_err().to_string();
    assert_eq!(refused, "the event log is damaged: a body is too large");
    let directory = tempfile::tempdir().unwrap();
    let log = EventLog::begin_log(empty(&directory)).unwrap();
    log.append_whole_chunk(ChunkContent::Samples, 0, &vec![0; LARGEST_BODY + 1]);
    let refused = log.chunk_failure().unwrap().to_string();
    assert_eq!(refused, "the record is too large for the event log");
}

proptest! {
    #[test]
    fn a_log_cut_anywhere_gives_its_whole_records(cut in 0_usize..4000) {
        let (bytes, begins) = written();
        let cut = cut.min(bytes.len());
        let (records, error) = all(&bytes[..cut]);
        prop_assert!(error.is_none());
        let whole = begins.iter().skip(1).filter(|end| **end <= cut).count();
        prop_assert_eq!(records.len(), whole);
    }

    #[test]
    fn any_flipped_bit_is_found(at in 0_usize..4000, bit in 0_u32..8) {
        let (mut bytes, begins) = written();
        let at = at.min(bytes.len() - 1);
        let (before, _) = all(&bytes);
        bytes[at] ^= 1 << bit;
        let (records, _) = all(&bytes);
        // All records before the damaged one, and not one after it.
        let whole = begins.iter().skip(1).filter(|end| **end <= at).count();
        prop_assert_eq!(records.len(), whole);
        prop_assert_eq!(&records[..], &before[..whole]);
    }

    #[test]
    fn any_bytes_end_and_do_not_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400), magic: bool) {
        if magic {
            bytes.splice(0..0, MAGIC.iter().copied());
        }
        all(&bytes);
    }
}
