//! Fields: their type, who may write them, and where in the stored object they live.

mod parse;

use std::fmt;

use serde_json::{Value, json};

/// The type of a field, as schemas name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldType {
    String,
    /// Never answered by list and get.
    Password,
    DnsLabel,
    DnsLabelRestricted,
    Hostname,
    Int,
    Float,
    Boolean,
    Json,
    Base64,
    IntOrString,
    /// RFC 3339; output adds `<field>TS` in milliseconds since the epoch.
    Date,
    Enum,
    /// The id of a resource of this type.
    Reference(String),
    Array(Box<FieldType>),
    /// Keys are strings.
    Map(Box<FieldType>),
    /// An embedded type, see [`StructType`].
    Struct(String),
}

impl FieldType {
    pub fn array(of: FieldType) -> Self {
        Self::Array(Box::new(of))
    }
    pub fn map(of: FieldType) -> Self {
        Self::Map(Box::new(of))
    }
    pub fn reference(to: &str) -> Self {
        Self::Reference(to.to_owned())
    }
    pub fn of(id: &str) -> Self {
        Self::Struct(id.to_owned())
    }
    /// Filter modifiers that lists accept on a field of this type.
    pub fn modifiers(&self) -> &'static [&'static str] {
        match self {
            Self::String
            | Self::Enum
            | Self::Date
            | Self::DnsLabel
            // Not by Rancher: there, no workload is found by its name.
            | Self::DnsLabelRestricted
            | Self::Hostname
            | Self::Int
            | Self::Reference(_) => &["eq", "ne", "in", "notin"],
            Self::Boolean => &["eq", "ne"],
            _ => &[],
        }
    }
    /// The innermost type of nested arrays and maps.
    pub fn innermost(&self) -> &FieldType {
        match self {
            Self::Array(inner) | Self::Map(inner) => inner.innermost(),
            other => other,
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("string"),
            Self::Password => f.write_str("password"),
            Self::DnsLabel => f.write_str("dnsLabel"),
            Self::DnsLabelRestricted => f.write_str("dnsLabelRestricted"),
            Self::Hostname => f.write_str("hostname"),
            Self::Int => f.write_str("int"),
            Self::Float => f.write_str("float"),
            Self::Boolean => f.write_str("boolean"),
            Self::Json => f.write_str("json"),
            Self::Base64 => f.write_str("base64"),
            Self::IntOrString => f.write_str("intOrString"),
            Self::Date => f.write_str("date"),
            Self::Enum => f.write_str("enum"),
            Self::Reference(to) => write!(f, "reference[{to}]"),
            Self::Array(of) => write!(f, "array[{of}]"),
            Self::Map(of) => write!(f, "map[{of}]"),
            Self::Struct(id) => f.write_str(id),
        }
    }
}

/// Where a field's value is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Path of keys from the object's root.
    Path(Vec<String>),
    /// An annotation's text.
    Annotation(String),
    /// An annotation whose text is JSON.
    AnnotationJson(String),
    /// Nowhere: a formatter, mapper or action deals with it.
    Computed,
}

impl Place {
    /// `spec.displayName`, dots between keys.
    pub fn path(dotted: &str) -> Self {
        Self::Path(dotted.split('.').map(str::to_owned).collect())
    }
}

/// One field of a resource or of an embedded type.
///
/// Made by a constructor per type and shaped by the builder methods; text, references and
/// collections are nullable, booleans and integers are not and have the defaults `false` and `0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub kind: FieldType,
    /// `None` until the descriptor that takes the field gives it one.
    pub place: Option<Place>,
    pub create: bool,
    pub update: bool,
    pub required: bool,
    pub nullable: bool,
    /// Answered only in the reply to a create.
    pub write_only: bool,
    pub default: Option<Value>,
    pub options: Vec<String>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min: Option<i64>,
    pub max: Option<i64>,
    /// The only characters that text may have; empty: any.
    pub valid_chars: String,
    /// Characters that text must not have.
    pub invalid_chars: String,
    pub description: Option<String>,
    /// Added while running, by a driver.
    pub dynamic: bool,
    /// Stored objects may hold something else in its place, see [`Store::reveal`](crate::Store::reveal).
    pub apart: bool,
    /// A reference whose object must be there when it is written.
    pub exists: bool,
    /// The object that the reference names stays as long as this one refers to it.
    pub holds: bool,
}

