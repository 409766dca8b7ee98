//! A served resource: its names, verbs, subresources, storage prefix and strategy.

use std::sync::Arc;

pub use api_meta::names::NameRule;
use api_meta::status::Status;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::attributes::UserInfo;
pub use crate::stored::SelectableField;
use crate::strategy::Strategy;

/// One version of one resource. Immutable once it is in the catalog; a change is a new value.
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub namespaced: bool,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    /// The verbs that it offers.
    pub verbs: Vec<&'static str>,
    pub subresources: Vec<Subresource>,
    pub backend: Backend,
    pub strategy: Arc<dyn Strategy>,
    /// The columns of its Tables, in order.
    pub columns: Vec<TableColumn>,
    pub rules: ResourceRules,
    /// Which names its objects may have.
    pub name_rule: NameRule,
    /// Beyond `metadata.name` and `metadata.namespace`.
    pub selectable_fields: Vec<SelectableField>,
    /// From a CustomResourceDefinition.
    pub custom: bool,
}

/// Where the objects of a resource come from.
pub enum Backend {
    /// Objects under this key prefix, which begins and ends with `/`: `/registry/configmaps/`.
    Stored { prefix: String },
    /// Nothing is stored: `create` computes a response (reviews).
    Computed(Arc<dyn Endpoint>),
}

/// Differences between kinds that the generic handlers implement.
#[derive(Clone, Copy, Debug)]
pub struct ResourceRules {
    /// The server maintains `metadata.generation`.
    pub generation: bool,
    /// PUT of a missing object creates it.
    pub create_on_update: bool,
    /// PUT without a resourceVersion overwrites.
    pub unconditional_update: bool,
    /// DELETE responds with the object instead of a `Status`.
    pub delete_returns_object: bool,
    /// Age of an object at which it is deleted, counted from its last write.
    pub ttl: Option<std::time::Duration>,
}

/// A column of the Table representation.
#[derive(Clone, Debug)]
pub struct TableColumn {
    pub name: String,
    /// `string`, `integer`, `number`, `boolean`, `date`.
    pub kind: String,
    /// As in OpenAPI: `name`, `int32`, empty.
    pub format: String,
    pub description: String,
    /// Above 0 only in wide output.
    pub priority: i32,
}

/// A subresource, below the objects of a resource.
pub struct Subresource {
    /// Last part of its path.
    pub name: &'static str,
    pub verbs: Vec<&'static str>,
    pub handler: SubresourceHandler,
    /// Group, version, kind of its body when they are not the parent's.
    pub gvk: Option<(&'static str, &'static str, &'static str)>,
}

/// Who serves a subresource.
#[derive(Clone)]
pub enum SubresourceHandler {
    /// Reads and writes of `status` alone.
    Status,
    /// Namespace `/finalize`.
    Finalize,
    /// Reads of the object, and writes of a part of it.
    Part,
    /// Computed by the kind's own code.
    Endpoint(Arc<dyn Endpoint>),
    /// A connection that continues after the request, served by the [`crate::connect::Connector`]
    /// of the server.
    Connect,
}

/// A call to a computed resource or subresource.
#[derive(Clone)]
pub struct Call {
    pub user: UserInfo,
    /// `create`, `get` or `update`. `patch` reads the object that a patch is applied to. `apply`
    /// returns the result of applying the body; the result follows as `update`.
    pub verb: &'static str,
    pub namespace: String,
    pub name: String,
    pub body: Value,
    pub dry_run: bool,
    /// The field manager of the write.
    pub manager: String,
    /// For `apply`: takes over fields that other managers own.
    pub force: bool,
    /// For `update`: the body is the result of an `apply`, and contains its field owners.
    pub applied: bool,
}

/// Serves what is not plain storage: reviews, token requests, scale.
pub trait Endpoint: Send + Sync + 'static {
    /// Responds with the HTTP code and the body.
    ///
    /// # Errors
    /// The [`Status`] to respond with.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>>;

    /// Whether it supports the verb `apply`.
    fn is_applied(&self) -> bool {
        false
    }
}

impl Resource {
    /// `v1` or `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
    /// API version and kind of the bodies of the resource, or of a subresource of it.
    pub fn body_kind(&self, subresource: Option<&Subresource>) -> (String, &str) {
        match subresource.and_then(|subresource| subresource.gvk) {
            Some(("", version, kind)) => (version.to_owned(), kind),
            Some((group, version, kind)) => (format!("{group}/{version}"), kind),
            None => (self.api_version(), &self.kind),
        }
    }
    /// Whether these bodies have a protobuf encoding. Kinds of Kubernetes have one, custom
    /// resources do not.
    pub fn has_protobuf(&self, subresource: Option<&Subresource>) -> bool {
        let own = subresource.is_none_or(|subresource| subresource.gvk.is_none());
        let (api_version, kind) = self.body_kind(subresource);
        !(own && self.custom) && kubernetes_protobuf::is_known(&api_version, kind)
    }
    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }
    /// Whether finalizers must be well-known names or have a prefix. Newer groups accept any name.
    pub fn validates_finalizers(&self) -> bool {
        let takes_any = ["coordination.k8s.io", "apiextensions.k8s.io"];
        !self.custom && !takes_any.contains(&self.group.as_str())
    }
    /// Whether it has the subresource `status`.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
    /// The storage key of an object; `None` for computed resources.
    pub fn key(&self, namespace: &str, name: &str) -> Option<String> {
        match &self.backend {
            Backend::Stored { prefix } if self.namespaced => {
                Some(format!("{prefix}{namespace}/{name}"))
            }
            Backend::Stored { prefix } => Some(format!("{prefix}{name}")),
            Backend::Computed(_) => None,
        }
    }
}
