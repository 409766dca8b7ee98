//! Objects generated from the table, with all fields or some.

use serde_json::{Map, Value, json};

use crate::EncodableKind;
use crate::schema::{
    Cardinality, Element, FieldPlacement, MessageField, MessageId, MessageType, schema,
};

/// Schemas contain schemas. This many levels of a message inside itself are enough.
const REPEATS_MAX: usize = 2;

/// Generates objects. The result depends only on the seed.
pub struct Filler {
    state: u64,
    everything: bool,
    /// The messages that are being generated.
    within: Vec<*const MessageType>,
}

impl Filler {
    /// Fills every field. The same seed gives the same objects.
    pub fn everything(seed: u64) -> Self {
        Self { state: seed | 1, everything: true, within: Vec::new() }
    }

    /// Fills some fields, chosen by the seed.
    pub fn some(seed: u64) -> Self {
        Self { everything: false, ..Self::everything(seed) }
    }

    /// An object of `kind` as JSON; the next call gives another one.
    pub fn object(&mut self, kind: EncodableKind) -> Value {
        let api_version = if kind.api_version == "*" { "v1" } else { kind.api_version };
        let message = schema().message_of(api_version, kind.kind).unwrap();
        let mut object = Map::new();
        self.members(message, &mut object);
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.kind.into());
        Value::Object(object)
    }

    fn below(&mut self, limit: u64) -> u64 {
        // xorshift64: any sequence with a long period works.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % limit
    }

    fn members(&mut self, message: &'static MessageType, object: &mut Map<String, Value>) {
        self.within.push(message);
        for field in &message.fields {
            if let (FieldPlacement::Inlined, Element::Message(inner)) = (field.place, field.element)
            {
                self.members(schema().message(inner), object);
            } else if self.includes(field) {
                let value = self.field(field);
                object.insert(field.name.to_owned(), value);
            }
        }
        self.within.pop();
    }

    fn includes(&mut self, field: &MessageField) -> bool {
        let inner = match field.element {
            Element::Message(id)
            | Element::SchemaOrArray(id)
            | Element::SchemaOrBool(id)
            | Element::SchemaOrStrings(id) => schema().message(id),
            _ => return self.everything || self.below(3) == 0,
        };
        let repeats = self.within.iter().filter(|within| std::ptr::eq(**within, inner)).count();
        repeats < REPEATS_MAX && (self.everything || self.below(3) == 0)
    }

    fn field(&mut self, field: &MessageField) -> Value {
        match field.shape {
            Cardinality::Single => self.element(field.element),
            Cardinality::List => json!([self.element(field.element), self.element(field.element)]),
            Cardinality::Map => {
                json!({"b": self.element(field.element), "a/ä": self.element(field.element)})
            }
        }
    }

    /// Never a value that JSON would omit.
    fn element(&mut self, element: Element) -> Value {
        match element {
            Element::String => {
                let length = self.below(200);
                format!("ü\"{}", "x".repeat(usize::try_from(length).unwrap())).into()
            }
            Element::Bool => true.into(),
            Element::Int32 => [1, -1, 1000, i32::MAX, i32::MIN][self.pick(5)].into(),
            Element::Int64 => [1, -1, 1000, i64::MAX, i64::MIN][self.pick(5)].into(),
            Element::Double => [json!(1.5), json!(-3), json!(1e300)][self.pick(3)].clone(),
            Element::Bytes => ["AAEC/w==", "aw=="][self.pick(2)].into(),
            Element::Any => {
                [json!({"a": [1, null, {"b": "c"}]}), json!([]), json!("text"), json!(true)]
                    [self.pick(4)]
                .clone()
            }
            Element::Time => ["2026-01-02T03:04:05Z", "1969-12-31T23:59:59Z"][self.pick(2)].into(),
            Element::MicroTime => "2026-01-02T03:04:05.123456Z".into(),
            Element::Quantity => ["1500m", "1Gi"][self.pick(2)].into(),
            Element::IntOrString => [json!(8080), json!("50%")][self.pick(2)].clone(),
            Element::Message(id) => self.message(id),
            Element::SchemaOrBool(id) => match self.pick(2) {
                0 => true.into(),
                _ => self.message(id),
            },
            Element::SchemaOrArray(id) => match self.pick(2) {
                0 => json!([self.message(id), self.message(id)]),
                _ => self.message(id),
            },
            Element::SchemaOrStrings(id) => match self.pick(2) {
                0 => json!(["one", ""]),
                _ => self.message(id),
            },
        }
    }

    fn pick(&mut self, choices: u64) -> usize {
        usize::try_from(self.below(choices)).unwrap()
    }

    fn message(&mut self, id: MessageId) -> Value {
        let message = schema().message(id);
        if message.bare {
            return self.field(&message.fields[0]);
        }
        let mut object = Map::new();
        self.members(message, &mut object);
        Value::Object(object)
    }
}
