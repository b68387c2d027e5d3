//! Collections of generational ZGC: which ones another one ended in.
//!
//! A minor collection may run while a major one does. Heap figures of each are from its own begin
//! and end, so those of the outer one say nothing about the time between the inner ones.

use std::collections::VecDeque;

/// Collections that have begun and not ended; more at once there are not.
const OPEN_LIMIT: usize = 4;

#[derive(Debug, Default)]
pub(super) struct GcCycles {
    begun: VecDeque<(u64, u64)>,
    ended: u64,
}

impl GcCycles {
    pub(super) fn begin_cycle(&mut self, id: u64) {
        if self.begun.len() == OPEN_LIMIT {
            self.begun.pop_front();
        }
        self.begun.push_back((id, self.ended));
    }

    /// Collection `id` has ended; whether another one has since it began. `false` when its begin
    /// is not known.
    pub(super) fn end_cycle(&mut self, id: u64) -> bool {
        let position = self.begun.iter().position(|(begun, _)| *begun == id);
        let begun = position.and_then(|position| self.begun.remove(position));
        let has_other = begun.is_some_and(|(_, ended)| ended != self.ended);
        self.ended += 1;
        has_other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_in_which_another_one_ended_is_told() {
        let mut cycles = GcCycles::default();
        cycles.begin_cycle(0);
        assert!(!cycles.end_cycle(0));
        cycles.begin_cycle(1);
        cycles.begin_cycle(2);
        assert!(!cycles.end_cycle(2));
        assert!(cycles.end_cycle(1), "the second one ended in it");
        cycles.begin_cycle(3);
        cycles.begin_cycle(4);
        assert!(!cycles.end_cycle(3), "none ended in it");
        assert!(cycles.end_cycle(4), "the third one ended in it");
        assert!(!cycles.end_cycle(9), "its begin is not known");
    }

    #[test]
    fn what_never_ends_is_forgotten() {
        let mut cycles = GcCycles::default();
        (0..100).for_each(|id| cycles.begin_cycle(id));
        assert_eq!(cycles.begun.len(), OPEN_LIMIT);
    }
}
