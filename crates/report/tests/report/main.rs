//! The report as a whole, from simulated records. One binary: linking it once is enough.

// A skip is said on stdout, where the test runner counts it.
#![allow(clippy::print_stdout)]

mod access;
mod artefacts;
mod browser;
mod claims;
mod cluster;
mod comparison;
mod drawings;
mod drills;
mod fixture;
mod formats;
mod growth;
mod hostile;
mod image;
mod instances;
mod kubernetes;
mod levels;
mod liberty;
mod node;
mod nothing;
mod patches;
mod pauses;
mod pods;
mod read_back;
mod requests;
mod runs;
mod saving;
mod startup;
mod tables;
