//! One JSON value as one field with its tag.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::message::{MessageBody, put_absent};
use crate::schema::{Element, FieldPlacement, MessageId, ProtobufSchema};
use crate::values;
use crate::wire::{put_bytes, put_double, put_int, put_nested};

/// Fields of `IntOrString`, and the value of its `type` when the text is set.
mod int_or_string {
    pub const TYPE: u32 = 1;
    pub const INT: u32 = 2;
    pub const STRING: u32 = 3;
    pub const TYPE_STRING: i64 = 1;
}
/// Fields of a time.
const SECONDS: u32 = 1;
const NANOS: u32 = 2;
/// The only field of `Quantity` and of untyped JSON.
const TEXT: u32 = 1;
/// Fields of the `JSONSchemaPropsOr…` types.
const ALLOWS: u32 = 1;
const SCHEMA: u32 = 1;
const SCHEMA_OF_BOOL: u32 = 2;
const OTHERS: u32 = 2;

/// Appends the value with its tag and, if it has one, its length. Returns `false` for null, which
/// appends nothing.
pub struct Tagged<'o> {
    pub schema: &'static ProtobufSchema,
    pub element: Element,
    pub number: u32,
    pub out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Tagged<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        match self.element {
            Element::Message(id) => {
                let Self { schema, number, out, .. } = self;
                let (message, start) = (schema.message(id), out.len());
                let present = put_nested(out, number, |out| {
                    MessageBody { schema, message, out }.deserialize(deserializer)
                })?;
                if !present {
                    out.truncate(start);
                }
                Ok(present)
            }
            Element::Any => {
                let raw = <&RawValue>::deserialize(deserializer)?.get();
                let present = raw != "null";
                if present {
                    put_nested(self.out, self.number, |out| put_bytes(out, TEXT, raw.as_bytes()));
                }
                Ok(present)
            }
            Element::SchemaOrArray(id)
            | Element::SchemaOrBool(id)
            | Element::SchemaOrStrings(id) => {
                deserializer.deserialize_any(Alternative { tagged: self, id })
            }
            _ => deserializer.deserialize_any(Scalar(self)),
        }
    }
}

/// A value of a `JSONSchemaPropsOr…` type: a schema, or its alternative.
struct Alternative<'o> {
    tagged: Tagged<'o>,
    id: MessageId,
}

impl<'de> Visitor<'de> for Alternative<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.tagged.element {
            Element::SchemaOrBool(_) => "a schema or a boolean",
            Element::SchemaOrArray(_) => "a schema or an array of schemas",
            _ => "a schema or an array of strings",
        })
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<bool, E> {
        let Tagged { element: Element::SchemaOrBool(_), number, out, .. } = self.tagged else {
            return Err(E::invalid_type(Unexpected::Bool(value), &self));
        };
        put_nested(out, number, |out| put_int(out, ALLOWS, value.into()));
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<bool, A::Error> {
        let Tagged { schema, element, number, out } = self.tagged;
        let message = schema.message(self.id);
        put_nested(out, number, |out| {
            let mut at = SCHEMA;
            if matches!(element, Element::SchemaOrBool(_)) {
                put_int(out, ALLOWS, 1);
                at = SCHEMA_OF_BOOL;
            }
            put_nested(out, at, |out| MessageBody { schema, message, out }.visit_map(map))
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let element = match self.tagged.element {
            Element::SchemaOrArray(id) => Element::Message(id),
            Element::SchemaOrStrings(_) => Element::String,
            _ => return Err(A::Error::invalid_type(Unexpected::Seq, &self)),
        };
        let Tagged { schema, number, out, .. } = self.tagged;
        put_nested(out, number, |out| {
            let number = OTHERS;
            while items.next_element_seed(Tagged { schema, element, number, out })?.is_some() {}
            Ok(true)
        })
    }
}

/// A value that is not an object.
struct Scalar<'o>(Tagged<'o>);

impl Scalar<'_> {
    fn number<E: Error>(self, value: i64) -> Result<bool, E> {
        let Tagged { element, number, .. } = self.0;
        let narrow = || {
            i32::try_from(value)
                .map_err(|_| E::invalid_value(Unexpected::Signed(value), &"a number of 32 bits"))
        };
        match element {
            Element::Int64 => put_int(self.0.out, number, value),
            Element::Int32 => put_int(self.0.out, number, narrow()?.into()),
            #[expect(clippy::cast_precision_loss, reason = "JSON has one kind of numbers")]
            Element::Double => put_double(self.0.out, number, value as f64),
            Element::IntOrString => {
                put_int_or_string(self.0.out, number, 0, narrow()?.into(), "");
            }
            Element::Quantity => put_quantity(self.0.out, number, &value.to_string()),
            _ => return Err(E::invalid_type(Unexpected::Signed(value), &self)),
        }
        Ok(true)
    }
}

