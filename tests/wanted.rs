//! Which tests a binary runs that is its own runner: libtest's words for it.
//!
//! Owns the arguments `[FILTER]... [--exact] [--skip FILTER]...`; all others are left aside, as
//! `--show-output`, which these runners do anyway.

/// What was asked for.
#[derive(Debug, Default)]
pub struct Wanted {
    filters: Vec<String>,
    is_exact: bool,
    skipped: Vec<String>,
}

impl Wanted {
    /// By the arguments of the program.
    pub fn by(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut wanted = Self::default();
        while let Some(word) = arguments.next() {
            match word.as_str() {
                "--exact" => wanted.is_exact = true,
                "--skip" => wanted.skipped.extend(arguments.next()),
                other if other.starts_with('-') => {}
                _ => wanted.filters.push(word),
            }
        }
        wanted
    }

    /// Whether the test of this name runs.
    pub fn has(&self, name: &str) -> bool {
        let is_skipped = self.skipped.iter().any(|part| name.contains(part.as_str()));
        let fits = |filter: &String| {
            if self.is_exact {
                name == filter
            } else {
                name.contains(filter.as_str())
            }
        };
        !is_skipped && (self.filters.is_empty() || self.filters.iter().any(fits))
    }
}
