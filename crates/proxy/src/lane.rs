//! One direction of a connection: which bytes are sent on, and when. No socket, no clock.
//!
//! Owns what each toxic does to bytes. Pieces leave in the order in which they came, whatever is
//! drawn for each: it is one stream.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use loadline_analysis::random::RandomStream;

use crate::delay::DelayDraw;
use crate::toxic::{ToxicEffect, ToxicSpan};

/// Bytes that may be held back in one direction: beyond it nothing is read, and the sender waits. A
/// delay of 100 ms at 300 MB/s.
const MOST: usize = 32 << 20;

/// What a piece takes besides its bytes: itself, its place in the queue, its allocation. A slow rate cuts
/// pieces of a byte.
const PIECE: usize = 96;

/// A limited rate is kept in steps of this part of a second.
const STEPS: u64 = 100;

const NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct PreparedToxic {
    pub(crate) effect: ToxicEffect,
    pub(crate) draw: Option<DelayDraw>,
    pub(crate) span: Option<ToxicSpan>,
}

impl PreparedToxic {
    pub(crate) fn is_active(&self, now: u64, zero: Option<u64>) -> bool {
        let Some(span) = self.span else { return true };
        zero.is_some_and(|zero| {
            let ns = |duration: std::time::Duration| duration.as_nanos() as u64;
            (zero + ns(span.at)..zero + ns(span.end_time())).contains(&now)
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LaneItem {
    Bytes(Vec<u8>),
    End,
    Close,
}

#[derive(Debug)]
pub(crate) struct LanePiece {
    pub(crate) due: u64,
    pub(crate) what: LaneItem,
    pub(crate) sent: usize,
}

#[derive(Debug)]
pub(crate) struct ConnectionLane {
    toxics: Vec<PlacedToxic>,
    pieces: VecDeque<LanePiece>,
    pub(crate) held: usize,
    last_due: u64,
    random: RandomStream,
    /// Whether bytes were dropped, so that nothing after them makes sense.
    pub(crate) has_lost: bool,
    is_closed: bool,
}

#[derive(Debug)]
struct PlacedToxic {
    toxic: Rc<PreparedToxic>,
    /// When a limited line is free again; how many bytes of a limit are used.
    state: u64,
}

impl ConnectionLane {
    pub(crate) fn new(toxics: Vec<Rc<PreparedToxic>>, random: RandomStream) -> Self {
        let placed = |toxic| PlacedToxic { toxic, state: 0 };
        Self {
            toxics: toxics.into_iter().map(placed).collect(),
            pieces: VecDeque::new(),
            held: 0,
            last_due: 0,
            random,
            has_lost: false,
            is_closed: false,
        }
    }

    /// Whether bytes may go on at once, untouched.
    pub(crate) fn is_open(&self, now: u64, zero: Option<u64>) -> bool {
        let is_active = |placed: &PlacedToxic| placed.toxic.is_active(now, zero);
        self.pieces.is_empty() && !self.is_closed && !self.toxics.iter().any(is_active)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.held < MOST
    }

    pub(crate) fn take_bytes(&mut self, now: u64, zero: Option<u64>, bytes: &[u8]) {
        if self.is_closed {
            return;
        }
        let mut pieces = vec![(now, 0..bytes.len())];
        let mut is_closed = false;
        for placed in &mut self.toxics {
            if placed.toxic.is_active(now, zero) {
                is_closed |= placed.shape(&mut pieces, &mut self.random, &mut self.has_lost);
            }
        }
        for (due, range) in pieces {
            self.push_piece(due, LaneItem::Bytes(bytes[range].to_vec()));
        }
        if is_closed {
            self.is_closed = true;
            self.push_piece(self.last_due.max(now), LaneItem::Close);
        }
    }

    /// Holds bytes that a socket did not take; they are due.
    pub(crate) fn keep_unsent(&mut self, now: u64, bytes: &[u8]) {
        self.push_piece(now, LaneItem::Bytes(bytes.to_vec()));
    }

    pub(crate) fn end_direction(&mut self, now: u64, zero: Option<u64>) {
        let slow = |placed: &PlacedToxic| match placed.toxic.effect {
            ToxicEffect::SlowClose { delay } if placed.toxic.is_active(now, zero) => {
                delay.as_nanos() as u64
            }
            _ => 0,
        };
        let slow: u64 = self.toxics.iter().map(slow).sum();
        let is_hole = |placed: &PlacedToxic| {
            matches!(placed.toxic.effect, ToxicEffect::Timeout { .. })
                && placed.toxic.is_active(now, zero)
        };
        // A black hole takes the end as well.
        if self.toxics.iter().any(is_hole) {
            self.has_lost = true;
        } else {
            self.push_piece(self.last_due.max(now).saturating_add(slow), LaneItem::End);
        }
    }

    pub(crate) fn first_piece(&mut self) -> Option<&mut LanePiece> {
        self.pieces.front_mut()
    }

    pub(crate) fn pop(&mut self) {
        if let Some(LanePiece {
            what: LaneItem::Bytes(bytes),
            ..
        }) = self.pieces.pop_front()
        {
            self.held -= bytes.len() + PIECE;
        }
    }

    fn push_piece(&mut self, due: u64, what: LaneItem) {
        if let LaneItem::Bytes(bytes) = &what {
            self.held += bytes.len() + PIECE;
        }
        self.last_due = due.max(self.last_due);
        self.pieces.push_back(LanePiece {
            due: self.last_due,
            what,
            sent: 0,
        });
    }
}

impl PlacedToxic {
    /// What it makes of pieces (due, bytes); whether the connection ends behind them.
    fn shape(
        &mut self,
        pieces: &mut Vec<(u64, Range<usize>)>,
        random: &mut RandomStream,
        has_lost: &mut bool,
    ) -> bool {
        match &self.toxic.effect {
            ToxicEffect::Latency(_) => {
                let Some(draw) = &self.toxic.draw else {
                    return false;
                };
                for (due, _) in pieces {
                    *due = due.saturating_add(draw.next_ns(random));
                }
            }
            ToxicEffect::Bandwidth { rate } => {
                *pieces = limit_pieces(std::mem::take(pieces), *rate, &mut self.state);
            }
            ToxicEffect::Slicer {
                average_size,
                size_variation,
                delay,
            } => {
                let sizes = (*average_size, *size_variation);
                let apart = delay.as_nanos() as u64;
                *pieces = slice_pieces(std::mem::take(pieces), sizes, apart, random);
            }
            ToxicEffect::Timeout { .. } => {
                *has_lost |= !pieces.is_empty();
                pieces.clear();
            }
            ToxicEffect::LimitData { bytes } => {
                for (_, range) in pieces.iter_mut() {
                    let left = usize::try_from(*bytes - self.state).unwrap_or(usize::MAX);
                    range.end = range.end.min(range.start.saturating_add(left));
                    self.state += range.len() as u64;
                }
                pieces.retain(|(_, range)| !range.is_empty());
                return self.state >= *bytes;
            }
            ToxicEffect::SlowClose { .. } | ToxicEffect::ResetPeer { .. } | ToxicEffect::Down => {}
        }
        false
    }
}

/// Pieces on a line of this rate in bytes a second, which is free at `free` again.
fn limit_pieces(
    pieces: Vec<(u64, Range<usize>)>,
    rate: u64,
    free: &mut u64,
) -> Vec<(u64, Range<usize>)> {
    let rate = rate.max(1);
    let most = usize::try_from(rate / STEPS).unwrap_or(usize::MAX).max(1);
    let mut out = Vec::new();
    for (due, range) in pieces {
        let mut begin = range.start;
        while begin < range.end {
            let end = range.end.min(begin.saturating_add(most));
            let takes = u128::from(NS) * (end - begin) as u128 / u128::from(rate);
            let takes = u64::try_from(takes).unwrap_or(u64::MAX);
            *free = due.max(*free).saturating_add(takes);
            out.push((*free, begin..end));
            begin = end;
        }
    }
    out
}

/// Cuts pieces into smaller ones, `apart` ns from each other.
fn slice_pieces(
    pieces: Vec<(u64, Range<usize>)>,
    (average, variation): (u64, u64),
    apart: u64,
    random: &mut RandomStream,
) -> Vec<(u64, Range<usize>)> {
    let mut out = Vec::new();
    for (due, range) in pieces {
        let (mut begin, mut due) = (range.start, due);
        while begin < range.end {
            let least = average.saturating_sub(variation).max(1);
            let most = average.saturating_add(variation).max(least);
            let span = usize::try_from(most - least + 1).unwrap_or(usize::MAX);
            let size = usize::try_from(least)
                .unwrap_or(usize::MAX)
                .saturating_add(random.uniform_below(span));
            let end = range.end.min(begin.saturating_add(size));
            out.push((due, begin..end));
            due = due.saturating_add(apart);
            begin = end;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::delay::Delay;

    const MS: u64 = 1_000_000;

    fn prepared(effect: ToxicEffect, span: Option<ToxicSpan>) -> Rc<PreparedToxic> {
        let draw = match &effect {
            ToxicEffect::Latency(delay) => DelayDraw::new(delay).ok(),
            _ => None,
        };
        Rc::new(PreparedToxic { effect, draw, span })
    }

    fn lane(effects: Vec<ToxicEffect>) -> ConnectionLane {
        let toxics = effects.into_iter().map(|e| prepared(e, None)).collect();
        ConnectionLane::new(toxics, RandomStream::from_seed(3))
    }

    fn latency(ms: u64) -> ToxicEffect {
        ToxicEffect::Latency(Delay::Fixed {
            latency: Duration::from_millis(ms),
        })
    }

    fn out(lane: &mut ConnectionLane) -> Vec<(u64, LaneItem)> {
        let mut all = Vec::new();
        while let Some(piece) = lane.first_piece() {
            all.push((piece.due, piece.what.clone()));
            lane.pop();
        }
        assert_eq!(lane.held, 0);
        all
    }

    fn bytes(text: &str) -> LaneItem {
        LaneItem::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn latency_holds_bytes_and_their_end_back() {
        let mut lane = lane(vec![latency(20)]);
        lane.take_bytes(5 * MS, None, b"ab");
        lane.end_direction(6 * MS, None);
        assert_eq!(
            out(&mut lane),
            [(25 * MS, bytes("ab")), (25 * MS, LaneItem::End)]
        );
    }

    #[test]
    fn a_rate_is_kept_from_the_first_byte_on() {
        let mut lane = lane(vec![ToxicEffect::Bandwidth { rate: 1000 }]);
        lane.take_bytes(0, None, &[7; 20]);
        lane.take_bytes(0, None, &[7; 10]);
        let dues: Vec<u64> = out(&mut lane)
            .into_iter()
            .map(|(due, _)| due / MS)
            .collect();
        assert_eq!(dues, [10, 20, 30]);
    }

    #[test]
    fn slices_come_one_after_the_other_and_are_the_whole() {
        let mut lane = lane(vec![ToxicEffect::Slicer {
            average_size: 3,
            size_variation: 1,
            delay: Duration::from_millis(2),
        }]);
        lane.take_bytes(0, None, b"abcdefghij");
        let all = out(&mut lane);
        let whole: Vec<u8> = all
            .iter()
            .flat_map(|(_, what)| match what {
                LaneItem::Bytes(bytes) => bytes.clone(),
                _ => Vec::new(),
            })
            .collect();
        assert_eq!(whole, b"abcdefghij");
        assert!(all.len() >= 3, "{all:?}");
        for (index, (due, _)) in all.iter().enumerate() {
            assert_eq!(*due, index as u64 * 2 * MS);
        }
    }

    #[test]
    fn a_black_hole_takes_bytes_and_end() {
        let hole = ToxicEffect::Timeout {
            timeout: Duration::ZERO,
        };
        let mut lane = lane(vec![hole]);
        lane.take_bytes(0, None, b"ab");
        lane.end_direction(0, None);
        assert!(lane.has_lost);
        assert_eq!(out(&mut lane), []);
    }

    #[test]
    fn a_limit_closes_behind_its_last_byte() {
        let mut lane = lane(vec![ToxicEffect::LimitData { bytes: 3 }]);
        lane.take_bytes(0, None, b"ab");
        lane.take_bytes(1, None, b"cd");
        lane.take_bytes(2, None, b"ef");
        assert_eq!(
            out(&mut lane),
            [(0, bytes("ab")), (1, bytes("c")), (1, LaneItem::Close)]
        );
    }

    #[test]
    fn a_slow_close_is_late_only_at_its_end() {
        let mut lane = lane(vec![ToxicEffect::SlowClose {
            delay: Duration::from_millis(500),
        }]);
        lane.take_bytes(0, None, b"a");
        lane.end_direction(MS, None);
        assert_eq!(out(&mut lane), [(0, bytes("a")), (501 * MS, LaneItem::End)]);
    }

    #[test]
    fn a_span_is_counted_from_the_begin_of_the_load_and_its_end_is_out() {
        let span = ToxicSpan {
            at: Duration::from_millis(20),
            length: Duration::from_millis(10),
        };
        let toxic = prepared(latency(5), Some(span));
        let at = |now: u64, zero| toxic.is_active(now, zero);
        let zero = Some(100 * MS);
        assert!(!at(125 * MS, None), "no load has begun");
        assert!(!at(120 * MS - 1, zero) && at(120 * MS, zero));
        assert!(at(130 * MS - 1, zero) && !at(130 * MS, zero));
    }

    #[test]
    fn small_pieces_count_with_what_they_take() {
        let mut lane = lane(vec![ToxicEffect::Bandwidth { rate: 1 }]);
        while lane.has_room() {
            lane.take_bytes(0, None, &[0; 1 << 16]);
        }
        let most = MOST / size_of::<LanePiece>() + (1 << 16);
        assert!(lane.pieces.len() < most, "{}", lane.pieces.len());
    }

    proptest! {
        /// Whatever the toxics, bytes come in order, none twice, and never before they were there.
        #[test]
        fn it_stays_one_stream(
            chunks in prop::collection::vec((0_u64..50, 1_usize..40), 1..20),
            jitter in 0_u64..30, rate in 1_u64..100_000, average in 1_u64..20,
            limit in prop::option::of(0_u64..200), seed in any::<u64>(),
        ) {
            let mut effects = vec![
                ToxicEffect::Latency(Delay::Uniform {
                    latency: Duration::from_millis(10),
                    jitter: Duration::from_millis(jitter),
                }),
                ToxicEffect::Bandwidth { rate },
                ToxicEffect::Slicer { average_size: average, size_variation: average - 1, delay: Duration::from_micros(3) },
            ];
            effects.extend(limit.map(|bytes| ToxicEffect::LimitData { bytes }));
            let toxics = effects.into_iter().map(|e| prepared(e, None)).collect();
            let mut lane = ConnectionLane::new(toxics, RandomStream::from_seed(seed));
            let (mut now, mut sent) = (0, Vec::new());
            for (pause, length) in chunks {
                now += pause * MS;
                let chunk: Vec<u8> = (0..length).map(|i| (sent.len() + i) as u8).collect();
                lane.take_bytes(now, None, &chunk);
                sent.extend(chunk);
            }
            let (mut came, mut last) = (Vec::new(), 0);
            for (due, what) in out(&mut lane) {
                prop_assert!(due >= last);
                last = due;
                if let LaneItem::Bytes(bytes) = what {
                    came.extend(bytes);
                }
            }
            let all = limit.map_or(sent.len(), |limit| sent.len().min(limit as usize));
            prop_assert_eq!(&came[..], &sent[..all]);
        }
    }
}
