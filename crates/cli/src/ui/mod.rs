//! What a person sees while trials run, on stderr.

mod progress;
pub mod text;

pub use progress::Progress;
