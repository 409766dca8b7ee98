//! Flags of `drover sim`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use apiserver::audit::AuditFlags;
use apiserver::built_in_plugins::{BuiltInPlugins, Switchable};
use clap::Args;
use kubernetes_api::assembly::Controllers;
use kubernetes_api::service_range::ServiceRange;

use crate::authentication::AuthenticationArgs;

/// The image that a server of this version requests by default, and that runs as a real process.
pub const AGENT_IMAGE: &str = concat!("drover-agent:", env!("CARGO_PKG_VERSION"));
/// Most clusters in one process.
pub const CLUSTERS_MAX: u32 = 2000;

/// Flags of `drover sim`.
#[derive(Args, Clone, Debug)]
pub struct SimArgs {
    /// Folder of everything that is stored between runs
    #[arg(long, env = "DROVER_SIM_DATA_DIR", default_value = "target/sim", value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Address and port of the first cluster; the next ones have the next ports. Port 0 picks them
    #[arg(
        long,
        env = "DROVER_SIM_LISTEN",
        default_value = "127.0.0.1:6443",
        value_name = "ADDR:PORT"
    )]
    pub listen: SocketAddr,
    /// Certificate that all clusters present, with its chain, instead of one that the simulator
    /// creates; the kubeconfigs trust it
    #[arg(long, visible_alias = "tls-cert-file", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert
    #[arg(
        long,
        visible_alias = "tls-private-key-file",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    pub tls_key: Option<PathBuf>,
    /// How many clusters
    #[arg(long, env = "DROVER_SIM_CLUSTERS", default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(CLUSTERS_MAX)))]
    pub clusters: u32,
    /// Also serve a provider that makes more clusters on request, for cluster drivers: an API at
    /// this address, whose token is in provider.token. They have the ports behind the others, and
    /// go with the simulator
    #[arg(long, env = "DROVER_SIM_PROVIDER", value_name = "ADDR:PORT")]
    pub provider: Option<SocketAddr>,
    /// Nodes of each cluster
    #[arg(long, env = "DROVER_SIM_NODES", default_value_t = 3, value_name = "N")]
    pub nodes: u32,
    /// Pods that each cluster starts with
    #[arg(long, env = "DROVER_SIM_PODS", default_value_t = 0, value_name = "N")]
    pub pods: u32,
    /// Pods of exactly this image run as real child processes
    #[arg(long, env = "DROVER_AGENT_IMAGE", default_value = AGENT_IMAGE, value_name = "REF")]
    pub agent_image: String,
    /// Program that is run for that image; this one with `agent` when absent
    #[arg(long, env = "DROVER_SIM_AGENT_BINARY", value_name = "FILE")]
    pub agent_binary: Option<PathBuf>,
    /// How many of the newest revisions each cluster's storage retains: few, to test how clients
    /// handle 410 Gone
    #[arg(long, env = "DROVER_SIM_HISTORY_REVISIONS", value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub history_revisions: Option<u64>,
    /// Leave workloads, namespaces and owned objects to a kube-controller-manager that you start
    #[arg(long, env = "DROVER_SIM_EXTERNAL_CONTROLLERS")]
    pub external_controllers: bool,
    /// IPv4 network of the addresses of Services. The range of existing data does not change
    #[arg(long, default_value_t, value_name = "NETWORK")]
    pub service_cluster_ip_range: ServiceRange,
    /// Admission plugins to disable, of those that are enabled by default
    #[arg(long, value_name = "PLUGIN,…", value_delimiter = ',')]
    pub disable_admission_plugins: Vec<Switchable>,
    /// Admission plugins to enable besides those that are enabled by default
    #[arg(long, value_name = "PLUGIN,…", value_delimiter = ',')]
    pub enable_admission_plugins: Vec<Switchable>,
    #[command(flatten)]
    pub authentication: AuthenticationArgs,
    /// Audit log of the first cluster; those of the other clusters have the suffixes `.1`, `.2` ….
    /// Without it nothing is recorded
    #[arg(long, env = "DROVER_SIM_AUDIT_LOG_PATH", value_name = "FILE")]
    pub audit_log_path: Option<PathBuf>,
    /// What the audit log records [default: metadata of everything but health checks]
    #[arg(long, env = "DROVER_SIM_AUDIT_POLICY_FILE", value_name = "FILE")]
    pub audit_policy_file: Option<PathBuf>,
    /// Size at which a new audit log is started [default: 100]
    #[arg(long, env = "DROVER_SIM_AUDIT_LOG_MAXSIZE", value_name = "MEGABYTES")]
    pub audit_log_maxsize: Option<u32>,
    /// Earlier audit logs to retain; 0 is all [default: 9]
    #[arg(long, env = "DROVER_SIM_AUDIT_LOG_MAXBACKUP", value_name = "N")]
    pub audit_log_maxbackup: Option<u32>,
    /// Age at which earlier audit logs are deleted; 0 is never [default: 30]
    #[arg(long, env = "DROVER_SIM_AUDIT_LOG_MAXAGE", value_name = "DAYS")]
    pub audit_log_maxage: Option<u32>,
}

impl SimArgs {
    /// Whether the clusters' controllers run inside or outside of the simulator.
    pub(crate) fn controllers(&self) -> Controllers {
        if self.external_controllers { Controllers::Outside } else { Controllers::Inside }
    }

    /// The admission plugins of the clusters. A plugin that is both enabled and disabled is
    /// enabled.
    pub(crate) fn built_in_plugins(&self) -> BuiltInPlugins {
        let disabled = self.disable_admission_plugins.iter();
        let left = disabled.fold(BuiltInPlugins::default(), |left, one| left.without(*one));
        self.enable_admission_plugins.iter().fold(left, |left, one| left.with(*one))
    }

    /// The audit log of a cluster.
    pub(crate) fn audit(&self, index: u32) -> AuditFlags {
        let of_cluster = |path: &PathBuf| match index {
            0 => path.clone(),
            index => PathBuf::from(format!("{}.{index}", path.display())),
        };
        AuditFlags {
            log_path: self.audit_log_path.as_ref().map(of_cluster),
            policy_file: self.audit_policy_file.clone(),
            log_maxsize: self.audit_log_maxsize,
            log_maxbackup: self.audit_log_maxbackup,
            log_maxage: self.audit_log_maxage,
        }
    }

    /// The address that a cluster listens on.
    pub(crate) fn listen_of(&self, index: u32) -> anyhow::Result<SocketAddr> {
        let mut address = self.listen;
        if address.port() != 0 {
            let port = u32::from(address.port()) + index;
            let port = u16::try_from(port).with_context(|| {
                format!("cluster {index} has no port above {}; use port 0", self.listen)
            })?;
            address.set_port(port);
        }
        Ok(address)
    }
}
