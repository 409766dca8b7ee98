//! The action `setpodsecuritypolicytemplate` of a project: binds a PodSecurityPolicyTemplate to it,
//! or none. Writes the binding with the rights of the caller.

use api_management::{PodSecurityPolicyTemplate, PodSecurityPolicyTemplateProjectBinding};
use futures::future::BoxFuture;
use kube::Api;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use rest_view::{ActionHandler, ActionRequest, ActionResponse, ApiError, Key};
use serde_json::Value;

pub const ACTION: &str = "setpodsecuritypolicytemplate";
pub const INPUT: &str = "setPodSecurityPolicyTemplateInput";
/// The field of the input, and of a project.
pub const TEMPLATE_FIELD: &str = "podSecurityPolicyTemplateId";

type TemplateBinding = PodSecurityPolicyTemplateProjectBinding;

/// Runs [`ACTION`].
pub struct SetTemplate;

impl SetTemplate {
    async fn set(request: ActionRequest<'_>) -> Result<ActionResponse, ApiError> {
        let project = request.object.ok_or_else(ApiError::no_such_id)?;
        let key = Key::of(project);
        let template = request.input.get(TEMPLATE_FIELD).and_then(Value::as_str);
        let template = template.filter(|name| !name.is_empty());
        let client = request.context.client;
        if let Some(name) = template {
            let templates: Api<PodSecurityPolicyTemplate> = Api::all(client.clone());
            if templates.get_metadata_opt(name).await?.is_none() {
                let text = format!("there is no pod security policy template \"{name}\"");
                return Err(ApiError::invalid_field("InvalidReference", TEMPLATE_FIELD, text));
            }
        }
        let bindings: Api<TemplateBinding> = Api::namespaced(client.clone(), &key.namespace);
        let target = format!("{}:{}", key.namespace, key.name);
        let mut present = bindings.list(&ListParams::default()).await?.items;
        present.retain(|binding| binding.target_project_name == target);
        let (same, others): (Vec<_>, Vec<_>) = present
            .into_iter()
            .partition(|it| Some(it.pod_security_policy_template_name.as_str()) == template);
        // Before the others go, so that the namespaces are not open in between.
        if let Some(template) = template.filter(|_| same.is_empty()) {
            let binding = TemplateBinding {
                metadata: ObjectMeta {
                    generate_name: Some(format!("{}-", key.name)),
                    namespace: Some(key.namespace),
                    ..ObjectMeta::default()
                },
                pod_security_policy_template_name: template.to_owned(),
                target_project_name: target,
                ..TemplateBinding::default()
            };
            bindings.create(&PostParams::default(), &binding).await?;
        }
        for other in others {
            let name = other.metadata.name.as_deref().unwrap_or_default();
            bindings.delete(name, &DeleteParams::default()).await?;
        }
        let mut shown = project.clone();
        shown["status"]["podSecurityPolicyTemplateName"] = template.into();
        Ok(ActionResponse::Object(shown))
    }
}

impl ActionHandler for SetTemplate {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(Self::set(request))
    }
}
