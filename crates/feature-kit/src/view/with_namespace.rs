//! Delays the reply to a create of a kind with a namespace of its own until that namespace exists,
//! so that clients can create objects in it at once.

use std::sync::Arc;
use std::time::Duration;

use api_management::cluster::BACKING_NAMESPACE_CREATED;
use api_management::{Condition, condition};
use controller::{Projection, Reflector};
use futures::future::BoxFuture;
use rest_view::{ApiError, Context, Descriptor, Key, Store};
use serde_json::Value;

use crate::context::ManagementContext;

/// Longest wait. Then the object is returned nevertheless: its condition shows what is missing.
const NAMESPACE_TIME_MAX: Duration = Duration::from_secs(5);

struct WithNamespace<P: Projection> {
    inner: Arc<dyn Store>,
    objects: Arc<Reflector<P>>,
    conditions: fn(&P::Projected) -> &[Condition],
}

/// Lets creates of the type wait until the `conditions` of the new object report its namespace.
pub fn with_namespace<P: Projection>(
    descriptor: Descriptor,
    context: &ManagementContext,
    conditions: fn(&P::Projected) -> &[Condition],
) -> Descriptor {
    let inner = descriptor.store.clone();
    let objects = context.scope.reflectors.get::<P>();
    descriptor.store(Arc::new(WithNamespace { inner, objects, conditions }))
}

impl<P: Projection> Store for WithNamespace<P> {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.inner)
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let created = self.inner.create(context, object).await?;
            let Key { namespace, name } = Key::of(&created);
            let key = controller::Key { namespace, name };
            let settled = self.objects.wait_for(|objects| {
                let object = objects.get(&key)?;
                condition::is_true((self.conditions)(&object), BACKING_NAMESPACE_CREATED)
                    .then_some(())
            });
            if tokio::time::timeout(NAMESPACE_TIME_MAX, settled).await.is_err() {
                tracing::warn!(name = key.name, "a new object has no namespace yet");
            }
            Ok(created)
        })
    }
}
