//! The table of messages and their fields.
//!
//! `table.txt` is written by `go-client gnostic-table` of the testbed, from the published messages.
//! It is read when the first document is encoded. Its lines:
//!
//! ```text
//! object v3.Schema                  an object of JSON with the fields that follow
//! 1 nullable bool                   number, JSON name, type
//! 36 x-* entries any                every member whose name begins so; `*`: every other member
//! oneof v3.SchemaOrReference        one of the fields that follow, whichever the value is
//! value v3.ItemsItem                nothing but its field's value
//! ```

use std::collections::HashMap;
use std::sync::LazyLock;

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(include_str!("table.txt")));

/// Keys of extensions begin with it, also in the table.
const EXTENSION: &str = "x-";
const EXTENSIONS: &str = "x-*";

pub fn table() -> &'static Table {
    &TABLE
}

pub type MessageId = u16;

#[derive(Debug)]
pub struct Table {
    ids: HashMap<&'static str, MessageId>,
    messages: Vec<Message>,
}

/// Invariant: there is a field, and fields are sorted by number.
#[derive(Debug)]
pub struct Message {
    pub form: Form,
    pub fields: Vec<Field>,
}

/// How a message looks in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Object,
    /// The value of one of its fields.
    OneOf,
    /// The value of its only field, which is a list; of one element, that may be the element itself.
    Value,
}

#[derive(Debug)]
pub struct Field {
    pub number: u32,
    pub name: &'static str,
    pub shape: Shape,
    pub element: Element,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Single,
    List,
    /// Pairs of key and value, in the order in which JSON has them.
    Entries,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    String,
    Bool,
    Int,
    Double,
    /// JSON of any form, as YAML.
    Any,
    Message(MessageId),
}

impl Table {
    pub fn message(&self, id: MessageId) -> &Message {
        &self.messages[usize::from(id)]
    }

    /// Panics when there is none: names are part of the program.
    pub fn message_of(&self, name: &str) -> &Message {
        self.message(self.ids[name])
    }

    /// Panics on a broken table: it is part of the program, and a test reads it.
    fn parse(text: &'static str) -> Self {
        let lines = || text.lines().filter(|line| !line.starts_with('#'));
        let form = |line: &'static str| {
            let (word, name) = line.split_once(' ').expect("a line has two words");
            let form = match word {
                "object" => Form::Object,
                "oneof" => Form::OneOf,
                "value" => Form::Value,
                _ => return None,
            };
            Some((form, name))
        };
        let ids = lines().filter_map(form).map(|(_, name)| name).zip(0..).collect();
        let mut messages: Vec<Message> = Vec::new();
        for line in lines() {
            match form(line) {
                Some((form, _)) => messages.push(Message { form, fields: Vec::new() }),
                None => {
                    let message = messages.last_mut().expect("a field follows its message");
                    message.fields.push(Field::parse(line, &ids));
                }
            }
        }
        Self { ids, messages }
    }
}

impl Message {
    /// Whether a field of entries takes the member of this name.
    pub fn takes(&self, field: &Field, key: &str) -> bool {
        if field.name == EXTENSIONS {
            return key.starts_with(EXTENSION);
        }
        !self.fields.iter().any(|other| {
            other.name == key || other.name == EXTENSIONS && key.starts_with(EXTENSION)
        })
    }
}

impl Field {
    fn parse(line: &'static str, ids: &HashMap<&str, MessageId>) -> Self {
        let words: Vec<&'static str> = line.split(' ').collect();
        let (shape, kind) = match words[2..] {
            ["list", kind] => (Shape::List, kind),
            ["entries", kind] => (Shape::Entries, kind),
            [kind] => (Shape::Single, kind),
            _ => panic!("'{line}' is no line of the table"),
        };
        let element = match kind {
            "string" => Element::String,
            "bool" => Element::Bool,
            "int64" => Element::Int,
            "double" => Element::Double,
            "any" => Element::Any,
            message => Element::Message(ids[message]),
        };
        let number = words[0].parse().expect("the first word is the number");
        Self { number, name: words[1], shape, element }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole_and_sorted() {
        let table = table();
        assert!(table.messages.len() > 80 && table.messages.len() == table.ids.len());
        for message in &table.messages {
            let fields = &message.fields;
            assert!(fields.is_sorted_by(|one, other| one.number < other.number));
            match message.form {
                Form::Object => assert!(!fields.is_empty()),
                Form::OneOf => assert!(fields.iter().all(|field| field.shape == Shape::Single)),
                Form::Value => assert!(fields.len() == 1 && fields[0].shape == Shape::List),
            }
        }
    }
}
