//! The HTTP load generator.
