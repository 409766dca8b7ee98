//! What a served resource is: its names, verbs, subresources, storage place and strategy.

use std::sync::Arc;

pub use api_meta::names::NameRule;
use api_meta::status::Status;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::attributes::UserInfo;
pub use crate::stored::SelectableField;
use crate::strategy::Strategy;

/// One version of one resource. Immutable once in the catalog; a change is a new value.
pub struct Resource {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub namespaced: bool,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub verbs: Vec<&'static str>,
    pub subresources: Vec<Subresource>,
    pub backend: Backend,
    pub strategy: Arc<dyn Strategy>,
    pub columns: Vec<Column>,
    pub rules: Rules,
    pub name_rule: NameRule,
    /// Beyond `metadata.name` and `metadata.namespace`.
    pub selectable_fields: Vec<SelectableField>,
    /// From a CustomResourceDefinition.
    pub custom: bool,
}

pub enum Backend {
    /// Objects under this key prefix, which begins and ends with `/`: `/registry/configmaps/`.
    Stored { prefix: String },
    /// Nothing is stored: `create` computes an answer (reviews).
    Computed(Arc<dyn Endpoint>),
}

/// Deviations between kinds that the generic handlers honour.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// `metadata.generation` is kept by the server.
    pub generation: bool,
    /// PUT of a missing object creates it.
    pub create_on_update: bool,
    /// PUT without a resourceVersion overwrites.
    pub unconditional_update: bool,
    /// DELETE answers the object instead of a Status.
    pub delete_returns_object: bool,
    /// Age of an object at which it is deleted, counted from its last write.
    pub ttl: Option<std::time::Duration>,
}

/// A column of the Table form.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    /// `string`, `integer`, `number`, `boolean`, `date`.
    pub kind: String,
    pub format: String,
    pub description: String,
    /// Above 0 only in wide output.
    pub priority: i32,
}

pub struct Subresource {
    pub name: &'static str,
    pub verbs: Vec<&'static str>,
    pub handler: SubresourceHandler,
    /// Group, version, kind of its body when they are not the parent's.
    pub gvk: Option<(&'static str, &'static str, &'static str)>,
}

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
    /// What is connected to, and goes on after the request: by the server's [`crate::connect::Connector`].
    Connect,
}

/// A call to a computed resource or subresource.
#[derive(Clone)]
pub struct Call {
    pub user: UserInfo,
    /// `create`, `get` or `update`. `patch` reads what a patch is to be applied to, `apply` answers what applying
    /// the body comes to; the outcome follows as `update`.
    pub verb: &'static str,
    pub namespace: String,
    pub name: String,
    pub body: Value,
    pub dry_run: bool,
    /// Who comes to own what is written.
    pub manager: String,
    /// Of an `apply`: whether it takes what others own.
    pub force: bool,
    /// Of an `update`: the body is the outcome of an `apply`, with its owners of fields.
    pub applied: bool,
}

/// Answers what is not plain storage: reviews, token requests, scale.
pub trait Endpoint: Send + Sync + 'static {
    /// The HTTP code and the body.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>>;

    /// Whether it takes `apply`.
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
    /// API version and kind of what is sent to and read from the resource, or a subresource of it.
    pub fn body_kind(&self, subresource: Option<&Subresource>) -> (String, &str) {
        match subresource.and_then(|subresource| subresource.gvk) {
            Some(("", version, kind)) => (version.to_owned(), kind),
            Some((group, version, kind)) => (format!("{group}/{version}"), kind),
            None => (self.api_version(), &self.kind),
        }
    }
    /// Whether that has a protobuf form. Kinds of Kubernetes have one, custom resources do not.
    pub fn has_protobuf(&self, subresource: Option<&Subresource>) -> bool {
        let own = subresource.is_none_or(|subresource| subresource.gvk.is_none());
        let (api_version, kind) = self.body_kind(subresource);
        !(own && self.custom) && kubernetes_protobuf::is_known(&api_version, kind)
    }
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }
    /// Whether finalizers must be well-known names or have a prefix. Later kinds take any.
    pub fn knows_its_finalizers(&self) -> bool {
        let takes_any = ["coordination.k8s.io", "apiextensions.k8s.io"];
        !self.custom && !takes_any.contains(&self.group.as_str())
    }
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
