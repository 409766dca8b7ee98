//! Workloads of one or several kinds, in the flattened representation, over the stores of their
//! objects.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use rest_view::store::DeleteOptions;
use rest_view::{ApiError, ChangeEffect, Context, Ids, Key, ListScope, Store, WatchedResource};
use serde_json::{Value, json};

use super::kind::WorkloadKind;
use super::types::Types;
use super::{creation, flat, pod};

/// Kinds that are listed at once for one list of workloads.
pub const KINDS_AT_ONCE: usize = 4;

/// Where the objects of kinds are.
pub type Stores = BTreeMap<WorkloadKind, Arc<dyn Store>>;

/// The objects of some kinds. Keys name the kind before the name: `deployment:web`.
pub struct Flattened {
    types: Arc<Types>,
    kinds: Vec<WorkloadKind>,
    stores: Stores,
}

impl Flattened {
    /// `stores`: at least those of `kinds`, and of Jobs where pods are among them.
    pub fn new(types: Arc<Types>, kinds: &[WorkloadKind], stores: Stores) -> Self {
        Self { types, kinds: kinds.to_vec(), stores }
    }

    fn store(&self, kind: WorkloadKind) -> Result<&dyn Store, ApiError> {
        self.stores.get(&kind).map(Arc::as_ref).ok_or_else(ApiError::no_such_id)
    }

    fn split(&self, key: &Key) -> Result<(WorkloadKind, Key), ApiError> {
        let (prefix, name) = key.name.split_once(':').ok_or_else(ApiError::no_such_id)?;
        let kind = WorkloadKind::of_prefix(prefix).filter(|kind| self.kinds.contains(kind));
        let key = Key { namespace: key.namespace.clone(), name: name.to_owned() };
        Ok((kind.ok_or_else(ApiError::no_such_id)?, key))
    }

    fn flat(&self, kind: WorkloadKind, stored: &Value) -> Value {
        let mut flat = flat::get(&self.types, kind, stored);
        // Items of a list do not say what they are.
        let resource = kind.resource();
        flat["apiVersion"] = resource.api_version().into();
        flat["kind"] = resource.kind.into();
        flat
    }

    async fn list_kind(
        &self,
        context: &Context<'_>,
        kind: WorkloadKind,
        scope: &ListScope,
    ) -> Result<Vec<Value>, ApiError> {
        let mut stored = self.store(kind)?.list(context, scope).await?;
        stored.retain(|object| kind == WorkloadKind::Pod || !pod::is_hidden(object));
        let mut all: Vec<Value> = stored.iter().map(|object| self.flat(kind, object)).collect();
        if kind == WorkloadKind::Pod {
            self.say_workloads(context, scope, &mut all).await?;
        }
        Ok(all)
    }

    /// Says of each pod which workload it is of.
    async fn say_workloads(
        &self,
        context: &Context<'_>,
        scope: &ListScope,
        pods: &mut [Value],
    ) -> Result<(), ApiError> {
        let is_of_job = |pod: &Value| matches!(pod::controller(pod), Some((WorkloadKind::Job, _)));
        let mut owners = HashMap::new();
        if pods.iter().any(is_of_job) {
            for job in self.store(WorkloadKind::Job)?.list(context, scope).await? {
                owners.extend(pod::controller(&job).map(|owner| (Key::of(&job), owner)));
            }
        }
        for pod in pods {
            let namespace = Key::of(pod).namespace;
            let owner_of = |job: &str| {
                let key = Key { namespace: namespace.clone(), name: job.to_owned() };
                owners.get(&key).cloned()
            };
            if let Some(id) = pod::workload_id(pod, owner_of) {
                pod["workloadId"] = id.into();
            }
        }
        Ok(())
    }

    async fn shown(
        &self,
        context: &Context<'_>,
        kind: WorkloadKind,
        stored: &Value,
    ) -> Result<Value, ApiError> {
        let mut all = [self.flat(kind, stored)];
        if kind == WorkloadKind::Pod {
            let scope = ListScope { namespace: Some(Key::of(stored).namespace) };
            self.say_workloads(context, &scope, &mut all).await?;
        }
        let [flat] = all;
        Ok(flat)
    }
}

