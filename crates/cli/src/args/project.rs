//! Projects and namespaces.

use clap::{Args, Subcommand};

use super::{
    ClusterArg, ListArgs, OutputArgs, RoleHolder, ServerArgs, WaitArgs, key_value,
    user_without_flag,
};
use crate::completion;

/// Which project, where one may be omitted.
#[derive(Args, Clone, Debug, Default)]
pub struct ProjectArg {
    /// Name or id of a project
    #[arg(long, value_name = "PROJECT", add = completion::projects())]
    pub project: Option<String>,
}

/// Commands about projects, their members and namespaces.
#[derive(Clone, Debug, Subcommand)]
pub enum ProjectCommand {
    /// List projects
    #[command(visible_alias = "list")]
    Ls {
        #[command(flatten)]
        cluster: ClusterArg,
        /// Of all clusters, whatever the context selects
        #[arg(long, short)]
        all_clusters: bool,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show one project
    Get {
        /// Name or id
        #[arg(add = completion::projects())]
        project: String,
        #[command(flatten)]
        cluster: ClusterArg,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Create a project
    Create {
        /// Name
        name: String,
        /// Description shown with it
        #[arg(long)]
        description: Option<String>,
        #[command(flatten)]
        cluster: ClusterArg,
        #[command(flatten)]
        wait: WaitArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Delete a project; its namespaces stay and belong to no project
    #[command(visible_alias = "remove")]
    Rm {
        /// Name or id
        #[arg(add = completion::projects())]
        project: String,
        /// Do not prompt for confirmation
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        cluster: ClusterArg,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show or change what the namespaces of a project may use
    Quota {
        /// Name or id
        #[arg(add = completion::projects())]
        project: String,
        #[command(flatten)]
        changes: QuotaChanges,
    },
    /// Show or change which template gives the namespaces of a project their Pod Security levels
    PodSecurity {
        /// Name or id
        #[arg(add = completion::projects())]
        project: String,
        #[command(flatten)]
        change: PodSecurityChange,
        #[command(flatten)]
        cluster: ClusterArg,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List who has which role in a project
    Members {
        /// Name or id
        #[arg(add = completion::projects())]
        project: String,
        #[command(flatten)]
        cluster: ClusterArg,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Give a user or group a role in a project
    AddMember {
        #[command(flatten)]
        member: ProjectMember,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Take a role in a project from a user or group
    RemoveMember {
        #[command(flatten)]
        member: ProjectMember,
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// Another template of Pod Security levels.
#[derive(Args, Clone, Debug, Default)]
pub struct PodSecurityChange {
    /// Name of the template, such as rancher-restricted
    #[arg(long, value_name = "NAME", conflicts_with = "none")]
    pub template: Option<String>,
    /// No template
    #[arg(long)]
    pub none: bool,
}

/// Changes of a quota; an empty amount removes the limit.
#[derive(Args, Clone, Debug, Default)]
pub struct QuotaChanges {
    /// What all namespaces together may have, such as pods=100 or limitsMemory=64Gi
    #[arg(long, value_name = "RESOURCE=AMOUNT", value_parser = key_value)]
    pub limit: Vec<(String, String)>,
    /// What a namespace gets that says nothing else
    #[arg(long, value_name = "RESOURCE=AMOUNT", value_parser = key_value)]
    pub namespace_default: Vec<(String, String)>,
    /// What a container gets that says nothing else, such as limitsCpu=500m
    #[arg(long, value_name = "RESOURCE=AMOUNT", value_parser = key_value)]
    pub container: Vec<(String, String)>,
    #[command(flatten)]
    pub cluster: ClusterArg,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Who has which role in which project.
#[derive(Args, Clone, Debug)]
pub struct ProjectMember {
    /// Name or id of the project
    #[arg(add = completion::projects())]
    pub project: String,
    #[command(flatten)]
    pub holder: RoleHolder,
    /// Name or id of the role template
    #[arg(long, default_value = "project-member", add = completion::roles())]
    pub role: String,
    #[arg(value_name = "USER", hide = true, value_parser = user_without_flag)]
    pub misplaced_user: Option<String>,
    #[command(flatten)]
    pub cluster: ClusterArg,
}

/// Commands about namespaces of a cluster.
#[derive(Clone, Debug, Subcommand)]
pub enum NamespaceCommand {
    /// List namespaces of a cluster with their projects
    #[command(visible_alias = "list")]
    Ls {
        #[command(flatten)]
        cluster: ClusterArg,
        #[command(flatten)]
        project: ProjectArg,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Create a namespace
    Create {
        /// Name
        name: String,
        #[command(flatten)]
        cluster: ClusterArg,
        #[command(flatten)]
        project: ProjectArg,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Move namespaces to another project of their cluster
    #[command(group = clap::ArgGroup::new("to").args(["project", "no_project"]).required(true))]
    Move {
        /// Names
        #[arg(required = true, add = completion::namespaces())]
        names: Vec<String>,
        #[command(flatten)]
        cluster: ClusterArg,
        #[command(flatten)]
        project: ProjectArg,
        /// Take them out of their project
        #[arg(long)]
        no_project: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Delete namespaces with their contents
    #[command(visible_alias = "remove")]
    Rm {
        /// Names
        #[arg(required = true, add = completion::namespaces())]
        names: Vec<String>,
        /// Do not prompt for confirmation
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        cluster: ClusterArg,
        #[command(flatten)]
        server: ServerArgs,
    },
}
