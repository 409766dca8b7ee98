//! Credentials in the REST view: users who may update an object can read them back, except
//! passwords. For other users the fields are absent.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use api_management::credentials::{self, Reference, Values};
use api_meta::object::ObjectExt;
use futures::future::BoxFuture;
use rest_view::{ApiError, Context, Descriptor, Key, KubeResource, ListScope, Store, store::may};
use serde_json::Value;

use super::CredentialStore;

/// The type with a store that reveals credentials, if its objects can have any.
pub fn descriptor(mut found: Descriptor, store: &Arc<CredentialStore>) -> Descriptor {
    let resource = found.store.indexed_resource().cloned();
    let resource = resource.or_else(|| {
        let table = api_management::types::table(&found.id)?;
        crate::table::resource_of(&table)
    });
    let Some(resource) = resource else { return found };
    if resource.group == api_management::GROUP && credentials::concerns(&resource.kind) {
        let (inner, store) = (found.store.clone(), store.clone());
        found.store = Arc::new(Revealing { inner, store, resource });
    }
    found
}

struct Revealing {
    inner: Arc<dyn Store>,
    store: Arc<CredentialStore>,
    resource: KubeResource,
}

/// The rights of the caller that were queried so far.
#[derive(Default)]
struct Rights {
    /// By namespace, whether the caller may update all its objects.
    by_namespace: HashMap<String, bool>,
}

impl Revealing {
    async fn may_update(
        &self,
        context: &Context<'_>,
        rights: &mut Rights,
        key: &Key,
    ) -> Result<bool, ApiError> {
        if context.caller.is_anonymous() {
            return Ok(false);
        }
        let all = match rights.by_namespace.get(&key.namespace) {
            Some(all) => *all,
            None => {
                let any = Key { namespace: key.namespace.clone(), name: String::new() };
                let all = may(context, "update", &self.resource, &any).await?;
                rights.by_namespace.insert(key.namespace.clone(), all);
                all
            }
        };
        if all { Ok(true) } else { may(context, "update", &self.resource, key).await }
    }

    async fn reveal_all(
        &self,
        context: &Context<'_>,
        objects: &mut [Value],
    ) -> Result<(), ApiError> {
        let kind = self.resource.kind.as_str();
        let mut rights = Rights::default();
        for object in objects {
            let keys = credentials::keys(kind, object);
            if keys.is_empty() {
                continue;
            }
            let readable = keys.iter().any(|key| !Reference::is_password(key));
            let values =
                if readable && self.may_update(context, &mut rights, &Key::of(object)).await? {
                    let values = self.store.values(object.uid()).await;
                    values.map_err(|status| ApiError::server_error(status.message))?
                } else {
                    Values::new()
                };
            credentials::put_back(kind, object, &values, false);
        }
        Ok(())
    }
}

impl Store for Revealing {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.inner)
    }
    fn reveal<'a>(
        &'a self,
        context: &'a Context<'a>,
        objects: &'a mut [Value],
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(async move {
            self.inner.reveal(context, objects).await?;
            self.reveal_all(context, objects).await
        })
    }
    fn keys<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Key>, ApiError>> {
        self.inner.keys(context, scope)
    }
    fn is_listed(&self, stored: &Value) -> bool {
        self.inner.is_listed(stored)
    }
    fn object_from_key(&self, key: &Key) -> Value {
        self.inner.object_from_key(key)
    }
    fn home_namespaces<'a>(
        &'a self,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Option<HashSet<String>>, ApiError>> {
        self.inner.home_namespaces(context)
    }
}
