//! Rules of clusters that need other clusters: display names are unique, `local` cannot be deleted.

use std::sync::Arc;

use api_management::{Cluster, ids};
use api_meta::status::{Cause, Status};
use controller::{Reflector, Reflectors, Whole};
use feature_kit::{Admit, ManagementContext, Operation, Review};
use futures::future::BoxFuture;
use serde_json::Value;

/// See the module.
pub struct ClusterRules {
    reflectors: Reflectors,
}

impl ClusterRules {
    pub fn new(context: &ManagementContext) -> Self {
        Self { reflectors: context.scope.reflectors.clone() }
    }

    fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        if review.operation == Operation::Delete {
            return keep_local(review);
        }
        let Some(object) = review.object else { return Ok(()) };
        let display_name = object["spec"]["displayName"].as_str().unwrap_or_default();
        let before = review.old.and_then(|old| old["spec"]["displayName"].as_str());
        if display_name.is_empty() || before == Some(display_name) {
            return Ok(());
        }
        let clusters: Arc<Reflector<Whole<Cluster>>> = self.reflectors.get();
        let mut taken_by = None;
        clusters.for_each(|key, cluster| {
            if cluster.display_name() == display_name && key.name != review.name {
                taken_by = Some(key.name.clone());
            }
        });
        match taken_by {
            None => Ok(()),
            Some(id) => Err(taken(review, display_name, &id)),
        }
    }
}

fn taken(review: &Review<'_>, display_name: &str, id: &str) -> Status {
    let mut cause = Cause::duplicate("spec.displayName", &Value::from(display_name));
    cause.message.push_str(&format!(": cluster \"{id}\" has this name; choose another"));
    Status::invalid(api_management::GROUP, "Cluster", review.name, vec![cause])
}

fn keep_local(review: &Review<'_>) -> Result<(), Status> {
    if review.name != ids::LOCAL_CLUSTER {
        return Ok(());
    }
    let message = "it is the management API itself and cannot be deleted";
    Err(Status::forbidden(api_management::GROUP, "clusters", review.name, message))
}

impl Admit for ClusterRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move { self.check(review) })
    }
}
