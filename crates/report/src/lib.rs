//! Reports from records alone.
