//! Files of loadline's own: written whole, kept over a power loss, and only where nobody else can
//! choose the place.
//!
//! loadline runs as root beside programs that are not trusted, and its users name directories that
//! such a program may write. So a path is walked by descriptors, and a link counts only where it
//! stands in a directory that nobody but root and the caller can change. Owns that walk, the
//! directories it ends in, how a file comes into one, and how a tree that others made is counted
//! and goes. Never gives or takes rights, never decides what is written. Facts: symlink(7), open(2),
//! fsync(2), auth_rhosts.c of OpenSSH (StrictModes).

mod directory;
mod durable;
mod owners;
mod refused;
mod taken;
mod tree;
mod way;
mod whole;

pub use directory::Directory;
pub use durable::sync;
pub use refused::PathRefusal;
pub use taken::{TreeUsage, measure_tree};
pub use tree::remove_tree;
pub use whole::{PendingFile, create, write};
