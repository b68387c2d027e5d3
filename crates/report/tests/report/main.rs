//! The report as a whole, from simulated records. One binary: linking it once is enough.

mod artefacts;
mod browser;
mod fixture;
mod formats;
mod hostile;
