//! The agent's objects for a cluster that the server itself may write to.

use api_management::Cluster;
use futures::future::BoxFuture;
use serde_json::Value;

/// Makes the objects of a cluster's agent.
pub trait AgentManifest: Send + Sync + 'static {
    /// The objects in the order in which they can be applied. They hold credentials.
    ///
    /// # Errors
    /// What is missing for now, for people.
    fn objects<'a>(&'a self, cluster: &'a Cluster) -> BoxFuture<'a, Result<Vec<Value>, String>>;
}
