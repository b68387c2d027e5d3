//! Lines of a container's log as the API server streams it.
//!
//! Owns that no line fills memory; what a line is, is [`pod::LineSplitter`]'s.

use std::collections::VecDeque;

use futures_util::{AsyncBufRead, AsyncBufReadExt, Stream, stream};
use loadline_trial::pod;

/// The lines of a log to which the application can write: none is longer than one of ours.
pub fn bounded_lines(
    log: impl AsyncBufRead + Unpin,
) -> impl Stream<Item = std::io::Result<String>> {
    let state = (log, pod::LineSplitter::default(), VecDeque::new());
    stream::unfold(state, |(mut log, mut splitter, mut lines)| async move {
        while lines.is_empty() {
            let taken = match log.fill_buf().await {
                Ok(bytes) => {
                    splitter.take_bytes(bytes, |line| lines.push_back(line));
                    bytes.len()
                }
                Err(error) => return Some((Err(error), (log, splitter, lines))),
            };
            if taken == 0 {
                return None;
            }
            log.consume_unpin(taken);
        }
        let line = lines.pop_front()?;
        Some((Ok(line), (log, splitter, lines)))
    })
}
