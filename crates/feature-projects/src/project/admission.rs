//! The System project of a cluster cannot be deleted by people: it holds what the cluster needs to
//! run. Quotas and limits have to be valid ([`super::quotas::validation`]). The template of its Pod
//! Security levels is the choice of whoever may bind one to projects of the cluster: owners of a
//! project cannot open what its cluster closes. A generated name is not that of a project of
//! another cluster: the namespace of a project has its name.

use std::sync::Arc;

use api_management::{
    Kind, NamespaceAssignment, PodSecurityPolicyTemplateProjectBinding, Project, keys,
};
use api_meta::object::ObjectExt;
use api_meta::status::Status;
use controller::{Reflector, Whole};
use feature_kit::rbac::rule;
use feature_kit::{Admit, ControllerIdentity, Review, ReviewOperation};
use futures::future::BoxFuture;
use kube::Client;
use serde_json::Value;

use super::quotas::validation::validate;
use crate::rights::{Question, is_allowed};

/// The field with the template of Pod Security levels.
const POD_SECURITY_FIELD: &str = "podSecurityAdmissionConfigurationTemplateName";

/// The identity of the rules, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let rules = vec![rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"])];
    ControllerIdentity::new("project-rules", rules)
}

/// See the module.
pub struct ProjectRules {
    /// Acts as [`identity()`].
    pub client: Client,
    /// Of all clusters.
    pub projects: Arc<Reflector<Whole<Project>>>,
    /// Of all clusters.
    pub assignments: Arc<Reflector<Whole<NamespaceAssignment>>>,
}

impl ProjectRules {
    async fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        check_deletion(review)?;
        let Some(project) = review.object else { return Ok(()) };
        self.check_generated_name(review, project)?;
        let causes = validate(project, review.old, self.namespaces(project));
        if !causes.is_empty() {
            return Err(Status::invalid(api_management::GROUP, Project::KIND, review.name, causes));
        }
        self.check_pod_security(review, project).await
    }

    /// Of 5,000 generated names two are likely the same. The API server generates another one.
    fn check_generated_name(&self, review: &Review<'_>, project: &Value) -> Result<(), Status> {
        let is_generated = !project.meta_str("generateName").is_empty();
        if review.operation != ReviewOperation::Create || !is_generated {
            return Ok(());
        }
        let name = project.name();
        let mut is_taken = false;
        self.projects.for_each(|key, _| is_taken |= key.name == name);
        if is_taken {
            return Err(Status::already_exists(api_management::GROUP, "projects", name));
        }
        Ok(())
    }

    async fn check_pod_security(&self, review: &Review<'_>, project: &Value) -> Result<(), Status> {
        let template = |project: &Value| {
            project["spec"][POD_SECURITY_FIELD].as_str().unwrap_or_default().to_owned()
        };
        let before = review.old.map(template).unwrap_or_default();
        if template(project) == before || !is_by_a_person(review) {
            return Ok(());
        }
        let question = Question {
            user: review.user,
            groups: review.groups,
            verb: "create",
            resource: PodSecurityPolicyTemplateProjectBinding::PLURAL,
            namespace: review.namespace,
            name: None,
        };
        match is_allowed(&self.client, &question).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let text = format!(
                    "you may not choose its {POD_SECURITY_FIELD}: the owners of the cluster choose the Pod \
                     Security levels of projects; that needs the right to create {}",
                    question.resource
                );
                Err(Status::forbidden(api_management::GROUP, Project::PLURAL, review.name, &text))
            }
            Err(error) => {
                let text = format!("cannot check who may choose Pod Security levels: {error}");
                Err(Status::unavailable(text))
            }
        }
    }

    /// How many namespaces the project has.
    fn namespaces(&self, project: &Value) -> i64 {
        let cluster = project["metadata"]["namespace"].as_str().unwrap_or_default();
        let uid = project["metadata"]["uid"].as_str().unwrap_or_default();
        let mut all = self.assignments.in_namespace(cluster);
        all.retain(|(_, it)| it.spec.assigned.as_ref().is_some_and(|it| it.project_uid == uid));
        i64::try_from(all.len()).unwrap_or(i64::MAX)
    }
}

fn is_by_a_person(review: &Review<'_>) -> bool {
    !review.user.starts_with("system:")
}

pub(crate) fn check_deletion(review: &Review<'_>) -> Result<(), Status> {
    let system = review.old.is_some_and(|old| old.label(keys::SYSTEM_PROJECT) == Some("true"));
    if review.operation != ReviewOperation::Delete || !system || !is_by_a_person(review) {
        return Ok(());
    }
    Err(Status::not_allowed_because("System Project cannot be deleted"))
}

impl Admit for ProjectRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(review))
    }
}
