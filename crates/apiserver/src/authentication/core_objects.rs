//! Access to the objects that tokens are checked against.

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
}
