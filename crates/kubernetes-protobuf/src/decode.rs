//! Protobuf to JSON.
//!
//! The result is what Go's JSON of the decoded object would be, with what `omitempty` leaves out
//! left out. Fields that the table does not know are dropped, as an older API server drops them.
//! Input is hostile until proven otherwise: depth and size of the result are limited, and whatever
//! cannot be told in JSON is an error.

mod envelope;
mod error;
mod leaf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::schema::{Element, Field, Message, MessageId, Place, Schema, Shape, schema};
use crate::wire::{Malformed, Reader, Wire};
use crate::{MAGIC, forms};
use envelope::Envelope;
pub use error::{DecodeError, Problem};
use leaf::{
    Alternatives, alternatives, delimited, int_or_string, quantity, text, time_parts, varint,
};

/// Deepest nesting of objects and arrays in the result. Parsers stop at 127, and an object may yet
/// become an item of a list in an event.
pub const DEPTH_MAX: usize = 120;
/// Most values in the result. An empty message takes two bytes here and hundreds in memory; an
/// honest object of the largest size that API servers take has less.
pub const VALUES_MAX: usize = 300_000;

/// Decodes an object into JSON with `apiVersion` and `kind`. `default` stands in for what the
/// envelope does not name.
///
/// # Errors
/// The bytes are no object of a known kind, or break a limit.
pub fn decode(body: &[u8], default: Option<(&str, &str)>) -> Result<Value, DecodeError> {
    let envelope = Envelope::read(body.strip_prefix(&MAGIC).ok_or(DecodeError::NoMagic)?)?;
    let (mut api_version, mut kind) = (envelope.api_version, envelope.kind);
    if let Some((default_version, default_kind)) = default {
        let or = |text: &mut String, default: &str| {
            if text.is_empty() {
                default.clone_into(text);
            }
        };
        or(&mut api_version, default_version);
        or(&mut kind, default_kind);
    }
    if api_version.is_empty() || kind.is_empty() {
        return Err(DecodeError::NoKind);
    }
    let schema = schema();
    let Some(message) = schema.message_of(&api_version, &kind) else {
        return Err(DecodeError::UnknownKind { api_version, kind });
    };
    let mut decoder = Decoder { schema, values: 0 };
    let mut object = Map::new();
    decoder.members(message, envelope.raw, &mut object, 1)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

struct Decoder {
    schema: &'static Schema,
    /// Values made so far.
    values: usize,
}

/// A value, or what went wrong further down with its own place.
type Outcome<T> = Result<T, Trouble>;

enum Trouble {
    Here(Problem),
    Below(DecodeError),
}

impl<P: Into<Problem>> From<P> for Trouble {
    fn from(problem: P) -> Self {
        Self::Here(problem.into())
    }
}

impl Trouble {
    fn at(self, message: &Message, field: &'static str) -> DecodeError {
        match self {
            Self::Here(problem) => DecodeError::Field { message: message.name, field, problem },
            Self::Below(error) => error,
        }
    }
}

impl Decoder {
    /// Adds the members of a message to `object`, which stands `depth` levels deep.
    fn members(
        &mut self,
        message: &'static Message,
        bytes: &[u8],
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let mut reader = Reader::new(bytes);
        // One bit for each field.
        let mut seen = 0_u64;
        let broken = |malformed: Malformed| Trouble::from(malformed).at(message, "*");
        while let Some((number, wire)) = reader.tag().map_err(broken)? {
            let Some((index, field)) = message.field(number) else {
                reader.skip(wire).map_err(broken)?;
                continue;
            };
            let again = seen & (1 << index) != 0;
            seen |= 1 << index;
            self.member(field, wire, &mut reader, object, again, depth)
                .map_err(|trouble| trouble.at(message, field.name))?;
        }
        for (index, field) in message.fields.iter().enumerate() {
            if seen & (1 << index) == 0 {
                self.absent(field, object, depth)
                    .map_err(|trouble| trouble.at(message, field.name))?;
            }
        }
        Ok(())
    }

    fn member(
        &mut self,
        field: &Field,
        wire: Wire,
        reader: &mut Reader<'_>,
        object: &mut Map<String, Value>,
        again: bool,
        depth: usize,
    ) -> Outcome<()> {
        match field.shape {
            Shape::Single if again => return Err(Problem::Twice.into()),
            Shape::Single => {}
            Shape::List => return self.items(field, wire, reader, object, depth + 1),
            Shape::Map => {
                let entry = object.entry(field.name).or_insert_with(|| Map::new().into());
                let Value::Object(members) = entry else { return Err(Problem::Twice.into()) };
                return self.entry(field, wire, reader, members, depth + 1);
            }
        }
        if let (Place::Inlined, Element::Message(inner)) = (field.place, field.element) {
            let bytes = delimited(wire, reader)?;
            let inner = self.schema.message(inner);
            return self.members(inner, bytes, object, depth).map_err(Trouble::Below);
        }
        let value = self.element(field.element, wire, reader, depth)?;
        if field.optional || !left_out(field, &value) {
            object.insert(field.name.to_owned(), value);
        }
        Ok(())
    }

    fn items(
        &mut self,
        field: &Field,
        wire: Wire,
        reader: &mut Reader<'_>,
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Outcome<()> {
        let number = matches!(field.element, Element::Bool | Element::Int32 | Element::Int64);
        if number && wire == Wire::Delimited {
            let mut packed = Reader::new(reader.delimited()?);
            // None, as far as Go's decoders go: not a list of none.
            if packed.is_empty() {
                return Ok(());
            }
            let items = list(field, object)?;
            while !packed.is_empty() {
                items.push(self.element(field.element, Wire::Varint, &mut packed, depth)?);
            }
            return Ok(());
        }
        let items = list(field, object)?;
        items.push(self.element(field.element, wire, reader, depth)?);
        Ok(())
    }

    fn entry(
        &mut self,
        field: &Field,
        wire: Wire,
        reader: &mut Reader<'_>,
        members: &mut Map<String, Value>,
        depth: usize,
    ) -> Outcome<()> {
        let mut entry = Reader::new(delimited(wire, reader)?);
        let (mut key, mut value) = (String::new(), None);
        while let Some((number, wire)) = entry.tag()? {
            match number {
                1 => key = text(delimited(wire, &mut entry)?)?,
                2 if value.is_some() => return Err(Problem::Twice.into()),
                2 => value = Some(self.element(field.element, wire, &mut entry, depth)?),
                _ => entry.skip(wire)?,
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.zero(field.element, depth)?,
        };
        members.insert(key, value);
        Ok(())
    }

    fn count(&mut self, depth: usize) -> Outcome<()> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(Problem::Size.into());
        }
        // A scalar at the limit has no level of its own; the containers above were checked alike.
        if depth > DEPTH_MAX { Err(Problem::Depth.into()) } else { Ok(()) }
    }

    /// One value, inside a container `depth` levels deep.
    fn element(
        &mut self,
        element: Element,
        wire: Wire,
        reader: &mut Reader<'_>,
        depth: usize,
    ) -> Outcome<Value> {
        self.count(depth)?;
        match element {
            Element::Bool => return Ok((varint(wire, reader)? != 0).into()),
            Element::Int64 => return Ok(varint(wire, reader)?.into()),
            Element::Int32 => {
                let value = varint(wire, reader)?;
                return Ok(i32::try_from(value).map_err(|_| Problem::Range)?.into());
            }
            Element::Double => {
                if wire != Wire::Fixed64 {
                    return Err(Problem::WireType.into());
                }
                let value = forms::double(f64::from_bits(reader.fixed64()?));
                return Ok(value.ok_or(Problem::Range)?);
            }
            _ => {}
        }
        let bytes = delimited(wire, reader)?;
        Ok(match element {
            Element::String => text(bytes)?.into(),
            Element::Bytes => STANDARD.encode(bytes).into(),
            Element::Message(id) => self.message(id, bytes, depth + 1)?,
            Element::Any => self.any(bytes, depth)?,
            Element::Time => {
                let (seconds, _) = time_parts(bytes)?;
                forms::time_text(seconds).map_err(|_| Problem::Time)?.into()
            }
            Element::MicroTime => {
                let (seconds, nanos) = time_parts(bytes)?;
                forms::micro_time_text(seconds, nanos).map_err(|_| Problem::Time)?.into()
            }
            Element::Quantity => quantity(bytes)?,
            Element::IntOrString => int_or_string(bytes)?,
            Element::SchemaOrArray(id) => match alternatives(bytes)? {
                Alternatives { schema: None, others } if others.is_empty() => Value::Null,
                Alternatives { schema: Some(schema), others } if others.is_empty() => {
                    self.message(id, schema, depth + 1)?
                }
                Alternatives { others, .. } => {
                    self.count(depth + 1)?;
                    let each = others.iter().map(|each| self.message(id, each, depth + 2));
                    each.collect::<Outcome<Vec<_>>>()?.into()
                }
            },
            Element::SchemaOrStrings(id) => match alternatives(bytes)? {
                Alternatives { schema: None, others } if others.is_empty() => Value::Null,
                Alternatives { schema: Some(schema), others } if others.is_empty() => {
                    self.message(id, schema, depth + 1)?
                }
                Alternatives { others, .. } => {
                    let each = others.iter().map(|each| {
                        self.count(depth + 1)?;
                        text(each)
                    });
                    each.collect::<Outcome<Vec<_>>>()?.into()
                }
            },
            Element::SchemaOrBool(id) => self.schema_or_bool(id, bytes, depth)?,
            Element::Bool | Element::Int32 | Element::Int64 | Element::Double => {
                unreachable!("numbers were returned above")
            }
        })
    }

    fn message(&mut self, id: MessageId, bytes: &[u8], depth: usize) -> Outcome<Value> {
        self.count(depth)?;
        let message = self.schema.message(id);
        let mut object = Map::new();
        self.members(message, bytes, &mut object, depth).map_err(Trouble::Below)?;
        if message.bare {
            return Ok(object.remove(message.fields[0].name).unwrap_or_default());
        }
        Ok(Value::Object(object))
    }

    /// A message of one field with JSON as text.
    fn any(&mut self, bytes: &[u8], depth: usize) -> Outcome<Value> {
        let mut value = Value::Null;
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.tag()? {
            if number == 1 {
                let raw = delimited(wire, &mut reader)?;
                if !raw.is_empty() {
                    value = serde_json::from_slice(raw).map_err(Problem::Json)?;
                }
            } else {
                reader.skip(wire)?;
            }
        }
        self.count_tree(&value, depth)?;
        Ok(value)
    }

    /// Counts what a parser made, which has limited the depth already.
    fn count_tree(&mut self, value: &Value, depth: usize) -> Outcome<()> {
        match value {
            Value::Array(items) => {
                self.count(depth + 1)?;
                items.iter().try_for_each(|item| self.count_tree(item, depth + 1))
            }
            Value::Object(members) => {
                self.count(depth + 1)?;
                members.values().try_for_each(|member| self.count_tree(member, depth + 1))
            }
            _ => self.count(depth),
        }
    }

    fn schema_or_bool(&mut self, id: MessageId, bytes: &[u8], depth: usize) -> Outcome<Value> {
        let (mut allows, mut schema) = (false, None);
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.tag()? {
            match number {
                1 => allows = varint(wire, &mut reader)? != 0,
                2 => schema = Some(delimited(wire, &mut reader)?),
                _ => reader.skip(wire)?,
            }
        }
        match schema {
            Some(schema) => self.message(id, schema, depth + 1),
            None => Ok(allows.into()),
        }
    }

    /// What JSON shows of a field that is not there.
    fn absent(
        &mut self,
        field: &Field,
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Outcome<()> {
        let value = match field.shape {
            Shape::List | Shape::Map => Value::Null,
            Shape::Single if field.optional => Value::Null,
            Shape::Single => {
                if let (Place::Inlined, Element::Message(inner)) = (field.place, field.element) {
                    let inner = self.schema.message(inner);
                    return self.members(inner, &[], object, depth).map_err(Trouble::Below);
                }
                self.zero(field.element, depth)?
            }
        };
        let nothing = field.optional || field.shape != Shape::Single;
        if !(nothing && field.omit_empty || left_out(field, &value)) {
            self.count(depth)?;
            object.insert(field.name.to_owned(), value);
        }
        Ok(())
    }

    /// Go's zero value in JSON.
    fn zero(&mut self, element: Element, depth: usize) -> Outcome<Value> {
        Ok(match element {
            Element::String => "".into(),
            Element::Bool => false.into(),
            Element::Int32 | Element::Int64 | Element::Double | Element::IntOrString => 0.into(),
            Element::Quantity => "0".into(),
            Element::Message(id) => self.message(id, &[], depth + 1)?,
            Element::SchemaOrBool(_) => false.into(),
            Element::Bytes
            | Element::Any
            | Element::Time
            | Element::MicroTime
            | Element::SchemaOrArray(_)
            | Element::SchemaOrStrings(_) => Value::Null,
        })
    }
}

/// The items of a repeated field so far.
fn list<'o>(field: &Field, object: &'o mut Map<String, Value>) -> Outcome<&'o mut Vec<Value>> {
    match object.entry(field.name).or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(items) => Ok(items),
        _ => Err(Problem::Twice.into()),
    }
}

/// Whether JSON leaves this value out. Structs are never left out for being empty, except a time
/// that says so.
fn left_out(field: &Field, value: &Value) -> bool {
    let zero_time = field.omit_zero && value.is_null();
    let empty = match (field.element, value) {
        (Element::String | Element::Bytes, Value::String(text)) => text.is_empty(),
        (Element::Bytes | Element::Message(_), Value::Null) => true,
        (Element::Bool, Value::Bool(value)) => !value,
        (Element::Int32 | Element::Int64 | Element::Double, Value::Number(number)) => {
            number.as_f64() == Some(0.0)
        }
        _ => false,
    };
    zero_time || field.omit_empty && empty
}
