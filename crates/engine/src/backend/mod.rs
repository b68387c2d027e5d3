//! Where trials run: this machine, in a thread of loadline.

pub mod in_process;

pub use loadline_host as local;
pub use loadline_host::backend::*;
