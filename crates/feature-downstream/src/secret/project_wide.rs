//! Secrets of a whole project: those in its namespace of the management API, read and written there
//! as the caller. RBAC in that namespace authorizes the caller.

use std::collections::HashSet;

use feature_kit::downstream::{PROJECT_ID, ProjectHome};
use futures::future::BoxFuture;
use rest_view::store::{ChangeEffect, DeleteOptions, WatchDetail, WatchedResource};
use rest_view::{ApiError, Context, Key, KubeResource, KubeStore, ListScope, Presentation, Store};
use serde_json::{Map, Value};

/// See the module.
#[derive(Clone, Debug)]
pub struct ProjectSecrets {
    kube: KubeStore,
    resource: KubeResource,
}

/// Refuses a namespace in the input: it would mean a Secret of that namespace alone.
pub fn check(
    _: &Presentation<'_>,
    input: &Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), ApiError> {
    let named = input.get("namespaceId").and_then(Value::as_str).unwrap_or_default();
    if named.is_empty() {
        return Ok(());
    }
    let text = "a secret of the whole project is copied into all of its namespaces; \
                for one namespace use the type whose name begins with \"namespaced\"";
    Err(ApiError::invalid_field("InvalidOption", "namespaceId", text))
}

impl ProjectSecrets {
    /// A store of the Secrets of whole projects.
    pub fn new(resource: KubeResource) -> Self {
        Self { kube: KubeStore::new(resource.clone()), resource }
    }

    /// The project of the path; a key of another namespace than its own names nothing in it.
    async fn enter(&self, context: &Context<'_>, key: &Key) -> Result<String, ApiError> {
        let home = ProjectHome::enter(context).await?;
        match home.namespace {
            Some(namespace) if namespace == key.namespace => Ok(home.project),
            _ => Err(ApiError::no_such_id()),
        }
    }
}

fn shown(mut secret: Value, project: &str) -> Value {
    secret[PROJECT_ID] = project.into();
    secret
}

/// Removes what only the view has, and returns the project that it named.
fn take_project(secret: &mut Value) -> Option<String> {
    match secret.as_object_mut()?.remove(PROJECT_ID)? {
        Value::String(project) if !project.is_empty() => Some(project),
        _ => None,
    }
}

/// A new Secret of the project, to be put into its namespace.
fn with_namespace(mut secret: Value, home: &ProjectHome) -> Result<Value, ApiError> {
    let named = take_project(&mut secret);
    if let Some(other) = named.filter(|named| *named != home.project) {
        let text =
            format!("the path is inside of project \"{}\", not of \"{other}\"", home.project);
        return Err(ApiError::invalid_field("InvalidReference", PROJECT_ID, text));
    }
    let Some(namespace) = &home.namespace else {
        let text = format!(
            "project \"{}\" has no namespace of its own yet; see its condition \
             BackingNamespaceCreated and try again",
            home.project
        );
        return Err(ApiError::invalid_field("InvalidState", PROJECT_ID, text));
    };
    secret["metadata"]["namespace"] = namespace.clone().into();
    Ok(secret)
}

impl Store for ProjectSecrets {
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(async move {
            let home = ProjectHome::enter(context).await?;
            let elsewhere = scope.namespace.is_some() && scope.namespace != home.namespace;
            let (Some(namespace), false) = (home.namespace, elsewhere) else {
                return Ok(Vec::new());
            };
            let scope = ListScope { namespace: Some(namespace) };
            let secrets = self.kube.list(context, &scope).await?;
            Ok(secrets.into_iter().map(|secret| shown(secret, &home.project)).collect())
        })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let project = self.enter(context, key).await?;
            self.kube.get(context, key).await.map(|secret| shown(secret, &project))
        })
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let home = ProjectHome::enter(context).await?;
            let created = self.kube.create(context, with_namespace(object, &home)?).await?;
            Ok(shown(created, &home.project))
        })
    }
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        mut object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let project = self.enter(context, key).await?;
            take_project(&mut object);
            let replaced = self.kube.replace(context, key, object).await?;
            Ok(shown(replaced, &project))
        })
    }
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(async move {
            let project = self.enter(context, key).await?;
            let left = self.kube.delete(context, key, options).await?;
            Ok(left.map(|secret| shown(secret, &project)))
        })
    }
    fn watched_resources(&self, _: &Context<'_>) -> Vec<WatchedResource> {
        let (resource, effect) = (self.resource.clone(), ChangeEffect::Object(String::new()));
        vec![WatchedResource { cluster: None, resource, detail: WatchDetail::Metadata, effect }]
    }
    fn home_namespaces<'a>(
        &'a self,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Option<HashSet<String>>, ApiError>> {
        Box::pin(async move {
            // A project that has no namespace yet gets one that is not known now.
            Ok(ProjectHome::enter(context).await?.namespace.map(|home| HashSet::from([home])))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_new_secret_is_created_in_the_namespace_of_the_project_of_the_path_and_of_no_other() {
        let home = ProjectHome { project: "c-1:p-1".to_owned(), namespace: Some("p-1".to_owned()) };
        let secret = json!({"metadata": {"name": "x", "namespace": "p-2"}, "projectId": "c-1:p-1"});
        let stored = with_namespace(secret, &home).unwrap();
        assert_eq!(stored, json!({"metadata": {"name": "x", "namespace": "p-1"}}));
        let other = json!({"metadata": {"name": "x"}, "projectId": "c-2:p-1"});
        assert_eq!(with_namespace(other, &home).unwrap_err().code, "InvalidReference");
        let early = ProjectHome { namespace: None, ..home };
        let secret = json!({"metadata": {"name": "x"}});
        assert_eq!(with_namespace(secret, &early).unwrap_err().code, "InvalidState");
    }
}
