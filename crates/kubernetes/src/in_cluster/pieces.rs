//! The stored pieces of a result that is measured in a cluster: numbered, as bytes.
//!
//! Owns their form: JSON under zstd with its checksum, in as many chunks as necessary for the size
//! limit of an object. Numbers have no gaps, so a missing chunk is detected; an incomplete last
//! piece belongs to a trial without a known end, and is skipped. Pure.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use loadline_analysis::record::{MOST_MEMORY, MachineDescription, memory_of_json};
use loadline_protocol::RunRefusal;
use loadline_runner::store::{FinishedTrial, ResultRow, ResultStatus, is_store_id};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::refused::defect_refusal;

/// A config map holds 1 MiB, base64 not counted; the API server takes 1.5 MiB at once, base64 counted.
pub const LARGEST: usize = 700 << 10;

/// Bytes of a piece, unpacked: a record of hours has a few. Who may write config maps may write others.
const MOST: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "piece", rename_all = "snake_case")]
pub enum ResultPiece {
    /// The result as it was begun: always the first.
    Begun(Box<ResultRow>),
    Machine(Box<ResultGround>),
    Trial(Box<FinishedTrial>),
    /// How the controller ended: always the last.
    Ended(ControllerEnd),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultGround {
    pub machine: MachineDescription,
    pub fingerprint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerEnd {
    pub status: ResultStatus,
    pub outcome: Option<String>,
    pub code: u8,
    pub error: Option<String>,
    pub hints: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceChunk {
    pub number: u32,
    pub part: u32,
    pub parts: u32,
    pub bytes: Vec<u8>,
}

/// The chunks of a piece, the first with this number.
/// Errors: [`RunRefusal`]: a defect.
pub fn split_piece(piece: &ResultPiece, first: u32) -> Result<Vec<PieceChunk>, RunRefusal> {
    let what = "keeping a piece of the result in the cluster";
    let packed = pack_piece(piece).map_err(|error| defect_refusal(what, error))?;
    let all: Vec<&[u8]> = packed.chunks(LARGEST).collect();
    let parts = all.len() as u32;
    let chunk = |(at, bytes): (u32, &[u8])| PieceChunk {
        number: first + at,
        part: at + 1,
        parts,
        bytes: bytes.to_vec(),
    };
    Ok((0..).zip(all).map(chunk).collect())
}

fn pack_piece(piece: &ResultPiece) -> std::io::Result<Vec<u8>> {
    let json = serde_json::to_vec(piece)?;
    let mut encoder = zstd::Encoder::new(Vec::new(), 3)?;
    encoder.include_checksum(true)?;
    encoder.write_all(&json)?;
    encoder.finish()
}

pub fn piece_digest(chunks: &[PieceChunk]) -> String {
    let bytes: Vec<u8> = chunks.iter().flat_map(|c| c.bytes.clone()).collect();
    digest_of_bytes(&bytes)
}

fn digest_of_bytes(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// The pieces of one result: the first is the sent one, which the Job's digest proves, and all
/// belong to that result. Errors: [`RunRefusal`] names a chunk that is missing or damaged, or a
/// piece that does not belong to the result.
pub fn pieces_of_result(
    result: &str,
    chunks: Vec<PieceChunk>,
    first_piece: Option<&str>,
) -> Result<Vec<ResultPiece>, RunRefusal> {
    let packed = whole_pieces(chunks)?;
    let Some((_, first)) = packed.first() else {
        return Ok(Vec::new());
    };
    let Some(digest) = first_piece else {
        return Err(wrong_chunk(
            0,
            "its Job lacks the digest that every Job of this version has",
        ));
    };
    if digest_of_bytes(first) != digest {
        return Err(wrong_chunk(
            0,
            "it was changed there: its digest differs from the Job's",
        ));
    }
    let all = unpack_all(&packed)?;
    for (index, ((number, _), piece)) in packed.iter().zip(&all).enumerate() {
        let why = match (index, piece) {
            (0, ResultPiece::Begun(row)) if row.id == result => continue,
            (0, ResultPiece::Begun(row)) => {
                format!("it is of the result {}", row.id.escape_debug())
            }
            (0, _) => "it is not the result as it was begun".to_owned(),
            (_, ResultPiece::Begun(_)) => "it starts the result once more".to_owned(),
            (_, ResultPiece::Trial(finished)) => match &finished.record {
                record if record.result != result => {
                    format!(
                        "it is a trial of the result {}",
                        record.result.escape_debug()
                    )
                }
                record if !is_store_id(&record.id) => {
                    format!(
                        "the id of its trial, {}, is not a UUID",
                        record.id.escape_debug()
                    )
                }
                _ => continue,
            },
            (_, ResultPiece::Machine(_) | ResultPiece::Ended(_)) => continue,
        };
        return Err(wrong_chunk(*number, &why));
    }
    Ok(all)
}

fn whole_pieces(chunks: Vec<PieceChunk>) -> Result<Vec<(u32, Vec<u8>)>, RunRefusal> {
    let by_number: BTreeMap<u32, PieceChunk> = chunks.into_iter().map(|c| (c.number, c)).collect();
    let (mut all, mut whole, mut next) = (Vec::new(), Vec::new(), 0);
    for (number, chunk) in by_number {
        if number != next {
            return Err(wrong_chunk(next, "it is missing"));
        }
        next += 1;
        if chunk.part == 1 {
            // The rest of the one before never came: its writer was killed.
            whole.clear();
        }
        whole.extend(chunk.bytes);
        if chunk.part == chunk.parts {
            all.push((number, std::mem::take(&mut whole)));
        }
    }
    Ok(all)
}

fn unpack_all(packed: &[(u32, Vec<u8>)]) -> Result<Vec<ResultPiece>, RunRefusal> {
    let mut memory = 0;
    let unpacked = packed.iter().map(|(number, bytes)| {
        unpack_piece(bytes, &mut memory).map_err(|why| wrong_chunk(*number, &why))
    });
    unpacked.collect()
}

/// `memory` is what the pieces before take.
fn unpack_piece(bytes: &[u8], memory: &mut u64) -> Result<ResultPiece, String> {
    let mut json = Vec::new();
    let decoder = zstd::Decoder::new(bytes).map_err(|error| error.to_string())?;
    decoder
        .take(MOST + 1)
        .read_to_end(&mut json)
        .map_err(|error| format!("it is damaged: {error}"))?;
    if json.len() as u64 > MOST {
        return Err(format!("it has more than {} MiB", MOST >> 20));
    }
    *memory += memory_of_json(&json);
    if *memory > MOST_MEMORY {
        let most = MOST_MEMORY >> 30;
        return Err(format!("with it they take more than {most} GiB of memory"));
    }
    serde_json::from_slice(&json).map_err(|error| format!("it cannot be read: {error}"))
}

fn wrong_chunk(number: u32, why: &str) -> RunRefusal {
    RunRefusal::new(
        format!("piece {number} of what the cluster kept of the result"),
        why,
        "it was changed there; the other pieces are not used without it. `loadline size` starts again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(text: &str) -> ResultPiece {
        ResultPiece::Ended(ControllerEnd {
            status: ResultStatus::Done,
            outcome: Some(text.to_owned()),
            code: 0,
            error: None,
            hints: Vec::new(),
        })
    }

    /// A text that no packing makes small.
    fn long(bytes: usize) -> String {
        let mut state = 1_u64;
        let next = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(b'!' + (state >> 58) as u8)
        };
        (0..bytes).map(next).collect()
    }

    /// The pieces of all chunks that are there, in their order, unchecked.
    fn pieces_from_chunks(chunks: Vec<PieceChunk>) -> Result<Vec<ResultPiece>, RunRefusal> {
        unpack_all(&whole_pieces(chunks)?)
    }

    fn all(pieces: &[ResultPiece]) -> Vec<PieceChunk> {
        let mut all: Vec<PieceChunk> = Vec::new();
        for piece in pieces {
            let first = all.len() as u32;
            all.extend(split_piece(piece, first).expect("it is packed"));
        }
        all
    }

    #[test]
    fn pieces_come_as_they_went_in_whatever_order_they_are_listed() {
        let sent = [ended("a"), ended(&long(2_000_000)), ended("c")];
        let mut all = all(&sent);
        assert!(all.len() > 4, "a piece needs several objects");
        assert!(all.iter().all(|chunk| chunk.bytes.len() <= LARGEST));
        all.reverse();
        assert_eq!(pieces_from_chunks(all).expect("all are there"), sent);
        assert_eq!(pieces_from_chunks(Vec::new()), Ok(Vec::new()));
    }

    #[test]
    fn a_missing_piece_is_named_by_its_number() {
        let mut all = all(&[ended("a"), ended("b"), ended("c")]);
        all.remove(1);
        let refusal = pieces_from_chunks(all).expect_err("one is missing");
        insta::assert_snapshot!(refusal, @"piece 1 of what the cluster kept of the result: it is missing");
    }

    #[test]
    fn a_damaged_piece_is_named_by_its_number() {
        let sent = all(&[ended("a"), ended("as it was"), ended("c")]);
        let length = sent[1].bytes.len();
        for at in 0..length {
            let mut all = sent.clone();
            all[1].bytes[at] ^= 1;
            let Err(refusal) = pieces_from_chunks(all) else {
                // A bit of the frame's header that does not affect its content.
                assert!(
                    at < 8,
                    "byte {at} of {length} was changed without detection"
                );
                continue;
            };
            let said = refusal.to_string();
            assert!(said.starts_with("piece 1 of"), "{said}");
        }
        let mut all = sent.clone();
        all[1].bytes.truncate(length - 1);
        assert!(pieces_from_chunks(all).is_err());
    }

    #[test]
    fn a_piece_that_unpacks_to_too_much_is_refused() {
        let all = all(&[ended(&"a".repeat(MOST as usize))]);
        assert!(all[0].bytes.len() < 64 << 10, "it is small before");
        let refusal = pieces_from_chunks(all).expect_err("it is too much");
        insta::assert_snapshot!(refusal, @"piece 0 of what the cluster kept of the result: it has more than 64 MiB");
    }

    #[test]
    fn pieces_that_take_too_much_memory_together_are_refused() {
        let large = ended(&",".repeat(40 << 20));
        let refusal = pieces_from_chunks(all(&[large.clone(), large])).expect_err("too much");
        insta::assert_snapshot!(refusal, @"piece 1 of what the cluster kept of the result: with it they take more than 2 GiB of memory");
    }

    #[test]
    fn a_piece_whose_writer_was_killed_in_the_middle_is_passed_over() {
        let mut all = all(&[ended("a"), ended(&long(2_000_000))]);
        all.pop();
        assert_eq!(pieces_from_chunks(all.clone()), Ok(vec![ended("a")]));
        let next = all.len() as u32;
        all.extend(split_piece(&ended("c"), next).expect("it is packed"));
        assert_eq!(pieces_from_chunks(all), Ok(vec![ended("a"), ended("c")]));
    }
}
