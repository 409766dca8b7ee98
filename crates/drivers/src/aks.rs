//! `azureKubernetesService`: clusters of Azure Kubernetes Service (AKS).

mod api;
mod options;
mod order;

use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use driver_sdk::types::{ClusterInfo, K8sCapabilities, LoadBalancerCapabilities};
use driver_sdk::{Capability, ClusterRequest, Driver, service_account, state};
use reqwest::StatusCode;
use serde_json::{Value, json};

use self::api::{Arm, ResourcePath};
use self::options::{AksChanges, AksOptions};
use crate::cloud::{self, CloudError};

/// Its name among the drivers.
pub const NAME: &str = "azureKubernetesService";

/// Many nodes take some 20 minutes, and a new version an hour.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(2 * 3600);
/// Tag of what was made for a cluster: which cluster of the manager it is.
const TAG: &str = "drover-cluster";

/// Has no settings of its own.
#[derive(Clone, Copy, Debug)]
pub struct AzureKubernetesService;

impl Driver for AzureKubernetesService {
    type CreateOptions = AksOptions;
    type UpdateOptions = AksChanges;

    async fn create(
        &self,
        request: ClusterRequest<AksOptions>,
        info: &mut ClusterInfo,
    ) -> Result<()> {
        let options = AksOptions { name: request.name, ..request.options };
        order::of(&options, None)?;
        // Name, place and secret are all that is needed to remove what comes next.
        state::store(info, &options)?;
        let arm = Arm::open(&options).await?;
        if let Some(found) = cluster(&arm, &options).await? {
            let (name, group) = (&options.name, &options.resource_group);
            ensure!(
                found["tags"][TAG] == name.as_str(),
                "the resource group {group} has a cluster {name} that is not of this manager"
            );
        }
        make_group(&arm, &options).await?;
        apply(&arm, &options).await.context("the cluster is not made")
    }

    async fn update(
        &self,
        request: ClusterRequest<AksChanges>,
        info: &mut ClusterInfo,
    ) -> Result<()> {
        let mut options: AksOptions = state::load(info)?;
        request.options.apply(&mut options);
        state::store(info, &options)?;
        apply(&Arm::open(&options).await?, &options).await
    }

    async fn post_check(&self, info: &mut ClusterInfo) -> Result<()> {
        let options: AksOptions = state::load(info)?;
        let arm = Arm::open(&options).await?;
        let path = ResourcePath::cluster(&options).child("listClusterAdminCredential");
        let found: Value = arm.post(&path).await.context("no credential of the cluster")?;
        let encoded = found["kubeconfigs"][0]["value"].as_str();
        let encoded = encoded.context("Azure gave no kubeconfig of the cluster")?;
        let kubeconfig = BASE64_STANDARD.decode(encoded).context("the kubeconfig is no base64")?;
        let kubeconfig = String::from_utf8(kubeconfig).context("the kubeconfig is no text")?;
        service_account::fill_from_kubeconfig(info, &kubeconfig).await
    }

    async fn remove(&self, info: &ClusterInfo) -> Result<()> {
        let Some(options) = state::load_if_present::<AksOptions>(info)? else { return Ok(()) };
        let arm = Arm::open(&options).await?;
        let path = ResourcePath::cluster(&options);
        remove_resource(&arm, &options, "the cluster", &path).await?;
        let workspace = own_workspace(&options);
        remove_resource(&arm, &options, "the workspace for logs", &workspace).await?;
        remove_group(&arm, &options).await
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![
            Capability::GetVersion,
            Capability::SetVersion,
            Capability::GetNodeCount,
            Capability::SetNodeCount,
        ]
    }

    async fn kubernetes_capabilities(&self, _: AksOptions) -> Result<K8sCapabilities> {
        Ok(K8sCapabilities {
            l4_load_balancer: Some(LoadBalancerCapabilities {
                enabled: true,
                provider: "Azure L4 LB".to_owned(),
                protocols_supported: vec!["TCP".to_owned(), "UDP".to_owned()],
                health_check_supported: true,
            }),
            ..K8sCapabilities::default()
        })
    }

    async fn version(&self, info: &ClusterInfo) -> Result<String> {
        let options: AksOptions = state::load(info)?;
        let found = cluster(&Arm::open(&options).await?, &options).await?;
        let found = found.context("the cluster does not exist any more")?;
        Ok(found["properties"]["kubernetesVersion"].as_str().unwrap_or_default().to_owned())
    }

    async fn set_version(&self, info: &ClusterInfo, version: String) -> Result<()> {
        let known: AksOptions = state::load(info)?;
        let options = AksOptions { kubernetes_version: version, ..known };
        apply(&Arm::open(&options).await?, &options).await
    }

    async fn node_count(&self, info: &ClusterInfo) -> Result<i64> {
        Ok(state::load::<AksOptions>(info)?.count)
    }

    async fn set_node_count(&self, info: &ClusterInfo, count: i64) -> Result<()> {
        let known: AksOptions = state::load(info)?;
        let options = AksOptions { count, ..known };
        apply(&Arm::open(&options).await?, &options).await
    }
}

async fn cluster(arm: &Arm, options: &AksOptions) -> Result<Option<Value>> {
    let found = arm.get(&ResourcePath::cluster(options)).await;
    found.context("cannot read the cluster")
}

