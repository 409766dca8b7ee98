//! Objects of a Kubernetes resource in the namespaces of the project that the path is inside of.
//!
//! A namespace counts when the caller may see it and its annotation names the project. Objects in
//! other namespaces do not exist here, and none can be created there.

use std::collections::{BTreeSet, HashSet};

use api_management::keys;
use api_meta::object::ObjectExt;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use rest_view::store::DeleteOptions;
use rest_view::{
    ApiError, ChangeEffect, Context, Key, KubeResource, KubeStore, ListScope, MayChange, Store,
    WatchedResource,
};
use serde_json::Value;

use super::{Location, may_change, watched_resources, with_cluster_timeout};

/// Field that holds the project of an object while it is in the view. Never stored.
pub const PROJECT_ID: &str = "projectId";
/// A project with more namespaces is read by one list over the whole cluster, if the caller may do
/// that.
pub const NAMESPACES_ONE_BY_ONE_MAX: usize = 16;
/// Namespaces that are listed concurrently.
pub const NAMESPACES_AT_ONCE: usize = 8;

/// See the module.
#[derive(Clone, Debug)]
pub struct ProjectStore {
    kube: KubeStore,
    namespaces: KubeStore,
}

/// The project of a request, and a client of its cluster.
struct Entered {
    project: String,
    client: kube::Client,
}

impl Entered {
    async fn by(context: &Context<'_>) -> Result<Self, ApiError> {
        let location = Location::enter(context).await?;
        let client = location.client(context);
        Ok(Self { project: location.project.ok_or_else(ApiError::no_such_id)?, client })
    }
    fn is_home_of(&self, namespace: &Value) -> bool {
        namespace.annotation(keys::PROJECT_ID) == Some(self.project.as_str())
    }
    fn show(&self, mut object: Value) -> Value {
        object[PROJECT_ID] = self.project.clone().into();
        object
    }
}

impl ProjectStore {
    /// A store of the resource in the project of each request.
    pub fn new(resource: KubeResource) -> Self {
        let namespaces = KubeResource::new("", "v1", "namespaces", "Namespace", false);
        Self { kube: KubeStore::new(resource), namespaces: KubeStore::new(namespaces) }
    }

    /// The namespaces of the project, or only the requested one of them. `context` uses the client
    /// of the cluster.
    async fn namespaces(
        &self,
        context: &Context<'_>,
        entered: &Entered,
        scope: &ListScope,
    ) -> Result<BTreeSet<String>, ApiError> {
        let found = match &scope.namespace {
            None => self.namespaces.list(context, scope).await?,
            Some(name) => {
                let key = Key { name: name.clone(), ..Key::default() };
                match self.namespaces.get(context, &key).await {
                    Ok(namespace) => vec![namespace],
                    Err(error) if error.is_not_found() || error.is_forbidden() => Vec::new(),
                    Err(error) => return Err(error),
                }
            }
        };
        let own = found.iter().filter(|namespace| entered.is_home_of(namespace));
        Ok(own.map(|namespace| Key::of(namespace).name).collect())
    }

    async fn holds(
        &self,
        context: &Context<'_>,
        entered: &Entered,
        namespace: &str,
    ) -> Result<bool, ApiError> {
        let scope = ListScope { namespace: Some(namespace.to_owned()) };
        Ok(!self.namespaces(context, entered, &scope).await?.is_empty())
    }

    /// What is named in a namespace of another project does not exist in this one.
    async fn require(
        &self,
        context: &Context<'_>,
        entered: &Entered,
        key: &Key,
    ) -> Result<(), ApiError> {
        match self.holds(context, entered, &key.namespace).await? {
            true => Ok(()),
            false => Err(ApiError::no_such_id()),
        }
    }

    async fn list_all(
        &self,
        context: &Context<'_>,
        namespaces: BTreeSet<String>,
    ) -> Result<Vec<Value>, ApiError> {
        if namespaces.len() > NAMESPACES_ONE_BY_ONE_MAX && self.kube.can_see_all(context).await? {
            let mut objects = self.kube.list(context, &ListScope::default()).await?;
            objects.retain(|object| namespaces.contains(&Key::of(object).namespace));
            return Ok(objects);
        }
        let lists: Vec<Vec<Value>> = futures::stream::iter(namespaces)
            .map(|namespace| async move {
                let scope = ListScope { namespace: Some(namespace) };
                self.kube.list(context, &scope).await
            })
            .buffered(NAMESPACES_AT_ONCE)
            .try_collect()
            .await?;
        Ok(lists.into_iter().flatten().collect())
    }
}

fn without_project(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(PROJECT_ID);
    }
    object
}

impl Store for ProjectStore {
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(with_cluster_timeout(async move {
            let entered = Entered::by(context).await?;
            let context = context.through(&entered.client);
            let namespaces = self.namespaces(&context, &entered, scope).await?;
            let objects = self.list_all(&context, namespaces).await?;
            Ok(objects.into_iter().map(|object| entered.show(object)).collect())
        }))
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(with_cluster_timeout(async move {
            let entered = Entered::by(context).await?;
            let context = context.through(&entered.client);
            self.require(&context, &entered, key).await?;
            self.kube.get(&context, key).await.map(|object| entered.show(object))
        }))
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(with_cluster_timeout(async move {
            let entered = Entered::by(context).await?;
            let context = context.through(&entered.client);
            let namespace = Key::of(&object).namespace;
            if !self.holds(&context, &entered, &namespace).await? {
                let text = format!(
                    "namespace \"{namespace}\" is not one of project \"{}\" that you may see",
                    entered.project
                );
                return Err(ApiError::invalid_field("InvalidReference", "namespaceId", text));
            }
            let created = self.kube.create(&context, without_project(object)).await?;
            Ok(entered.show(created))
        }))
    }
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(with_cluster_timeout(async move {
            let entered = Entered::by(context).await?;
            let context = context.through(&entered.client);
            self.require(&context, &entered, key).await?;
            let replaced = self.kube.replace(&context, key, without_project(object)).await?;
            Ok(entered.show(replaced))
        }))
    }
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(with_cluster_timeout(async move {
            let entered = Entered::by(context).await?;
            let context = context.through(&entered.client);
            self.require(&context, &entered, key).await?;
            let left = self.kube.delete(&context, key, options).await?;
            Ok(left.map(|object| entered.show(object)))
        }))
    }
    fn may_change<'a>(
        &'a self,
        context: &'a Context<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<MayChange>, ApiError>> {
        Box::pin(may_change(&self.kube, context, keys))
    }
    fn watched_resources(&self, context: &Context<'_>) -> Vec<WatchedResource> {
        // The namespaces themselves say which project they belong to.
        let mut namespaces = watched_resources(context, self.namespaces.resource());
        for one in &mut namespaces {
            one.effect = ChangeEffect::Visibility;
        }
        let own = watched_resources(context, self.kube.resource()).pop();
        namespaces.into_iter().chain(own).collect()
    }
    fn home_namespaces<'a>(
        &'a self,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Option<HashSet<String>>, ApiError>> {
        Box::pin(with_cluster_timeout(async move {
            let entered = Entered::by(context).await?;
            let context = context.through(&entered.client);
            let home_namespaces =
                self.namespaces(&context, &entered, &ListScope::default()).await?;
            Ok(Some(home_namespaces.into_iter().collect()))
        }))
    }
}
