//! Nodes of a cluster.

use std::time::Duration;

use clap::{ArgAction, Args, Subcommand};

use super::{ClusterArg, ListArgs, ServerArgs, duration};
use crate::completion;

/// Commands about nodes of a cluster.
#[derive(Clone, Debug, Subcommand)]
pub enum NodeCommand {
    /// List the nodes of a cluster
    #[command(visible_alias = "list")]
    Ls {
        #[command(flatten)]
        cluster: ClusterArg,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Set or remove labels of a node
    Label(NodeChangeArgs),
    /// Set or remove annotations of a node
    Annotate(NodeChangeArgs),
    /// Set or remove taints of a node: KEY=VALUE:EFFECT, KEY:EFFECT, KEY:EFFECT-, KEY-
    Taint(NodeChangeArgs),
    /// Mark nodes unschedulable; running pods stay
    Cordon(NodesArgs),
    /// Mark nodes schedulable again
    Uncordon(NodesArgs),
    /// Cordon nodes and evict their pods, one node after the other; ctrl-c stops it
    Drain(DrainArgs),
    /// Stop the drain of nodes; they stay cordoned
    StopDrain(NodesArgs),
    /// Delete nodes from a cluster; their machines stay
    #[command(visible_alias = "remove")]
    Rm {
        #[command(flatten)]
        nodes: NodesArgs,
        /// Do not prompt for confirmation
        #[arg(long, short)]
        yes: bool,
    },
}

/// A node, and the labels, annotations or taints to change.
#[derive(Args, Clone, Debug)]
pub struct NodeChangeArgs {
    /// Name
    #[arg(add = completion::nodes())]
    pub node: String,
    /// KEY=VALUE sets, KEY- removes
    #[arg(required = true, value_name = "CHANGE")]
    pub changes: Vec<String>,
    /// Replace existing values
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub cluster: ClusterArg,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Flags of `drover node drain`.
#[derive(Args, Clone, Debug)]
pub struct DrainArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// Also evict pods that no controller restarts on another node
    #[arg(long)]
    pub force: bool,
    /// Leave pods of DaemonSets; with "false" they block the drain
    #[arg(
        long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true,
        default_missing_value = "true", value_name = "BOOL"
    )]
    pub ignore_daemonsets: bool,
    /// Also evict pods with an emptyDir, whose data is lost
    #[arg(long)]
    pub delete_emptydir_data: bool,
    /// Seconds that each pod has to terminate; -1 is its own grace period
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub grace_period: Option<i64>,
    /// Give up after this long for each node, at most 3h; evicted pods are not restored
    #[arg(long, value_parser = duration, default_value = "2m", value_name = "TIME")]
    pub timeout: Duration,
    /// Start the drain and return; the server continues it
    #[arg(long)]
    pub no_wait: bool,
}

/// Nodes of one cluster.
#[derive(Args, Clone, Debug)]
pub struct NodesArgs {
    /// Names
    #[arg(required = true, value_name = "NODE", add = completion::nodes())]
    pub names: Vec<String>,
    #[command(flatten)]
    pub cluster: ClusterArg,
    #[command(flatten)]
    pub server: ServerArgs,
}
