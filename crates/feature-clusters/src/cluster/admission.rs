//! Rules of clusters that need other clusters: display names are unique, `local` cannot be deleted.
//!
//! That a display name is free says its claim in the storage ([`feature_kit::unique`]).

use api_management::{Cluster, ids};
use api_meta::status::Status;
use feature_kit::unique::{Claims, UniqueName};
use feature_kit::{Admit, ManagementContext, Review, ReviewOperation};
use futures::future::BoxFuture;

/// No two clusters are shown under the same name.
pub const DISPLAY_NAME: UniqueName<Cluster> = UniqueName {
    what: "cluster-display-name",
    controller: "cluster-display-names",
    field: "spec.displayName",
    name_of: Cluster::display_name,
};

/// See the module.
pub struct ClusterRules {
    display_names: Claims<Cluster>,
}

impl ClusterRules {
    /// The rules; display names are claimed in the storage.
    pub fn new(context: &ManagementContext) -> Self {
        let client = context.clients.controller(&DISPLAY_NAME.identity());
        Self { display_names: DISPLAY_NAME.claims(client) }
    }

    async fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        if review.operation == ReviewOperation::Delete {
            keep_local(review)?;
        }
        self.display_names.admit(review).await
    }
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
        Box::pin(self.check(review))
    }
}
