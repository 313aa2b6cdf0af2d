//! A value of the query string, which is always a text, read as the type of its parameter.

use std::borrow::Cow;

use serde::de::value::Error;
use serde::de::{Error as _, IntoDeserializer, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};

/// A value of the query string.
pub(super) struct QueryText<'a>(pub(super) Cow<'a, str>);

/// Returns the boolean: `true` and `1`, `false` and `0`.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

impl<'de> IntoDeserializer<'de> for QueryText<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($read:ident as $visit:ident,)+) => {
        $(fn $read<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.0.parse().map_err(Error::custom)?)
        })+
    };
}

impl<'de> Deserializer<'de> for QueryText<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(boolean(&self.0).ok_or_else(|| Error::custom("neither true nor false"))?)
    }

    parsed! {
        deserialize_i8 as visit_i8,
        deserialize_i16 as visit_i16,
        deserialize_i32 as visit_i32,
        deserialize_i64 as visit_i64,
        deserialize_u8 as visit_u8,
        deserialize_u16 as visit_u16,
        deserialize_u32 as visit_u32,
        deserialize_u64 as visit_u64,
        deserialize_f32 as visit_f32,
        deserialize_f64 as visit_f64,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.into_deserializer().deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        char str string unit bytes byte_buf unit_struct tuple_struct struct identifier tuple ignored_any seq map
    }
}
