//! Fields: their type, who may write them, and where in the stored object their values are.

mod parse;

use std::fmt;

use serde_json::{Value, json};

/// The type of a field, as schemas name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldType {
    String,
    /// Never returned by list and get.
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
    /// An array of `of`.
    pub fn array(of: FieldType) -> Self {
        Self::Array(Box::new(of))
    }
    /// A map from strings to `of`.
    pub fn map(of: FieldType) -> Self {
        Self::Map(Box::new(of))
    }
    /// A reference to resources of type `to`.
    pub fn reference(to: &str) -> Self {
        Self::Reference(to.to_owned())
    }
    /// The embedded type `id`.
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
            // Rancher does not: there, workloads cannot be filtered by name.
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

/// Where the value of a field is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldLocation {
    /// Path of keys from the object's root.
    Path(Vec<String>),
    /// An annotation's text.
    Annotation(String),
    /// An annotation whose text is JSON.
    AnnotationJson(String),
    /// Not stored: a formatter, mapper or action handles the field.
    Computed,
}

impl FieldLocation {
    /// The location at a dotted path, such as `spec.displayName`. A key cannot contain a dot.
    pub fn path(dotted: &str) -> Self {
        Self::Path(dotted.split('.').map(str::to_owned).collect())
    }
}

/// One field of a resource or of an embedded type.
///
/// Made by one constructor per type and completed by the builder methods. Text, references and
/// collections are nullable; booleans and integers are not, and have the defaults `false` and `0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// As the view spells it.
    pub name: String,
    /// Type of the values.
    pub kind: FieldType,
    /// `None` until the descriptor that receives the field gives it one.
    pub location: Option<FieldLocation>,
    /// Clients may send it on create.
    pub create: bool,
    /// Clients may send it on update.
    pub update: bool,
    /// A create must send it, unless it has a default.
    pub required: bool,
    /// Clients may send null.
    pub nullable: bool,
    /// Returned only in the reply to a create.
    pub write_only: bool,
    /// Stored when a create does not send it, and shown when nothing is stored.
    pub default: Option<Value>,
    /// The only texts that it may have; empty: any.
    pub options: Vec<String>,
    /// In characters.
    pub min_length: Option<u64>,
    /// In characters.
    pub max_length: Option<u64>,
    /// Smallest number, inclusive.
    pub min: Option<i64>,
    /// Largest number, inclusive.
    pub max: Option<i64>,
    /// The only characters that text may have; empty: any.
    pub valid_chars: String,
    /// Characters that text must not have.
    pub invalid_chars: String,
    /// Explains the field to users, in schemas.
    pub description: Option<String>,
    /// Added at run time, by a driver.
    pub dynamic: bool,
    /// Stored objects may hold a reference instead of the value, see
    /// [`Store::reveal`](crate::Store::reveal).
    pub apart: bool,
    /// A reference whose object must exist when it is written.
    pub exists: bool,
    /// The referenced object cannot be deleted while this reference exists.
    pub holds: bool,
}

