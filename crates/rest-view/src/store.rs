//! Where a type's objects come from. [`KubeStore`] is the one for Kubernetes resources.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::ApiError;
use crate::urls::encode;

/// Objects that are fetched one by one for a caller who may get but not list them.
pub const VISIBLE_NAMES_MAX: usize = 1_000;
/// Requests in flight at once while doing so.
pub const VISIBLE_FETCHES_MAX: usize = 16;
/// Reading the rules of the caller that hold everywhere needs some namespace.
const NAMESPACE_OF_GLOBAL_RULES: &str = "default";

/// Names one object. `namespace` is empty for cluster-scoped ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

/// Narrows a list before it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListScope {
    pub namespace: Option<String>,
}

/// How to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub propagation_policy: Option<String>,
    pub grace_period_seconds: Option<i64>,
}

/// Reads and writes stored objects on behalf of a caller.
///
/// Everything defaults to "method not allowed". An implementation that does not use
/// `context.client` must decide itself what the caller may do.
pub trait Store: Send + Sync + 'static {
    /// All objects the caller may see; what cannot be seen is left out, not an error.
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        let _ = (context, scope);
        Box::pin(async { Err(ApiError::method_not_allowed("GET")) })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        let _ = (context, key);
        Box::pin(async { Err(ApiError::method_not_allowed("GET")) })
    }
    /// Answers the object as stored; fields that are shown once may be added to it.
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        let _ = (context, object);
        Box::pin(async { Err(ApiError::method_not_allowed("POST")) })
    }
    /// `object` carries the resource version that was read. A conflict is retried by the caller.
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        let _ = (context, key, object);
        Box::pin(async { Err(ApiError::method_not_allowed("PUT")) })
    }
    /// Answers the object when it is still there, being removed.
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        let _ = (context, key, options);
        Box::pin(async { Err(ApiError::method_not_allowed("DELETE")) })
    }
}

/// A Kubernetes resource, as its paths need it.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Objects of a Kubernetes resource, reached with the caller's client.
#[derive(Clone, Debug)]
pub struct KubeStore {
    resource: KubeResource,
    /// Cluster-scoped resource whose objects' names are the namespaces that hold this one.
    parent: Option<KubeResource>,
}

impl KubeStore {
    pub fn new(resource: KubeResource) -> Self {
        Self { resource, parent: None }
    }
    /// For callers who may not list everywhere: look in the namespaces named like the objects of
    /// `parent` that they may see.
    pub fn in_namespaces_of(mut self, parent: KubeResource) -> Self {
        self.parent = Some(parent);
        self
    }

    async fn list_everywhere(&self, context: &Context<'_>) -> Result<Vec<Value>, ApiError> {
        match list_path(context, &self.resource.collection_path("")).await {
            Err(error) if error.is_forbidden() => {}
            other => return other,
        }
        if !self.resource.namespaced {
            return visible(context, &self.resource, "").await;
        }
        let Some(parent) = &self.parent else { return Ok(Vec::new()) };
        let parents = match list_path(context, &parent.collection_path("")).await {
            Err(error) if error.is_forbidden() => visible(context, parent, "").await?,
            other => other?,
        };
        let namespaces = parents
            .iter()
            .filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned))
            .collect::<Vec<_>>();
        let lists: Vec<Vec<Value>> = futures::stream::iter(namespaces)
            .map(|namespace| self.list_namespace(context, namespace))
            .buffered(VISIBLE_FETCHES_MAX)
            .try_collect()
            .await?;
        Ok(lists.into_iter().flatten().collect())
    }

    async fn list_namespace(
        &self,
        context: &Context<'_>,
        namespace: String,
    ) -> Result<Vec<Value>, ApiError> {
        match list_path(context, &self.resource.collection_path(&namespace)).await {
            Err(error) if error.is_forbidden() => {
                visible(context, &self.resource, &namespace).await
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
        Box::pin(async move {
            match &scope.namespace {
                Some(namespace) if self.resource.namespaced => {
                    self.list_namespace(context, namespace.clone()).await
                }
                _ => self.list_everywhere(context).await,
            }
        })
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
                // Gone, or gone together with the right to see it.
                Err(error) if error.is_not_found() || error.is_forbidden() => Ok(None),
                Err(error) => Err(error),
            }
        })
    }
}

async fn list_path(context: &Context<'_>, path: &str) -> Result<Vec<Value>, ApiError> {
    let mut list = call(context, "GET", path, None).await?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        _ => Err(ApiError::server_error(format!("list of \"{path}\" has no items"))),
    }
}

/// The objects that the caller's rules name one by one.
async fn visible(
    context: &Context<'_>,
    resource: &KubeResource,
    namespace: &str,
) -> Result<Vec<Value>, ApiError> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {
            "namespace": if namespace.is_empty() { NAMESPACE_OF_GLOBAL_RULES } else { namespace },
        },
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let answer = match call(context, "POST", path, Some(&review)).await {
        Ok(answer) => answer,
        Err(error) if error.is_forbidden() || error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names = names_in_rules(&answer["status"]["resourceRules"], resource);
    let found: Vec<Option<Value>> = futures::stream::iter(names)
        .map(|name| async move {
            let key = Key { namespace: namespace.to_owned(), name };
            match call(context, "GET", &resource.object_path(&key), None).await {
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

/// Names that the rules allow to get, in order; at most [`VISIBLE_NAMES_MAX`].
fn names_in_rules(rules: &Value, resource: &KubeResource) -> BTreeSet<String> {
    let holds = |rule: &Value, key: &str, wanted: &str| {
        let values = rule[key].as_array();
        values.is_some_and(|values| values.iter().any(|v| v == wanted || v == "*"))
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
    let answer = call(context, "POST", path, Some(&review)).await?;
    Ok(answer["status"]["allowed"] == true)
}

/// One request to the Kubernetes API with the caller's client.
pub async fn call(
    context: &Context<'_>,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, ApiError> {
    let bytes = body.map(Value::to_string).unwrap_or_default().into_bytes();
    let mut request = http::Request::builder().method(method).uri(path);
    request = request.header(http::header::ACCEPT, "application/json");
    if body.is_some() {
        request = request.header(http::header::CONTENT_TYPE, "application/json");
    }
    let request = request.body(bytes).map_err(ApiError::server_error)?;
    Ok(context.client.request::<Value>(request).await?)
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

    #[test]
    fn names_are_escaped_in_paths() {
        let resource = KubeResource::new("", "v1", "secrets", "Secret", true);
        let key = Key { namespace: "a/b".into(), name: "x?y".into() };
        assert_eq!(resource.object_path(&key), "/api/v1/namespaces/a%2Fb/secrets/x%3Fy");
    }
}
