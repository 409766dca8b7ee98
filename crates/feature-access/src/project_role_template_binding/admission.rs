//! A binding names an existing, unlocked role template for projects, is in the namespace of the
//! project that it names, and gives nothing that its writer does not have. What it says does not
//! change (`api_management::bindings`).

use std::collections::BTreeMap;
use std::sync::Arc;

use api_management::kind::Kind;
use api_management::role_template::CONTEXT_PROJECT;
use api_management::{Project, ProjectRoleTemplateBinding, RoleTemplate, ids};
use api_meta::status::{Cause, Status};
use authz::cover::{covers, describe};
use feature_kit::access::{cluster_group, owns_cluster, project_group};
use feature_kit::ownership::is_namespace_of_project;
use feature_kit::roles::promoted;
use feature_kit::{Admit, Review, grants};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use serde_json::Value;

use crate::graph::RoleGraph;
use crate::role_template::bindable::BindableTemplates;
use crate::role_template::rules;

const KIND: &str = <ProjectRoleTemplateBinding as Kind>::KIND;
const PLURAL: &str = <ProjectRoleTemplateBinding as Kind>::PLURAL;

/// See the module.
pub struct BindingRules {
    graph: Arc<RoleGraph>,
    templates: BindableTemplates,
    /// Reads projects and namespaces as they are stored.
    reader: Client,
}

impl BindingRules {
    /// `reader` reads role templates, projects and namespaces as they are stored.
    pub fn new(graph: Arc<RoleGraph>, reader: Client) -> Self {
        let templates = BindableTemplates::new(Api::<RoleTemplate>::all(reader.clone()));
        Self { graph, templates, reader }
    }

    async fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        let Some(object) = review.object else { return Ok(()) };
        if !grants::changes_grant(review, &[]) {
            return Ok(());
        }
        let role = object["roleTemplateName"].as_str().unwrap_or_default();
        let project = object["projectName"].as_str().unwrap_or_default();
        let Some((cluster, name)) = ids::split(project) else {
            return Err(invalid(review, project, "must be \"<cluster>:<project>\""));
        };
        // On an update both were checked when the role was given, and may have changed since.
        if review.old.is_none() {
            self.templates.check(review, KIND, role, CONTEXT_PROJECT).await?;
            self.check_project(review, cluster, name).await?;
        }
        self.may_give(review, (cluster, name), role)
    }

    /// A watch may not have brought yet that the project is being deleted. A namespace can be that
    /// of a project of this name in another cluster, or of an earlier one.
    async fn check_project(
        &self,
        review: &Review<'_>,
        cluster: &str,
        name: &str,
    ) -> Result<(), Status> {
        let id = format!("{cluster}:{name}");
        if name != review.namespace {
            let detail = "must be the project whose namespace the object is in";
            return Err(invalid(review, &id, detail));
        }
        // Nothing else can be the name of a project or cluster, nor part of a path.
        if !ids::is_cluster_id(cluster) || !ids::is_dns_label(name) {
            return Err(invalid(review, &id, "no such project"));
        }
        let projects: Api<Project> = Api::namespaced(self.reader.clone(), cluster);
        let namespaces: Api<Namespace> = Api::all(self.reader.clone());
        let (project, namespace) =
            tokio::join!(projects.get_opt(name), namespaces.get_metadata_opt(name));
        let project = project.map_err(|error| Status::internal(&error))?;
        let namespace = namespace.map_err(|error| Status::internal(&error))?;
        let Some(project) = project else {
            return Err(invalid(review, &id, "no such project"));
        };
        if project.metadata.deletion_timestamp.is_some() {
            return Err(invalid(review, &id, "the project is being deleted"));
        }
        let is_own = namespace.is_some_and(|namespace| {
            namespace.metadata.deletion_timestamp.is_none()
                && is_namespace_of_project(&namespace.metadata, &project)
        });
        match is_own {
            true => Ok(()),
            false => {
                let detail = "the namespace of the object is not that of this project; see the \
                              condition BackingNamespaceCreated of the project";
                Err(invalid(review, &id, detail))
            }
        }
    }

    /// Who has a role in the project or its cluster may give it, and who owns one of them may give
    /// every role.
    fn may_give(
        &self,
        review: &Review<'_>,
        (cluster, project): (&str, &str),
        role: &str,
    ) -> Result<(), Status> {
        let enough = [cluster_group(cluster, role), project_group(project, role)];
        let allowed = grants::is_administrator(review.groups)
            || grants::is_controller(review.groups)
            || owns_cluster(review.groups, cluster)
            || review.groups.iter().any(|group| enough.contains(group));
        if allowed {
            return Ok(());
        }
        let forbidden = |message: &str| {
            Err(Status::forbidden(api_management::GROUP, PLURAL, review.name, message))
        };
        let held = self.held(review.groups, project);
        if !held.values().any(|template| rules::is_project_owner(template, project)) {
            return forbidden(&format!(
                "user \"{}\" does not have the role \"{role}\" in project \"{cluster}:{project}\" and \
                 cannot give it",
                review.user
            ));
        }
        let given = self.graph.closure(role);
        let given = given.iter().filter_map(|role| self.graph.template(role));
        match covers(&beyond_project(held.into_values()), &beyond_project(given)) {
            Ok(()) => Ok(()),
            Err(missing) => forbidden(&format!(
                "the role \"{role}\" gives rights outside of the project that user \"{}\" does not \
                 have:\n{}",
                review.user,
                describe(&missing)
            )),
        }
    }

    /// The role templates that a user with these groups has in a project, by name.
    fn held(&self, groups: &[String], project: &str) -> BTreeMap<String, Arc<RoleTemplate>> {
        let prefix = project_group(project, "");
        let roles = groups.iter().filter_map(|group| group.strip_prefix(&prefix));
        roles.filter_map(|role| Some((role.to_owned(), self.graph.template(role)?))).collect()
    }
}

/// What roles in a project give outside of the project.
fn beyond_project(roles: impl IntoIterator<Item = Arc<RoleTemplate>>) -> Vec<authz::PolicyRule> {
    let given = roles
        .into_iter()
        .flat_map(|template| [promoted(&template), rules::shared_plane(&template)].concat());
    given.map(|rule| rules::to_authz(&rule)).collect()
}

fn invalid(review: &Review<'_>, project: &str, detail: &str) -> Status {
    let cause = Cause::invalid("projectName", &Value::from(project), detail);
    Status::invalid(api_management::GROUP, KIND, review.name, vec![cause])
}

impl Admit for BindingRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(review))
    }
}
