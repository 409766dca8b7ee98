//! Access to the objects that tokens are checked against.

use api_meta::object::ObjectExt;
use futures::future::BoxFuture;
use serde_json::Value;

/// Reads objects of the core group.
pub trait CoreObjects: Send + Sync + 'static {
    /// Reads the current object; `None` when it does not exist. `plural` names the resource;
    /// `namespace` is empty for nodes.
    fn get<'a>(
        &'a self,
        plural: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Option<Value>>;

    /// Whether the object exists with this uid, and is not terminating.
    fn is_alive<'a>(
        &'a self,
        plural: &'a str,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let found = self.get(plural, namespace, name).await;
            found.is_some_and(|object| object.uid() == uid && !object.is_terminating())
        })
    }
}
