//! Objects that must exist from the start: default settings, roles, namespaces.

use controller::ensure::{self, Object};
use futures::future::BoxFuture;
use kube::{Api, Client};
use std::sync::Arc;

use controller::ReconcileError;

use crate::namespace::system_namespace;

/// What happens when the object already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedMode {
    /// It is not changed: users may have changed it.
    Create,
    /// The fields of the seed are restored: Drover owns them.
    Keep,
}

type Put = dyn Fn(Client) -> BoxFuture<'static, Result<bool, ReconcileError>> + Send + Sync;

/// One such object.
#[derive(Clone)]
pub struct Seed {
    /// Kind and name, for messages.
    pub what: String,
    /// A namespace, which must exist before rights in it and before other seeds.
    pub(crate) is_namespace: bool,
    put: Arc<Put>,
}

impl Seed {
    /// A cluster-scoped object.
    pub fn cluster_scoped<K: Object + 'static>(mode: SeedMode, object: K) -> Self {
        let name = object.meta().name.clone().unwrap_or_default();
        let what = format!("{} \"{name}\"", K::kind(&()).to_lowercase());
        let put = move |client: Client| -> BoxFuture<'static, _> {
            let object = object.clone();
            Box::pin(async move {
                let api = Api::<K>::all(client);
                match mode {
                    SeedMode::Create => ensure::created(&api, &object).await,
                    SeedMode::Keep => ensure::like(&api, &object).await,
                }
            })
        };
        Self { what, is_namespace: K::kind(&()) == "Namespace", put: Arc::new(put) }
    }

    /// A namespace for Drover's own data. An existing one of this name stays as it is.
    pub fn system_namespace(name: &str) -> Self {
        Self::cluster_scoped(SeedMode::Create, system_namespace(name))
    }

    /// Anything else, written by `put`, which must be idempotent and return whether it changed
    /// anything. `what`: kind and name, for messages.
    pub fn custom(
        what: String,
        put: impl Fn(Client) -> BoxFuture<'static, Result<bool, ReconcileError>> + Send + Sync + 'static,
    ) -> Self {
        Self { what, is_namespace: false, put: Arc::new(put) }
    }

    /// Writes the object. Idempotent. Returns whether anything changed.
    ///
    /// # Errors
    /// The API refused; the error names the object.
    pub async fn put(&self, client: &Client) -> Result<bool, ReconcileError> {
        (self.put)(client.clone()).await
    }
}
