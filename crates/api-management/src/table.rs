//! Types as tables: one text file says all there is to say of a type that is data.
//!
//! A table lies in `types/`, one per type; nested types that several types use lie in
//! `types/nested/`. From a table come the schema of the stored objects ([`definition`]) and the
//! type's fields in the REST view. The form, line by line (`#` begins a comment line):
//!
//! ```text
//! type nodePool nodePools              id and plural
//! kind NodePool nodepools              kind and plural of the stored objects; or `secret cc-`: core Secrets of this prefix
//! kubernetes apps/v1 Deployment deployments    instead of `kind`: the stored objects are of Kubernetes
//! scope namespaced                     or `cluster`; how ids look
//! namespace cattle-global-data         all objects are in this namespace, which is not shown
//! base authConfig                      the type that this one is a case of
//! methods list create get update delete         or `none`
//! state                                shows its state
//! parent clusterId                     new objects go to the namespace that this field names
//! kept                                 nothing acts on the objects yet: they are only kept
//! embed podSpec spec.template.spec     has the fields of a nested type as well, stored at this path
//!
//! [spec]                               where the fields below are stored: metadata, object, spec, status
//! quantity int CUR min=1 @amount = 1   name, type, access, limits, place, default
//!
//! struct taint                         a nested type, whose fields follow
//! ```
//!
//! - Types are written as schemas have them; an enum has its options in parentheses.
//! - Access: `C` may be sent on create, `U` on update, `R` required on create, `N` may be null, `W` shown
//!   only in the answer to a create, `-` none of these. `?`: the reference does not tell; then the field
//!   may be written unless it is in a status, may be null, and has no default.
//! - `credential` behind the access: what is in the field is a credential by its nature; `url`: it is one when
//!   it names a user. Both, like the type `password`, are stored apart from the object ([`crate::credentials`]).
//! - `exists` behind a reference: its object must be there when it is written; `holds`: the object cannot be
//!   removed while another refers to it. `kept` behind a field of a type that does something: nothing acts on
//!   this field yet, and an object that has it says so ([`crate::kept`]).
//! - A boolean or integer that may not be null and says no default has `false` or `0`.
//! - A field is stored under its own name in its section, except that references `…Id` and `…Ids` are
//!   stored as `…Name` and `…Names`. `@name` says another name, `@a.b` a whole path,
//!   `@annotation:key` and `@json:key` an annotation with text or JSON, `@-` that it is not stored.
//!   A path that ends with a dot (`@spec.`, `@.`) is that of an object which holds more than the field:
//!   the fields of a nested type are stored among others.

pub mod definition;
mod parse;

use serde_json::Value;

pub use parse::{TableError, nested, parse};

#[cfg(test)]
mod tests;

/// The table of one type.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub id: &'static str,
    pub plural: &'static str,
    pub stored: Stored,
    /// Ids are `namespace:name`.
    pub namespaced: bool,
    /// The one namespace that holds all objects.
    pub namespace: Option<&'static str>,
    pub base: Option<&'static str>,
    /// Of list, create, get, update, delete.
    pub methods: Vec<&'static str>,
    pub has_state: bool,
    pub parent: Option<&'static str>,
    /// Nothing acts on the objects yet.
    pub kept: bool,
    /// Id of a nested type whose fields the type has as well, and where they are stored.
    pub embedded: Option<(&'static str, &'static str)>,
    pub fields: Vec<Row>,
    pub nested: Vec<Nested>,
}

/// What the objects of a type are.
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
    /// Core Secrets whose names begin like this.
    Secret { prefix: &'static str },
    /// They come from elsewhere, or the type only occurs inside others.
    #[default]
    Nowhere,
}

/// Fields of a type without an identity of its own.
#[derive(Clone, Debug)]
pub struct Nested {
    pub id: &'static str,
    pub fields: Vec<Row>,
}

/// One field.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: &'static str,
    /// As schemas name it.
    pub kind: &'static str,
    pub options: Vec<&'static str>,
    pub access: Access,
    pub place: Place,
    pub default: Option<Value>,
    pub min: Option<i64>,
    pub max: Option<i64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    /// The object that the reference names must be there.
    pub exists: bool,
    /// The object that the reference names cannot be removed before this one.
    pub holds: bool,
    /// Nothing acts on the field yet: it is only kept.
    pub kept: bool,
    /// What of it is stored apart from the object.
    pub mark: Option<Mark>,
}

/// Which texts of a field are credentials, and who may read them back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A URL: a credential when it names a user, as in `https://user:password@host`.
    Url,
    /// A credential by its nature, which whoever may update the object reads back.
    Credential,
    /// Never read back.
    Password,
}

/// Who may send a field when, and what it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub create: bool,
    pub update: bool,
    pub required: bool,
    pub nullable: bool,
    pub write_only: bool,
}

/// Where a field is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Dotted path from the object's root.
    Path(String),
    Annotation(&'static str),
    AnnotationJson(&'static str),
    Nowhere,
}

impl Table {
    /// Whether `name` is a display name, so that `id` holds the object's name.
    pub fn has_display_name(&self) -> bool {
        self.fields
            .iter()
            .any(|row| row.name == "name" && row.place != Place::Path("metadata.name".to_owned()))
    }
}
