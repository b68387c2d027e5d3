//! loadline's own files: written whole, safe over a power loss, and only where no other user can
//! choose the place.
//!
//! loadline runs as root next to untrusted programs, and its users name directories that such a
//! program may write. So a path is walked by descriptors, and a link counts only in a directory
//! that no user but root and the caller can change. Owns that walk, the directories at its end, how
//! a file gets into a directory, how a foreign tree is counted and removed, and what a file of users
//! is ([`FileKind`]) and the frames around its lines ([`unframe_line`]). Never gives or
//! takes rights, never decides the content. Facts: symlink(7), open(2), fsync(2), auth_rhosts.c of
//! OpenSSH (StrictModes).

mod directory;
mod durable;
mod frame;
mod kind;
mod owners;
mod refused;
mod taken;
mod tree;
mod way;
mod whole;

pub use directory::Directory;
pub use durable::sync;
pub use frame::{LineJoiner, unframe_line};
pub use kind::FileKind;
pub use refused::PathRefusal;
pub use taken::{TreeUsage, measure_tree};
pub use tree::remove_tree;
pub use whole::{PendingFile, create, write};