impl Store for Flattened {
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(async move {
            let kinds = self.kinds.iter().copied();
            // Made before they are awaited: a closure in the stream would not be general enough.
            let lists: Vec<_> = kinds.map(|kind| self.list_kind(context, kind, scope)).collect();
            let lists: Vec<Vec<Value>> =
                futures::stream::iter(lists).buffered(KINDS_AT_ONCE).try_collect().await?;
            Ok(lists.into_iter().flatten().collect())
        })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let (kind, key) = self.split(key)?;
            let stored = self.store(kind)?.get(context, &key).await?;
            self.shown(context, kind, &stored).await
        })
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let mut flat = object;
            let kind = match self.kinds.as_slice() {
                [only] => *only,
                _ => creation::kind_of(&flat),
            };
            creation::complete(kind, &mut flat);
            let object = flat::put(&self.types, kind, &flat)?;
            let stored = self.store(kind)?.create(context, object).await?;
            self.shown(context, kind, &stored).await
        })
    }
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let (kind, key) = self.split(key)?;
            let object = flat::put(&self.types, kind, &object)?;
            let stored = self.store(kind)?.replace(context, &key, object).await?;
            self.shown(context, kind, &stored).await
        })
    }
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(async move {
            let (kind, key) = self.split(key)?;
            match self.store(kind)?.delete(context, &key, options).await? {
                Some(stored) => self.shown(context, kind, &stored).await.map(Some),
                None => Ok(None),
            }
        })
    }
    fn keys<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Key>, ApiError>> {
        Box::pin(async move {
            let mut keys = Vec::new();
            for kind in &self.kinds {
                let stored = self.store(*kind)?.list(context, scope).await?;
                let listed = stored.iter().filter(|object| self.is_listed(object));
                keys.extend(listed.map(|object| store_key(*kind, &Key::of(object))));
            }
            Ok(keys)
        })
    }
    fn watched_resources(&self, context: &Context<'_>) -> Vec<WatchedResource> {
        let mut all = Vec::new();
        for kind in &self.kinds {
            let Ok(store) = self.store(*kind) else { continue };
            for mut one in store.watched_resources(context) {
                if let ChangeEffect::Object(prefix) = &mut one.effect {
                    *prefix = prefix_of(*kind);
                }
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        all
    }
    fn home_namespaces<'a>(
        &'a self,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Option<HashSet<String>>, ApiError>> {
        match self.kinds.first().map(|kind| self.store(*kind)) {
            Some(Ok(store)) => store.home_namespaces(context),
            _ => Box::pin(async { Ok(None) }),
        }
    }
    fn object_from_key(&self, key: &Key) -> Value {
        let Ok((kind, key)) = self.split(key) else { return Value::Null };
        let resource = kind.resource();
        json!({
            "apiVersion": resource.api_version(), "kind": resource.kind,
            "metadata": {"namespace": key.namespace, "name": key.name},
        })
    }
    fn is_listed(&self, stored: &Value) -> bool {
        self.kinds.contains(&WorkloadKind::Pod) || !pod::is_hidden(stored)
    }
}

/// Ids of workloads.
pub enum WorkloadIds {
    /// Of one kind, which ids need not name.
    Of(WorkloadKind),
    /// Of any: ids name the kind.
    Any,
}

impl Ids for WorkloadIds {
    fn id(&self, stored: &Value) -> String {
        let kind = WorkloadKind::of_object(stored).unwrap_or(match self {
            Self::Of(kind) => *kind,
            Self::Any => WorkloadKind::Deployment,
        });
        kind.id_of(&Key::of(stored))
    }
    fn key(&self, id: &str) -> Option<Key> {
        let is_whole = id.split(':').count() == 3;
        let (kind, key) = match self {
            Self::Of(WorkloadKind::Pod) if is_whole => return None,
            Self::Of(own) => own.key_of(id).filter(|(kind, _)| kind == own)?,
            Self::Any if is_whole => WorkloadKind::Deployment.key_of(id)?,
            Self::Any => return None,
        };
        Some(store_key(kind, &key))
    }
}

/// What [`Flattened`] knows an object by.
pub fn store_key(kind: WorkloadKind, key: &Key) -> Key {
    let name = prefix_of(kind) + &key.name;
    Key { namespace: key.namespace.clone(), name }
}

fn prefix_of(kind: WorkloadKind) -> String {
    format!("{}:", kind.id().to_lowercase())
}
