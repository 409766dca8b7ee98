//! A built-in kind as a value with names, columns and hooks, and the strategy made of it.

use std::sync::Arc;
use std::time::Duration;

use api_meta::names::NameRule;
use api_meta::patch::MergeKeys;
use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use serde_json::Value;

pub mod cells;
mod merge_keys;
pub mod normal;

use crate::fields;
use crate::resource::{
    Backend, Resource, ResourceRules, SelectableField, Subresource, SubresourceHandler, TableColumn,
};
use crate::schemas::builtin_schema;
use crate::stored::new_uid;
use crate::strategy::{Operation, Strategy, Write};
pub use merge_keys::merge_keys;

/// Verbs of an ordinary resource.
pub const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Verbs of a part of an object, such as its status.
pub const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// Allocates values that only the server can assign, such as addresses. Runs last before the write;
/// an error rejects the write.
pub type Allocate =
    dyn for<'a> Fn(&'a Write<'a>, &'a mut Value, Option<&'a Value>) -> Settled<'a> + Send + Sync;
type Settled<'a> = BoxFuture<'a, Result<(), Status>>;

/// A field that field selectors may name.
#[derive(Clone, Copy)]
pub struct FieldSpec {
    /// Its name in selectors.
    pub label: &'static str,
    /// From the root of the object, with dots.
    pub path: &'static str,
    /// A second path, read when the first one leads to no value; empty when there is none.
    pub fallback: &'static str,
    /// Its text when no path leads to a value: the zero value of its type, which JSON omits.
    pub unset: &'static str,
    /// `false` when only another version of the kind offers it: versions share a cache, and with it
    /// the order of their fields.
    pub offered: bool,
}

impl FieldSpec {
    /// A field at a path, with another name in selectors.
    pub const fn named(label: &'static str, path: &'static str) -> Self {
        Self { label, path, fallback: "", unset: "", offered: true }
    }

    /// A field whose path is its name in selectors.
    pub const fn text(path: &'static str) -> Self {
        Self::named(path, path)
    }

    /// The same field, with this text when an object omits it.
    pub const fn unset(self, unset: &'static str) -> Self {
        Self { unset, ..self }
    }

    fn selectable(self) -> SelectableField {
        let segments = |path: &str| match path {
            "" => Vec::new(),
            path => path.split('.').map(str::to_owned).collect(),
        };
        SelectableField {
            label: self.label.to_owned(),
            path: segments(self.path),
            fallback: segments(self.fallback),
            unset: self.unset,
            offered: self.offered,
        }
    }
}