/// Makes the cluster, or changes it, into what the options say; and waits until it is so.
async fn apply(arm: &Arm, options: &AksOptions) -> Result<()> {
    let workspace = match options.enable_monitoring.unwrap_or(true) {
        true => Some(workspace(arm, options).await?),
        false => None,
    };
    let order = order::of(options, workspace)?;
    put(arm, "the cluster", &ResourcePath::cluster(options), &order).await
}

/// The id of the workspace for logs: the one of the options, else one that is made.
async fn workspace(arm: &Arm, options: &AksOptions) -> Result<String> {
    if !options.log_analytics_workspace.is_empty() {
        let group = match options.log_analytics_workspace_resource_group.as_str() {
            "" => &options.resource_group,
            group => group,
        };
        let path = ResourcePath::workspace(group, &options.log_analytics_workspace);
        return Ok(path.id(options));
    }
    let path = own_workspace(options);
    let body = json!({
        "location": options.location,
        "tags": {TAG: options.name},
        "properties": {"sku": {"name": "PerGB2018"}},
    });
    put(arm, "the workspace for logs", &path, &body).await?;
    Ok(path.id(options))
}

fn own_workspace(options: &AksOptions) -> ResourcePath {
    ResourcePath::workspace(&options.resource_group, &format!("{}-logs", options.name))
}

async fn make_group(arm: &Arm, options: &AksOptions) -> Result<()> {
    let path = ResourcePath::group(&options.resource_group);
    let found: Option<Value> = arm.get(&path).await.context("cannot read the resource group")?;
    if found.is_none() {
        println!("the resource group {} is made", options.resource_group);
        let body = json!({"location": options.location, "tags": {TAG: options.name}});
        arm.put(&path, &body).await.context("the resource group is not made")?;
    }
    Ok(())
}

/// Removes the group, if it was made for this cluster and nothing else is in it.
async fn remove_group(arm: &Arm, options: &AksOptions) -> Result<()> {
    let path = ResourcePath::group(&options.resource_group);
    let found: Option<Value> = arm.get(&path).await.context("cannot read the resource group")?;
    if found.is_none_or(|found| found["tags"][TAG] != options.name.as_str()) {
        return Ok(());
    }
    let inside: Option<Value> = arm.get(&path.child("resources")).await?;
    let is_empty =
        inside.is_some_and(|inside| inside["value"].as_array().is_some_and(Vec::is_empty));
    if !is_empty {
        println!("the resource group {} stays: others use it", options.resource_group);
        return Ok(());
    }
    remove_resource(arm, options, "the resource group", &path).await
}

/// Makes or changes a resource once Azure does nothing else with it, and waits until it is done.
async fn put(arm: &Arm, what: &str, path: &ResourcePath, body: &Value) -> Result<()> {
    let order = move || async move {
        match arm.put(path, body).await {
            Ok(operation) => Ok(ControlFlow::Break(operation)),
            Err(error) if is_busy(&error) => Ok(ControlFlow::Continue(error.to_string())),
            Err(error) => Err(error.into()),
        }
    };
    let operation = cloud::until(what, CHANGE_TIME_MAX, order).await?;
    if let Some(operation) = operation.as_deref() {
        let look = move || async move {
            let change = arm.change(operation).await?;
            Ok(match change.status.as_str() {
                "Succeeded" => ControlFlow::Break(()),
                "Failed" | "Canceled" => {
                    let error = change.error.unwrap_or_default();
                    bail!("Azure could not do it: {} ({})", error.message, error.code)
                }
                status => ControlFlow::Continue(status.to_lowercase()),
            })
        };
        cloud::until(what, CHANGE_TIME_MAX, look).await?;
    }
    let look = move || async move {
        let found: Option<Value> = arm.get(path).await?;
        let found = found.with_context(|| format!("{what} does not exist any more"))?;
        Ok(match found["properties"]["provisioningState"].as_str() {
            Some("Succeeded") | None => ControlFlow::Break(()),
            Some(state @ ("Failed" | "Canceled")) => bail!("{what} is in the state {state}"),
            Some(state) => ControlFlow::Continue(state.to_lowercase()),
        })
    };
    cloud::until(what, CHANGE_TIME_MAX, look).await
}

/// Whether something else is under way with a resource.
fn is_busy(error: &CloudError) -> bool {
    error.has_status(StatusCode::CONFLICT)
}

async fn remove_resource(
    arm: &Arm,
    options: &AksOptions,
    what: &str,
    path: &ResourcePath,
) -> Result<()> {
    let look = move || async move {
        let found: Option<Value> = arm.get(path).await?;
        let Some(found) = found else { return Ok(ControlFlow::Break(())) };
        if found["tags"][TAG] != options.name.as_str() {
            println!("{what} is not of this manager, and stays");
            return Ok(ControlFlow::Break(()));
        }
        if found["properties"]["provisioningState"] == "Deleting" {
            return Ok(ControlFlow::Continue("it is being removed".to_owned()));
        }
        match arm.delete(path).await {
            Ok(()) => Ok(ControlFlow::Continue("its removal is ordered".to_owned())),
            Err(error) if is_busy(&error) => Ok(ControlFlow::Continue(error.to_string())),
            Err(error) => Err(error).with_context(|| format!("{what} is not removed")),
        }
    };
    cloud::until(what, CHANGE_TIME_MAX, look).await
}