impl Field {
    /// A read-only field; add [`Field::create_update`] and the like.
    pub fn new(name: &str, kind: FieldType) -> Self {
        let default = match kind {
            FieldType::Boolean => Some(json!(false)),
            FieldType::Int => Some(json!(0)),
            _ => None,
        };
        Self {
            name: name.to_owned(),
            kind,
            location: None,
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
    /// A read-only field with text.
    pub fn string(name: &str) -> Self {
        Self::new(name, FieldType::String)
    }
    /// A read-only boolean with the default `false`.
    pub fn boolean(name: &str) -> Self {
        Self::new(name, FieldType::Boolean)
    }
    /// A read-only integer with the default 0.
    pub fn int(name: &str) -> Self {
        Self::new(name, FieldType::Int)
    }
    /// A read-only point in time.
    pub fn date(name: &str) -> Self {
        Self::new(name, FieldType::Date)
    }
    /// A read-only reference to a resource of type `to`.
    pub fn reference(name: &str, to: &str) -> Self {
        Self::new(name, FieldType::reference(to))
    }
    /// A read-only enum with these options.
    pub fn options(name: &str, options: &[&str]) -> Self {
        let mut field = Self::new(name, FieldType::Enum);
        field.options = options.iter().map(|&option| option.to_owned()).collect();
        field
    }
    /// A read-only field of the embedded type `id`.
    pub fn of(name: &str, id: &str) -> Self {
        Self::new(name, FieldType::of(id))
    }
    /// A read-only array of `of`.
    pub fn array(name: &str, of: FieldType) -> Self {
        Self::new(name, FieldType::array(of))
    }
    /// A read-only map from strings to `of`.
    pub fn map(name: &str, of: FieldType) -> Self {
        Self::new(name, FieldType::map(of))
    }

    /// Stored at this dotted path.
    pub fn at(mut self, path: &str) -> Self {
        self.location = Some(FieldLocation::path(path));
        self
    }
    /// Stored at this location.
    pub fn location(mut self, location: FieldLocation) -> Self {
        self.location = Some(location);
        self
    }
    /// Stored as the text of the annotation `key`.
    pub fn annotation(self, key: &str) -> Self {
        self.location(FieldLocation::Annotation(key.to_owned()))
    }
    /// Stored as JSON in the annotation `key`.
    pub fn annotation_json(self, key: &str) -> Self {
        self.location(FieldLocation::AnnotationJson(key.to_owned()))
    }
    /// Not stored: a formatter, mapper or action handles it.
    pub fn computed(self) -> Self {
        self.location(FieldLocation::Computed)
    }
    /// Clients may send it on create.
    pub fn create(mut self) -> Self {
        self.create = true;
        self
    }
    /// Clients may send it on update.
    pub fn update(mut self) -> Self {
        self.update = true;
        self
    }
    /// Clients may send it on create and on update.
    pub fn create_update(self) -> Self {
        self.create().update()
    }
    /// A create must send it.
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }
    /// Returned only in the reply to a create.
    pub fn write_only(mut self) -> Self {
        self.write_only = true;
        self
    }
    /// Sets the default.
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }
    /// Removes the default: a field that is not sent is not stored.
    pub fn without_default(mut self) -> Self {
        self.default = None;
        self.nullable = true;
        self
    }
    /// Sets whether clients may send null.
    pub fn nullable(mut self, nullable: bool) -> Self {
        self.nullable = nullable;
        self
    }
    /// Limits numbers to `min..=max`.
    pub fn range(mut self, min: i64, max: i64) -> Self {
        (self.min, self.max) = (Some(min), Some(max));
        self
    }
    /// Limits text to `min..=max` characters.
    pub fn length(mut self, min: u64, max: u64) -> Self {
        (self.min_length, self.max_length) = (Some(min), Some(max));
        self
    }
    /// Allows only these characters in text.
    pub fn valid_chars(mut self, chars: &str) -> Self {
        self.valid_chars = chars.to_owned();
        self
    }
    /// Forbids these characters in text.
    pub fn invalid_chars(mut self, chars: &str) -> Self {
        self.invalid_chars = chars.to_owned();
        self
    }
    /// Sets the description that schemas show.
    pub fn description(mut self, text: &str) -> Self {
        self.description = Some(text.to_owned());
        self
    }

    /// Whether lists and gets never return it.
    pub fn is_secret(&self) -> bool {
        self.write_only || self.kind == FieldType::Password
    }
    pub(crate) fn location_or_computed(&self) -> &FieldLocation {
        self.location.as_ref().unwrap_or(&FieldLocation::Computed)
    }
}

/// An embedded type: fields without an identity of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct StructType {
    /// Type id, unique within its API version.
    pub id: String,
    pub fields: Vec<Field>,
}

impl StructType {
    /// Takes the fields as they are; add [`Field::create_update`] where a client may write them.
    pub fn new(id: &str, fields: Vec<Field>) -> Self {
        Self { id: id.to_owned(), fields }
    }
    /// An embedded type whose fields clients may all write.
    pub fn writable(id: &str, fields: Vec<Field>) -> Self {
        let fields = fields.into_iter().map(Field::create_update).collect();
        Self { id: id.to_owned(), fields }
    }
    /// The embedded type of an object in a CRD's schema, and those nested in it.
    pub fn derived(id: &str, schema: &Value) -> Vec<Self> {
        crate::types::crd::derive_struct(id, schema)
    }
    /// The usual condition: type, status, reason, message and two times as text. Read-only.
    pub fn condition(id: &str) -> Self {
        let names = ["lastTransitionTime", "lastUpdateTime", "message", "reason", "status", "type"];
        Self::new(id, names.into_iter().map(Field::string).collect())
    }
    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