/// A column of Tables: name, type, format, priority (above 0 only in wide output).
pub type ColumnSpec = (&'static str, &'static str, &'static str, i32);

/// The column of the name.
pub const NAME: ColumnSpec = ("Name", "string", "name", 0);
/// The column of the age.
pub const AGE: ColumnSpec = ("Age", "string", "", 0);

const NAME_TEXT: &str = "Name must be unique within a namespace. It cannot be updated.";
const AGE_TEXT: &str = "The time since the object was created, by the server's clock.";

/// The rules of a kind beyond its names, as functions, so that kinds can be constants. Each of them
/// corresponds to a method of [`Strategy`].
pub struct Hooks {
    /// Fills defaults of a normalised object.
    pub default: fn(&mut Value),
    /// Sets what the server owns, given the object and, on update, its old state.
    pub prepare: fn(&Write<'_>, &mut Value, Option<&Value>),
    /// All violations of the object and of its change, except for a write of its status.
    pub validate: fn(&Write<'_>, &Value, Option<&Value>) -> Vec<Cause>,
    /// All violations of a write of the status, given the new and the old object.
    pub validate_status: fn(&Value, &Value) -> Vec<Cause>,
    /// Why the typed representation could not be decoded, in the words of Go; responded with 400.
    pub decode_problem: fn(&Value) -> Option<String>,
    /// Warnings for a create or update, sent with the response.
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// An error rejects the delete.
    pub admit_delete: fn(&Write<'_>) -> Result<(), Status>,
    /// Cells of the Table at a time in unix seconds.
    pub cells: fn(&Value, i64) -> Vec<Value>,
    /// Seconds until a deleted object may be removed, given the requested seconds.
    pub grace_seconds: fn(&Value, Option<i64>) -> i64,
    /// Whether a terminating object must stay for a reason other than its finalizers.
    pub holds: fn(&Value) -> bool,
    /// Converts the stored to the served representation, for kinds where they differ.
    pub on_read: Option<fn(&mut Value)>,
    /// Converts from another version of the kind, where the stored and the served representation
    /// are equal.
    pub on_convert: Option<fn(&mut Value)>,
    /// Converts the served to the stored representation, for versions that are not stored.
    pub on_store: Option<fn(&mut Value)>,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            default: |_| {},
            prepare: |_, _, _| {},
            validate: |_, _, _| Vec::new(),
            validate_status: |_, _| Vec::new(),
            decode_problem: |_| None,
            warnings: |_, _| Vec::new(),
            admit_delete: |_| Ok(()),
            cells: |object, now| vec![cells::name(object), cells::age(object, now)],
            grace_seconds: |_, _| 0,
            holds: |_| false,
            on_read: None,
            on_convert: None,
            on_store: None,
        }
    }
}

/// A subresource that writes only a part of the object.
#[derive(Clone, Copy)]
pub struct PartialSubresource {
    /// Last part of its path.
    pub name: &'static str,
    /// Paths of the fields that it writes.
    pub writes: &'static [&'static [&'static str]],
    /// An endpoint performs the write; the assembly of the kinds adds it.
    pub through_endpoint: bool,
}

/// One built-in kind in one version; [`Kind::into_resource`] makes it servable.
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    /// The version that its objects are stored in; `None` when it is this one.
    pub stored_version: Option<&'static str>,
    pub plural: &'static str,
    pub singular: &'static str,
    pub kind: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub namespaced: bool,
    /// Which names its objects may have.
    pub name_rule: NameRule,
    /// Prefix of its keys in the storage; derived from group and plural when empty.
    pub prefix: &'static str,
    /// The verbs that it offers.
    pub verbs: &'static [&'static str],
    /// Has the subresource `status`.
    pub status: bool,
    /// Has the subresource `finalize`.
    pub finalize: bool,
    /// Further subresources, each of which writes a part of the object.
    pub parts: &'static [PartialSubresource],
    pub columns: &'static [ColumnSpec],
    /// What field selectors may name in addition to name and namespace.
    pub fields: Vec<FieldSpec>,
    /// How its objects are created, replaced and deleted.
    pub rules: ResourceRules,
    /// Create takes `status` from the body although there is a subresource.
    pub keeps_status: bool,
    /// Paths that a write of the status leaves unchanged.
    pub preserved_by_status: &'static [&'static [&'static str]],
    /// Objects without a name get a generated one.
    pub names_itself: bool,
    /// A delete without a propagation policy orphans the dependents.
    pub orphans: bool,
    /// The warning for such a delete.
    pub orphan_warning: Option<&'static str>,
    /// Deleted objects have a grace period.
    pub gives_grace: bool,
    /// Fields of metadata whose changes increase the generation.
    pub counts_metadata: &'static [&'static str],
    /// The warning with every response of a deprecated version.
    pub deprecation: Option<&'static str>,
    /// Top-level fields with arbitrary content, which normalisation leaves unchanged.
    pub opaque: &'static [&'static str],
    /// Top-level maps from string to string that no other kind has under this name.
    pub text_maps: &'static [&'static str],
    /// Rules of the kind beyond its names.
    pub hooks: Hooks,
    /// Runs last before a write.
    pub allocate: Option<Box<Allocate>>,
}

impl Kind {
    /// A namespaced kind of a group in version `v1`, without subresources, with the most common
    /// rules of Kubernetes.
    pub fn new(
        group: &'static str,
        plural: &'static str,
        singular: &'static str,
        kind: &'static str,
    ) -> Self {
        Self {
            group,
            version: "v1",
            stored_version: None,
            plural,
            singular,
            kind,
            short_names: &[],
            categories: &[],
            namespaced: true,
            name_rule: NameRule::Dns1123Subdomain,
            prefix: "",
            verbs: VERBS,
            status: false,
            finalize: false,
            parts: &[],
            columns: &[NAME, AGE],
            fields: Vec::new(),
            rules: ResourceRules {
                generation: false,
                create_on_update: false,
                unconditional_update: true,
                delete_returns_object: false,
                ttl: None,
            },
            keeps_status: false,
            preserved_by_status: &[&["spec"]],
            names_itself: false,
            orphans: false,
            orphan_warning: None,
            gives_grace: false,
            counts_metadata: &[],
            deprecation: None,
            opaque: &[],
            text_maps: &[],
            hooks: Hooks::default(),
            allocate: None,
        }
    }

