//! A JSON object as the fields of a message.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::element::{Tagged, put_zero};
use crate::schema::{
    Cardinality, Element, FieldPlacement, MessageField, MessageType, ProtobufSchema,
};
use crate::wire::put_nested;

/// Appends the fields of a message, without tag and length. Returns `false` for null, which appends
/// nothing.
pub struct MessageBody<'o> {
    pub schema: &'static ProtobufSchema,
    pub message: &'static MessageType,
    pub out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for MessageBody<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        if self.message.bare {
            let field = &self.message.fields[0];
            return FieldSeed { schema: self.schema, field, out: self.out }
                .deserialize(deserializer);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MessageBody<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an object for {}", self.message.name)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let Self { schema, message, out } = self;
        let base = out.len();
        // The range of each field's bytes in `out`, in the order of the JSON members.
        let mut found: Vec<Option<Range<usize>>> = vec![None; message.slots.len()];
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let Some(slot) = message.slot(&key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let start = out.len();
            let field = schema.field_at(message, slot);
            let present = map.next_value_seed(FieldSeed { schema, field, out })?;
            found[slot] = present.then(|| start - base..out.len() - base);
        }
        let written = out.split_off(base);
        put_ordered(schema, message, &mut found.iter(), &written, out);
        Ok(true)
    }
}

/// Appends the encoded fields in the order of their numbers, and Go's encoding of absent fields.
fn put_ordered<'a>(
    schema: &'static ProtobufSchema,
    message: &MessageType,
    found: &mut impl Iterator<Item = &'a Option<Range<usize>>>,
    written: &[u8],
    out: &mut Vec<u8>,
) {
    for field in &message.fields {
        if let (FieldPlacement::Inlined, Element::Message(inner)) = (field.place, field.element) {
            let inner = schema.message(inner);
            put_nested(out, field.number, |out| put_ordered(schema, inner, found, written, out));
            continue;
        }
        match found.next().expect("there is a slot for each field") {
            Some(range) => out.extend_from_slice(&written[range.clone()]),
            None => put_absent(schema, field, out),
        }
    }
}

/// Appends Go's encoding of a field that is absent in JSON.
pub fn put_absent(schema: &'static ProtobufSchema, field: &MessageField, out: &mut Vec<u8>) {
    if !field.optional && field.shape == Cardinality::Single {
        put_zero(schema, field.element, field.number, out);
    }
}

/// Appends a field with all its tags. Returns `false` for null.
struct FieldSeed<'o> {
    schema: &'static ProtobufSchema,
    field: &'static MessageField,
    out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        let Self { schema, field, out } = self;
        match field.shape {
            Cardinality::Single => {
                let (element, number) = (field.element, field.number);
                Tagged { schema, element, number, out }.deserialize(deserializer)
            }
            Cardinality::List => deserializer.deserialize_any(Items { schema, field, out }),
            Cardinality::Map => deserializer.deserialize_any(Entries { schema, field, out }),
        }
    }
}

struct Items<'o> {
    schema: &'static ProtobufSchema,
    field: &'static MessageField,
    out: &'o mut Vec<u8>,
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an array for \"{}\"", self.field.name)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let Self { schema, field, out } = self;
        let (element, number) = (field.element, field.number);
        while let Some(present) =
            items.next_element_seed(Tagged { schema, element, number, out })?
        {
            if !present {
                put_zero(schema, element, number, out);
            }
        }
        Ok(true)
    }
}

struct Entries<'o> {
    schema: &'static ProtobufSchema,
    field: &'static MessageField,
    out: &'o mut Vec<u8>,
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an object for \"{}\"", self.field.name)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        const KEY: u32 = 1;
        const VALUE: u32 = 2;
        let Self { schema, field, out } = self;
        let (element, base) = (field.element, out.len());
        let mut entries: Vec<(Cow<'de, str>, Range<usize>)> = Vec::new();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let start = out.len() - base;
            put_nested(out, field.number, |out| {
                crate::wire::put_bytes(out, KEY, key.as_bytes());
                let number = VALUE;
                let present = map.next_value_seed(Tagged { schema, element, number, out })?;
                if !present {
                    put_zero(schema, element, VALUE, out);
                }
                Ok(())
            })?;
            entries.push((key, start..out.len() - base));
        }
        if !entries.is_sorted_by(|one, other| one.0 < other.0) {
            // Of duplicate keys the last one counts, as in JSON.
            entries.reverse();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            entries.dedup_by(|later, earlier| later.0 == earlier.0);
            let written = out.split_off(base);
            for (_, range) in entries {
                out.extend_from_slice(&written[range]);
            }
        }
        Ok(true)
    }
}
