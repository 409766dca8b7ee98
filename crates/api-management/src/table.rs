//! Types as tables: one text file describes a type that is only data.
//!
//! A table is a file in `types/`, one per type; nested types that several types use are in
//! `types/nested/`. The schema of the stored objects ([`definition`]) and the fields of the type in
//! the REST view are derived from the table. The format, line by line (`#` begins a comment line):
//!
//! ```text
//! type nodePool nodePools              id and plural
//! kind NodePool nodepools     stored kind and plural; or `secret cc-`: core Secrets of the prefix
//! kubernetes apps/v1 Deployment deployments   instead of `kind`: stored objects of Kubernetes
//! scope namespaced                     or `cluster`; the format of ids
//! namespace cattle-global-data         all objects are in this namespace, which is not shown
//! base authConfig                      the type that this one is a case of
//! methods list create get update delete         or `none`
//! state                                shows its state
//! parent clusterId                     new objects go to the namespace that this field names
//! kept                                 nothing acts on objects of the kind yet
//! embed podSpec spec.template.spec     also has the fields of a nested type, stored at this path
//!
//! [spec]                               section of the fields below: metadata, object, spec, status
//! quantity int CUR min=1 @amount = 1   name, type, access, limits, location, default
//!
//! struct taint                         a nested type, whose fields follow
//! ```
//!
//! - Types are written as in schemas; an enum has its options in parentheses.
//! - Access: `C` may be sent on create, `U` on update, `R` required on create, `N` may be null, `W`
//!   shown only in the reply to a create, `-` none of these. `?`: the reference does not say; then
//!   the field may be written unless it is in a status, may be null, and has no default.
//! - `credential` after the access: the field is always a credential; `url`: it is one when it
//!   names a user. Both, like the type `password`, are stored apart from the object
//!   ([`crate::credentials`]).
//! - `exists` after a reference: its object must exist when it is written; `holds`: the object
//!   cannot be deleted while another refers to it. `kept` after a field of an implemented type:
//!   nothing acts on this field yet, and an object that sets it reports that
//!   ([`crate::unimplemented`]). `hidden` after a field: it is stored, but the view does not show
//!   it.
//! - A boolean or integer that may not be null and has no default has `false` or `0`.
//! - A field is stored under its own name in its section, except that references `…Id` and `…Ids`
//!   are stored as `…Name` and `…Names`. `@name` gives another name, `@a.b` a whole path,
//!   `@annotation:key` and `@json:key` an annotation with text or JSON, `@-` means that it is not
//!   stored. A path that ends with a dot (`@spec.`, `@.`) is that of an object that contains more
//!   than the field: the fields of a nested type are stored among others.

pub mod definition;
mod parse;

use serde_json::Value;

pub use parse::{TableError, nested, parse};

#[cfg(test)]
mod tests;

/// The table of one type.
#[derive(Clone, Debug, Default)]
pub struct TypeTable {
    /// Type id in the view, lower camel case singular.
    pub id: &'static str,
    /// Plural in the view, camel case.
    pub plural: &'static str,
    /// The kind of the stored objects.
    pub stored: Stored,
    /// Ids are `namespace:name`.
    pub namespaced: bool,
    /// The one namespace that holds all objects.
    pub namespace: Option<&'static str>,
    /// The type that this one is a case of.
    pub base: Option<&'static str>,
    /// Names of the verbs: list, create, get, update, delete.
    pub methods: Vec<&'static str>,
    /// Whether the view shows its state.
    pub has_state: bool,
    /// Field that names the namespace of new objects.
    pub parent: Option<&'static str>,
    /// Nothing acts on the objects yet.
    pub is_unimplemented: bool,
    /// Id of a nested type whose fields the type has as well, and where they are stored.
    pub embedded: Option<(&'static str, &'static str)>,
    /// Its fields, in order.
    pub fields: Vec<Row>,
    /// Nested types that only this type uses.
    pub nested: Vec<Nested>,
}

/// What the stored objects of a type are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stored {
    /// Objects of `management.cattle.io`.
    Kind { kind: &'static str, plural: &'static str },
    /// Objects of Kubernetes.
    Kubernetes {
        /// `v1`, `apps/v1`.
        api_version: &'static str,
        kind: &'static str,
        plural: &'static str,
    },
    /// Core Secrets whose names begin with this prefix.
    Secret { prefix: &'static str },
    /// Not stored: another source provides them, or the type occurs only inside others.
    #[default]
    Nowhere,
}

/// A nested type: fields without an identity of their own.
#[derive(Clone, Debug)]
pub struct Nested {
    pub id: &'static str,
    pub fields: Vec<Row>,
}

/// One field of a type.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: &'static str,
    /// The type, as schemas spell it.
    pub kind: &'static str,
    /// Options of an enum.
    pub options: Vec<&'static str>,
    /// Who may send it when.
    pub access: Access,
    /// Where it is stored.
    pub location: RowLocation,
    pub default: Option<Value>,
    pub min: Option<i64>,
    pub max: Option<i64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    /// The object that the reference names must exist.
    pub exists: bool,
    /// The object that the reference names cannot be deleted before this one.
    pub holds: bool,
    /// Nothing acts on the field yet: it is only stored.
    pub is_unimplemented: bool,
    /// It is stored, and no field of the type in the REST view.
    pub is_hidden: bool,
    /// Which of its texts are stored apart from the object.
    pub mark: Option<Mark>,
}

/// Which texts of a field are credentials, and who may read them back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A URL: a credential when it names a user, as in `https://user:password@host`.
    Url,
    /// Always a credential. Users who may update the object can read it back.
    Credential,
    /// Never read back.
    Password,
}

/// When clients may send a field, and whether it can be null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// On create.
    pub create: bool,
    /// On update.
    pub update: bool,
    /// A create must send it.
    pub required: bool,
    /// It may be null.
    pub nullable: bool,
    /// Shown only in the reply to a create.
    pub write_only: bool,
}

/// Where a field is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowLocation {
    /// Dotted path from the object's root.
    Path(String),
    Annotation(&'static str),
    AnnotationJson(&'static str),
    /// A formatter, mapper or action handles the field.
    NotStored,
}

impl TypeTable {
    /// Whether `name` is a display name, so that `id` holds the object's name.
    pub fn has_display_name(&self) -> bool {
        self.fields.iter().any(|row| {
            row.name == "name" && row.location != RowLocation::Path("metadata.name".to_owned())
        })
    }
}
