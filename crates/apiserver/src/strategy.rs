//! What a kind adds to the generic handlers: defaults, preparation, validation, admission, Table
//! cells.

pub mod conversion;
mod published_schema;

use api_meta::patch::MergeKeys;
use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use serde_json::Value;

pub use self::conversion::Conversion;
pub use self::published_schema::PublishedSchema;
use crate::attributes::{GROUP_MASTERS, UserInfo};

/// The write that a strategy is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    UpdateStatus,
    /// A write of a part of the object, through the subresource of this name.
    Part(&'static str),
    /// A write of the finalizers in the spec of a namespace.
    Finalize,
    Delete,
}

/// The context of a write.
pub struct Write<'a> {
    /// On whose behalf it is done.
    pub user: &'a UserInfo,
    pub operation: Operation,
    /// Empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Empty while a create has no name yet.
    pub name: &'a str,
    /// Nothing is stored: side effects must not be either.
    pub dry_run: bool,
}

/// The user name of the controllers of the server.
pub(crate) const SERVER: &str = "system:apiserver";

impl Write<'_> {
    /// Whether a controller of the server writes.
    pub fn is_by_server(&self) -> bool {
        self.user.name == SERVER && self.user.groups.iter().any(|group| group == GROUP_MASTERS)
    }
}

/// The rules of one kind. By default, every method is neutral.
///
/// Order on a write: `default` → `prepare` → generic metadata checks → `validate` → `admit` →
/// storage. The generic handlers have set metadata, separated `status`, and compared versions
/// before and after.
pub trait Strategy: Send + Sync + 'static {
    /// Fills absent fields of a decoded object. Idempotent.
    fn default(&self, _object: &mut Value) {}

    /// Like [`Strategy::default`], for the result of an apply, which was never decoded as a body.
    fn default_applied(&self, object: &mut Value) {
        self.default(object);
    }

    /// Removes fields that the kind does not have (custom resources with a schema).
    fn prune(&self, _object: &mut Value) {}

    /// Paths of fields that the kind does not have, in document order: `spec.x`. For
    /// `fieldValidation`.
    fn unknown_fields(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Why an object cannot be decoded into the type of the kind, in the words of Go: what follows
    /// `… cannot be handled as a …: `. Called first, before defaulting.
    fn decode_problem(&self, _object: &Value) -> Option<String> {
        None
    }

    /// Sets what the server owns. `old` is absent on create.
    fn prepare(&self, _write: &Write<'_>, _object: &mut Value, _old: Option<&Value>) {}

    /// All violations of the object itself and, on update, of the change. Pure.
    fn validate(&self, _write: &Write<'_>, _object: &Value, _old: Option<&Value>) -> Vec<Cause> {
        Vec::new()
    }

    /// Warnings for a valid write, sent with the response.
    fn warnings(&self, _write: &Write<'_>, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Rules that need other objects or the rights of the writer. `object` is absent on delete.
    ///
    /// # Errors
    /// Why the write is rejected.
    fn admit<'a>(
        &'a self,
        _write: &'a Write<'a>,
        _object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// How lists merge in a strategic merge patch; `None` when the kind does not offer that patch.
    fn merge_keys(&self) -> Option<&dyn MergeKeys> {
        None
    }

    /// Paths that a write of the status leaves unchanged, so that its manager does not come to own
    /// them.
    fn preserved_by_status(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"]]
    }

    /// Paths that a write of a part changes, for the subresources that are
    /// [`SubresourceHandler::Part`](crate::resource::SubresourceHandler::Part).
    fn written_by(&self, _part: &str) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// Whether the definition of the kind is terminating: discovery then lists the kind without
    /// verbs that write.
    fn is_ending(&self) -> bool {
        false
    }

    /// The generated name of an object that comes without one, for kinds that generate names.
    fn name_for(&self) -> Option<String> {
        None
    }

    /// Fields of metadata whose changes increase `metadata.generation` too.
    fn counts_metadata(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether deletion increases `metadata.generation` and sets a grace period.
    fn counts_deletion(&self) -> bool {
        true
    }

    /// Whether create takes `status` from the body although there is a status subresource (nodes).
    fn keeps_status_on_create(&self) -> bool {
        false
    }

    /// Whether a delete without a propagation policy orphans the dependents.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// The warning for a delete without a propagation policy.
    fn orphan_warning(&self) -> Option<&'static str> {
        None
    }

    /// Whether objects have a grace period: a delete then responds with the marked object, even one
    /// that is removed at once.
    fn gives_grace(&self) -> bool {
        false
    }

    /// Seconds until a deleted object may be removed; `requested` is what the caller requests. 0 is
    /// at once.
    fn grace_seconds(&self, _object: &Value, _requested: Option<i64>) -> i64 {
        0
    }

    /// Whether a terminating object must stay for a reason other than `metadata.finalizers`.
    fn holds(&self, _object: &Value) -> bool {
        false
    }

    /// Removes what the storage version does not have, at the end of each write.
    fn lose_unstored(&self, _object: &mut Value) {}

    /// Converts an object from the served to the stored representation, where they differ in more
    /// than the name of the version and no webhook converts.
    fn to_stored(&self, _object: &mut Value) {}

    /// Converts a stored object to the served representation: defaults and pruning of a changed
    /// schema. `false` from [`Strategy::rewrites_on_read`] makes reads return the stored bytes
    /// unchanged.
    fn on_read(&self, _object: &mut Value) {}

    /// Whether [`Strategy::on_read`] may change an object.
    fn rewrites_on_read(&self) -> bool {
        false
    }

    /// Called when every stored object is known to equal what [`Strategy::on_read`] makes of it.
    /// Later writes preserve that.
    fn set_conforming(&self) {}

    /// The version that objects are stored in, when it may differ from the served one.
    fn storage_version(&self) -> Option<&str> {
        None
    }

    /// The webhook that converts between versions; `None` when versions differ only in their names.
    fn conversion(&self) -> Option<&Conversion> {
        None
    }

    /// The warning with every response of a deprecated version.
    fn deprecation(&self) -> Option<&str> {
        None
    }

    /// The published schema, for kinds that are not built in.
    fn published_schema(&self) -> Option<&PublishedSchema> {
        None
    }

    /// The schema by which objects of a version merge and their fields have owners, for kinds that
    /// are not built in. The version need not be served. `None` when there is no such version.
    fn merge_schema(&self, _api_version: &str) -> Option<&structured_merge::Schema> {
        None
    }

    /// Cells of the Table representation, one for each column of the resource. `now` is unix
    /// seconds.
    fn cells(&self, object: &Value, now: i64) -> Vec<Value>;
}
