//! Where a type's objects come from. [`KubeStore`] is the one for Kubernetes resources.

mod kube_store;

use std::collections::HashSet;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) use self::kube_store::METADATA_LIST;
pub use self::kube_store::{KubeStore, VISIBLE_FETCHES_MAX, VISIBLE_NAMES_MAX, call, may};
use crate::error::ApiError;
use crate::types::context::Context;
use crate::types::rights::MayChange;
use crate::types::urls::encode;

/// Names one object. `namespace` is empty for cluster-scoped ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub struct Key {
    #[serde(default)]
    pub namespace: String,
    pub name: String,
}

impl Key {
    /// Of a stored object.
    pub fn of(stored: &Value) -> Self {
        let text = |field: &str| stored["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self { namespace: text("namespace"), name: text("name") }
    }
}

/// Narrows a list before it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListScope {
    pub namespace: Option<String>,
}

/// A part of a resource's objects that a caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visible {
    Everything,
    Namespace(String),
    /// If there is one of that name.
    Object(Key),
}

/// A resource whose changes tell of a type's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The cluster that serves the resource; `None`: the API that the view is over.
    pub cluster: Option<String>,
    pub resource: KubeResource,
    pub form: Form,
    pub tells: Tells,
}

/// What of changed objects is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Removed objects are told as they last were.
    Whole,
    /// What is secret, or a cluster away, is not sent around for nothing.
    Metadata,
}

/// What a change of a resource tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tells {
    /// The object changed. In the store's keys its name follows this prefix.
    Object(String),
    /// Other objects than before may be visible.
    Sight,
}

/// How to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub propagation_policy: Option<String>,
    pub grace_period_seconds: Option<i64>,
}

/// Reads and writes stored objects on behalf of a caller.
///
/// What an implementation does not say itself, [`Store::inner`] answers; without one everything is "method
/// not allowed". An implementation that does not use `context.client` must decide itself what the caller
/// may do.
pub trait Store: Send + Sync + 'static {
    /// The store over which this one is. What that says of who sees what ([`Store::visible`]), and of where
    /// changes are told, must hold here too; [`Store::is_listed`] alone may narrow it.
    fn inner(&self) -> Option<&dyn Store> {
        None
    }
    /// All objects the caller may see; what cannot be seen is left out, not an error.
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        match self.inner() {
            Some(inner) => inner.list(context, scope),
            None => not_allowed("GET"),
        }
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        match self.inner() {
            Some(inner) => inner.get(context, key),
            None => not_allowed("GET"),
        }
    }
    /// Answers the object as stored; fields that are shown once may be added to it.
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        match self.inner() {
            Some(inner) => inner.create(context, object),
            None => not_allowed("POST"),
        }
    }
    /// `object` carries the resource version that was read. A conflict is retried by the caller.
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        match self.inner() {
            Some(inner) => inner.replace(context, key, object),
            None => not_allowed("PUT"),
        }
    }
    /// Answers the object when it is still there, being removed.
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        match self.inner() {
            Some(inner) => inner.delete(context, key, options),
            None => not_allowed("DELETE"),
        }
    }

    /// The keys of what [`Store::list`] of this store answers. To be given where they cost less than the
    /// objects.
    fn keys<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Key>, ApiError>> {
        Box::pin(async move { Ok(self.list(context, scope).await?.iter().map(Key::of).collect()) })
    }
    /// Puts into objects what is stored apart from them, as far as the caller may see it. What is shown goes through
    /// here; what is written back does not.
    fn reveal<'a>(
        &'a self,
        context: &'a Context<'a>,
        objects: &'a mut [Value],
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        match self.inner() {
            Some(inner) => inner.reveal(context, objects),
            None => Box::pin(async { Ok(()) }),
        }
    }
    /// Whether lists show an object that the caller may get.
    fn is_listed(&self, stored: &Value) -> bool {
        let _ = stored;
        true
    }
    /// What of [`Store::watched`] [`Store::list`] would answer, but for [`Store::is_listed`], without
    /// reading it. `None`: that cannot be told; read the list.
    fn visible<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Option<Vec<Visible>>, ApiError>> {
        match self.inner() {
            Some(inner) => inner.visible(context, scope),
            None => Box::pin(async { Ok(None) }),
        }
    }
    /// The resource of the API that the view is over whose changes are the changes of this type, key
    /// by key. `None`: there is no such one.
    fn watched(&self) -> Option<&KubeResource> {
        self.inner().and_then(Store::watched)
    }
    /// What the change feed follows for this type, where the request is. Nothing: the changes cannot be
    /// followed, and the feed leaves the type out.
    fn followed(&self, context: &Context<'_>) -> Vec<Followed> {
        if let Some(inner) = self.inner() {
            return inner.followed(context);
        }
        let here = |resource: &KubeResource| Followed {
            cluster: None,
            resource: resource.clone(),
            form: Form::Whole,
            tells: Tells::Object(String::new()),
        };
        self.watched().map(here).into_iter().collect()
    }
    /// The namespaces outside of which the caller sees no object of this type. `None`: objects may be
    /// anywhere.
    fn homes<'a>(
        &'a self,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Option<HashSet<String>>, ApiError>> {
        match self.inner() {
            Some(inner) => inner.homes(context),
            None => Box::pin(async { Ok(None) }),
        }
    }
    /// As much of a stored object as its key tells.
    fn traces(&self, key: &Key) -> Value {
        json!({"metadata": {"namespace": key.namespace, "name": key.name}})
    }
    /// Whether the caller may see every object, so that a change of rights that leaves this true
    /// changes nothing for them. `false` when that is not known.
    fn sees_all<'a>(&'a self, context: &'a Context<'a>) -> BoxFuture<'a, Result<bool, ApiError>> {
        match self.inner() {
            Some(inner) => inner.sees_all(context),
            None => Box::pin(async { Ok(false) }),
        }
    }
    /// What the caller may do with objects that they see, in the order of the keys. By rules rather than
    /// with a request for each. Only links follow from it; a write is decided when it comes.
    fn may_change<'a>(
        &'a self,
        context: &'a Context<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<MayChange>, ApiError>> {
        match self.inner() {
            Some(inner) => inner.may_change(context, keys),
            None => Box::pin(async { Ok(vec![MayChange::ALL; keys.len()]) }),
        }
    }
}

fn not_allowed<'a, T>(method: &'static str) -> BoxFuture<'a, Result<T, ApiError>> {
    Box::pin(async move { Err(ApiError::method_not_allowed(method)) })
}

/// A Kubernetes resource, as its paths need it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KubeResource {
    pub group: String,
    pub version: String,
    /// Lower-case plural.
    pub plural: String,
    pub kind: String,
    pub namespaced: bool,
}

impl KubeResource {
    pub fn new(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Self {
        let [group, version, plural, kind] = [group, version, plural, kind].map(str::to_owned);
        Self { group, version, plural, kind, namespaced }
    }
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
    /// The path of the collection, in one namespace or everywhere.
    pub fn collection_path(&self, namespace: &str) -> String {
        let root = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match namespace {
            "" => format!("{root}/{}", self.plural),
            namespace => format!("{root}/namespaces/{}/{}", encode(namespace), self.plural),
        }
    }
    pub fn object_path(&self, key: &Key) -> String {
        format!("{}/{}", self.collection_path(&key.namespace), encode(&key.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_paths() {
        let resource = KubeResource::new("", "v1", "secrets", "Secret", true);
        let key = Key { namespace: "a/b".into(), name: "x?y".into() };
        assert_eq!(resource.object_path(&key), "/api/v1/namespaces/a%2Fb/secrets/x%3Fy");
    }
}
