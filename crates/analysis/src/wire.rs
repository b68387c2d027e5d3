//! How quantities stand in JSON: integers, the unit in the field's name.
//!
//! Owns the serde adapters for types that have no serde of their own. Use as
//! `#[serde(rename = "memory_bytes", with = "wire::bytes")]`.

use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! adapter {
    ($(#[$doc:meta])* $name:ident, $name_opt:ident, $type:ty, $raw:ty, $to:expr, $from:expr) => {
        $(#[$doc])*
        pub mod $name {
            use super::*;

            /// Writes the integer.
            pub fn serialize<S: Serializer>(value: &$type, s: S) -> Result<S::Ok, S::Error> {
                let to: fn(&$type) -> $raw = $to;
                to(value).serialize(s)
            }

            /// Reads the integer.
            pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<$type, D::Error> {
                let from: fn($raw) -> $type = $from;
                Ok(from(<$raw>::deserialize(d)?))
            }
        }

        $(#[$doc])*
        /// For an `Option`.
        pub mod $name_opt {
            use super::*;

            /// Writes the integer or null.
            pub fn serialize<S: Serializer>(value: &Option<$type>, s: S) -> Result<S::Ok, S::Error> {
                let to: fn(&$type) -> $raw = $to;
                value.as_ref().map(to).serialize(s)
            }

            /// Reads the integer or null.
            pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<$type>, D::Error> {
                let from: fn($raw) -> $type = $from;
                Ok(Option::<$raw>::deserialize(d)?.map(from))
            }
        }
    };
}

adapter!(
    /// [`Bytes`] as a number of bytes; the field ends in `_bytes`.
    bytes, bytes_opt, Bytes, u64, |b| b.as_bytes(), Bytes::from_bytes
);
adapter!(
    /// [`Cpus`] as thousandths of a CPU; the field ends in `_millicpus`.
    cpus, cpus_opt, Cpus, u32, |c| c.as_millis(), Cpus::from_millis
);
adapter!(
    /// [`Duration`] as whole nanoseconds (saturating at 584 years); the field ends in `_ns`.
    nanos, nanos_opt, Duration, u64,
    |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX), Duration::from_nanos
);

/// A kind of start-up cache by its name.
pub mod cache_kind {
    use loadline_sizing::cache::Kind;
    use serde::de::Error as _;

    use super::*;

    /// Writes the name.
    pub fn serialize<S: Serializer>(value: &Kind, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(value.name())
    }

    /// Reads the name.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Kind, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}
