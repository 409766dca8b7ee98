//! Nodes of a cluster.

use clap::{Args, Subcommand};

use super::{ClusterArg, ListArgs, ServerArgs};
use crate::completion;

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
    /// Keep new pods from nodes; those that run there stay
    Cordon(NodesArgs),
    /// Let new pods come to nodes again
    Uncordon(NodesArgs),
    /// Delete nodes from a cluster; their machines stay
    #[command(visible_alias = "remove")]
    Rm {
        #[command(flatten)]
        nodes: NodesArgs,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Args, Clone, Debug)]
pub struct NodeChangeArgs {
    /// Name
    #[arg(add = completion::nodes())]
    pub node: String,
    /// KEY=VALUE sets, KEY- removes
    #[arg(required = true, value_name = "CHANGE")]
    pub changes: Vec<String>,
    /// Replace values that are there
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub cluster: ClusterArg,
    #[command(flatten)]
    pub server: ServerArgs,
}

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
