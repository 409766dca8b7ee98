//! APIs of other servers under this one's address.
//!
//! An APIService says who serves a version of a group. [`register`] keeps one for each version that
//! this server serves itself. For the others [`follow`] finds out whether their server is there and
//! what it serves ([`check`]), and puts it into the [`Table`], which discovery and schemas are
//! merged from and requests are routed by ([`proxy`]). The other server knows whom it serves from
//! headers, and believes them because of a certificate ([`FrontProxy`], [`delegation`]).
//!
//! What this server serves itself never depends on any of it.

mod check;
pub mod delegation;
mod documents;
pub mod follow;
mod priorities;
pub(crate) mod proxy;
pub mod register;
mod remote;

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use serde_json::{Value, json};

pub use delegation::FrontProxy;
pub(crate) use documents::merge_v2;
pub(crate) use remote::Remote;

/// Group and plural of APIServices.
pub const GROUP: &str = "apiregistration.k8s.io";
pub const PLURAL: &str = "apiservices";
/// The condition of an APIService, and its reason and text for what this server serves.
pub const AVAILABLE: &str = "Available";
pub const LOCAL: &str = "Local";
pub const LOCAL_MESSAGE: &str = "Local APIServices are always available";

/// Every version of a group that has an APIService.
#[derive(Default)]
pub struct Table(Vec<Api>);

/// An APIService, as far as requests need it.
#[derive(Clone)]
pub(crate) struct Api {
    pub group: String,
    pub version: String,
    pub priority: Priority,
    /// Absent when this server serves it.
    pub elsewhere: Option<Elsewhere>,
}

/// A version that another server serves.
#[derive(Clone)]
pub(crate) struct Elsewhere {
    pub remote: Arc<Remote>,
    /// What its condition says.
    pub available: bool,
    pub published: Arc<Published>,
}

/// Who comes first in discovery: higher groups, in them higher versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Priority {
    pub group: i64,
    pub version: i64,
}

/// What another server has said that it serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Published {
    /// It could be asked last time. What it said before stays.
    pub is_current: bool,
    /// `resources` of aggregated discovery.
    pub resources: Vec<Value>,
    /// Hash of its OpenAPI v3 document, when it has one.
    pub v3_hash: Option<String>,
    /// `paths` and `definitions` of its OpenAPI v2 document, of this version alone; JSON.
    pub v2: Option<Bytes>,
    /// The tag of the document that `v2` is of.
    pub v2_tag: String,
}

impl Api {
    /// Where it is served, here and there.
    pub(crate) fn path(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }
}

/// The [`Table`] in force: replaced by [`follow`], read by requests and discovery.
#[derive(Default)]
pub struct Aggregation(ArcSwap<Table>);

impl Aggregation {
    pub fn table(&self) -> Arc<Table> {
        self.0.load_full()
    }

    fn set_table(&self, table: Table) {
        self.0.store(Arc::new(table));
    }
}

impl Table {
    fn get(&self, group: &str, version: &str) -> Option<&Api> {
        self.0.iter().find(|api| (api.group.as_str(), api.version.as_str()) == (group, version))
    }

    /// The other server of a version; `None` when it is not served elsewhere.
    pub(crate) fn elsewhere(&self, group: &str, version: &str) -> Option<&Elsewhere> {
        self.get(group, version)?.elsewhere.as_ref()
    }

    /// Versions that other servers serve.
    pub(crate) fn remotes(&self) -> impl Iterator<Item = (&Api, &Elsewhere)> {
        self.0.iter().filter_map(|api| Some((api, api.elsewhere.as_ref()?)))
    }

    /// What the APIService says, or what its object is going to say.
    pub(crate) fn priority(&self, group: &str, version: &str) -> Priority {
        let told = self.get(group, version).map(|api| api.priority);
        told.unwrap_or_else(|| priorities::of(group, version))
    }
}

/// The condition `Available`. The time of `before` is kept while its status is the same.
pub fn condition(before: &Value, status: &str, reason: &str, message: &str, now: &str) -> Value {
    let since = before["lastTransitionTime"].as_str().filter(|_| before["status"] == status);
    json!({
        "type": AVAILABLE, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since.unwrap_or(now),
    })
}
