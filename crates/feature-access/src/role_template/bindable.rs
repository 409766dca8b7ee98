//! Which role templates a new binding may give.

use api_management::RoleTemplate;
use api_management::role_template::{CONTEXT_CLUSTER, CONTEXT_PROJECT};
use api_meta::status::{Cause, Status};
use feature_kit::Review;
use kube::Api;
use serde_json::Value;

/// Reads role templates as they are stored.
pub struct BindableTemplates {
    templates: Api<RoleTemplate>,
}

impl BindableTemplates {
    /// `templates` reads role templates as they are stored.
    pub fn new(templates: Api<RoleTemplate>) -> Self {
        Self { templates }
    }

    /// Checks that a new binding of `kind` may give the role template, in this context. A watch may
    /// not have brought yet that it was deleted or locked.
    ///
    /// # Errors
    /// 422: it does not exist, is locked, or has another context.
    pub async fn check(
        &self,
        review: &Review<'_>,
        kind: &str,
        role: &str,
        context: &str,
    ) -> Result<(), Status> {
        let invalid = |detail: &str| {
            let cause = Cause::invalid("roleTemplateName", &Value::from(role), detail);
            Err(Status::invalid(api_management::GROUP, kind, review.name, vec![cause]))
        };
        let Some(template) = self.read(role).await? else {
            return invalid("no such role template");
        };
        if template.context != context {
            let other = if context == CONTEXT_CLUSTER { CONTEXT_PROJECT } else { CONTEXT_CLUSTER };
            return invalid(&format!(
                "Cannot reference context [{other}] from [{context}] context"
            ));
        }
        if template.locked {
            return invalid("the role template is locked; it cannot be given to anybody new");
        }
        Ok(())
    }

    async fn read(&self, name: &str) -> Result<Option<RoleTemplate>, Status> {
        if name.is_empty() {
            return Ok(None);
        }
        self.templates.get_opt(name).await.map_err(|error| Status::internal(&error))
    }
}
