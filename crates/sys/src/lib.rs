//! The one place with system calls that need unsafe code.
