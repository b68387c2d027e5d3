//! One open record of a classic log, from `[GC` or `[Full GC` to its own closing bracket.
//!
//! Owns the text directly inside the record's brackets, bounded, and its translation into the
//! words of unified logs, so that summaries know one language.

use std::time::Duration;

use super::super::event::{HeapChange, LogTime};
use super::super::number;

/// The begin of the text has the cause, its end has heap and duration. The middle is dropped beyond
/// this size.
const TEXT_LIMIT: usize = 4096;
const HEAD: usize = 512;
const TAIL: usize = 512;

/// Deeper brackets are not a record of any JVM.
const DEPTH_LIMIT: u32 = 64;

/// What follows `[GC` where no pause begins: concurrent phases and parts of pauses.
const NO_PAUSE: [&[u8]; 5] = [
    b" concurrent",
    b"-concurrent",
    b" Worker",
    b" ref-proc",
    b" Others",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordOpener {
    Young,
    Full,
    /// `[GC remark` (G1)
    Remark,
    /// `[GC cleanup` (G1)
    Cleanup,
    Evacuation,
}

impl RecordOpener {
    /// What the text after a bracket begins; `None` when it is no pause: `[GC concurrent-...]`,
    /// `[GC Worker Start ...]`, `[GC ref-proc, ...]`.
    pub(super) fn from_bracket_text(inner: &[u8]) -> Option<Self> {
        if inner.starts_with(b"Full GC") {
            return Some(Self::Full);
        }
        let rest = inner.strip_prefix(b"GC")?;
        for (word, opener) in [
            (&b" pause"[..], Self::Evacuation),
            (b" remark", Self::Remark),
            (b" cleanup", Self::Cleanup),
        ] {
            if rest.starts_with(word) {
                return Some(opener);
            }
        }
        let is_part = NO_PAUSE.iter().any(|word| rest.starts_with(word));
        (!is_part).then_some(Self::Young)
    }

    pub(super) fn len(self) -> usize {
        match self {
            Self::Young => b"GC".len(),
            Self::Full => b"Full GC".len(),
            Self::Remark => b"GC remark".len(),
            Self::Cleanup => b"GC cleanup".len(),
            Self::Evacuation => b"GC pause".len(),
        }
    }
}

#[derive(Debug)]
pub(super) struct ClassicRecord {
    opener: RecordOpener,
    start: LogTime,
    pub(super) lines: u32,
    depth: u32,
    text: Vec<u8>,
    /// `CMS-initial-mark` or `CMS-remark` stood inside.
    cms_phase: Option<&'static [u8]>,
    /// The old generation was collected inside a `[GC`.
    is_old_collected: bool,
    /// `concurrent mode failure` or `interrupted` stood inside.
    is_concurrent_failure: bool,
    /// CMS has begun its remark, which may have a young collection inside.
    is_remark_begun: bool,
    /// Time of the pause inside, which is reported separately.
    pub(super) nested: Option<Duration>,
}

impl ClassicRecord {
    pub(super) fn new(opener: RecordOpener, start: LogTime) -> Self {
        Self {
            opener,
            start,
            lines: 0,
            depth: 1,
            text: Vec::with_capacity(128),
            cms_phase: None,
            is_old_collected: false,
            is_concurrent_failure: false,
            is_remark_begun: false,
            nested: None,
        }
    }

    /// Whether a record that begins now is a part of this one (`-XX:+CMSScavengeBeforeRemark`),
    /// and not a sign that the end of this one is lost.
    pub(super) fn may_nest(&self) -> bool {
        self.is_remark_begun && self.depth == 1 && self.nested.is_none()
    }

    pub(super) fn append(&mut self, text: &[u8]) {
        if memchr::memmem::find(text, b"concurrent mode").is_some() {
            self.is_concurrent_failure = true;
        }
        if self.depth > 1 {
            return;
        }
        let text = &text[text.len().saturating_sub(TEXT_LIMIT)..];
        self.text.extend_from_slice(text);
        if self.text.len() > TEXT_LIMIT {
            let from = self.text.len() - TAIL;
            self.text.drain(HEAD..from);
        }
    }

    pub(super) fn descend(&mut self, inner: &[u8]) {
        self.note_leaf(inner);
        self.depth = (self.depth + 1).min(DEPTH_LIMIT);
    }

    pub(super) fn ascend(&mut self) -> bool {
        self.depth -= 1;
        self.depth == 0
    }

    pub(super) fn note_leaf(&mut self, inner: &[u8]) {
        if inner.starts_with(b"1 CMS-initial-mark") {
            self.cms_phase = Some(b"Pause Initial Mark");
        } else if inner.starts_with(b"1 CMS-remark") {
            self.cms_phase = Some(b"Pause Remark");
        }
        self.is_remark_begun |= inner.starts_with(b"YG occupancy");
        let after_cms = inner.strip_prefix(b"CMS").and_then(|rest| rest.first());
        self.is_old_collected |= inner.starts_with(b"Tenured")
            || inner.starts_with(b"ParOldGen")
            || inner.starts_with(b"PSOldGen")
            || matches!(after_cms, Some(b':' | b'0'..=b'9' | b'J'));
    }

    /// The last number before ` secs`, which ends the text; without the pause inside.
    pub(super) fn own_duration(&self) -> Option<Duration> {
        let text = self.text.trim_ascii_end();
        let text = text.strip_suffix(b"secs")?.trim_ascii_end();
        let whole = number::parse_decimal_seconds(last_number(text))?;
        Some(whole.saturating_sub(self.nested.unwrap_or_default()))
    }

    pub(super) fn end_time(&self, own: Duration) -> LogTime {
        self.start.later_by(self.nested.unwrap_or_default() + own)
    }

    /// The last `a->b(c)`: the whole heap follows its parts.
    pub(super) fn whole_heap(&self) -> Option<HeapChange> {
        memchr::memmem::rfind_iter(&self.text, b"->").find_map(|arrow| {
            let left = &self.text[..arrow];
            let from = left
                .iter()
                .rev()
                .take_while(|b| b.is_ascii_alphanumeric() || **b == b'.')
                .count();
            let (before, rest) = number::take_size(&left[left.len() - from..])?;
            let (after, right) = number::take_size(&self.text[arrow + 2..])?;
            let committed = right.strip_prefix(b"(").and_then(number::take_size);
            rest.is_empty().then_some(HeapChange {
                before,
                after,
                committed: committed.map(|(bytes, _)| bytes),
            })
        })
    }

    /// Whether survivors or old regions ran full (G1 before JDK 9).
    pub(super) fn has_evacuation_failure(&self) -> bool {
        let has = |what: &[u8]| memchr::memmem::find(&self.text, what).is_some();
        has(b"to-space exhausted") || has(b"to-space overflow")
    }

    /// Kind and cause as unified logs write them: `Pause Young (Allocation Failure)`.
    pub(super) fn write_unified_words(&self, into: &mut Vec<u8>) {
        into.clear();
        let mut cause = self.cause();
        let has = |what: &[u8]| memchr::memmem::find(&self.text, what).is_some();
        let kind: &[u8] = match (self.opener, self.cms_phase) {
            (RecordOpener::Remark, _) => b"Pause Remark",
            (RecordOpener::Cleanup, _) => b"Pause Cleanup",
            (RecordOpener::Evacuation, _) if has(b"initial-mark") => {
                b"Pause Young (Concurrent Start)"
            }
            (RecordOpener::Evacuation, _) if has(b"(mixed)") || has(b"(partial)") => {
                b"Pause Young (Mixed)"
            }
            (RecordOpener::Evacuation, _) => b"Pause Young (Normal)",
            (RecordOpener::Young, Some(phase)) => {
                cause = None;
                phase
            }
            (RecordOpener::Young, None) if self.is_old_collected => b"Pause Full",
            (RecordOpener::Young, None) => b"Pause Young",
            (RecordOpener::Full, _) => b"Pause Full",
        };
        into.extend_from_slice(kind);
        if self.is_concurrent_failure && kind == b"Pause Full" {
            cause = cause
                .filter(|cause| *cause == b"System.gc()")
                .or(Some(b"Concurrent Mode Failure"));
        }
        if let Some(cause) = cause {
            into.extend_from_slice(b" (");
            into.extend_from_slice(cause);
            into.push(b')');
        }
    }

    /// The first parenthesis after the opener, unless it says what kind of pause it is.
    fn cause(&self) -> Option<&[u8]> {
        let text = self.text.strip_prefix(b"--").unwrap_or(&self.text);
        let inner = text.trim_ascii_start().strip_prefix(b"(")?;
        let window = &inner[..inner.len().min(80)];
        let mut depth = 1;
        let close = window.iter().position(|b| {
            depth += i32::from(*b == b'(') - i32::from(*b == b')');
            depth == 0
        })?;
        match &inner[..close] {
            b"young" | b"mixed" | b"partial" | b"initial-mark" => None,
            b"System" => Some(b"System.gc()"),
            cause => Some(cause),
        }
    }
}

/// The number at the end of a text, decimal comma or point; `, 0,0282200` is `0,0282200`.
fn last_number(text: &[u8]) -> &[u8] {
    let length = text
        .iter()
        .rev()
        .take_while(|b| matches!(b, b'0'..=b'9' | b'.' | b','))
        .count();
    let number = &text[text.len() - length..];
    let skip = number.iter().take_while(|b| !b.is_ascii_digit()).count();
    &number[skip..]
}
