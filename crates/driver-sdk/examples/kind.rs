//! A driver for clusters on this machine, which `kind` makes in containers. It is the example of
//! `docs/guide/write-a-driver.md`.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use driver_sdk::types::ClusterInfo;
use driver_sdk::{Capability, ClusterRequest, Driver, Options, service_account, state};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

struct LocalClusters;

#[derive(Clone, Debug, Options)]
struct KindOptions {
    /// Image of the nodes, which has the version of Kubernetes
    #[flag(default = "kindest/node:v1.36.3")]
    node_image: String,
    /// Seconds to wait until the nodes are ready
    #[flag(default = 300)]
    wait_seconds: i64,
}

#[derive(Serialize, Deserialize)]
struct KindState {
    cluster: String,
}

impl Driver for LocalClusters {
    type CreateOptions = KindOptions;
    type UpdateOptions = ();

    async fn create(
        &self,
        request: ClusterRequest<KindOptions>,
        info: &mut ClusterInfo,
    ) -> Result<()> {
        // First what is needed to remove it: this is stored, whatever fails after it.
        state::store(info, &KindState { cluster: request.name.clone() })?;
        let clusters = kind(&["get", "clusters"]).await?;
        if !clusters.lines().any(|name| name == request.name) {
            let KindOptions { node_image, wait_seconds } = request.options;
            let wait = format!("{wait_seconds}s");
            let of_nodes = ["--image", &node_image, "--wait", &wait];
            kind(&[&["create", "cluster", "--name", &request.name][..], &of_nodes].concat())
                .await?;
        }
        Ok(())
    }

    async fn update(&self, _: ClusterRequest<()>, _: &mut ClusterInfo) -> Result<()> {
        // None of the options of a cluster can change.
        Ok(())
    }

    async fn post_check(&self, info: &mut ClusterInfo) -> Result<()> {
        let KindState { cluster } = state::load(info)?;
        let kubeconfig = kind(&["get", "kubeconfig", "--name", &cluster]).await?;
        service_account::fill_from_kubeconfig(info, &kubeconfig).await
    }

    async fn remove(&self, info: &ClusterInfo) -> Result<()> {
        let Some(KindState { cluster }) = state::load_if_present(info)? else { return Ok(()) };
        kind(&["delete", "cluster", "--name", &cluster]).await?;
        Ok(())
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![Capability::GetVersion]
    }

    async fn version(&self, info: &ClusterInfo) -> Result<String> {
        let client = service_account::connect(info).await?;
        Ok(client.apiserver_version().await?.git_version)
    }
}

/// Runs kind, and returns its output.
async fn kind(arguments: &[&str]) -> Result<String> {
    let output = Command::new("kind").args(arguments).output().await;
    let output = output.context("cannot start kind: is it installed?")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kind {}: {}", arguments.join(" "), said.trim());
    Ok(String::from_utf8(output.stdout)?)
}

fn main() -> ExitCode {
    driver_sdk::run(LocalClusters)
}
