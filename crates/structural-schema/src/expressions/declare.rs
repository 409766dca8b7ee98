//! The declarations of a schema for expressions: types, names and sizes.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::declared::{DeclaredField, ListIdentity, Object};
use cel::limits::REQUEST_BYTES;
use cel::{Declared, DeclaredKind, escape};

use crate::schema::{Additional, ListType, NodeId, Schema, SchemaNode, Type};

/// Size of the longest text that a request can contain, in bytes.
const TEXT_MAX: u64 = REQUEST_BYTES - 2;
/// Largest size of a character, in bytes.
const CHARACTER_BYTES: u64 = 4;
/// Size of the shortest texts, in bytes: `""`, `"0"`, `"2006-01-02"`, and a date with a time.
const TEXT_MIN: u64 = 2;
const DURATION_MIN: u64 = 3;
const DATE_BYTES: u64 = 12;
const DATE_TIME_MIN: u64 = 21;
/// Size of the longest duration and date-time that upstream assumes, in bytes.
const DURATION_MAX: u64 = 32;
const DATE_TIME_MAX: u64 = 32;
/// Size of `true`, in bytes.
const BOOL_MIN: u64 = 4;
const OBJECT_MIN: u64 = 2;
/// Bytes of a field besides its name and value: quotes, colon and comma.
const FIELD_EXTRA: u64 = 4;
/// Bytes of a map entry besides its value: the same, and an empty key.
const ENTRY_EXTRA: u64 = 6;

pub(super) struct Declare<'s> {
    pub schema: &'s Schema,
    /// Receives the declarations, by node.
    pub declared: Option<&'s mut [Option<Arc<Declared>>]>,
    /// Whether untyped parts have the type `dyn`, instead of being inaccessible.
    pub untyped_is_anything: bool,
}

impl Declare<'_> {
    /// Declares a node and all nodes below it. With `whole` it is an object with its own type and
    /// name.
    pub fn node(&mut self, id: NodeId, name: &str, whole: bool) -> Option<Arc<Declared>> {
        let node = self.schema.node(id);
        let children = self.children(node, name);
        let kind = self.kind(node, children, name, whole)?;
        let declared = Arc::new(Declared { nullable: node.nullable, ..kind });
        if let Some(all) = &mut self.declared {
            all[id as usize] = Some(declared.clone());
        }
        Some(declared)
    }

    /// Declares all children: rules below a node that is inaccessible still apply.
    fn children(&mut self, node: &SchemaNode, name: &str) -> Children {
        let mut children = Children::default();
        for (key, id) in &node.properties {
            let embedded = self.schema.node(*id).embedded;
            let child = self.node(*id, &format!("{name}.{key}"), embedded);
            children.fields.push((key.clone(), *id, child));
        }
        if let Some(id) = node.items {
            children.inner = self.node(id, &format!("{name}.@idx"), self.schema.node(id).embedded);
        }
        if let Additional::Schema(id) = node.additional {
            children.inner = self.node(id, &format!("{name}.@elem"), self.schema.node(id).embedded);
        }
        children
    }

    fn kind(
        &self,
        node: &SchemaNode,
        children: Children,
        name: &str,
        whole: bool,
    ) -> Option<Declared> {
        let rules = node.rules.as_deref();
        let length = rules.and_then(|rules| rules.max_length);
        if node.int_or_string {
            let size = length.map_or(TEXT_MAX, |length| length * CHARACTER_BYTES);
            return Some(Declared::new(DeclaredKind::IntOrText, size, 1));
        }
        let bare = node.kind == Some(Type::Object)
            && node.properties.is_empty()
            && !matches!(node.additional, Additional::Schema(_));
        if self.untyped_is_anything && (node.kind.is_none() || bare) {
            return Some(Declared::dynamic());
        }
        Some(match node.kind? {
            Type::Boolean => Declared::new(DeclaredKind::Bool, 0, BOOL_MIN),
            Type::Integer => Declared::new(DeclaredKind::Int, 0, 1),
            Type::Number => Declared::new(DeclaredKind::Double, 0, 1),
            Type::String => text(node),
            Type::Array => {
                let inner = children.inner?;
                let most = REQUEST_BYTES.saturating_sub(2) / (inner.json_min + 1);
                let size = rules.and_then(|rules| rules.max_items).unwrap_or(most);
                let identity = match node.list_type {
                    ListType::Atomic => ListIdentity::Position,
                    ListType::Set => ListIdentity::Value,
                    ListType::Map => ListIdentity::Keys(
                        rules.map(|rules| rules.list_keys.as_slice()).unwrap_or_default().into(),
                    ),
                };
                Declared::new(DeclaredKind::List(inner, identity), size, OBJECT_MIN)
            }
            Type::Object if matches!(node.additional, Additional::Schema(_)) => {
                let inner = children.inner?;
                let most = REQUEST_BYTES.saturating_sub(2) / (inner.json_min + ENTRY_EXTRA);
                let size = rules.and_then(|rules| rules.max_properties).unwrap_or(most);
                Declared::new(DeclaredKind::Map(inner), size, OBJECT_MIN)
            }
            Type::Object => self.object(node, children, name, whole),
        })
    }

    fn object(&self, node: &SchemaNode, children: Children, name: &str, whole: bool) -> Declared {
        let mut json_min = OBJECT_MIN;
        let mut fields = BTreeMap::new();
        let required = node.rules.as_deref().map(|rules| rules.required.as_slice());
        let required = required.unwrap_or_default();
        let mut add = |key: &str, declared: Arc<Declared>| {
            if let Some(escaped) = escape(key) {
                fields.insert(escaped.into(), DeclaredField { name: key.into(), declared });
            }
        };
        for (key, id, declared) in children.fields {
            let Some(declared) = declared else {
                continue;
            };
            let needed = required.contains(&key) && self.schema.node(id).default.is_none();
            let replaced = whole && matches!(&*key, "apiVersion" | "kind" | "metadata");
            if needed {
                let declared_min = if replaced { OBJECT_MIN } else { declared.json_min };
                json_min += key.len() as u64 + declared_min + FIELD_EXTRA;
            }
            add(&key, declared);
        }
        if whole {
            let text = || Arc::new(Declared::new(DeclaredKind::Text, TEXT_MAX, TEXT_MIN));
            add("apiVersion", text());
            add("kind", text());
            add("metadata", metadata(name, text));
        }
        let object = Object { name: name.to_owned(), fields };
        Declared::new(DeclaredKind::Object(Arc::new(object)), 0, json_min)
    }
}

