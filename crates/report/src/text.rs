//! Foreign text made harmless, as verdicts and trials have it.

pub use loadline_analysis::foreign_text::*;
