//! The table of kinds and their fields.
//!
//! `schema.txt` is written by `go-client schema` of the testbed, from the published Go types.
//! It is read when the first object is transcoded, so a server that nobody asks for protobuf does
//! not pay for it. Its lines:
//!
//! ```text
//! kind v1 Pod core/v1.Pod                       apiVersion (`*`: any), kind, message
//! message core/v1.Pod
//! 1 metadata value? message meta/v1.ObjectMeta  number, JSON name, presence, type
//! ```
//!
//! A JSON name `.` means that the members of the message stand in the JSON object itself, `=` that
//! the message is nothing but this value in JSON. Presence is `optional` when Go holds a pointer,
//! else `value`; `?` follows when JSON leaves out what is empty (`omitempty`), `0` when it leaves
//! out a zero time (`omitzero`).

use std::collections::HashMap;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::parse(include_str!("schema.txt")));

/// Stands for every API version in the table.
const ANY_VERSION: &str = "*";

/// A kind that has a protobuf form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// As `apiVersion` has it; `*` for what every version has, such as `DeleteOptions`.
    pub api_version: &'static str,
    /// As `kind` has it.
    pub kind: &'static str,
}

/// Every kind that has a protobuf form.
pub fn kinds() -> impl Iterator<Item = Kind> {
    schema().kinds.keys().map(|&(api_version, kind)| Kind { api_version, kind })
}

/// Whether objects of this kind have a protobuf form. Custom resources never do.
#[must_use]
pub fn is_known(api_version: &str, kind: &str) -> bool {
    schema().message_of(api_version, kind).is_some()
}

pub(crate) fn schema() -> &'static Schema {
    &SCHEMA
}

pub(crate) type MessageId = u16;

#[derive(Debug)]
pub(crate) struct Schema {
    kinds: HashMap<(&'static str, &'static str), MessageId>,
    messages: Vec<Message>,
}

/// Invariant: fields are sorted by number, names by name.
#[derive(Debug)]
pub(crate) struct Message {
    pub name: &'static str,
    pub fields: Vec<Field>,
    /// The message is its only field's value in JSON.
    pub bare: bool,
    /// The fields in the order of their numbers, those of inlined messages in their place: the
    /// message that has it, and which of its fields it is.
    pub slots: Vec<(MessageId, u16)>,
    /// Which slot the member of this name fills.
    pub names: Vec<(&'static str, u16)>,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub number: u32,
    pub name: &'static str,
    pub place: Place,
    /// Go holds a pointer: absent and empty are two things.
    pub optional: bool,
    /// JSON leaves out what is empty.
    pub omit_empty: bool,
    /// JSON leaves out a zero time.
    pub omit_zero: bool,
    pub shape: Shape,
    pub element: Element,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Member,
    /// Its members stand in the object itself.
    Inlined,
    /// It stands for the whole message.
    Bare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Single,
    List,
    /// Keys are strings.
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    /// Base64 in JSON.
    Bytes,
    Message(MessageId),
    /// JSON of any form, as text in protobuf.
    Any,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// The three oddities of CustomResourceDefinitions, with the message of a schema.
    SchemaOrArray(MessageId),
    SchemaOrBool(MessageId),
    SchemaOrStrings(MessageId),
}

impl Schema {
    pub fn message(&self, id: MessageId) -> &Message {
        &self.messages[usize::from(id)]
    }

    pub fn message_of(&self, api_version: &str, kind: &str) -> Option<&Message> {
        // The lifetimes of a key are those of the question here.
        let kinds: &HashMap<(&str, &str), MessageId> = &self.kinds;
        let id = kinds.get(&(api_version, kind)).or_else(|| kinds.get(&(ANY_VERSION, kind)))?;
        Some(self.message(*id))
    }

    /// The field behind a slot of `message`.
    pub fn field_at(&'static self, message: &'static Message, slot: usize) -> &'static Field {
        let (owner, index) = message.slots[slot];
        &self.message(owner).fields[usize::from(index)]
    }

