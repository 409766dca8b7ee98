//! Flags and environment, shared by `drover-agent` and `drover agent`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The command, and how to log.
#[derive(Args, Clone, Debug)]
pub struct AgentArgs {
    /// Default: `cluster`, or `node` when `CATTLE_CLUSTER=false`.
    #[command(subcommand)]
    pub command: Option<AgentCommand>,
    #[command(flatten)]
    pub log: LogArgs,
}

/// What the agent is for, each with its flags.
#[derive(Subcommand, Clone, Debug)]
pub enum AgentCommand {
    /// Connect this cluster to a server, through a tunnel that this side opens.
    Cluster(ClusterArgs),
    /// Prepare and watch this node for a server.
    Node(NodeArgs),
    /// Report whether the agent in this container is connected: the startup probe of its pod.
    Probe,
}

impl AgentCommand {
    /// The command of a container without arguments, as in older manifests.
    pub(crate) fn from_environment() -> Self {
        #[derive(Parser)]
        struct Environment {
            #[command(flatten)]
            cluster: ClusterArgs,
        }
        if std::env::var("CATTLE_CLUSTER").is_ok_and(|value| value == "false") {
            return Self::Node(NodeArgs::default());
        }
        Self::Cluster(Environment::parse_from(["drover-agent"]).cluster)
    }
}

/// Flags of the agent of a cluster.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    /// Reach this cluster's API with a kubeconfig instead of the pod's service account.
    #[arg(long, value_name = "FILE", env = "DROVER_AGENT_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
}

/// Flags of the agent of a node.
#[derive(Args, Clone, Debug, Default)]
pub struct NodeArgs {
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The server, and how the agent registers with it.
#[derive(Args, Clone, Default)]
pub struct ServerArgs {
    /// Address of the server, as https://host[:port]. Default: the file `url` of the credentials
    /// directory.
    #[arg(long, value_name = "URL", env = "CATTLE_SERVER")]
    pub server: Option<String>,
    /// Registration token, needed to register. Default: the file `token` of the credentials
    /// directory.
    #[arg(long, value_name = "TOKEN", env = "CATTLE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// SHA-256 of the server's CA, in hex. Without it the system's CAs are trusted.
    #[arg(long, value_name = "SHA256", env = "CATTLE_CA_CHECKSUM")]
    pub ca_checksum: Option<String>,
}

impl std::fmt::Debug for ServerArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerArgs")
            .field("server", &self.server)
            .field("token", &self.token.as_ref().map(|_| "[redacted]"))
            .field("ca_checksum", &self.ca_checksum)
            .finish()
    }
}

/// What is logged, and how.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// How log lines are written to standard error.
    #[arg(long, value_enum, default_value_t, env = "DROVER_LOG_FORMAT", global = true)]
    pub log_format: LogFormat,
    /// Filter of log lines, such as `info` or `debug,h2=warn`.
    #[arg(long, default_value = "info", env = "DROVER_LOG", global = true)]
    pub log: String,
}

/// Encodings of log lines.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}
