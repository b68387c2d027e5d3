//! The numbers of collections, `GC(n)`: which ones a log does not have.
//!
//! Numbers come nearly in order (a concurrent cycle goes on while young collections get later
//! numbers), so a window of the last 1024 is enough, and memory is constant.

const WINDOW: u64 = 1024;
const WORDS: usize = (WINDOW / 64) as usize;

#[derive(Debug, Default)]
pub(super) struct CollectionNumbers {
    first: Option<u64>,
    lowest: u64,
    highest: u64,
    is_begun: bool,
    /// Bit `n % WINDOW` is set when `n`, within the window below `highest`, was seen.
    seen: [u64; WORDS],
    distinct: u64,
    missing_before: u64,
    last: Option<u64>,
}

impl CollectionNumbers {
    pub(super) fn note(&mut self, id: u64) {
        if self.last == Some(id) {
            return;
        }
        self.last = Some(id);
        // A restart that the clock does not show begins with 0.
        if self.is_begun && id == 0 && self.highest >= WINDOW {
            self.restart();
        }
        if !self.is_begun {
            self.is_begun = true;
            self.first = self.first.or(Some(id));
            (self.lowest, self.highest, self.distinct) = (id, id, 0);
            self.seen = [0; WORDS];
        }
        if id > self.highest {
            self.advance(id);
        }
        // A lower number is of a cycle that began before the log did.
        if id >= self.lowest {
            self.mark(id);
        }
    }

    fn advance(&mut self, id: u64) {
        if id - self.highest >= WINDOW {
            self.seen = [0; WORDS];
        } else {
            for number in self.highest + 1..=id {
                self.seen[index(number)] &= !bit(number);
            }
        }
        self.highest = id;
    }

    fn mark(&mut self, id: u64) {
        let is_fresh = self.seen[index(id)] & bit(id) == 0;
        if is_fresh && self.highest - id < WINDOW {
            self.seen[index(id)] |= bit(id);
            self.distinct += 1;
        }
    }

    pub(super) fn restart(&mut self) {
        self.missing_before = self.missing_count();
        self.is_begun = false;
        self.last = None;
    }

    fn missing_now(&self) -> u64 {
        if !self.is_begun {
            return 0;
        }
        (self.highest - self.lowest)
            .saturating_add(1)
            .saturating_sub(self.distinct)
    }

    /// Missing numbers between the first and the last, over all JVMs.
    pub(super) fn missing_count(&self) -> u64 {
        self.missing_before.saturating_add(self.missing_now())
    }

    pub(super) fn first_number(&self) -> Option<u64> {
        self.first
    }
}

fn index(number: u64) -> usize {
    ((number % WINDOW) / 64) as usize
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(ids: impl IntoIterator<Item = u64>) -> u64 {
        let mut numbering = CollectionNumbers::default();
        ids.into_iter().for_each(|id| numbering.note(id));
        numbering.missing_count()
    }

    #[test]
    fn gaps_are_counted_late_numbers_are_none() {
        assert_eq!(missing([]), 0);
        assert_eq!(missing([0, 0, 1, 3, 2, 4, 2]), 0);
        assert_eq!(missing([7, 8, 12]), 3);
        assert_eq!(missing(0..100_000), 0);
        assert_eq!(missing((0..5000).filter(|n| n % 1000 != 10)), 5);
        assert_eq!(missing([0, 1_000_000]), 999_999);
        assert_eq!(missing([0, u64::MAX]), u64::MAX - 2, "saturates");
        assert_eq!(missing((0..3000).chain(0..5)), 0);
        assert_eq!(missing([5, 4, 6]), 0);
    }

    #[test]
    fn numbers_that_no_jvm_counts_to_are_no_sum_that_overflows() {
        let mut numbering = CollectionNumbers::default();
        for _ in 0..2 {
            numbering.note(1);
            numbering.note(u64::MAX);
            numbering.restart();
        }
        assert_eq!(numbering.missing_count(), u64::MAX);
    }
}
