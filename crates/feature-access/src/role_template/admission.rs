//! A role template that is in use, or built in, cannot be deleted; inheritance has no loops; what a
//! role template gives only administrators change.
//!
//! Its rules hold in every cluster in which somebody has the role, and nobody but an administrator
//! has rights in all of them: whoever else could change it would give what they do not have, to
//! themselves first.

use std::sync::Arc;

use api_management::{ClusterRoleTemplateBinding, ProjectRoleTemplateBinding, RoleTemplate};
use api_meta::status::{Cause, Status};
use feature_kit::{Admit, Review, ReviewOperation, grants};
use futures::future::BoxFuture;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use crate::graph::RoleGraph;

/// Users named in a refusal; the rest is counted.
const NAMED_MAX: usize = 3;

/// Fields that only describe a role template.
const DESCRIPTIVE: [&str; 2] = ["displayName", "description"];

/// See the module.
pub struct TemplateRules {
    graph: Arc<RoleGraph>,
    templates: Api<RoleTemplate>,
    bindings: Api<ClusterRoleTemplateBinding>,
    in_projects: Api<ProjectRoleTemplateBinding>,
}

impl TemplateRules {
    /// `reader` reads role templates and their bindings as they are stored.
    pub fn new(graph: Arc<RoleGraph>, reader: Client) -> Self {
        let (templates, bindings) = (Api::all(reader.clone()), Api::all(reader.clone()));
        Self { graph, templates, bindings, in_projects: Api::all(reader) }
    }

    async fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        match review.operation {
            ReviewOperation::Delete => self.check_delete(review).await,
            ReviewOperation::Create | ReviewOperation::Update => {
                check_escalation(review)?;
                self.check_inheritance(review).await
            }
        }
    }

    async fn check_delete(&self, review: &Review<'_>) -> Result<(), Status> {
        if review.old.is_some_and(|old| old["builtin"] == true) {
            let message = "it is built in and cannot be deleted";
            return Err(Status::forbidden(
                api_management::GROUP,
                "roletemplates",
                review.name,
                message,
            ));
        }
        let users = self.users_of(review.name).await?;
        if users.is_empty() {
            return Ok(());
        }
        let named = users.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        let message = format!("it is used by {} objects, such as {named}", users.len());
        Err(Status::conflict(api_management::GROUP, "roletemplates", review.name, &message))
    }

    /// Bindings and role templates that use the role template. A watch may not have brought yet
    /// those that were stored just before, and a binding that is left alone would give the next
    /// role of that name.
    async fn users_of(&self, role: &str) -> Result<Vec<String>, Status> {
        let all = ListParams::default();
        let (templates, bindings, in_projects) = tokio::join!(
            self.templates.list(&all),
            self.bindings.list(&all),
            self.in_projects.list(&all)
        );
        let templates = templates.map_err(|error| Status::internal(&error))?;
        let bindings = bindings.map_err(|error| Status::internal(&error))?;
        let in_projects = in_projects.map_err(|error| Status::internal(&error))?;
        let inherits =
            |template: &&RoleTemplate| template.role_template_names.iter().any(|name| name == role);
        let gives = |binding: &&ClusterRoleTemplateBinding| binding.role_template_name == role;
        let name = |template: &RoleTemplate| format!("roletemplate \"{}\"", template.name_any());
        let key = |binding: &ClusterRoleTemplateBinding| {
            let namespace = binding.namespace().unwrap_or_default();
            format!("clusterroletemplatebinding \"{namespace}/{}\"", binding.name_any())
        };
        let inheriting = templates.items.iter().filter(inherits).map(name);
        let in_projects = in_projects.items.iter().filter(|it| it.role_template_name == role);
        let in_projects = in_projects.map(|binding| {
            let namespace = binding.namespace().unwrap_or_default();
            format!("projectroletemplatebinding \"{namespace}/{}\"", binding.name_any())
        });
        let in_clusters = bindings.items.iter().filter(gives).map(key);
        Ok(inheriting.chain(in_clusters).chain(in_projects).collect())
    }

    async fn is_stored(&self, role: &str) -> Result<bool, Status> {
        if role.is_empty() {
            return Ok(false);
        }
        let found = self.templates.get_metadata_opt(role).await;
        found.map(|found| found.is_some()).map_err(|error| Status::internal(&error))
    }

    async fn check_inheritance(&self, review: &Review<'_>) -> Result<(), Status> {
        let inherited = review.object.and_then(|object| object["roleTemplateNames"].as_array());
        for (index, role) in inherited.into_iter().flatten().enumerate() {
            let name = role.as_str().unwrap_or_default();
            let problem = if self.graph.closure(name).contains(review.name) {
                "would make a loop of inheritance"
            } else if !self.is_stored(name).await? {
                "no such role template"
            } else {
                continue;
            };
            let field = format!("roleTemplateNames[{index}]");
            let causes = vec![Cause::invalid(field, role, problem)];
            return Err(Status::invalid(
                api_management::GROUP,
                "RoleTemplate",
                review.name,
                causes,
            ));
        }
        Ok(())
    }
}

fn check_escalation(review: &Review<'_>) -> Result<(), Status> {
    if !grants::changes_grant(review, &DESCRIPTIVE) || grants::is_administrator(review.groups) {
        return Ok(());
    }
    let message = format!(
        "user \"{}\" is no administrator; only administrators change what a role template gives, \
         since it holds in every cluster: ask one of them",
        review.user
    );
    Err(Status::forbidden(api_management::GROUP, "roletemplates", review.name, &message))
}

impl Admit for TemplateRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(review))
    }
}
