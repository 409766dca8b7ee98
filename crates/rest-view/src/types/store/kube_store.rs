//! Objects of a Kubernetes resource, as far as the caller may see them.

mod rights;

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{DeleteOptions, Key, KubeResource, ListScope, Store, Visible};
use crate::error::ApiError;
use crate::types::context::Context;
use crate::types::rights::MayChange;

/// Objects that are fetched one by one for a caller who may get but not list them.
pub const VISIBLE_NAMES_MAX: usize = 1_000;
/// Concurrent requests while doing so.
pub const VISIBLE_FETCHES_MAX: usize = 16;
/// A rules review needs a namespace, also for rules that apply to cluster-scoped objects.
const NAMESPACE_OF_GLOBAL_RULES: &str = "default";
const JSON: &str = "application/json";
/// Media types of a list with only the metadata of its items.
pub const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// How much is read of each object that the caller may see.
trait ListItem: Send + Sized + 'static {
    /// The objects in a namespace, or in all when it is empty. Forbidden unless the caller may list
    /// there.
    fn list(
        context: &Context<'_>,
        resource: &KubeResource,
        namespace: &str,
    ) -> impl Future<Output = Result<Vec<Self>, ApiError>> + Send;

    /// One object that the rules of the caller name.
    fn get_named(
        context: &Context<'_>,
        resource: &KubeResource,
        key: Key,
    ) -> impl Future<Output = Result<Self, ApiError>> + Send;
}

impl ListItem for Value {
    async fn list(
        context: &Context<'_>,
        resource: &KubeResource,
        namespace: &str,
    ) -> Result<Vec<Self>, ApiError> {
        items(context, &resource.collection_path(namespace), JSON).await
    }
    async fn get_named(
        context: &Context<'_>,
        resource: &KubeResource,
        key: Key,
    ) -> Result<Self, ApiError> {
        call(context, "GET", &resource.object_path(&key), None).await
    }
}

/// The key of an object, without its contents.
#[derive(Deserialize)]
struct KeyOnly {
    metadata: Key,
}

impl ListItem for KeyOnly {
    async fn list(
        context: &Context<'_>,
        resource: &KubeResource,
        namespace: &str,
    ) -> Result<Vec<Self>, ApiError> {
        items(context, &resource.collection_path(namespace), METADATA_LIST).await
    }
    async fn get_named(
        context: &Context<'_>,
        resource: &KubeResource,
        key: Key,
    ) -> Result<Self, ApiError> {
        send(context, "GET", &resource.object_path(&key), JSON, None).await
    }
}

/// Reads no objects: only whether they may be read.
impl ListItem for Visible {
    async fn list(
        context: &Context<'_>,
        resource: &KubeResource,
        namespace: &str,
    ) -> Result<Vec<Self>, ApiError> {
        let path = format!("{}?limit=1", resource.collection_path(namespace));
        let _: Vec<KeyOnly> = items(context, &path, METADATA_LIST).await?;
        Ok(vec![match namespace {
            "" => Self::Everything,
            namespace => Self::Namespace(namespace.to_owned()),
        }])
    }
    async fn get_named(_: &Context<'_>, _: &KubeResource, key: Key) -> Result<Self, ApiError> {
        Ok(Self::Object(key))
    }
}

/// Objects of a Kubernetes resource, accessed with the client of the caller.
#[derive(Clone, Debug)]
pub struct KubeStore {
    resource: KubeResource,
    /// Objects whose names are the namespaces that contain this resource.
    parent: Option<Box<KubeStore>>,
}

impl From<KubeResource> for KubeStore {
    fn from(resource: KubeResource) -> Self {
        Self::new(resource)
    }
}

impl KubeStore {
    /// A store whose callers must be able to list the resource, or have rules that name its
    /// objects.
    pub fn new(resource: KubeResource) -> Self {
        Self { resource, parent: None }
    }
    /// The resource that the store serves.
    pub fn resource(&self) -> &KubeResource {
        &self.resource
    }
    /// For callers who may not list all namespaces: list the namespaces that are named like the
    /// objects of `parent` which they may see. A namespaced parent may itself be in the namespaces
    /// of another resource.
    pub fn in_namespaces_of(mut self, parent: impl Into<Self>) -> Self {
        self.parent = Some(Box::new(parent.into()));
        self
    }

