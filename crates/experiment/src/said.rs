//! A value as people said it, and where: in the experiment file or by a flag.
//!
//! Owns the one type through which a refusal finds the line of the file or the name of the flag.
//! It never judges a value.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Spanned;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueOrigin {
    File(Range<usize>),
    Flag(&'static str),
}

impl Default for ValueOrigin {
    fn default() -> Self {
        Self::Flag("")
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ValueWithOrigin<T> {
    value: T,
    origin: ValueOrigin,
}

pub type Text = ValueWithOrigin<String>;

impl<T> ValueWithOrigin<T> {
    pub fn from_flag(name: &'static str, value: T) -> Self {
        Self {
            value,
            origin: ValueOrigin::Flag(name),
        }
    }

    pub fn with_same_origin<U>(&self, value: U) -> ValueWithOrigin<U> {
        ValueWithOrigin {
            value,
            origin: self.origin.clone(),
        }
    }

    pub fn inner_value(&self) -> &T {
        &self.value
    }
}

impl<T> Deref for ValueWithOrigin<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Display> fmt::Display for ValueWithOrigin<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<'a, T> From<&'a ValueWithOrigin<T>> for &'a ValueOrigin {
    fn from(said: &'a ValueWithOrigin<T>) -> Self {
        &said.origin
    }
}

impl<T: Serialize> Serialize for ValueWithOrigin<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ValueWithOrigin<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            origin: ValueOrigin::File(spanned.span()),
            value: spanned.into_inner(),
        })
    }
}

impl<T: JsonSchema> JsonSchema for ValueWithOrigin<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
