//! `googleKubernetesEngine`: clusters of Google Kubernetes Engine (GKE).

mod api;
mod options;
mod order;

use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use driver_sdk::types::{
    ClusterInfo, IngressCapabilities, K8sCapabilities, LoadBalancerCapabilities,
};
use driver_sdk::{Capability, ClusterRequest, Driver, state};
use serde_json::json;

use self::api::{Gke, GkeCluster, Operation};
use self::options::{GkeChanges, GkeOptions};
use crate::cloud::{self, CloudError};

/// Its name among the drivers.
pub const NAME: &str = "googleKubernetesEngine";

/// A regional cluster with many nodes takes some 20 minutes.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(3600);
/// Google refuses a change while another is under way.
const BUSY: &str = "FAILED_PRECONDITION";
const EXISTS: &str = "ALREADY_EXISTS";
/// Label of the cluster at Google: which cluster of the manager it is.
const LABEL: &str = "drover-cluster";
/// Key of the metadata, as the driver of this name has always had it.
const NODE_POOL: &str = "nodePool";

/// Has no settings of its own.
#[derive(Clone, Copy, Debug)]
pub struct GoogleKubernetesEngine;

impl Driver for GoogleKubernetesEngine {
    type CreateOptions = GkeOptions;
    type UpdateOptions = GkeChanges;

    async fn create(
        &self,
        request: ClusterRequest<GkeOptions>,
        info: &mut ClusterInfo,
    ) -> Result<()> {
        let options = GkeOptions { name: request.name, ..request.options };
        let order = order::of(&options)?;
        // Name, place and credential are all that is needed to remove what comes next.
        state::store(info, &options)?;
        let gke = Gke::open(&options).await?;
        if let Some(found) = gke.cluster().await? {
            if !is_own(&found, &options) {
                bail!("the project has a cluster {} that is not of this manager", options.name);
            }
            if found.status == "ERROR" {
                println!("what an earlier attempt left is removed: {}", found.status_message);
                remove(&gke, &options).await?;
            }
        }
        match gke.create(order).await {
            Ok(ordered) => {
                println!("cluster {} is ordered", options.name);
                done(&gke, &ordered).await.context("the cluster is not made")?;
            }
            Err(error) if error.code() == EXISTS => println!("cluster {} exists", options.name),
            Err(error) => return Err(error).context("the cluster is not made"),
        }
        running(&gke).await?;
        Ok(())
    }

    async fn update(
        &self,
        request: ClusterRequest<GkeChanges>,
        info: &mut ClusterInfo,
    ) -> Result<()> {
        let mut options: GkeOptions = state::load(info)?;
        let GkeChanges { node_count, master_version, node_version, credential } = request.options;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(credential) = given(credential) {
            options.credential = credential;
        }
        state::store(info, &options)?;
        let gke = Gke::open(&options).await?;
        let found = running(&gke).await?;
        let pool = pool(&found, &options)?;
        if let Some(version) = given(master_version).filter(|new| *new != options.master_version) {
            println!("the control plane changes to {version}");
            let update = json!({"desiredMasterVersion": version});
            when_idle(&gke, || gke.update(update.clone())).await?;
            options.master_version = version;
            state::store(info, &options)?;
        }
        if let Some(version) = given(node_version).filter(|new| *new != options.node_version) {
            println!("the nodes change to {version}");
            let update = json!({"desiredNodeVersion": version, "desiredNodePoolId": pool});
            when_idle(&gke, || gke.update(update.clone())).await?;
            options.node_version = version;
            state::store(info, &options)?;
        }
        if let Some(count) = node_count.filter(|count| *count != options.node_count) {
            println!("the pool {pool} changes to {count} nodes in each zone");
            when_idle(&gke, || gke.set_size(&pool, count)).await?;
            options.node_count = count;
            state::store(info, &options)?;
        }
        running(&gke).await?;
        Ok(())
    }

    async fn post_check(&self, info: &mut ClusterInfo) -> Result<()> {
        let options: GkeOptions = state::load(info)?;
        let gke = Gke::open(&options).await?;
        let found = running(&gke).await?;
        info.metadata.insert(NODE_POOL.to_owned(), pool(&found, &options)?);
        let authority = &found.master_auth.cluster_ca_certificate;
        cloud::fill_by_token(info, &found.endpoint, authority, gke.token()).await
    }

    async fn remove(&self, info: &ClusterInfo) -> Result<()> {
        let Some(options) = state::load_if_present::<GkeOptions>(info)? else { return Ok(()) };
        remove(&Gke::open(&options).await?, &options).await
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![
            Capability::GetVersion,
            Capability::SetVersion,
            Capability::GetNodeCount,
            Capability::SetNodeCount,
        ]
    }

