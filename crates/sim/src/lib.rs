//! Simulated clusters: the API server in its full profile, with simulated nodes and workloads.
//!
//! A cluster is a real API with real storage; only its machines are simulated. Deployments and
//! daemon sets get pods, pods get a node, an address and the phase Running, and nothing is
//! executed, with one exception: a pod of exactly the agent image runs as a real child process of
//! the simulator (see [`agent`]). Logs of pods, commands in them and their ports are simulated too
//! ([`kubelet`]). One process can have any number of clusters, each with its own address.
//!
//! Start reading at [`run`], then [`cluster::SimulatedCluster`] and [`simulation`].

pub mod access;
pub mod agent;
pub mod args;
pub mod authentication;
pub mod cluster;
mod kubelet;
pub mod provider;
pub mod simulation;

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use apiserver::aggregation::FrontProxy;
use apiserver::aggregation::delegation::COMMON_NAME;
use futures::{FutureExt, StreamExt, TryStreamExt};
use pki::{CertificateAuthority, CertificateFiles, ServingCertificate};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use args::{AGENT_IMAGE, SimArgs};

use crate::access::AdminToken;
use crate::cluster::{ClusterConfig, SimulatedCluster};
use crate::provider::Provider;

/// Names in the serving certificate of every simulated cluster.
const NAMES: &[&str] = &["localhost", "127.0.0.1", "::1", "kubernetes.default.svc"];

/// The token of the provider, in the folder.
const PROVIDER_TOKEN_FILE: &str = "provider.token";
/// Most clusters that are listed on start.
const SHOWN_MAX: usize = 10;
/// Clusters that are started concurrently.
const STARTS_AT_ONCE: usize = 8;

/// Runs the clusters until `shutdown`. Returns after the files of all were written and every server
/// has ended.
///
/// # Errors
/// A folder or an address cannot be used; the message says what to do about it.
pub async fn run(args: SimArgs, shutdown: CancellationToken) -> anyhow::Result<()> {
    std::fs::create_dir_all(&args.data_dir)
        .with_context(|| format!("cannot create the folder \"{}\"", args.data_dir.display()))?;
    let folder = args.data_dir.canonicalize()?;
    let now = SystemTime::now();
    let authority = pki::files::ensure_authority(
        &CertificateFiles::in_directory(&folder, "ca"),
        "drover-sim",
        now,
    )?;
    let (certificate, ca_pem) = serving(&args, &folder, &authority, now)?;
    let front_proxy = front_proxy(&folder, now)?;
    let agent = agent::AgentCommand::new(&args)?;
    let authentication = args.authentication.resolve()?;

    let (configured, shared) = (args.clone(), Arc::clone(&certificate));
    let own = folder.clone();
    let config_of = move |index: u32, nodes: u32| -> anyhow::Result<ClusterConfig> {
        let args = &configured;
        Ok(ClusterConfig {
            index,
            folder: own.clone(),
            listen: args.listen_of(index)?,
            nodes,
            pods: args.pods,
            history_revisions: args.history_revisions,
            built_in_plugins: args.built_in_plugins(),
            service_range: args.service_cluster_ip_range,
            controllers: args.controllers(),
            ca_pem: ca_pem.clone(),
            certificate: Arc::clone(&shared),
            authentication: authentication.clone(),
            agent: agent.clone(),
            front_proxy: front_proxy.clone(),
            audit: args.audit(index),
        })
    };
    let clusters = start_all(&args, &config_of).await?;
    let (end, ended) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let mut provider = None;
    if let Some(listen) = args.provider {
        let token = AdminToken::ensure(&folder.join(PROVIDER_TOKEN_FILE))?;
        let made = Provider::new(&token, args.clusters, config_of);
        let address = made.serve(listen, certificate, ended, &mut tasks).await?;
        announce_provider(address, &args.data_dir, &folder)?;
        provider = Some(made);
    }
    if let Some(first) = clusters.first() {
        let url = first.url();
        let urls: Vec<String> = clusters.iter().map(SimulatedCluster::url).collect();
        let words = announcement(&urls, args.nodes, &args.data_dir);
        // Standard output may be closed.
        let _ = std::io::stdout().lock().write_all(words.as_bytes());
        access::write(&folder.join("server.json"), &json!({"url": url}).to_string())?;
        tracing::info!(%url, clusters = clusters.len(), nodes = args.nodes, "simulating");
    }
    shutdown.cancelled().await;
    end.send_replace(true);
    if let Some(provider) = provider {
        provider.stop().await;
    }
    for cluster in clusters {
        cluster.stop().await;
    }
    while tasks.join_next().await.is_some() {}
    Ok(())
}

