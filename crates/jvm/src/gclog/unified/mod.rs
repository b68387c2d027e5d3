//! Unified logging of JDK 9 and later (`-Xlog`, JEP 158 and 271).
//!
//! Owns the grammar of one line: decorations, then a message. Each line can be parsed alone, so
//! there is no state here. Facts: openjdk/jdk:src/hotspot/share/logging/logDecorators.hpp
//! (decorations always have one order) and real logs of JDK 9 to 25.

mod decorations;
mod header;
mod message;

pub(super) use decorations::Decorations;
pub(super) use message::stopped_event;

use super::event::GcLogEvent;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnifiedLine {
    None,
    /// Of other tags (`-Xlog:all`): no loss, no evidence.
    Other,
    Gc(Option<u64>),
}

pub(super) fn parse_unified_line<'a>(
    line: &'a [u8],
    emit: &mut impl FnMut(GcLogEvent<'a>),
) -> UnifiedLine {
    let Some((decorations, text)) = Decorations::split_line(line) else {
        return UnifiedLine::None;
    };
    let (id, event) = message::parse_message(&decorations, text);
    let has_event = event.is_some();
    if let Some(event) = event {
        emit(event);
    }
    let first_tag = decorations.tags.split(|b| *b == b',').next();
    if has_event || id.is_some() || matches!(first_tag, Some(b"gc" | b"safepoint")) {
        UnifiedLine::Gc(id)
    } else {
        UnifiedLine::Other
    }
}

#[cfg(test)]
mod tests;