    /// Panics on a broken table: it is part of the program, and a test reads it.
    fn parse(text: &'static str) -> Self {
        let names = text.lines().filter_map(|line| line.strip_prefix("message "));
        let ids: HashMap<&str, MessageId> = names.zip(0..).collect();
        let mut schema = Self { kinds: HashMap::new(), messages: Vec::with_capacity(ids.len()) };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&'static str> = line.split(' ').collect();
            match words[..] {
                ["kind", api_version, kind, message] => {
                    schema.kinds.insert((api_version, kind), ids[message]);
                }
                ["message", name] => schema.messages.push(Message {
                    name,
                    fields: Vec::new(),
                    bare: false,
                    slots: Vec::new(),
                    names: Vec::new(),
                }),
                _ => {
                    let field = Field::parse(&words, &ids);
                    let message = schema.messages.last_mut().expect("a field follows its message");
                    message.bare |= field.place == Place::Bare;
                    message.fields.push(field);
                }
            }
        }
        for id in 0..schema.messages.len() {
            let mut slots = Vec::new();
            schema.collect_slots(id as MessageId, &mut slots);
            let name = |&(owner, index): &(MessageId, u16)| {
                schema.message(owner).fields[usize::from(index)].name
            };
            let mut names: Vec<_> = slots.iter().map(name).zip(0..).collect();
            names.sort_unstable();
            schema.messages[id].names = names;
            schema.messages[id].slots = slots;
        }
        schema
    }

    fn collect_slots(&self, id: MessageId, slots: &mut Vec<(MessageId, u16)>) {
        for (field, index) in self.message(id).fields.iter().zip(0..) {
            match (field.place, field.element) {
                (Place::Inlined, Element::Message(inner)) => self.collect_slots(inner, slots),
                _ => slots.push((id, index)),
            }
        }
    }
}

impl Message {
    pub fn field(&self, number: u32) -> Option<(usize, &Field)> {
        let at = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
        Some((at, &self.fields[at]))
    }

    pub fn slot(&self, name: &str) -> Option<usize> {
        let at = self.names.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
        Some(usize::from(self.names[at].1))
    }
}

impl Field {
    fn parse(words: &[&'static str], ids: &HashMap<&str, MessageId>) -> Self {
        let [number, name, presence, ref kind @ ..] = *words else {
            panic!("'{words:?}' is no line of the schema");
        };
        let (shape, kind) = match kind[0] {
            "list" => (Shape::List, &kind[1..]),
            "map" => (Shape::Map, &kind[1..]),
            _ => (Shape::Single, kind),
        };
        let element = match *kind {
            ["string"] => Element::String,
            ["bool"] => Element::Bool,
            ["int32"] => Element::Int32,
            ["int64"] => Element::Int64,
            ["double"] => Element::Double,
            ["bytes"] => Element::Bytes,
            ["any"] => Element::Any,
            ["time"] => Element::Time,
            ["micro-time"] => Element::MicroTime,
            ["quantity"] => Element::Quantity,
            ["int-or-string"] => Element::IntOrString,
            ["message", name] => Element::Message(ids[name]),
            ["schema-or-array", name] => Element::SchemaOrArray(ids[name]),
            ["schema-or-bool", name] => Element::SchemaOrBool(ids[name]),
            ["schema-or-strings", name] => Element::SchemaOrStrings(ids[name]),
            _ => panic!("'{words:?}' has an unknown type"),
        };
        Self {
            number: number.parse().expect("the first word is the number"),
            name,
            place: match name {
                "." => Place::Inlined,
                "=" => Place::Bare,
                _ => Place::Member,
            },
            optional: presence.starts_with("optional"),
            omit_empty: presence.contains('?'),
            omit_zero: presence.ends_with('0'),
            shape,
            element,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole_and_sorted() {
        let schema = schema();
        assert!(schema.kinds.len() > 150 && schema.messages.len() > 500);
        for message in &schema.messages {
            assert!(message.fields.is_sorted_by(|one, other| one.number < other.number));
            assert!(message.names.is_sorted_by(|one, other| one.0 < other.0), "{}", message.name);
            assert!(message.fields.len() <= 64, "decoding counts seen fields in 64 bits");
            let inlined = |field: &&Field| field.place == Place::Inlined;
            for field in message.fields.iter().filter(inlined) {
                assert!(matches!(field.element, Element::Message(_)) && !field.optional);
                assert_eq!(field.shape, Shape::Single);
            }
            assert!(!message.bare || message.fields.len() == 1);
        }
    }

    #[test]
    fn options_are_known_in_every_version() {
        assert!(is_known("v1", "Pod") && is_known("example.org/v7", "DeleteOptions"));
        assert!(!is_known("example.org/v7", "Pod") && !is_known("v1", "Table"));
    }
}