async fn start_all(
    args: &SimArgs,
    config_of: &impl Fn(u32, u32) -> anyhow::Result<ClusterConfig>,
) -> anyhow::Result<Vec<SimulatedCluster>> {
    let mut starting = Vec::new();
    for index in 0..args.clusters {
        let config = config_of(index, args.nodes)?;
        let start = async move {
            let started = SimulatedCluster::start(config).await;
            started.with_context(|| format!("cannot start simulated cluster {index}"))
        };
        starting.push(start.boxed());
    }
    futures::stream::iter(starting).buffered(STARTS_AT_ONCE).try_collect().await
}

/// Says where the provider is, to people and in a file.
fn announce_provider(address: SocketAddr, shown: &Path, folder: &Path) -> anyhow::Result<()> {
    let url = format!("https://{address}");
    let token = shown.join(PROVIDER_TOKEN_FILE);
    let words = format!("Provider of clusters: {url}, token in {}\n", token.display());
    // Standard output may be closed.
    let _ = std::io::stdout().lock().write_all(words.as_bytes());
    access::write(&folder.join("provider.json"), &json!({"url": url}).to_string())
}

/// The serving certificate of the clusters, and the authority that clients verify it with.
fn serving(
    args: &SimArgs,
    folder: &Path,
    authority: &CertificateAuthority,
    now: SystemTime,
) -> anyhow::Result<(Arc<ServingCertificate>, String)> {
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let files = CertificateFiles { certificate: certificate.clone(), key: key.clone() };
        let pem = std::fs::read_to_string(certificate)
            .with_context(|| format!("tls-cert: cannot read \"{}\"", certificate.display()))?;
        let certificate = ServingCertificate::load(files).with_context(|| {
            format!("tls-cert, tls-key: cannot use \"{}\"", certificate.display())
        })?;
        return Ok((certificate, pem));
    }
    let files = CertificateFiles::in_directory(folder, "serving");
    let mut names: Vec<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
    names.push(args.listen.ip().to_string());
    pki::files::ensure_serving(&files, authority, "drover-sim", &names, now)?;
    Ok((ServingCertificate::load(files)?, authority.certificate_pem().to_owned()))
}

/// The announcement on start: addresses of the clusters, kubeconfig files, and the next step.
fn announcement(urls: &[String], nodes: u32, folder: &Path) -> String {
    let file = |index: usize| folder.join(access::shared_file(index)).display().to_string();
    let clusters = if urls.len() == 1 { "cluster" } else { "clusters" };
    let mut words = format!(
        "Simulating {} {clusters} with {nodes} nodes each. Kubeconfigs of their administrators:\n",
        urls.len()
    );
    for (index, url) in urls.iter().enumerate().take(SHOWN_MAX) {
        words.push_str(&format!("  {url}  {}\n", file(index)));
    }
    if urls.len() > SHOWN_MAX {
        words.push_str(&format!("  … up to {}\n", file(urls.len() - 1)));
    }
    let first = file(0);
    words.push_str(&format!(
        "Next: kubectl --kubeconfig {first} get nodes\n      drover cluster import NAME \
         --kubeconfig {first}\n"
    ));
    words
}

/// The client certificate by which aggregated API servers trust the clusters; all clusters share
/// the authority.
fn front_proxy(folder: &Path, now: SystemTime) -> anyhow::Result<FrontProxy> {
    let files = CertificateFiles::in_directory(folder, "front-proxy-ca");
    let authority = pki::files::ensure_authority(&files, "drover-sim-front-proxy", now)?;
    let life = pki::authority::AUTHORITY_LIFE;
    let client = authority.issue_client(COMMON_NAME, None, life, now)?;
    Ok(FrontProxy {
        authority_pem: authority.certificate_pem().into(),
        certificate_pem: client.certificate_pem.into(),
        key_pem: client.key_pem.into(),
    })
}

#[cfg(test)]
mod tests;
