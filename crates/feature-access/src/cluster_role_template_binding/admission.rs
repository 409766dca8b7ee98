//! A binding names an existing, unlocked role template for clusters, and gives nothing that its
//! writer does not have. What it says does not change (`api_management::bindings`).

use api_management::RoleTemplate;
use api_management::role_template::CONTEXT_CLUSTER;
use api_meta::status::Status;
use feature_kit::access::{cluster_group, owns_cluster};
use feature_kit::{Admit, Review, grants};
use futures::future::BoxFuture;
use kube::Api;

use crate::role_template::bindable::BindableTemplates;

/// See the module.
pub struct BindingRules {
    templates: BindableTemplates,
}

impl BindingRules {
    /// `templates` reads role templates as they are stored.
    pub fn new(templates: Api<RoleTemplate>) -> Self {
        Self { templates: BindableTemplates::new(templates) }
    }

    async fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        let Some(object) = review.object else { return Ok(()) };
        if !grants::changes_grant(review, &[]) {
            return Ok(());
        }
        let role = object["roleTemplateName"].as_str().unwrap_or_default();
        // On an update the role was checked when it was given, and may have been locked since.
        if review.old.is_none() {
            let kind = "ClusterRoleTemplateBinding";
            self.templates.check(review, kind, role, CONTEXT_CLUSTER).await?;
        }
        self.may_give(review, role)
    }

    /// Who has a role, or owns the cluster, may give it.
    fn may_give(&self, review: &Review<'_>, role: &str) -> Result<(), Status> {
        let cluster = review.namespace;
        let allowed = grants::is_administrator(review.groups)
            || grants::is_controller(review.groups)
            || owns_cluster(review.groups, cluster)
            || review.groups.contains(&cluster_group(cluster, role));
        if allowed {
            return Ok(());
        }
        let resource = "clusterroletemplatebindings";
        let message = format!(
            "user \"{}\" does not have the role \"{role}\" in cluster \"{cluster}\" and cannot \
             give it",
            review.user
        );
        Err(Status::forbidden(api_management::GROUP, resource, review.name, &message))
    }
}

impl Admit for BindingRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(review))
    }
}