impl<'de> Visitor<'de> for Scalar<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0.element {
            Element::Bool => "a boolean",
            Element::Int32 | Element::Int64 | Element::Double => "a number",
            Element::IntOrString => "a number or a string",
            Element::Time | Element::MicroTime => "a time",
            Element::Quantity => "a quantity",
            Element::Bytes => "base64",
            _ => "a string",
        })
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<bool, E> {
        match self.0.element {
            Element::Bool => put_int(self.0.out, self.0.number, value.into()),
            _ => return Err(E::invalid_type(Unexpected::Bool(value), &self)),
        }
        Ok(true)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<bool, E> {
        self.number(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<bool, E> {
        let signed = i64::try_from(value);
        self.number(signed.map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &"less"))?)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<bool, E> {
        match self.0.element {
            Element::Double => put_double(self.0.out, self.0.number, value),
            Element::Quantity => put_quantity(self.0.out, self.0.number, &value.to_string()),
            _ => return Err(E::invalid_type(Unexpected::Float(value), &self)),
        }
        Ok(true)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<bool, E> {
        let (element, number) = (self.0.element, self.0.number);
        let unfit = || E::invalid_value(Unexpected::Str(value), &self);
        match element {
            Element::String => put_bytes(self.0.out, number, value.as_bytes()),
            Element::Bytes => {
                let bytes = STANDARD.decode(value).map_err(|_| unfit())?;
                put_bytes(self.0.out, number, &bytes);
            }
            Element::Quantity => put_quantity(self.0.out, number, value),
            Element::IntOrString => {
                put_int_or_string(self.0.out, number, int_or_string::TYPE_STRING, 0, value);
            }
            Element::Time | Element::MicroTime => {
                let time = values::parse_time(value).map_err(|_| unfit())?;
                put_time(self.0.out, number, element, time);
            }
            _ => return Err(E::invalid_type(Unexpected::Str(value), &self)),
        }
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<bool, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &self))
    }
}

/// Go's zero time is an empty message.
fn put_time(out: &mut Vec<u8>, number: u32, element: Element, time: Option<(i64, i64)>) {
    put_nested(out, number, |out| {
        if let Some((seconds, nanos)) = time {
            put_int(out, SECONDS, seconds);
            // Go stores whole seconds for `Time` and microseconds for `MicroTime`.
            let nanos = if element == Element::Time { 0 } else { nanos / 1000 * 1000 };
            put_int(out, NANOS, nanos);
        }
    });
}

fn put_quantity(out: &mut Vec<u8>, number: u32, text: &str) {
    put_nested(out, number, |out| put_bytes(out, TEXT, text.as_bytes()));
}

fn put_int_or_string(out: &mut Vec<u8>, number: u32, kind: i64, int: i64, text: &str) {
    put_nested(out, number, |out| {
        put_int(out, int_or_string::TYPE, kind);
        put_int(out, int_or_string::INT, int);
        put_bytes(out, int_or_string::STRING, text.as_bytes());
    });
}

/// Appends Go's zero value of the element as field `number`.
pub fn put_zero(schema: &'static ProtobufSchema, element: Element, number: u32, out: &mut Vec<u8>) {
    match element {
        Element::Bool | Element::Int32 | Element::Int64 => put_int(out, number, 0),
        Element::Double => put_double(out, number, 0.0),
        Element::Quantity => put_quantity(out, number, "0"),
        Element::IntOrString => put_int_or_string(out, number, 0, 0, ""),
        // A nil slice.
        Element::Bytes => {}
        Element::Message(id) if schema.message(id).bare => {}
        Element::SchemaOrBool(_) => put_nested(out, number, |out| put_int(out, ALLOWS, 0)),
        Element::Message(id) => put_nested(out, number, |out| {
            for field in &schema.message(id).fields {
                debug_assert!(field.place != FieldPlacement::Inlined || !field.optional);
                put_absent(schema, field, out);
            }
        }),
        Element::String
        | Element::Any
        | Element::Time
        | Element::MicroTime
        | Element::SchemaOrArray(_)
        | Element::SchemaOrStrings(_) => put_bytes(out, number, b""),
    }
}
