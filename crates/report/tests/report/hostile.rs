//! Hostile records.
