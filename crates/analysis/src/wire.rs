//! Quantities in JSON: integers, the unit in the field's name.
//!
//! Owns the serde adapters for types without their own serde. Use as `#[serde(rename =
//! "memory_bytes", with = "wire::bytes")]`. Each is a type, not a module, so that the JSON schema
//! of a field follows from the same word.

#![allow(non_camel_case_types)] // They stand where serde's documentation has modules.

use std::borrow::Cow;
use std::time::Duration;

use loadline_sizing::cache::CacheKind;
use loadline_sizing::{Bytes, Cpus};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! schema {
    ($name:ident, $raw:ty) => {
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                <$raw>::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$raw>::json_schema(generator)
            }
        }
    };
}

/// A measured number that may be none: JSON has null for NaN, and null is read as NaN, not as zero.
#[derive(Debug)]
pub enum number {}

impl number {
    pub fn serialize<S: Serializer>(value: &f64, s: S) -> Result<S::Ok, S::Error> {
        value.serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(d)?.unwrap_or(f64::NAN))
    }
}

schema!(number, Option<f64>);

macro_rules! adapter {
    ($(#[$doc:meta])* $name:ident, $name_opt:ident, $type:ty, $raw:ty, $to:expr, $from:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}

        impl $name {
            pub fn serialize<S: Serializer>(value: &$type, s: S) -> Result<S::Ok, S::Error> {
                let to: fn(&$type) -> $raw = $to;
                to(value).serialize(s)
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<$type, D::Error> {
                let from: fn($raw) -> $type = $from;
                Ok(from(<$raw>::deserialize(d)?))
            }
        }

        schema!($name, $raw);

        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name_opt {}

        impl $name_opt {
            pub fn serialize<S: Serializer>(value: &Option<$type>, s: S) -> Result<S::Ok, S::Error> {
                let to: fn(&$type) -> $raw = $to;
                value.as_ref().map(to).serialize(s)
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<$type>, D::Error> {
                let from: fn($raw) -> $type = $from;
                Ok(Option::<$raw>::deserialize(d)?.map(from))
            }
        }

        schema!($name_opt, Option<$raw>);
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

#[derive(Debug)]
pub enum cache_kind {}

impl cache_kind {
    pub fn serialize<S: Serializer>(value: &CacheKind, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(value.kind_name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<CacheKind, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

schema!(cache_kind, String);