    /// Adds the subresource `status`.
    pub fn with_status(mut self) -> Self {
        self.status = true;
        self
    }

    /// The server maintains `metadata.generation`.
    pub fn counted(mut self) -> Self {
        self.rules.generation = true;
        self
    }

    /// DELETE responds with the object instead of a `Status`.
    pub fn deleted_as_object(mut self) -> Self {
        self.rules.delete_returns_object = true;
        self
    }

    /// Objects are deleted `ttl` after their last write.
    pub fn expiring(mut self, ttl: Duration) -> Self {
        self.rules.ttl = Some(ttl);
        self
    }

    /// The resource that serves this kind.
    pub fn into_resource(self) -> Resource {
        let prefix = match (self.prefix, self.group) {
            ("", "") => format!("/registry/{}/", self.plural),
            ("", group) => format!("/registry/{group}/{}/", self.plural),
            (prefix, _) => prefix.to_owned(),
        };
        let mut subresources = Vec::new();
        if self.finalize {
            subresources.push(Subresource {
                name: "finalize",
                verbs: vec!["update"],
                handler: SubresourceHandler::Finalize,
                gvk: None,
            });
        }
        if self.status {
            subresources.push(Subresource {
                name: "status",
                verbs: SUBRESOURCE_VERBS.to_vec(),
                handler: SubresourceHandler::Status,
                gvk: None,
            });
        }
        let direct = self.parts.iter().filter(|part| !part.through_endpoint);
        subresources.extend(direct.map(|part| Subresource {
            name: part.name,
            verbs: SUBRESOURCE_VERBS.to_vec(),
            handler: SubresourceHandler::Part,
            gvk: None,
        }));
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Resource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            plural: self.plural.to_owned(),
            singular: self.singular.to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            namespaced: self.namespaced,
            short_names: owned(self.short_names),
            categories: owned(self.categories),
            verbs: self.verbs.to_vec(),
            subresources,
            backend: Backend::Stored { prefix },
            columns: self.columns.iter().map(column).collect(),
            rules: self.rules,
            name_rule: self.name_rule,
            selectable_fields: self.fields.into_iter().map(FieldSpec::selectable).collect(),
            custom: false,
            strategy: Arc::new(KindStrategy {
                group: self.group,
                kind: self.kind,
                version: self.version,
                stored_version: self.stored_version,
                keeps_status: self.keeps_status,
                preserved_by_status: self.preserved_by_status,
                parts: self.parts,
                names_itself: self.names_itself,
                orphans: self.orphans,
                orphan_warning: self.orphan_warning,
                gives_grace: self.gives_grace,
                counts_metadata: self.counts_metadata,
                deprecation: self.deprecation,
                opaque: self.opaque,
                text_maps: self.text_maps,
                hooks: self.hooks,
                allocate: self.allocate,
            }),
        }
    }
}

/// Sets the times of the conditions to null where nobody has set them: the kind always contains
/// them.
pub fn default_conditions(status: &mut fields::Object, times: &[&str]) {
    fields::each(status, "conditions", |condition| {
        times.iter().for_each(|time| fields::preset(condition, time, Value::Null));
    });
}

fn column(&(name, kind, format, priority): &ColumnSpec) -> TableColumn {
    let description = match name {
        "Name" => NAME_TEXT,
        "Age" | "Created At" => AGE_TEXT,
        _ => "",
    };
    TableColumn {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: format.to_owned(),
        description: description.to_owned(),
        priority,
    }
}

struct KindStrategy {
    group: &'static str,
    kind: &'static str,
    version: &'static str,
    stored_version: Option<&'static str>,
    keeps_status: bool,
    preserved_by_status: &'static [&'static [&'static str]],
    parts: &'static [PartialSubresource],
    names_itself: bool,
    orphans: bool,
    orphan_warning: Option<&'static str>,
    gives_grace: bool,
    counts_metadata: &'static [&'static str],
    deprecation: Option<&'static str>,
    opaque: &'static [&'static str],
    text_maps: &'static [&'static str],
    hooks: Hooks,
    allocate: Option<Box<Allocate>>,
}

