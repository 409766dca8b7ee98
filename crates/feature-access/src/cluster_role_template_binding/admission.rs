//! A binding names an existing, unlocked role template for clusters, and gives nothing that its
//! writer does not have. What it says does not change (`api_management::bindings`).

use api_management::RoleTemplate;
use api_management::role_template::{CLUSTER_OWNER, CONTEXT_CLUSTER};
use api_meta::status::{Cause, Status};
use feature_kit::access::cluster_group;
use feature_kit::{Admit, Review, grants};
use futures::future::BoxFuture;
use kube::Api;
use serde_json::Value;

/// See the module.
pub struct BindingRules {
    templates: Api<RoleTemplate>,
}

impl BindingRules {
    /// `templates` reads role templates as they are stored.
    pub fn new(templates: Api<RoleTemplate>) -> Self {
        Self { templates }
    }

    /// As it is stored: a watch may not have brought yet that it was deleted or locked.
    async fn template(&self, name: &str) -> Result<Option<RoleTemplate>, Status> {
        if name.is_empty() {
            return Ok(None);
        }
        self.templates.get_opt(name).await.map_err(|error| Status::internal(&error))
    }

    async fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        let Some(object) = review.object else { return Ok(()) };
        if !grants::changes_grant(review, &[]) {
            return Ok(());
        }
        let role = object["roleTemplateName"].as_str().unwrap_or_default();
        if review.old.is_some() {
            // The role was checked when it was given, and may have been locked since.
            return self.may_give(review, role);
        }
        let invalid = |detail: &str| {
            let cause = Cause::invalid("roleTemplateName", &Value::from(role), detail);
            let (group, kind) = (api_management::GROUP, "ClusterRoleTemplateBinding");
            Err(Status::invalid(group, kind, review.name, vec![cause]))
        };
        let Some(template) = self.template(role).await? else {
            return invalid("no such role template");
        };
        if template.context != CONTEXT_CLUSTER {
            return invalid("Cannot reference context [project] from [cluster] context");
        }
        if template.locked {
            return invalid("the role template is locked; it cannot be given to anybody new");
        }
        self.may_give(review, role)
    }

    /// Who has a role, or owns the cluster, may give it.
    fn may_give(&self, review: &Review<'_>, role: &str) -> Result<(), Status> {
        let cluster = review.namespace;
        let enough = [cluster_group(cluster, CLUSTER_OWNER), cluster_group(cluster, role)];
        let allowed = grants::is_administrator(review.groups)
            || grants::is_controller(review.groups)
            || review.groups.iter().any(|group| enough.contains(group));
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
