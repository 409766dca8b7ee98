//! `drover cluster pod-security` and `drover project pod-security`.

use serde_json::{Value, json};

use crate::api::{self, Api, id, text};
use crate::args::PodSecurityChange;
use crate::commands::scope;
use crate::error::CliError;
use crate::output;

const OF_PROJECT: &str = "podSecurityAdmissionConfigurationTemplateName";
const BOUND: &str = "podSecurityPolicyTemplateId";
const OF_CLUSTER: &str = "defaultPodSecurityAdmissionConfigurationTemplateName";
const OF_CLUSTER_POLICY: &str = "defaultPodSecurityPolicyTemplateId";

/// Changes the template of a project, or prints its name.
///
/// # Errors
/// The project does not exist, the server refuses the change, or a request fails.
pub async fn of_project(
    project: &str,
    change: &PodSecurityChange,
    cluster: Option<&str>,
    server: Option<&str>,
) -> Result<(), CliError> {
    let api = Api::open(server)?;
    let project = scope::project(&api, cluster, project).await?;
    show_or_change(&api, "project", &project, [OF_PROJECT, BOUND], change).await
}

/// Changes the default of a cluster, or prints its name.
///
/// # Errors
/// The cluster does not exist, the server refuses the change, or a request fails.
pub async fn of_cluster(
    cluster: &str,
    change: &PodSecurityChange,
    server: Option<&str>,
) -> Result<(), CliError> {
    let api = Api::open(server)?;
    let cluster = api.resolve(&api::CLUSTER, cluster).await?;
    show_or_change(&api, "cluster", &cluster, [OF_CLUSTER, OF_CLUSTER_POLICY], change).await
}

/// `fields`: the one that is changed, and that of a pod security policy template, which holds
/// without it.
async fn show_or_change(
    api: &Api,
    kind: &str,
    object: &Value,
    fields: [&str; 2],
    change: &PodSecurityChange,
) -> Result<(), CliError> {
    let [field, policy] = fields;
    if change.template.is_none() && !change.none {
        return output::print(&match [text(object, field), text(object, policy)] {
            ["", ""] => "none".to_owned(),
            ["", policy] => format!("{policy} (pod security policy template)"),
            [template, _] => template.to_owned(),
        });
    }
    let what = format!("changing the Pod Security template of {kind} \"{}\"", text(object, "name"));
    let body = json!({field: change.template});
    api.update(&format!("{kind}s"), id(object), &body, &what).await.map(drop)
}
