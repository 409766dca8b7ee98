//! Objects of a Kubernetes resource in the cluster that the path is inside of.

use futures::future::BoxFuture;
use rest_view::store::DeleteOptions;
use rest_view::{
    ApiError, Context, Key, KubeResource, KubeStore, ListScope, MayChange, Store, WatchedResource,
};
use serde_json::Value;

use super::{Location, may_change, watched_resources, with_cluster_timeout};

/// See the module.
#[derive(Clone, Debug)]
pub struct ClusterStore {
    kube: KubeStore,
}

impl ClusterStore {
    /// A store of the resource in the cluster of each request.
    pub fn new(resource: KubeResource) -> Self {
        Self { kube: KubeStore::new(resource) }
    }
}

impl Store for ClusterStore {
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(with_cluster_timeout(async move {
            let client = Location::enter(context).await?.client(context);
            match self.kube.list(&context.through(&client), scope).await {
                // The cluster exists and does not serve the kind.
                Err(error) if error.is_not_found() => Ok(Vec::new()),
                other => other,
            }
        }))
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(with_cluster_timeout(async move {
            let client = Location::enter(context).await?.client(context);
            self.kube.get(&context.through(&client), key).await
        }))
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(with_cluster_timeout(async move {
            let client = Location::enter(context).await?.client(context);
            self.kube.create(&context.through(&client), object).await
        }))
    }
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(with_cluster_timeout(async move {
            let client = Location::enter(context).await?.client(context);
            self.kube.replace(&context.through(&client), key, object).await
        }))
    }
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(with_cluster_timeout(async move {
            let client = Location::enter(context).await?.client(context);
            self.kube.delete(&context.through(&client), key, options).await
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
        watched_resources(context, self.kube.resource())
    }
}