    async fn list_as<T: ListItem>(
        &self,
        context: &Context<'_>,
        scope: &ListScope,
    ) -> Result<Vec<T>, ApiError> {
        match &scope.namespace {
            Some(namespace) if self.resource.namespaced => {
                self.list_namespace(context, namespace.clone()).await
            }
            _ => self.list_everywhere(context).await,
        }
    }

    async fn list_everywhere<T: ListItem>(
        &self,
        context: &Context<'_>,
    ) -> Result<Vec<T>, ApiError> {
        match T::list(context, &self.resource, "").await {
            Err(error) if error.is_forbidden() => {}
            other => return other,
        }
        if !self.resource.namespaced {
            return named_in_rules(context, &self.resource, "").await;
        }
        let Some(parent) = &self.parent else { return Ok(Vec::new()) };
        // Parents in different namespaces may have the same name.
        let namespaces: BTreeSet<String> =
            parent.all_keys(context).await?.into_iter().map(|parent| parent.name).collect();
        let lists: Vec<Vec<T>> = futures::stream::iter(namespaces)
            .map(|namespace| self.list_namespace(context, namespace))
            .buffered(VISIBLE_FETCHES_MAX)
            .try_collect()
            .await?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// The keys of all objects that the caller may see. In a box: a parent may have a parent.
    fn all_keys<'a>(
        &'a self,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Vec<Key>, ApiError>> {
        Box::pin(async move {
            let objects: Vec<KeyOnly> = self.list_everywhere(context).await?;
            Ok(objects.into_iter().map(|object| object.metadata).collect())
        })
    }

    async fn list_namespace<T: ListItem>(
        &self,
        context: &Context<'_>,
        namespace: String,
    ) -> Result<Vec<T>, ApiError> {
        match T::list(context, &self.resource, &namespace).await {
            Err(error) if error.is_forbidden() => {
                named_in_rules(context, &self.resource, &namespace).await
            }
            other => other,
        }
    }
}

impl Store for KubeStore {
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(self.list_as(context, scope))
    }

    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move { call(context, "GET", &self.resource.object_path(key), None).await })
    }

    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let path = self.resource.collection_path(namespace);
            call(context, "POST", &path, Some(&object)).await
        })
    }

    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            call(context, "PUT", &self.resource.object_path(key), Some(&object)).await
        })
    }

    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(async move {
            let policy = options.propagation_policy.as_deref().unwrap_or("Background");
            let mut body = json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy,
            });
            if let Some(seconds) = options.grace_period_seconds {
                body["gracePeriodSeconds"] = seconds.into();
            }
            let path = self.resource.object_path(key);
            call(context, "DELETE", &path, Some(&body)).await?;
            match self.get(context, key).await {
                Ok(object) => Ok(Some(object)),
                // Deleted, perhaps together with the right to read it.
                Err(error) if error.is_not_found() || error.is_forbidden() => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn keys<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Key>, ApiError>> {
        Box::pin(async move {
            let objects: Vec<KeyOnly> = self.list_as(context, scope).await?;
            Ok(objects.into_iter().map(|object| object.metadata).collect())
        })
    }

    fn visible<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Option<Vec<Visible>>, ApiError>> {
        Box::pin(async move { Ok(Some(self.list_as(context, scope).await?)) })
    }

    fn indexed_resource(&self) -> Option<&KubeResource> {
        Some(&self.resource)
    }

    fn can_see_all<'a>(
        &'a self,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<bool, ApiError>> {
        Box::pin(async { may(context, "list", &self.resource, &Key::default()).await })
    }

    fn may_change<'a>(
        &'a self,
        context: &'a Context<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<MayChange>, ApiError>> {
        Box::pin(rights::may_change(context, &self.resource, keys))
    }
}

#[derive(Deserialize)]
struct ItemList<T> {
    items: Vec<T>,
}

async fn items<T: DeserializeOwned>(
    context: &Context<'_>,
    path: &str,
    accept: &str,
) -> Result<Vec<T>, ApiError> {
    let list: ItemList<T> = send(context, "GET", path, accept, None).await?;
    Ok(list.items)
}

