//! The one list of each tagged enum: its variants, their names in JSON, and how each is read and described.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The fields of one variant of a tagged enum.
pub(super) trait Tagged: JsonSchema {
    /// The value of `type`.
    const TYPE: &'static str;
    /// Fields that all variants of the enum have.
    type Shared: JsonSchema;
}

/// One variant of a tagged enum.
pub(super) struct Kind<T: 'static> {
    pub(super) word: &'static str,
    pub(super) reference: fn(&mut SchemaGenerator) -> Schema,
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    pub(super) read: fn(Value) -> Result<T, ReadError>,
}

/// A value that serde refused: the path below the value, and serde's message.
pub(super) type ReadError = serde_path_to_error::Error<serde_json::Error>;

pub(super) fn read_as<T: DeserializeOwned>(value: Value) -> Result<T, ReadError> {
    serde_path_to_error::deserialize(value)
}

/// The whole object of a variant: `type`, the shared fields and its own.
pub(super) struct Whole<T>(PhantomData<T>);

impl<T: Tagged> JsonSchema for Whole<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("automation::{}", T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (shared, own) = (T::Shared::json_schema(generator), T::json_schema(generator));
        let mut required = vec![json!("type")];
        let mut properties = Map::new();
        for part in [&shared, &own] {
            required.extend(part.get("required").and_then(Value::as_array).into_iter().flatten().cloned());
            let fields = part.get("properties").and_then(Value::as_object).into_iter().flatten();
            properties.extend(fields.map(|(name, field)| (name.clone(), field.clone())));
        }
        let kind = json!({"type": "string", "const": T::TYPE, "description": "Type."});
        properties.insert("type".to_owned(), kind);
        json_schema!({
            "type": "object",
            "description": own.get("description"),
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

/// Declares a tagged enum and the plain enum of its types.
macro_rules! kinds {
    ($(#[$meta:meta])* $name:ident, $types:ident, $shared:ty { $($variant:ident($content:ty) = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[serde(tag = "type")]
        pub enum $name { $(#[doc = concat!("`", $word, "`")] #[serde(rename = $word)] $variant($content)),+ }

        #[doc = concat!("The values of `type` of [`", stringify!($name), "`].")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $types { $(#[doc = concat!("`", $word, "`")] $variant),+ }

        impl $types {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the value of `type`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        $(impl $crate::definition::kinds::Tagged for $content {
            const TYPE: &'static str = $word;
            type Shared = $shared;
        })+

        impl $name {
            pub(super) const KINDS: &'static [$crate::definition::kinds::Kind<Self>] = &[$(
                $crate::definition::kinds::Kind {
                    word: $word,
                    reference: |generator| generator.subschema_for::<$crate::definition::kinds::Whole<$content>>(),
                    schema: <$crate::definition::kinds::Whole<$content> as schemars::JsonSchema>::json_schema,
                    read: |value| $crate::definition::kinds::read_as::<$content>(value).map(Self::$variant),
                }
            ),+];

            /// Returns which of the types it is.
            pub fn kind(&self) -> $types {
                match self { $(Self::$variant(_) => $types::$variant),+ }
            }
        }
    };
}

pub(super) use kinds;