impl KindStrategy {
    fn schema(&self) -> Option<&'static structural_schema::Schema> {
        builtin_schema(self.group, self.version, self.kind)
    }
}

impl Strategy for KindStrategy {
    fn default(&self, object: &mut Value) {
        if let Some(object) = fields::map(object) {
            for field in self.text_maps {
                object.retain(|name, value| name != field || !value.is_null());
                fields::texts(object, field);
            }
        }
        normal::normalize(object, &[self.opaque, self.text_maps].concat());
        if let Some(status) = fields::map(object).and_then(|object| fields::child(object, "status"))
        {
            default_conditions(status, &["lastTransitionTime"]);
        }
        (self.hooks.default)(object);
    }

    fn prune(&self, object: &mut Value) {
        if let Some(schema) = self.schema() {
            schema.prune(object);
        }
    }

    fn unknown_fields(&self, object: &Value) -> Vec<String> {
        self.schema().map(|schema| schema.unknown_fields(object)).unwrap_or_default()
    }

    fn decode_problem(&self, object: &Value) -> Option<String> {
        let mistyped = self.schema().and_then(|schema| schema.type_error(object));
        mistyped.or_else(|| (self.hooks.decode_problem)(object))
    }

    fn prepare(&self, write: &Write<'_>, object: &mut Value, old: Option<&Value>) {
        (self.hooks.prepare)(write, object, old);
    }

    fn validate(&self, write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        match (write.operation, old) {
            (Operation::UpdateStatus, Some(old)) => (self.hooks.validate_status)(object, old),
            _ => (self.hooks.validate)(write, object, old),
        }
    }

    fn warnings(&self, write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        match write.operation {
            Operation::Create | Operation::Update => (self.hooks.warnings)(object, old),
            _ => Vec::new(),
        }
    }

    fn admit<'a>(
        &'a self,
        write: &'a Write<'a>,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let result = match (object, &self.allocate) {
            (Some(object), Some(allocate)) => return allocate(write, object, old),
            (None, _) if write.operation == Operation::Delete => (self.hooks.admit_delete)(write),
            _ => Ok(()),
        };
        Box::pin(std::future::ready(result))
    }

    fn deprecation(&self) -> Option<&str> {
        self.deprecation
    }

    fn merge_keys(&self) -> Option<&dyn MergeKeys> {
        Some(merge_keys(self.group, self.kind))
    }

    fn keeps_status_on_create(&self) -> bool {
        self.keeps_status
    }

    fn preserved_by_status(&self) -> &'static [&'static [&'static str]] {
        self.preserved_by_status
    }

    fn written_by(&self, part: &str) -> &'static [&'static [&'static str]] {
        let found = self.parts.iter().find(|one| one.name == part);
        found.map_or(&[], |found| found.writes)
    }

    fn name_for(&self) -> Option<String> {
        self.names_itself.then(new_uid)
    }

    fn orphans_by_default(&self) -> bool {
        self.orphans
    }

    fn orphan_warning(&self) -> Option<&'static str> {
        self.orphan_warning
    }

    fn counts_metadata(&self) -> &'static [&'static str] {
        self.counts_metadata
    }

    fn gives_grace(&self) -> bool {
        self.gives_grace
    }

    fn grace_seconds(&self, object: &Value, requested: Option<i64>) -> i64 {
        (self.hooks.grace_seconds)(object, requested)
    }

    fn holds(&self, object: &Value) -> bool {
        (self.hooks.holds)(object)
    }

    fn on_read(&self, object: &mut Value) {
        if let Some(convert) = self.hooks.on_read.or(self.hooks.on_convert) {
            convert(object);
        }
    }

    fn storage_version(&self) -> Option<&str> {
        self.stored_version
    }

    fn to_stored(&self, object: &mut Value) {
        if let Some(convert) = self.hooks.on_store {
            convert(object);
        }
    }

    fn rewrites_on_read(&self) -> bool {
        self.hooks.on_read.is_some()
    }

    fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        (self.hooks.cells)(object, now)
    }
}
