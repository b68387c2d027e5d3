//! What a person sees while trials run, on stderr.

pub mod colour;
pub mod next;
mod progress;
pub mod text;

pub use progress::ProgressDisplay;
