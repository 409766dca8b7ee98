//! Where the objects of a type come from. [`KubeStore`] is the store for Kubernetes resources.

mod kube_store;

use std::collections::HashSet;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::kube_store::{
    KubeStore, METADATA_LIST, VISIBLE_FETCHES_MAX, VISIBLE_NAMES_MAX, call, may,
};
use crate::error::ApiError;
use crate::types::context::Context;
use crate::types::rights::MayChange;
use crate::types::urls::encode;

/// Identifies one object of a type. `namespace` is empty for a cluster-scoped object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub struct Key {
    #[serde(default)]
    pub namespace: String,
    pub name: String,
}

impl Key {
    /// The key of a stored object.
    pub fn of(stored: &Value) -> Self {
        let text = |field: &str| stored["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self { namespace: text("namespace"), name: text("name") }
    }
}

/// Limits a list before it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListScope {
    /// Read only this namespace; `None`: all.
    pub namespace: Option<String>,
}

/// A part of the objects of a resource that a caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visible {
    /// All objects.
    Everything,
    /// All objects in this namespace.
    Namespace(String),
    /// This object, if it exists.
    Object(Key),
}

/// A resource whose changes affect the objects of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedResource {
    /// Id of the cluster that serves the resource; `None`: the API below the view.
    pub cluster: Option<String>,
    /// The resource to watch.
    pub resource: KubeResource,
    /// How much of each changed object the watch transfers.
    pub detail: WatchDetail,
    /// What a change means for the type.
    pub effect: ChangeEffect,
}

/// How much of each changed object a watch transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchDetail {
    /// The whole object. A removed object is reported in its last state.
    Object,
    /// Only the metadata: for secrets, and for clusters behind a tunnel.
    Metadata,
}

/// What a change of a watched resource means for a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeEffect {
    /// The object changed. In keys of the store its name follows this prefix.
    Object(String),
    /// The caller may now see other objects than before.
    Visibility,
}

/// Options of a delete, as in `meta/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// `Background`, `Foreground` or `Orphan`; `None`: the default of the store.
    pub propagation_policy: Option<String>,
    pub grace_period_seconds: Option<i64>,
}

