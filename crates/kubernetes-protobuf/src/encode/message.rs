//! A JSON object as the fields of a message.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::element::{Tagged, put_zero};
use crate::schema::{Element, Field, Message, Place, Schema, Shape};
use crate::wire::put_nested;

/// Appends the fields of a message, without tag and length. `false`: the JSON was null, and nothing
/// was appended.
pub struct Body<'o> {
    pub schema: &'static Schema,
    pub message: &'static Message,
    pub out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Body<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        if self.message.bare {
            let field = &self.message.fields[0];
            return Member { schema: self.schema, field, out: self.out }.deserialize(deserializer);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Body<'_> {
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
        // Where each field's bytes ended up, in the order in which JSON has them.
        let mut found: Vec<Option<Range<usize>>> = vec![None; message.slots.len()];
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let Some(slot) = message.slot(&key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let start = out.len();
            let field = schema.field_at(message, slot);
            let present = map.next_value_seed(Member { schema, field, out })?;
            found[slot] = present.then(|| start - base..out.len() - base);
        }
        let written = out.split_off(base);
        put_ordered(schema, message, &mut found.iter(), &written, out);
        Ok(true)
    }
}

/// Appends what was written, in the order of numbers, and what Go writes of absent fields.
fn put_ordered<'a>(
    schema: &'static Schema,
    message: &Message,
    found: &mut impl Iterator<Item = &'a Option<Range<usize>>>,
    written: &[u8],
    out: &mut Vec<u8>,
) {
    for field in &message.fields {
        if let (Place::Inlined, Element::Message(inner)) = (field.place, field.element) {
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

/// Appends what Go writes of a field that JSON does not show.
pub fn put_absent(schema: &'static Schema, field: &Field, out: &mut Vec<u8>) {
    if !field.optional && field.shape == Shape::Single {
        put_zero(schema, field.element, field.number, out);
    }
}

/// Appends a field with all its tags. `false`: the JSON was null.
struct Member<'o> {
    schema: &'static Schema,
    field: &'static Field,
    out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        let Self { schema, field, out } = self;
        match field.shape {
            Shape::Single => {
                let (element, number) = (field.element, field.number);
                Tagged { schema, element, number, out }.deserialize(deserializer)
            }
            Shape::List => deserializer.deserialize_any(Items { schema, field, out }),
            Shape::Map => deserializer.deserialize_any(Entries { schema, field, out }),
        }
    }
}

struct Items<'o> {
    schema: &'static Schema,
    field: &'static Field,
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
    schema: &'static Schema,
    field: &'static Field,
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
            // Of equal keys the last one counts, as in JSON.
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
