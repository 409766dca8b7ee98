//! Objects of any type, and what runs in clusters.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::{ClusterArg, OutputArgs, OutputFormat, ProjectArg, ServerArgs, WaitArgs, duration};
use crate::commands::wait::Goal;
use crate::completion;

/// Flags of `drover inspect`.
#[derive(Args, Clone, Debug)]
pub struct InspectArgs {
    /// Type, such as cluster, project or roleTemplate
    #[arg(value_name = "TYPE", add = completion::types())]
    pub kind: String,
    /// Name or id; all objects of the type if omitted
    #[arg(value_name = "NAME|ID", add = completion::objects())]
    pub name: Option<String>,
    /// Format of the data on stdout [default: yaml, and a table of several]
    #[arg(short, long, value_name = "FORMAT", add = completion::formats())]
    pub output: Option<OutputFormat>,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Flags of `drover apply`.
#[derive(Args, Clone, Debug)]
pub struct ApplyArgs {
    /// YAML or JSON with one or many objects, "-" for stdin; may be given several times
    #[arg(
        short, long = "file", value_name = "FILE", required = true,
        value_hint = ValueHint::FilePath
    )]
    pub files: Vec<PathBuf>,
    /// Only show what would be created or changed
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `drover wait`.
#[derive(Args, Clone, Debug)]
pub struct WaitCommandArgs {
    /// Type, such as cluster or project
    #[arg(value_name = "TYPE", add = completion::types())]
    pub kind: String,
    /// Name or id
    #[arg(value_name = "NAME|ID", add = completion::objects())]
    pub name: String,
    /// FIELD=VALUE, condition=TYPE, condition=TYPE=STATUS, or deleted
    #[arg(long = "for", default_value = "state=active", value_name = "WHAT")]
    pub goal: Goal,
    /// Give up after this long
    #[arg(long, value_parser = duration, default_value = "5m", value_name = "TIME")]
    pub timeout: Duration,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Flags of `drover audit`.
#[derive(Args, Clone, Debug)]
pub struct AuditArgs {
    /// Only events of this cluster, by name or id; all that its owners may read
    #[arg(long, add = completion::clusters())]
    pub cluster: Option<String>,
    /// Only of this user, by login name or id
    #[arg(long)]
    pub user: Option<String>,
    /// Only of this kind, such as `login-refused`, `proxied`, or `api`
    #[arg(long)]
    pub event: Option<String>,
    /// Only with this verb, such as `delete`
    #[arg(long)]
    pub verb: Option<String>,
    /// Only with this status, such as `403` or `4xx`
    #[arg(long)]
    pub status: Option<String>,
    /// Only from this IP address
    #[arg(long)]
    pub address: Option<IpAddr>,
    /// Only newer than this, such as `1h`
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub since: Option<Duration>,
    /// At most this many, the newest
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub limit: usize,
    /// Print new events as they come; with `-o json`, one object per line
    #[arg(long, short)]
    pub follow: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `drover get`.
#[derive(Args, Clone, Debug)]
pub struct GetArgs {
    /// Type, such as pods, apps.deployments or example.io.widgets
    #[arg(value_name = "TYPE")]
    pub kind: String,
    #[command(flatten)]
    pub cluster: ClusterArg,
    /// In all clusters that you may see
    #[arg(long, short, conflicts_with = "cluster")]
    pub all_clusters: bool,
    /// In this namespace only
    #[arg(long, short, add = completion::namespaces())]
    pub namespace: Option<String>,
    /// Only those with these labels, such as `app=web`
    #[arg(long, short = 'l', value_name = "LABELS")]
    pub selector: Option<String>,
    /// Only those with this part in a field, such as `spec.nodeName=node-1`; repeatable
    #[arg(long, value_name = "FIELD=PART")]
    pub filter: Vec<String>,
    /// Sort by these fields, such as `-metadata.creationTimestamp`; `-` sorts from high to low
    #[arg(long, value_name = "FIELDS", allow_hyphen_values = true)]
    pub sort_by: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 500, value_name = "N")]
    pub limit: usize,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `drover search`.
#[derive(Args, Clone, Debug)]
pub struct SearchArgs {
    /// A part of the names
    #[arg(value_name = "TEXT")]
    pub text: String,
    #[command(flatten)]
    pub cluster: ClusterArg,
    /// Search these types in place of the usual ones, such as `secrets,example.io.widgets`
    #[arg(long, value_delimiter = ',', value_name = "TYPES")]
    pub types: Vec<String>,
    /// In this namespace only
    #[arg(long, short, add = completion::namespaces())]
    pub namespace: Option<String>,
    /// At most this many of each type
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub limit: usize,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `drover ps`.
#[derive(Args, Clone, Debug)]
pub struct PsArgs {
    #[command(flatten)]
    pub cluster: ClusterArg,
    /// Of all clusters, whatever the context selects
    #[arg(long, short)]
    pub all_clusters: bool,
    #[command(flatten)]
    pub project: ProjectArg,
    /// In this namespace only
    #[arg(long, short, add = completion::namespaces())]
    pub namespace: Option<String>,
    /// Show pods in place of their workloads
    #[arg(long)]
    pub pods: bool,
    /// Give up on a cluster after this long
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "TIME")]
    pub timeout: Duration,
    #[command(flatten)]
    pub output: OutputArgs,
}
