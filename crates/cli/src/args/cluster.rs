//! Clusters, and programs that are run against them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::{
    ClusterArg, ListArgs, OutputArgs, PodSecurityChange, ServerArgs, WaitArgs, duration, key_value,
};
use crate::completion;

/// Default time for which a removal is followed: two minutes beyond the server's own wait
/// ([`api_management::cluster::REMOVAL_WAIT_MAX`]), so that the command reports its result.
const REMOVAL_FOLLOWED: &str = "7m";

/// Commands about clusters.
#[derive(Clone, Debug, Subcommand)]
pub enum ClusterCommand {
    /// List clusters
    #[command(visible_alias = "list")]
    Ls(ListArgs),
    /// Show one cluster
    Get {
        /// Name or id
        #[arg(add = completion::clusters())]
        cluster: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Import an existing cluster: apply the agent to it and wait until it is active
    Import(ImportArgs),
    /// Create a cluster: with a driver at a provider, or for others to join, and then print the
    /// command that imports it
    Create(CreateClusterArgs),
    /// Change the options of a cluster that a driver made
    Update(UpdateClusterArgs),
    /// Print the provisioning log of a cluster that a driver makes
    Logs {
        /// Name or id
        #[arg(add = completion::clusters())]
        cluster: String,
        /// Go on until the driver is done
        #[arg(long, short)]
        follow: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Cancel what the driver of a cluster does, and begin nothing until it is resumed
    Pause {
        /// Name or id
        #[arg(add = completion::clusters())]
        cluster: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Let the driver of a paused cluster go on
    Resume {
        /// Name or id
        #[arg(add = completion::clusters())]
        cluster: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Print a kubeconfig with a token and the certificate authority inside, or merge it into yours
    Kubeconfig(KubeconfigArgs),
    /// Show or change whether the projects of a cluster are closed to each other
    Isolation {
        /// Name or id
        #[arg(add = completion::clusters())]
        cluster: String,
        /// What to change it to
        state: Option<Switch>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show or change which template gives the namespaces of a cluster their Pod Security levels,
    /// where their project has none
    PodSecurity {
        /// Name or id
        #[arg(add = completion::clusters())]
        cluster: String,
        #[command(flatten)]
        change: PodSecurityChange,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Open a shell with kubectl in a cluster
    Shell {
        /// Name or id
        #[arg(add = completion::clusters())]
        cluster: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Stop managing a cluster and leave its workloads unchanged
    Detach(DetachArgs),
    /// Remove a cluster, and the objects that Drover created in it
    #[command(visible_alias = "remove")]
    Rm(RemoveArgs),
}

/// Whether something is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Switch {
    On,
    Off,
}

/// Flags of `drover cluster create`.
#[derive(Args, Clone, Debug)]
#[command(after_help = DRIVER_FLAGS)]
pub struct CreateClusterArgs {
    /// Name for the cluster: lower-case letters, digits and '-'
    pub name: String,
    /// Label for the cluster; may be given several times
    #[arg(long = "label", short = 'l', value_name = "KEY=VALUE", value_parser = key_value)]
    pub labels: Vec<(String, String)>,
    /// Description shown with the cluster
    #[arg(long)]
    pub description: Option<String>,
    /// Cluster driver that makes the cluster; its options are further flags, which "drover driver
    /// options" lists
    #[arg(long, add = completion::drivers())]
    pub driver: Option<String>,
    #[command(flatten)]
    pub options: DriverOptionArgs,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `drover cluster update`.
#[derive(Args, Clone, Debug)]
#[command(after_help = DRIVER_FLAGS)]
pub struct UpdateClusterArgs {
    /// Name or id
    #[arg(add = completion::clusters())]
    pub cluster: String,
    #[command(flatten)]
    pub options: DriverOptionArgs,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// How the options of a driver are given.
#[derive(Args, Clone, Debug)]
pub struct DriverOptionArgs {
    /// Option of the driver. May be repeated; @FILE is the text of a file
    #[arg(long = "option", value_name = "NAME=VALUE", add = completion::driver_options())]
    pub options: Vec<String>,
    /// YAML file with options of the driver by name; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub options_file: Option<PathBuf>,
}

/// Where flags that no help can list are found.
const DRIVER_FLAGS: &str = "Options of the driver are flags as well, such as --node-count 3; \
                            \"drover driver options NAME\" lists those of a driver.";

/// Flags of `drover cluster kubeconfig`.
#[derive(Args, Clone, Debug)]
pub struct KubeconfigArgs {
    /// Name or id
    #[arg(add = completion::clusters())]
    pub cluster: String,
    /// With this command in place of a token: kubectl runs it to get short-lived tokens
    #[arg(long)]
    pub exec: bool,
    /// Add it to your kubeconfig, the first file of KUBECONFIG or ~/.kube/config, in place of
    /// printing it
    #[arg(long)]
    pub merge: bool,
    /// Name of the context there [default: the cluster's name]
    #[arg(long, requires = "merge", value_name = "NAME")]
    pub context_name: Option<String>,
    /// Also make it the context that kubectl uses
    #[arg(long, requires = "merge")]
    pub set_current: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments that a kubeconfig of `cluster kubeconfig --exec` passes to this command.
#[derive(Args, Clone, Debug)]
pub struct CredentialArgs {
    /// Id of the cluster
    #[arg(long)]
    pub cluster: String,
    /// How long a credential is valid
    #[arg(long, value_parser = duration, default_value = "1h", value_name = "TIME")]
    pub ttl: Duration,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Flags of `drover cluster import`.
#[derive(Args, Clone, Debug)]
pub struct ImportArgs {
    /// Name for the cluster: lower-case letters, digits and '-'
    pub name: String,
    /// Kubeconfig file that reaches the cluster, with rights to create cluster roles
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: PathBuf,
    /// Context in the kubeconfig [default: its current context]
    #[arg(long)]
    pub context: Option<String>,
    /// Label for the cluster; may be given several times
    #[arg(long = "label", short = 'l', value_name = "KEY=VALUE", value_parser = key_value)]
    pub labels: Vec<(String, String)>,
    /// Description shown with the cluster
    #[arg(long)]
    pub description: Option<String>,
    /// Continue with a cluster of this name whose import did not finish
    #[arg(long)]
    pub resume: bool,
    /// Give the entry of this name, which manages this very cluster, a new agent
    #[arg(long, conflicts_with_all = ["resume", "as_new"])]
    pub adopt: bool,
    /// Treat the cluster as a clone: import it although another entry, or server, manages one of
    /// its uid
    #[arg(long)]
    pub as_new: bool,
    /// Give up after this long, such as 90s, 5m or 1h
    #[arg(long, value_parser = duration, default_value = "5m")]
    pub timeout: Duration,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `drover cluster rm`.
#[derive(Args, Clone, Debug)]
pub struct RemoveArgs {
    /// Name or id
    #[arg(add = completion::clusters())]
    pub cluster: String,
    /// Do not prompt for confirmation
    #[arg(long, short)]
    pub yes: bool,
    /// Do not wait for a cluster that does not respond; what stays in it is reported
    #[arg(long, conflicts_with = "wait")]
    pub force: bool,
    /// Wait for a cluster that does not respond until the server ends the wait
    #[arg(long)]
    pub wait: bool,
    /// Stop following after this long; the removal continues on the server
    #[arg(long, value_parser = duration, default_value = REMOVAL_FOLLOWED)]
    pub timeout: Duration,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Flags of `drover cluster detach`.
#[derive(Args, Clone, Debug)]
pub struct DetachArgs {
    /// Name or id
    #[arg(add = completion::clusters())]
    pub cluster: String,
    /// Do not prompt for confirmation
    #[arg(long, short)]
    pub yes: bool,
    /// Do not wait for a cluster that does not respond; what stays in it is reported
    #[arg(long, conflicts_with = "wait")]
    pub force: bool,
    /// Wait for a cluster that does not respond until the server ends the wait
    #[arg(long)]
    pub wait: bool,
    /// Stop following after this long; detaching continues on the server
    #[arg(long, value_parser = duration, default_value = REMOVAL_FOLLOWED)]
    pub timeout: Duration,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Flags of commands that run kubectl, and its own arguments.
#[derive(Args, Clone, Debug)]
pub struct KubectlArgs {
    #[command(flatten)]
    pub cluster: ClusterArg,
    #[command(flatten)]
    pub server: ServerArgs,
    /// Arguments of kubectl
    #[arg(
        trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS",
        add = completion::kubectl()
    )]
    pub args: Vec<std::ffi::OsString>,
}