#[derive(Default)]
struct Children {
    fields: Vec<(Box<str>, NodeId, Option<Arc<Declared>>)>,
    /// Items of a list or values of a map.
    inner: Option<Arc<Declared>>,
}

/// The declaration of the metadata: the name of the object.
fn metadata(name: &str, text: impl Fn() -> Arc<Declared>) -> Arc<Declared> {
    let field = |key: &str| (Box::from(key), DeclaredField { name: key.into(), declared: text() });
    let fields = BTreeMap::from([field("name"), field("generateName")]);
    let object = Object { name: format!("{name}.metadata"), fields };
    Arc::new(Declared::new(DeclaredKind::Object(Arc::new(object)), 0, OBJECT_MIN))
}

fn text(node: &SchemaNode) -> Declared {
    let rules = node.rules.as_deref();
    let length = rules.and_then(|rules| rules.max_length);
    match rules.and_then(|rules| rules.format.as_deref()) {
        Some("byte") => Declared::new(DeclaredKind::Bytes, length.unwrap_or(TEXT_MAX), TEXT_MIN),
        Some("duration") => Declared::new(DeclaredKind::Duration, DURATION_MAX, DURATION_MIN),
        Some("date") => Declared::new(DeclaredKind::Date, DATE_BYTES, DATE_BYTES),
        Some("date-time") => Declared::new(DeclaredKind::DateTime, DATE_TIME_MAX, DATE_TIME_MIN),
        _ => {
            let choices = rules.map(|rules| rules.one_of_values.as_slice()).unwrap_or_default();
            let longest = choices.iter().filter_map(|choice| choice.as_str()).map(str::len).max();
            let size = match length {
                Some(length) => length * CHARACTER_BYTES,
                None if !choices.is_empty() => longest.unwrap_or(0) as u64,
                None => TEXT_MAX,
            };
            Declared::new(DeclaredKind::Text, size, TEXT_MIN)
        }
    }
}
