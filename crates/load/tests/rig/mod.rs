//! Rigs that load is tested against: a server of known behaviour with an arrival log, and the
//! analysis of arrivals. Shared by the tests and by the example `rig`.

pub mod arrivals;
pub mod server;
