//! Objects that tokens are checked against.

use futures::future::BoxFuture;
use serde_json::Value;

/// Reads objects of the core group.
pub trait CoreObjects: Send + Sync + 'static {
    /// The object as it is now; `None` when there is none. `namespace` is empty for nodes.
    fn get<'a>(
        &'a self,
        plural: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Option<Value>>;
}
