//! The priority level of the server's own controllers: users who flood the API do not delay them.

use anyhow::Context;
use feature_kit::controller::GROUP_CONTROLLERS;
use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

/// Between Kubernetes' own controllers and the service accounts of `kube-system`.
const PRECEDENCE: i32 = 850;

/// Adds the FlowSchema of the controllers when there is none. One that an administrator changed
/// stays.
pub async fn install(client: &Client) -> anyhow::Result<()> {
    let schema: FlowSchema = serde_json::from_value(json!({
        "metadata": {"name": "drover-controllers"},
        "spec": {
            "priorityLevelConfiguration": {"name": "workload-high"},
            "matchingPrecedence": PRECEDENCE,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{
                "subjects": [{"kind": "Group", "group": {"name": GROUP_CONTROLLERS}}],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                    "clusterScope": true, "namespaces": ["*"],
                }],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }],
        },
    }))
    .context("the FlowSchema of the controllers is written here")?;
    match Api::<FlowSchema>::all(client.clone()).create(&PostParams::default(), &schema).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).context("cannot give the controllers their priority"),
        Ok(_) => Ok(()),
    }
}