/// The objects that the rules of the caller name one by one.
async fn named_in_rules<T: ListItem>(
    context: &Context<'_>,
    resource: &KubeResource,
    namespace: &str,
) -> Result<Vec<T>, ApiError> {
    let names = names_in_rules(&rules_in(context, namespace).await?, resource);
    let found: Vec<Option<T>> = futures::stream::iter(names)
        .map(|name| async move {
            let key = Key { namespace: namespace.to_owned(), name };
            match T::get_named(context, resource, key).await {
                Ok(object) => Ok(Some(object)),
                Err(error) if error.is_not_found() || error.is_forbidden() => Ok(None),
                Err(error) => Err(error),
            }
        })
        .buffered(VISIBLE_FETCHES_MAX)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().collect())
}

/// The rules of the caller in a namespace, or for cluster-scoped objects when it is empty. Null:
/// the API server does not report them.
async fn rules_in(context: &Context<'_>, namespace: &str) -> Result<Value, ApiError> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {
            "namespace": if namespace.is_empty() { NAMESPACE_OF_GLOBAL_RULES } else { namespace },
        },
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    match call(context, "POST", path, Some(&review)).await {
        Ok(mut response) => {
            let rules = response.pointer_mut("/status/resourceRules");
            Ok(rules.map(Value::take).unwrap_or_default())
        }
        Err(error) if error.is_forbidden() || error.is_not_found() => Ok(Value::Null),
        Err(error) => Err(error),
    }
}

/// Names that the rules allow to get, sorted; at most [`VISIBLE_NAMES_MAX`].
fn names_in_rules(rules: &Value, resource: &KubeResource) -> BTreeSet<String> {
    let holds = |rule: &Value, key: &str, expected: &str| {
        let values = rule[key].as_array();
        values.is_some_and(|values| values.iter().any(|v| v == expected || v == "*"))
    };
    rules
        .as_array()
        .into_iter()
        .flatten()
        .filter(|rule| {
            holds(rule, "verbs", "get")
                && holds(rule, "apiGroups", &resource.group)
                && holds(rule, "resources", &resource.plural)
        })
        .flat_map(|rule| rule["resourceNames"].as_array().into_iter().flatten())
        .filter_map(|name| name.as_str().map(str::to_owned))
        .take(VISIBLE_NAMES_MAX)
        .collect()
}

/// Whether the caller may do `verb` on an object. For actions that then act with other rights.
///
/// # Errors
/// The access review failed.
pub async fn may(
    context: &Context<'_>,
    verb: &str,
    resource: &KubeResource,
    key: &Key,
) -> Result<bool, ApiError> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": verb, "group": resource.group, "version": resource.version,
            "resource": resource.plural, "namespace": key.namespace, "name": key.name,
        }},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let response = call(context, "POST", path, Some(&review)).await?;
    Ok(response["status"]["allowed"] == true)
}

/// Sends one request to the Kubernetes API with the client of the caller and returns the JSON
/// response.
///
/// # Errors
/// The refusal of the API server with its code and reason, or 500 when it cannot be reached.
pub async fn call(
    context: &Context<'_>,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, ApiError> {
    send(context, method, path, JSON, body).await
}

async fn send<T: DeserializeOwned>(
    context: &Context<'_>,
    method: &str,
    path: &str,
    accept: &str,
    body: Option<&Value>,
) -> Result<T, ApiError> {
    let bytes = body.map(Value::to_string).unwrap_or_default().into_bytes();
    let mut request = http::Request::builder().method(method).uri(path);
    request = request.header(http::header::ACCEPT, accept);
    if body.is_some() {
        request = request.header(http::header::CONTENT_TYPE, JSON);
    }
    // No object has a name that a path cannot contain.
    let request = request.body(bytes).map_err(|_| ApiError::no_such_id())?;
    Ok(context.client.request(request).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_the_objects_a_caller_may_get() {
        let resource = KubeResource::new("example.io", "v1", "widgets", "Widget", false);
        let rules = json!([
            {"verbs": ["get"], "apiGroups": ["example.io"], "resources": ["widgets"],
             "resourceNames": ["b", "a"]},
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["c"]},
            {"verbs": ["update"], "apiGroups": ["example.io"], "resources": ["widgets"],
             "resourceNames": ["d"]},
            {"verbs": ["get"], "apiGroups": ["other.io"], "resources": ["widgets"],
             "resourceNames": ["e"]},
        ]);
        let names: Vec<_> = names_in_rules(&rules, &resource).into_iter().collect();
        assert_eq!(names, ["a", "b", "c"]);
    }
}
