//! Protobuf to JSON.
//!
//! The result equals Go's JSON of the decoded object, without the fields that `omitempty` leaves
//! out. Fields that the table does not have are dropped, as an older API server drops them. Input
//! is untrusted: depth and size of the result are limited, and a value that JSON cannot represent
//! is an error.

mod envelope;
mod error;
mod leaf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::schema::{
    Cardinality, Element, FieldPlacement, MessageField, MessageId, MessageType, ProtobufSchema,
    schema,
};
use crate::wire::{Malformed, Wire, WireReader};
use crate::{MAGIC, values};
use envelope::Envelope;
pub use error::{DecodeError, FieldError};
use leaf::{
    Alternatives, alternatives, delimited, int_or_string, quantity, text, time_parts, varint,
};

/// Deepest nesting of objects and arrays in the result. Parsers stop at 127, and the object may
/// later become an item of a list in an event.
pub const DEPTH_MAX: usize = 120;
/// Number of values in the result. An empty message takes two bytes here and hundreds in memory. A
/// normal object of the largest size that API servers accept has fewer values.
pub const VALUES_MAX: usize = 300_000;

/// Decodes an object into JSON with `apiVersion` and `kind`. `default` is the API version and kind
/// for an envelope that does not name them.
///
/// # Errors
/// The bytes are not an object of a known kind, or exceed [`DEPTH_MAX`] or [`VALUES_MAX`]. The
/// request is at fault: respond with 400, or with 415 for [`DecodeError::UnknownKind`].
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
    schema: &'static ProtobufSchema,
    /// Number of values created so far.
    values: usize,
}

/// A value, or an error that names its field when it was found in a nested message.
type DecodeResult<T> = Result<T, LocatedError>;

enum LocatedError {
    Here(FieldError),
    Below(DecodeError),
}

impl<P: Into<FieldError>> From<P> for LocatedError {
    fn from(problem: P) -> Self {
        Self::Here(problem.into())
    }
}

impl LocatedError {
    fn at(self, message: &MessageType, field: &'static str) -> DecodeError {
        match self {
            Self::Here(problem) => DecodeError::Field { message: message.name, field, problem },
            Self::Below(error) => error,
        }
    }
}

impl Decoder {
    /// Adds the members of a message to `object`, which is `depth` levels deep.
    fn members(
        &mut self,
        message: &'static MessageType,
        bytes: &[u8],
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let mut reader = WireReader::new(bytes);
        // One bit for each field.
        let mut seen = 0_u64;
        let broken = |malformed: Malformed| LocatedError::from(malformed).at(message, "*");
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
        field: &MessageField,
        wire: Wire,
        reader: &mut WireReader<'_>,
        object: &mut Map<String, Value>,
        again: bool,
        depth: usize,
    ) -> DecodeResult<()> {
        match field.shape {
            Cardinality::Single if again => return Err(FieldError::Twice.into()),
            Cardinality::Single => {}
            Cardinality::List => return self.items(field, wire, reader, object, depth + 1),
            Cardinality::Map => {
                let entry = object.entry(field.name).or_insert_with(|| Map::new().into());
                let Value::Object(members) = entry else { return Err(FieldError::Twice.into()) };
                return self.entry(field, wire, reader, members, depth + 1);
            }
        }
        if let (FieldPlacement::Inlined, Element::Message(inner)) = (field.place, field.element) {
            let bytes = delimited(wire, reader)?;
            let inner = self.schema.message(inner);
            return self.members(inner, bytes, object, depth).map_err(LocatedError::Below);
        }
        let value = self.element(field.element, wire, reader, depth)?;
        if field.optional || !left_out(field, &value) {
            object.insert(field.name.to_owned(), value);
        }
        Ok(())
    }

