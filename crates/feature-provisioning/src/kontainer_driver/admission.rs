//! Rules of drivers that need other objects: no two have the same URL, and a driver that clusters
//! need is not deleted.

use std::sync::Arc;

use api_management::{Cluster, KontainerDriver};
use api_meta::status::Status;
use controller::{Reflector, Whole};
use feature_kit::unique::{Claims, UniqueName};
use feature_kit::{Admit, ManagementContext, Review, ReviewOperation};
use futures::future::BoxFuture;

/// No two drivers come from the same URL.
pub const URL: UniqueName<KontainerDriver> = UniqueName {
    what: "driver-url",
    controller: "driver-urls",
    field: "spec.url",
    name_of: |driver| &driver.spec.url,
};
/// Clusters that a refusal names.
const NAMED_MAX: usize = 3;

/// See the module.
pub struct DriverRules {
    urls: Claims<KontainerDriver>,
    clusters: Arc<Reflector<Whole<Cluster>>>,
}

impl DriverRules {
    /// The rules; URLs are claimed in the storage.
    pub fn new(context: &ManagementContext) -> Self {
        let client = context.clients.controller(&URL.identity());
        Self { urls: URL.claims(client), clusters: context.scope.reflectors.get() }
    }

    async fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        if review.operation == ReviewOperation::Delete {
            self.keep_used(review)?;
        }
        self.urls.admit(review).await
    }

    fn keep_used(&self, review: &Review<'_>) -> Result<(), Status> {
        if review.old.is_some_and(|old| old["spec"]["builtIn"] == true) {
            return Err(Status::not_allowed_because("the driver is part of Drover"));
        }
        let mut users = Vec::new();
        self.clusters.for_each(|_, cluster| {
            if cluster.driver_name() == Some(review.name) {
                users.push(cluster.display_name().to_owned());
            }
        });
        if users.is_empty() {
            return Ok(());
        }
        users.sort_unstable();
        let more = users.len().saturating_sub(NAMED_MAX);
        users.truncate(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text = format!(
            "clusters were made with the driver, and need it to be changed and removed: {}{more}",
            users.join(", ")
        );
        Err(Status::not_allowed_because(&text))
    }
}

impl Admit for DriverRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(review))
    }
}