impl Field {
    /// Readable only; add [`Field::create_update`] and the like.
    pub fn new(name: &str, kind: FieldType) -> Self {
        let default = match kind {
            FieldType::Boolean => Some(json!(false)),
            FieldType::Int => Some(json!(0)),
            _ => None,
        };
        Self {
            name: name.to_owned(),
            kind,
            place: None,
            create: false,
            update: false,
            required: false,
            nullable: default.is_none(),
            write_only: false,
            default,
            options: Vec::new(),
            min_length: None,
            max_length: None,
            min: None,
            max: None,
            valid_chars: String::new(),
            invalid_chars: String::new(),
            description: None,
            dynamic: false,
            apart: false,
            exists: false,
            holds: false,
        }
    }
    pub fn string(name: &str) -> Self {
        Self::new(name, FieldType::String)
    }
    pub fn boolean(name: &str) -> Self {
        Self::new(name, FieldType::Boolean)
    }
    pub fn int(name: &str) -> Self {
        Self::new(name, FieldType::Int)
    }
    pub fn date(name: &str) -> Self {
        Self::new(name, FieldType::Date)
    }
    pub fn reference(name: &str, to: &str) -> Self {
        Self::new(name, FieldType::reference(to))
    }
    pub fn options(name: &str, options: &[&str]) -> Self {
        let mut field = Self::new(name, FieldType::Enum);
        field.options = options.iter().map(|&option| option.to_owned()).collect();
        field
    }
    /// An embedded type.
    pub fn of(name: &str, id: &str) -> Self {
        Self::new(name, FieldType::of(id))
    }
    pub fn array(name: &str, of: FieldType) -> Self {
        Self::new(name, FieldType::array(of))
    }
    pub fn map(name: &str, of: FieldType) -> Self {
        Self::new(name, FieldType::map(of))
    }

    /// Stored at this dotted path.
    pub fn at(mut self, path: &str) -> Self {
        self.place = Some(Place::path(path));
        self
    }
    pub fn place(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }
    pub fn annotation(self, key: &str) -> Self {
        self.place(Place::Annotation(key.to_owned()))
    }
    pub fn annotation_json(self, key: &str) -> Self {
        self.place(Place::AnnotationJson(key.to_owned()))
    }
    pub fn computed(self) -> Self {
        self.place(Place::Computed)
    }
    pub fn create(mut self) -> Self {
        self.create = true;
        self
    }
    pub fn update(mut self) -> Self {
        self.update = true;
        self
    }
    pub fn create_update(self) -> Self {
        self.create().update()
    }
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }
    pub fn write_only(mut self) -> Self {
        self.write_only = true;
        self
    }
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }
    /// Without a default: absent stays absent.
    pub fn without_default(mut self) -> Self {
        self.default = None;
        self.nullable = true;
        self
    }
    pub fn nullable(mut self, nullable: bool) -> Self {
        self.nullable = nullable;
        self
    }
    pub fn range(mut self, min: i64, max: i64) -> Self {
        (self.min, self.max) = (Some(min), Some(max));
        self
    }
    pub fn length(mut self, min: u64, max: u64) -> Self {
        (self.min_length, self.max_length) = (Some(min), Some(max));
        self
    }
    pub fn valid_chars(mut self, chars: &str) -> Self {
        self.valid_chars = chars.to_owned();
        self
    }
    pub fn invalid_chars(mut self, chars: &str) -> Self {
        self.invalid_chars = chars.to_owned();
        self
    }
    pub fn description(mut self, text: &str) -> Self {
        self.description = Some(text.to_owned());
        self
    }

    /// Lists and gets never answer it.
    pub fn is_secret(&self) -> bool {
        self.write_only || self.kind == FieldType::Password
    }
    pub(crate) fn place_or_computed(&self) -> &Place {
        self.place.as_ref().unwrap_or(&Place::Computed)
    }
}

/// An embedded type: fields without an identity of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct StructType {
    pub id: String,
    pub fields: Vec<Field>,
}

impl StructType {
    /// Fields are taken as given; add [`Field::create_update`] where a client may write them.
    pub fn new(id: &str, fields: Vec<Field>) -> Self {
        Self { id: id.to_owned(), fields }
    }
    /// All fields may be written.
    pub fn writable(id: &str, fields: Vec<Field>) -> Self {
        let fields = fields.into_iter().map(Field::create_update).collect();
        Self { id: id.to_owned(), fields }
    }
    /// The embedded type of an object in a CRD's schema, and those nested in it.
    pub fn derived(id: &str, schema: &Value) -> Vec<Self> {
        crate::types::crd::derive_struct(id, schema)
    }
    /// The usual condition: type, status, reason, message and two times as text.
    pub fn condition(id: &str) -> Self {
        let names = ["lastTransitionTime", "lastUpdateTime", "message", "reason", "status", "type"];
        Self::new(id, names.into_iter().map(Field::string).collect())
    }
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
