//! What a kind adds to the generic handlers: defaults, preparation, validation, admission, table cells.

pub mod conversion;
mod published_schema;

use api_meta::patch::MergeKeys;
use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use serde_json::Value;

pub use self::conversion::Conversion;
pub use self::published_schema::PublishedSchema;
use crate::attributes::{GROUP_MASTERS, UserInfo};

/// Which write a strategy is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    UpdateStatus,
    /// Of a part of the object, through the subresource of this name.
    Part(&'static str),
    /// Of the finalizers in a namespace's spec.
    Finalize,
    Delete,
}

/// The circumstances of a write.
pub struct Write<'a> {
    pub user: &'a UserInfo,
    pub operation: Operation,
    pub namespace: &'a str,
    pub name: &'a str,
    pub dry_run: bool,
}

/// Name under which the server's own controllers write.
pub(crate) const SERVER: &str = "system:apiserver";

impl Write<'_> {
    /// Whether the server itself writes.
    pub fn is_by_server(&self) -> bool {
        self.user.name == SERVER && self.user.groups.iter().any(|group| group == GROUP_MASTERS)
    }
}

/// The rules of one kind. Every method has the neutral behaviour by default.
///
/// Order on a write: `default` → `prepare` → generic metadata checks → `validate` → `admit` → storage. The generic
/// handlers have set metadata, kept `status` apart, and compared versions before and after.
pub trait Strategy: Send + Sync + 'static {
    /// Fills absent fields of a decoded object. Idempotent.
    fn default(&self, _object: &mut Value) {}

    /// As [`Strategy::default`], of an object that was applied and never decoded.
    fn default_applied(&self, object: &mut Value) {
        self.default(object);
    }

    /// Removes fields that the kind does not know (custom resources with a schema).
    fn prune(&self, _object: &mut Value) {}

    /// Paths of fields that the kind does not know, in document order: `spec.x`. For `fieldValidation`.
    fn unknown_fields(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Why an object cannot be decoded into the kind's type, in Go's words: what follows
    /// `… cannot be handled as a …: `. Asked first, before defaulting.
    fn decode_problem(&self, _object: &Value) -> Option<String> {
        None
    }

    /// Sets what the server owns. `old` is absent on create.
    fn prepare(&self, _write: &Write<'_>, _object: &mut Value, _old: Option<&Value>) {}

    /// All rule violations of the object itself and, on update, of the change. Pure.
    fn validate(&self, _write: &Write<'_>, _object: &Value, _old: Option<&Value>) -> Vec<Cause> {
        Vec::new()
    }

    /// What is said to the writer beside the answer, of what is valid.
    fn warnings(&self, _write: &Write<'_>, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Rules that need other objects or the asker's rights. `object` is absent on delete.
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

    /// Paths of what a write of status leaves as it was, so that nobody comes to own it by that.
    fn kept_by_status(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"]]
    }

    /// Paths of all that a write of a part changes, for the subresources that are
    /// [`SubresourceHandler::Part`](crate::resource::SubresourceHandler::Part).
    fn written_by(&self, _part: &str) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// Whether the kind is about to go: it is then listed as one that cannot be written.
    fn is_ending(&self) -> bool {
        false
    }

    /// The name of an object that comes without any, for kinds that give one.
    fn name_for(&self) -> Option<String> {
        None
    }

    /// Fields of metadata whose changes `metadata.generation` counts too.
    fn counts_metadata(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether `metadata.generation` counts the deletion, which then has a grace period.
    fn counts_deletion(&self) -> bool {
        true
    }

    /// Whether create takes `status` from the body although there is a status subresource (nodes).
    fn keeps_status_on_create(&self) -> bool {
        false
    }

    /// Whether a delete that does not say otherwise leaves the dependants behind.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// What is said to who deletes without a word about the dependants.
    fn orphan_warning(&self) -> Option<&'static str> {
        None
    }

    /// Whether objects get time to end: a delete then answers the object as marked, even one that
    /// goes at once.
    fn gives_grace(&self) -> bool {
        false
    }

    /// Seconds until a deleted object may go; `requested` is the caller's wish. 0 is at once.
    fn grace_seconds(&self, _object: &Value, _requested: Option<i64>) -> i64 {
        0
    }

    /// Whether a terminating object must stay for a reason other than `metadata.finalizers`.
    fn holds(&self, _object: &Value) -> bool {
        false
    }

    /// Drops what the version that objects are stored in does not know, at the end of each write.
    fn lose_unstored(&self, _object: &mut Value) {}

    /// Brings an object from the form that is served into the one that is stored, where they differ in
    /// more than the version's name and no webhook converts.
    fn to_stored(&self, _object: &mut Value) {}

    /// Brings a stored object into the form that is served: defaults and pruning of a changed schema.
    /// `false` from [`Strategy::rewrites_on_read`] lets reads pass the stored bytes on untouched.
    fn on_read(&self, _object: &mut Value) {}

    fn rewrites_on_read(&self) -> bool {
        false
    }

    /// Told when every stored object has been found in the form that [`Strategy::on_read`] gives.
    /// Later writes keep it so.
    fn set_conforming(&self) {}

    /// The version objects are stored in, when it may be another than the served one.
    fn storage_version(&self) -> Option<&str> {
        None
    }

    /// The webhook that converts between versions, when they differ in more than their names.
    fn conversion(&self) -> Option<&Conversion> {
        None
    }

    /// A warning that goes with every answer: this version is deprecated.
    fn deprecation(&self) -> Option<&str> {
        None
    }

    /// The schema that clients are shown, for kinds that are not built in.
    fn published_schema(&self) -> Option<&PublishedSchema> {
        None
    }

    /// How objects merge in a version of the kind, which need not be served, and which parts have
    /// owners, for kinds that are not built in. `None` when there is no such version.
    fn merge_schema(&self, _api_version: &str) -> Option<&structured_merge::Schema> {
        None
    }

    /// Cells of the Table form, one for each of the resource's columns. `now` is unix seconds.
    fn cells(&self, object: &Value, now: i64) -> Vec<Value>;
}
