//! The aggregation layer: APIs of other servers under this server's address.
//!
//! An APIService says which server serves a version of a group. [`register`] maintains one for each
//! version that this server serves itself. For the others [`follow`] checks whether their server is
//! available and what it serves ([`check`]), and updates the [`ApiServiceTable`]. Discovery and
//! schemas are merged from that table, and requests are routed by it ([`proxy`]). The other server
//! learns the user from headers, and trusts them because of a client certificate ([`FrontProxy`],
//! [`delegation`]).
//!
//! What this server serves itself never depends on the aggregation layer.

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
use http::{HeaderName, Method, Response};
use serde_json::{Value, json};

pub use delegation::FrontProxy;
pub(crate) use documents::merge_v2;
pub(crate) use remote::Remote;
pub use remote::SendError;

use crate::registry::Registry;

/// The group of APIServices.
pub const GROUP: &str = "apiregistration.k8s.io";
/// The plural of APIServices.
pub const PLURAL: &str = "apiservices";
/// The type of the condition of an APIService.
pub const AVAILABLE: &str = "Available";
/// The reason of the condition for what this server serves.
pub const LOCAL: &str = "Local";
/// The message of the condition for what this server serves.
pub const LOCAL_MESSAGE: &str = "Local APIServices are always available";

/// All versions of groups that have an APIService.
#[derive(Default)]
pub struct ApiServiceTable(Vec<Api>);

/// The fields of an APIService that requests need.
#[derive(Clone)]
pub struct Api {
    pub group: String,
    pub version: String,
    pub(crate) priority: Priority,
    /// `None` when this server serves the version.
    pub(crate) aggregated: Option<AggregatedApi>,
}

/// A version that another server serves.
#[derive(Clone)]
pub struct AggregatedApi {
    pub(crate) remote: Arc<Remote>,
    /// The status of its condition.
    pub(crate) available: bool,
    pub(crate) published: Arc<Published>,
}

/// The order in discovery: higher groups first, within them higher versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Priority {
    pub group: i64,
    pub version: i64,
}

/// The last known discovery and schemas of another server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Published {
    /// The last request succeeded. After a failure the earlier data is retained.
    pub is_current: bool,
    /// `resources` of aggregated discovery.
    pub resources: Vec<Value>,
    /// The hash of its OpenAPI v3 document, if it has one.
    pub v3_hash: Option<String>,
    /// `paths` and `definitions` of this version in its OpenAPI v2 document, as JSON.
    pub v2: Option<Bytes>,
    /// The `ETag` of the document that `v2` is from.
    pub v2_tag: String,
}

impl Api {
    /// The path of the version, on both servers.
    pub fn path(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }
}

impl AggregatedApi {
    /// Whether the server is available and its discovery is up to date.
    pub fn is_current(&self) -> bool {
        self.available && self.published.is_current
    }

    /// `resources` of the last known aggregated discovery.
    pub fn resources(&self) -> &[Value] {
        &self.published.resources
    }

    /// Sends a request of this server itself, as a member of the masters group, and reads the whole
    /// response.
    ///
    /// # Errors
    /// The server cannot be reached or is not trusted, or its response takes too long or is too
    /// large.
    pub async fn request(
        &self,
        registry: &Registry,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
    ) -> Result<Response<Bytes>, SendError> {
        self.remote.request(registry, method, path, headers).await
    }
}

/// The current [`ApiServiceTable`]: replaced by [`follow`], read by requests and discovery.
#[derive(Default)]
pub struct Aggregation(ArcSwap<ApiServiceTable>);

impl Aggregation {
    /// The current table.
    pub fn table(&self) -> Arc<ApiServiceTable> {
        self.0.load_full()
    }

    fn set_table(&self, table: ApiServiceTable) {
        self.0.store(Arc::new(table));
    }
}

impl ApiServiceTable {
    fn get(&self, group: &str, version: &str) -> Option<&Api> {
        self.0.iter().find(|api| (api.group.as_str(), api.version.as_str()) == (group, version))
    }

    /// The other server of a version; `None` when the version is not aggregated.
    pub(crate) fn aggregated_api(&self, group: &str, version: &str) -> Option<&AggregatedApi> {
        self.get(group, version)?.aggregated.as_ref()
    }

    /// The versions that other servers serve.
    pub fn remotes(&self) -> impl Iterator<Item = (&Api, &AggregatedApi)> {
        self.0.iter().filter_map(|api| Some((api, api.aggregated.as_ref()?)))
    }

    /// The priority in the APIService, or the default one if there is no APIService.
    pub(crate) fn priority(&self, group: &str, version: &str) -> Priority {
        let registered = self.get(group, version).map(|api| api.priority);
        registered.unwrap_or_else(|| priorities::of(group, version))
    }
}

/// Builds the condition `Available`. It retains the transition time of `before`, the stored
/// condition or null, while the status is the same. `now` is an RFC 3339 time.
pub fn condition(before: &Value, status: &str, reason: &str, message: &str, now: &str) -> Value {
    let since = before["lastTransitionTime"].as_str().filter(|_| before["status"] == status);
    json!({
        "type": AVAILABLE, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since.unwrap_or(now),
    })
}