    async fn kubernetes_capabilities(&self, options: GkeOptions) -> Result<K8sCapabilities> {
        let ingress = IngressCapabilities {
            ingress_provider: "GCLB".to_owned(),
            custom_default_backend: true,
        };
        let has_ingress = options.enable_http_load_balancing.unwrap_or(true);
        Ok(K8sCapabilities {
            l4_load_balancer: Some(LoadBalancerCapabilities {
                enabled: true,
                provider: "GCLB".to_owned(),
                protocols_supported: vec!["TCP".to_owned(), "UDP".to_owned()],
                health_check_supported: true,
            }),
            ingress_controllers: has_ingress.then_some(ingress).into_iter().collect(),
            ..K8sCapabilities::default()
        })
    }

    async fn version(&self, info: &ClusterInfo) -> Result<String> {
        let found = Gke::open(&state::load(info)?).await?.cluster().await?;
        Ok(found.context("the cluster does not exist any more")?.current_master_version)
    }

    async fn set_version(&self, info: &ClusterInfo, version: String) -> Result<()> {
        let gke = Gke::open(&state::load(info)?).await?;
        let update = json!({"desiredMasterVersion": version});
        when_idle(&gke, || gke.update(update.clone())).await?;
        running(&gke).await.map(drop)
    }

    async fn node_count(&self, info: &ClusterInfo) -> Result<i64> {
        Ok(state::load::<GkeOptions>(info)?.node_count)
    }

    async fn set_node_count(&self, info: &ClusterInfo, count: i64) -> Result<()> {
        let options: GkeOptions = state::load(info)?;
        let gke = Gke::open(&options).await?;
        let pool = pool(&running(&gke).await?, &options)?;
        when_idle(&gke, || gke.set_size(&pool, count)).await?;
        running(&gke).await.map(drop)
    }
}

/// The pool whose nodes are counted: the one of the options, else the only one.
fn pool(found: &GkeCluster, options: &GkeOptions) -> Result<String> {
    let mut pools = found.node_pools.iter().map(|pool| pool.name.as_str());
    let own = match options.node_pool.as_str() {
        "" => order::DEFAULT_POOL,
        name => name,
    };
    let found = pools.clone().find(|name| *name == own).or_else(|| pools.next());
    found.map(str::to_owned).context("the cluster has no pool of nodes")
}

/// Waits until the cluster runs and Google does nothing with it.
async fn running(gke: &Gke) -> Result<GkeCluster> {
    let look = move || async move {
        let found = gke.cluster().await?.context("the cluster does not exist any more")?;
        Ok(match found.status.as_str() {
            "RUNNING" => ControlFlow::Break(found),
            "ERROR" => bail!("Google could not make the cluster: {}", found.status_message),
            "DEGRADED" => bail!("the cluster is degraded: {}", found.status_message),
            "STOPPING" => bail!("the cluster is being removed at Google"),
            status => ControlFlow::Continue(status.to_lowercase()),
        })
    };
    cloud::until("the cluster", CHANGE_TIME_MAX, look).await
}

/// Waits until Google has done what was ordered.
async fn done(gke: &Gke, ordered: &Operation) -> Result<()> {
    let look = move || async move {
        let found = gke.operation(&ordered.name).await?;
        Ok(match (found.status.as_str(), found.error) {
            ("DONE", None) => ControlFlow::Break(()),
            ("DONE", Some(error)) => bail!("Google could not do it: {}", error.message),
            (status, _) => ControlFlow::Continue(status.to_lowercase()),
        })
    };
    cloud::until(&ordered.name, CHANGE_TIME_MAX, look).await
}

/// Does something once Google does nothing else with the cluster, and waits until it is done.
async fn when_idle<F>(gke: &Gke, call: impl Fn() -> F + Sync) -> Result<()>
where
    F: Future<Output = Result<Operation, CloudError>>,
{
    let call = &call;
    let look = move || async move {
        match call().await {
            Ok(ordered) => Ok(ControlFlow::Break(ordered)),
            Err(error) if error.code() == BUSY => Ok(ControlFlow::Continue(error.to_string())),
            Err(error) => Err(error.into()),
        }
    };
    let ordered = cloud::until("the change", CHANGE_TIME_MAX, look).await?;
    done(gke, &ordered).await
}

/// Whether the manager made it, and not somebody else under the same name.
fn is_own(found: &GkeCluster, options: &GkeOptions) -> bool {
    found.resource_labels.get(LABEL).is_some_and(|label| *label == options.name.as_str())
}

async fn remove(gke: &Gke, options: &GkeOptions) -> Result<()> {
    let look = move || async move {
        match gke.cluster().await? {
            None => Ok(ControlFlow::Break(())),
            Some(found) if !is_own(&found, options) => {
                println!("cluster {} is not of this manager, and stays", options.name);
                Ok(ControlFlow::Break(()))
            }
            Some(found) if found.status == "STOPPING" => {
                Ok(ControlFlow::Continue("it is being removed".to_owned()))
            }
            Some(_) => match gke.delete().await {
                Ok(()) => Ok(ControlFlow::Continue("its removal is ordered".to_owned())),
                Err(error) if error.code() == BUSY => Ok(ControlFlow::Continue(error.to_string())),
                Err(error) => Err(error).context("the cluster is not removed"),
            },
        }
    };
    cloud::until("the cluster", CHANGE_TIME_MAX, look).await
}