/// Reads and writes stored objects on behalf of a caller.
///
/// Methods that an implementation does not override delegate to [`Store::inner`]; without an inner
/// store they fail with "method not allowed". An implementation that does not use `context.client`
/// must check the rights of the caller itself.
pub trait Store: Send + Sync + 'static {
    /// The store that this one wraps. Visibility ([`Store::visible`]) and watched resources of the
    /// inner store must be valid for this one too; only [`Store::is_listed`] may narrow them.
    fn inner(&self) -> Option<&dyn Store> {
        None
    }
    /// All objects in the scope that the caller may see. Objects that the caller may not see are
    /// left out.
    ///
    /// # Errors
    /// The API refuses or fails for another reason than the visibility of single objects.
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
    /// The object with this key.
    ///
    /// # Errors
    /// 404 or 403 as the API below decides; the caller passes it on.
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
    /// Creates the object and returns it as stored. Fields that are shown only once may be added to
    /// it.
    ///
    /// # Errors
    /// The refusal of the API below, or a rule of the store.
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
    /// Replaces the object. `object` carries the resource version that was read.
    ///
    /// # Errors
    /// A conflict (409) when the object has changed since; the caller reads it again and retries.
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
    /// Deletes the object. Returns the object while its deletion is pending, `None` when it no
    /// longer exists.
    ///
    /// # Errors
    /// The refusal of the API below.
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

    /// The keys of the objects that [`Store::list`] returns. Override it where keys cost less than
    /// objects.
    ///
    /// # Errors
    /// Those of [`Store::list`].
    fn keys<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Key>, ApiError>> {
        Box::pin(async move { Ok(self.list(context, scope).await?.iter().map(Key::of).collect()) })
    }
    /// Inserts into objects what is stored apart from them, as far as the caller may see it.
    /// Applied to everything that is shown, and to nothing that is written back.
    ///
    /// # Errors
    /// The separate values could not be read.
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
    /// Whether lists include an object that the caller may get.
    fn is_listed(&self, stored: &Value) -> bool {
        let _ = stored;
        true
    }
    /// The parts of [`Store::indexed_resource`] that [`Store::list`] would return, apart from
    /// [`Store::is_listed`], without reading the objects. `None`: unknown; read the list.
    ///
    /// # Errors
    /// The rights could not be queried.
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
    /// The resource of the API below the view whose objects are the objects of this type, key by
    /// key. An index follows it. `None`: there is none.
    fn indexed_resource(&self) -> Option<&KubeResource> {
        self.inner().and_then(Store::indexed_resource)
    }
    /// The resources that the change feed watches for this type, in the context of the request.
    /// Empty: changes cannot be followed, and the feed leaves the type out.
    fn watched_resources(&self, context: &Context<'_>) -> Vec<WatchedResource> {
        if let Some(inner) = self.inner() {
            return inner.watched_resources(context);
        }
        let here = |resource: &KubeResource| WatchedResource {
            cluster: None,
            resource: resource.clone(),
            detail: WatchDetail::Object,
            effect: ChangeEffect::Object(String::new()),
        };
        self.indexed_resource().map(here).into_iter().collect()
    }
    /// The only namespaces that can contain objects of this type which the caller may see. `None`:
    /// any namespace can.
    ///
    /// # Errors
    /// The namespaces could not be read.
    fn home_namespaces<'a>(
        &'a self,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Option<HashSet<String>>, ApiError>> {
        match self.inner() {
            Some(inner) => inner.home_namespaces(context),
            None => Box::pin(async { Ok(None) }),
        }
    }
    /// An object with only what its key determines, for the id of a removed object.
    fn object_from_key(&self, key: &Key) -> Value {
        json!({"metadata": {"namespace": key.namespace, "name": key.name}})
    }
    /// Whether the caller may see every object. While this stays true, a change of rights changes
    /// nothing for the caller. `false` when unknown.
    ///
    /// # Errors
    /// The rights could not be queried.
    fn can_see_all<'a>(
        &'a self,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<bool, ApiError>> {
        match self.inner() {
            Some(inner) => inner.can_see_all(context),
            None => Box::pin(async { Ok(false) }),
        }
    }
    /// What the caller may do with objects that they can read, in the order of the keys.
    /// Implementations evaluate rules instead of sending a request per object. The result only
    /// decides which links are shown; each write is authorized on its own.
    ///
    /// # Errors
    /// The rights could not be queried.
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

/// A client whose requests go below `root`, a path, with the client `own`. Must be called inside a
/// tokio runtime.
pub fn client_below(own: &kube::Client, root: String) -> kube::Client {
    let own = own.clone();
    let service = move |mut request: http::Request<kube::client::Body>| {
        let (own, path) = (own.clone(), format!("{root}{}", request.uri()));
        async move {
            let uri = path.parse::<http::Uri>();
            *request.uri_mut() = uri.map_err(|error| kube::Error::HttpError(error.into()))?;
            own.send(request).await
        }
    };
    kube::Client::new(tower::service_fn(service), "default")
}

fn not_allowed<'a, T>(method: &'static str) -> BoxFuture<'a, Result<T, ApiError>> {
    Box::pin(async move { Err(ApiError::method_not_allowed(method)) })
}

/// A Kubernetes resource, with what its paths need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KubeResource {
    /// API group; empty for the core group.
    pub group: String,
    pub version: String,
    /// Lower-case plural, as in paths.
    pub plural: String,
    pub kind: String,
    pub namespaced: bool,
}

impl KubeResource {
    /// The resource `plural` of kind `kind` in `group/version`.
    pub fn new(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Self {
        let [group, version, plural, kind] = [group, version, plural, kind].map(str::to_owned);
        Self { group, version, plural, kind, namespaced }
    }
    /// `group/version`, or `version` for the core group.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
    /// The path of the collection in one namespace, or in all when `namespace` is empty.
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
    /// The path of one object. Names are percent-encoded.
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
