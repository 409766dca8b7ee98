//! What one built-in kind is: a value with names, columns and hooks, and the strategy made of it.

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
    Backend, Column, Resource, Rules, SelectableField, Subresource, SubresourceHandler,
};
use crate::schemas::builtin_schema;
use crate::stored::new_uid;
use crate::strategy::{Operation, Strategy, Write};
pub use merge_keys::merge_keys;

/// Verbs of an ordinary resource.
const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// Allocates what only the server can give. Runs last before the write.
pub type Allocate =
    dyn for<'a> Fn(&'a Write<'a>, &'a mut Value, Option<&'a Value>) -> Settled<'a> + Send + Sync;
type Settled<'a> = BoxFuture<'a, Result<(), Status>>;

/// A field that selectors may name.
#[derive(Clone, Copy)]
pub struct FieldSpec {
    pub label: &'static str,
    pub path: &'static str,
    /// A second path, read when the first leads to nothing; empty when there is none.
    pub fallback: &'static str,
    /// Its text when no path leads to anything: the zero value of its type, which JSON leaves out.
    pub unset: &'static str,
    /// False where only another version of the kind offers it: versions share a cache, and with it
    /// the order of their fields.
    pub offered: bool,
}

impl FieldSpec {
    /// A text at a path, which has another name in selectors.
    pub const fn named(label: &'static str, path: &'static str) -> Self {
        Self { label, path, fallback: "", unset: "", offered: true }
    }

    /// A text at the path that selectors name.
    pub const fn text(path: &'static str) -> Self {
        Self::named(path, path)
    }

    /// The same field, with this text where an object leaves it out.
    pub const fn unset(self, unset: &'static str) -> Self {
        Self { unset, ..self }
    }

    fn selectable(self) -> SelectableField {
        let steps = |path: &str| match path {
            "" => Vec::new(),
            path => path.split('.').map(str::to_owned).collect(),
        };
        SelectableField {
            label: self.label.to_owned(),
            path: steps(self.path),
            fallback: steps(self.fallback),
            unset: self.unset,
            offered: self.offered,
        }
    }
}

/// Name, type, format, priority of a column.
pub type ColumnSpec = (&'static str, &'static str, &'static str, i32);

pub const NAME: ColumnSpec = ("Name", "string", "name", 0);
pub const AGE: ColumnSpec = ("Age", "string", "", 0);

const NAME_TEXT: &str = "Name must be unique within a namespace. It cannot be updated.";
const AGE_TEXT: &str = "The time since the object was created, by the server's clock.";

/// The rules of a kind beyond its names. Functions, so that they can be constants.
pub struct Hooks {
    /// Fills defaults of a normalised object.
    pub default: fn(&mut Value),
    pub prepare: fn(&Write<'_>, &mut Value, Option<&Value>),
    /// All rules of the object and of its change, but those of a write of its status.
    pub validate: fn(&Write<'_>, &Value, Option<&Value>) -> Vec<Cause>,
    /// The rules of a write of the status, of the object and what it was.
    pub validate_status: fn(&Value, &Value) -> Vec<Cause>,
    /// Why the typed form could not be decoded, in Go's words; answered as 400.
    pub decode_problem: fn(&Value) -> Option<String>,
    /// What is said to who creates or changes an object, beside the answer.
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// Whether a delete is allowed.
    pub admit_delete: fn(&Write<'_>) -> Result<(), Status>,
    pub cells: fn(&Value, i64) -> Vec<Value>,
    pub grace_seconds: fn(&Value, Option<i64>) -> i64,
    pub holds: fn(&Value) -> bool,
    /// From the stored to the served form, for kinds where they differ.
    pub on_read: Option<fn(&mut Value)>,
    /// From the form of another version of the kind, where the stored form is the served one.
    pub on_convert: Option<fn(&mut Value)>,
    /// From the served to the stored form, for versions that are not stored.
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

/// A subresource through which nothing but a part of the object is written.
#[derive(Clone, Copy)]
pub struct Part {
    pub name: &'static str,
    /// Paths of that part.
    pub writes: &'static [&'static [&'static str]],
    /// An endpoint is called and writes it, whoever adds that.
    pub through_endpoint: bool,
}

/// One kind in one version.
pub struct Kind {
    pub group: &'static str,
    pub version: &'static str,
    /// The version that objects are stored in, when it is another one.
    pub stored_version: Option<&'static str>,
    pub plural: &'static str,
    pub singular: &'static str,
    pub kind: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub namespaced: bool,
    pub name_rule: NameRule,
    /// Key prefix in storage; derived from group and plural when empty.
    pub prefix: &'static str,
    pub verbs: &'static [&'static str],
    pub status: bool,
    pub finalize: bool,
    /// Further subresources that write a part of the object.
    pub parts: &'static [Part],
    pub columns: &'static [ColumnSpec],
    /// What selectors may name beyond name and namespace.
    pub fields: Vec<FieldSpec>,
    pub rules: Rules,
    /// Create takes `status` from the body although there is a subresource.
    pub keeps_status: bool,
    /// Paths of what a write of status leaves as it was.
    pub kept_by_status: &'static [&'static [&'static str]],
    /// Objects without a name get one.
    pub names_itself: bool,
    /// A delete that does not say otherwise leaves the dependants behind.
    pub orphans: bool,
    /// What such a delete is told.
    pub orphan_warning: Option<&'static str>,
    /// Deleted objects get time to end.
    pub gives_grace: bool,
    /// Fields of metadata whose changes the generation counts too.
    pub counts_metadata: &'static [&'static str],
    /// What is said with every answer about a deprecated version.
    pub deprecation: Option<&'static str>,
    /// Top-level fields with content of any form, which normalisation leaves alone.
    pub opaque: &'static [&'static str],
    /// Top-level maps from text to text that no other kind has under this name.
    pub text_maps: &'static [&'static str],
    pub hooks: Hooks,
    pub allocate: Option<Box<Allocate>>,
}

impl Kind {
    /// A namespaced kind of a group, without subresources, with upstream's commonest rules.
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
            rules: Rules {
                generation: false,
                create_on_update: false,
                unconditional_update: true,
                delete_returns_object: false,
                ttl: None,
            },
            keeps_status: false,
            kept_by_status: &[&["spec"]],
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

    /// A kind with spec and status, whose generation the server counts.
    pub fn with_status(mut self) -> Self {
        self.status = true;
        self
    }

    pub fn counted(mut self) -> Self {
        self.rules.generation = true;
        self
    }

    /// DELETE answers the object.
    pub fn deleted_as_object(mut self) -> Self {
        self.rules.delete_returns_object = true;
        self
    }

    pub fn expiring(mut self, ttl: Duration) -> Self {
        self.rules.ttl = Some(ttl);
        self
    }

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
                kept_by_status: self.kept_by_status,
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

/// Times that the kind's conditions always tell, null when nobody has set them.
pub fn default_conditions(status: &mut fields::Object, times: &[&str]) {
    fields::each(status, "conditions", |condition| {
        times.iter().for_each(|time| fields::preset(condition, time, Value::Null));
    });
}

fn column(&(name, kind, format, priority): &ColumnSpec) -> Column {
    let description = match name {
        "Name" => NAME_TEXT,
        "Age" | "Created At" => AGE_TEXT,
        _ => "",
    };
    Column {
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
    kept_by_status: &'static [&'static [&'static str]],
    parts: &'static [Part],
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

    fn kept_by_status(&self) -> &'static [&'static [&'static str]] {
        self.kept_by_status
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