    fn items(
        &mut self,
        field: &MessageField,
        wire: Wire,
        reader: &mut WireReader<'_>,
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> DecodeResult<()> {
        let number = matches!(field.element, Element::Bool | Element::Int32 | Element::Int64);
        if number && wire == Wire::Delimited {
            let mut packed = WireReader::new(reader.delimited()?);
            // Go's decoders return nil here, not an empty list.
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
        field: &MessageField,
        wire: Wire,
        reader: &mut WireReader<'_>,
        members: &mut Map<String, Value>,
        depth: usize,
    ) -> DecodeResult<()> {
        let mut entry = WireReader::new(delimited(wire, reader)?);
        let (mut key, mut value) = (String::new(), None);
        while let Some((number, wire)) = entry.tag()? {
            match number {
                1 => key = text(delimited(wire, &mut entry)?)?,
                2 if value.is_some() => return Err(FieldError::Twice.into()),
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

    fn count(&mut self, depth: usize) -> DecodeResult<()> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(FieldError::Size.into());
        }
        // A scalar at the limit has no level of its own; the containers above it were checked the
        // same way.
        if depth > DEPTH_MAX { Err(FieldError::Depth.into()) } else { Ok(()) }
    }

    /// Decodes one value, inside a container `depth` levels deep.
    fn element(
        &mut self,
        element: Element,
        wire: Wire,
        reader: &mut WireReader<'_>,
        depth: usize,
    ) -> DecodeResult<Value> {
        self.count(depth)?;
        match element {
            Element::Bool => return Ok((varint(wire, reader)? != 0).into()),
            Element::Int64 => return Ok(varint(wire, reader)?.into()),
            Element::Int32 => {
                let value = varint(wire, reader)?;
                return Ok(i32::try_from(value).map_err(|_| FieldError::Range)?.into());
            }
            Element::Double => {
                if wire != Wire::Fixed64 {
                    return Err(FieldError::WireType.into());
                }
                let value = values::double(f64::from_bits(reader.fixed64()?));
                return Ok(value.ok_or(FieldError::Range)?);
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
                values::time_text(seconds).map_err(|_| FieldError::Time)?.into()
            }
            Element::MicroTime => {
                let (seconds, nanos) = time_parts(bytes)?;
                values::micro_time_text(seconds, nanos).map_err(|_| FieldError::Time)?.into()
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
                    each.collect::<DecodeResult<Vec<_>>>()?.into()
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
                    each.collect::<DecodeResult<Vec<_>>>()?.into()
                }
            },
            Element::SchemaOrBool(id) => self.schema_or_bool(id, bytes, depth)?,
            Element::Bool | Element::Int32 | Element::Int64 | Element::Double => {
                unreachable!("numbers were returned above")
            }
        })
    }

    fn message(&mut self, id: MessageId, bytes: &[u8], depth: usize) -> DecodeResult<Value> {
        self.count(depth)?;
        let message = self.schema.message(id);
        let mut object = Map::new();
        self.members(message, bytes, &mut object, depth).map_err(LocatedError::Below)?;
        if message.bare {
            return Ok(object.remove(message.fields[0].name).unwrap_or_default());
        }
        Ok(Value::Object(object))
    }

    /// Decodes a message with one field that contains JSON as text.
    fn any(&mut self, bytes: &[u8], depth: usize) -> DecodeResult<Value> {
        let mut value = Value::Null;
        let mut reader = WireReader::new(bytes);
        while let Some((number, wire)) = reader.tag()? {
            if number == 1 {
                let raw = delimited(wire, &mut reader)?;
                if !raw.is_empty() {
                    value = serde_json::from_slice(raw).map_err(FieldError::Json)?;
                }
            } else {
                reader.skip(wire)?;
            }
        }
        self.count_tree(&value, depth)?;
        Ok(value)
    }

    /// Counts the values of a parsed tree. The parser has limited the depth already.
    fn count_tree(&mut self, value: &Value, depth: usize) -> DecodeResult<()> {
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

    fn schema_or_bool(&mut self, id: MessageId, bytes: &[u8], depth: usize) -> DecodeResult<Value> {
        let (mut allows, mut schema) = (false, None);
        let mut reader = WireReader::new(bytes);
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

    /// The JSON of an absent field.
    fn absent(
        &mut self,
        field: &MessageField,
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> DecodeResult<()> {
        let value = match field.shape {
            Cardinality::List | Cardinality::Map => Value::Null,
            Cardinality::Single if field.optional => Value::Null,
            Cardinality::Single => {
                if let (FieldPlacement::Inlined, Element::Message(inner)) =
                    (field.place, field.element)
                {
                    let inner = self.schema.message(inner);
                    return self.members(inner, &[], object, depth).map_err(LocatedError::Below);
                }
                self.zero(field.element, depth)?
            }
        };
        let nothing = field.optional || field.shape != Cardinality::Single;
        if !(nothing && field.omit_empty || left_out(field, &value)) {
            self.count(depth)?;
            object.insert(field.name.to_owned(), value);
        }
        Ok(())
    }

    /// Go's zero value in JSON.
    fn zero(&mut self, element: Element, depth: usize) -> DecodeResult<Value> {
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

/// The items of a repeated field that were decoded so far.
fn list<'o>(
    field: &MessageField,
    object: &'o mut Map<String, Value>,
) -> DecodeResult<&'o mut Vec<Value>> {
    match object.entry(field.name).or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(items) => Ok(items),
        _ => Err(FieldError::Twice.into()),
    }
}

/// Whether JSON omits this value. Empty structs are never omitted, except a time with `omitzero`.
fn left_out(field: &MessageField, value: &Value) -> bool {
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
