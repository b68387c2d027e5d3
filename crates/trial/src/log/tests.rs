use std::fs::File;
use std::io::Read;
use std::time::Duration;

use loadline_analysis::record::Phase;
use proptest::prelude::*;

use super::*;
use crate::{Ending, Progress};

fn empty(directory: &tempfile::TempDir) -> File {
    let path = directory.path().join("log");
    let mut options = File::options();
    let options = options.read(true).append(true).create_new(true);
    options.open(path).unwrap()
}

/// A small trial's log: its bytes, and where each record begins.
fn written() -> (Vec<u8>, Vec<usize>) {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::begin(empty(&directory)).unwrap();
    let path = directory.path().join("log");
    let mut begins = Vec::new();
    let mut note = || begins.push(std::fs::metadata(&path).unwrap().len() as usize);
    note();
    let phase = Phase::Start;
    log.event(&Event::Phase { phase, at_ns: 7 }).unwrap();
    note();
    log.piece(Content::Output, 1, b"Started in 3 s\n");
    note();
    log.piece(Content::File(2), 0, &[0; 1000]);
    note();
    log.event(&Event::Progress(Progress {
        phase,
        elapsed: Duration::from_secs(1),
        p99: None,
        rate: Some(2.0),
    }))
    .unwrap();
    note();
    let evidence = Ending::Measured(Box::default());
    log.event(&Event::Ended(evidence)).unwrap();
    note();
    assert!(log.failure().is_none());
    (std::fs::read(path).unwrap(), begins)
}

/// All records, and what ended the reading.
fn all(bytes: &[u8]) -> (Vec<Record>, Option<LogError>) {
    let mut reader = Reader::new(bytes);
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
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
        Record::Event(Event::Phase {
            phase: Phase::Start,
            at_ns: 7
        })
    );
    let Record::Piece(piece) = &records[1] else {
        panic!("{:?}", records[1]);
    };
    assert_eq!((piece.content, piece.instance), (Content::Output, 1));
    assert_eq!(piece.bytes().unwrap(), b"Started in 3 s\n");
    assert!(matches!(
        records[4],
        Record::Event(Event::Ended(Ending::Measured(_)))
    ));
}

#[test]
fn a_long_file_is_cut_into_pieces_and_comes_back_whole() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::begin(empty(&directory)).unwrap();
    let file: Vec<u8> = (0..3 * PIECE + 5).map(|n| (n * n % 251) as u8).collect();
    log.piece(Content::GcLog, 0, &file);
    log.piece(Content::GcLog, 1, b"another's");
    let mut back = Vec::new();
    let mut joined = log.reader().unwrap().join(Content::GcLog, 0);
    joined.read_to_end(&mut back).unwrap();
    assert!(back == file);
    let mut reader = log.reader().unwrap();
    for _ in 0..5 {
        assert!(reader.next_piece().unwrap().is_some());
    }
    assert!(reader.next_piece().unwrap().is_none());
    // A log that grows is read on.
    log.piece(Content::GcLog, 0, b"more");
    let more = reader.next_piece().unwrap().map(|p| p.bytes().unwrap());
    assert_eq!(more.as_deref(), Some(b"more".as_slice()));
}

#[test]
fn reading_goes_on_at_any_record() {
    let (bytes, begins) = written();
    let (records, _) = all(&bytes);
    for (number, begin) in begins.iter().enumerate() {
        let mut reader = Reader::resume(&bytes[*begin..], *begin as u64);
        assert_eq!(reader.next_record().unwrap().as_ref(), records.get(number));
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
    assert!(Log::begin(used.unwrap()).is_err());
}

fn piece(packed: Vec<u8>) -> Piece {
    Piece {
        content: Content::Output,
        instance: 0,
        packed,
    }
}

#[test]
fn a_body_that_says_no_size_takes_no_more_memory_than_it_has() {
    let packed = zstd::encode_all(&b"Started in 3 s\n"[..], 3).unwrap();
    let body = piece(packed).bytes().unwrap();
    assert_eq!(body, b"Started in 3 s\n");
    assert!(body.capacity() < PIECE, "{}", body.capacity());
}

#[test]
fn a_few_bytes_do_not_become_hundreds_of_mebibytes() {
    let packed = zstd::encode_all(io::repeat(0).take(LARGEST_BODY as u64 + 1), 3).unwrap();
    assert!(packed.len() < PIECE, "{}", packed.len());
    let refused = piece(packed).bytes().unwrap_err().to_string();
    assert_eq!(refused, "the event log is damaged: a body is too large");
    let directory = tempfile::tempdir().unwrap();
    let log = Log::begin(empty(&directory)).unwrap();
    log.whole_piece(Content::Samples, 0, &vec![0; LARGEST_BODY + 1]);
    let refused = log.failure().unwrap().to_string();
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
