//! The command line.

mod access;
mod cluster;
mod driver;
pub mod driver_flags;
mod login;
mod node;
mod project;
mod resource;

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

pub use access::{
    AccessCommand, AccessDiffArgs, AccessRequest, AuthProviderCommand, GroupCommand, NewPassword,
    ProviderLoginArgs, RoleCommand, RoleHolder, RoleTarget, SettingsCommand, TokenCommand,
    UserCommand,
};
pub use cluster::{
    ClusterCommand, CreateClusterArgs, CredentialArgs, DetachArgs, DriverOptionArgs, ImportArgs,
    KubeconfigArgs, KubectlArgs, RemoveArgs, Switch, UpdateClusterArgs,
};
pub use driver::{ConformanceArgs, DriverAddArgs, DriverCommand, DriverFields, DriverUpdateArgs};
pub use login::{ContextCommand, LoginArgs, VersionArgs};
pub use node::{DrainArgs, NodeChangeArgs, NodeCommand, NodesArgs};
pub use project::{
    NamespaceCommand, PodSecurityChange, ProjectArg, ProjectCommand, ProjectMember, QuotaChanges,
};
pub use resource::{
    ApplyArgs, AuditArgs, GetArgs, InspectArgs, PsArgs, SearchArgs, WaitCommandArgs,
};

use crate::completion;
use crate::output::Template;

/// The commands; the binary flattens them into its own.
#[derive(Clone, Debug, Subcommand)]
pub enum CliArgs {
    /// Log in to a server and store the login
    Login(LoginArgs),
    /// End the login and forget it
    Logout(ServerArgs),
    /// Show who you are on the server: user, roles, and when the login expires
    Whoami(OutputArgs),
    /// Show the versions of this program and of the server
    Version(VersionArgs),
    /// Work with your logins: which server, cluster and project commands use
    #[command(subcommand)]
    Context(ContextCommand),
    /// Work with clusters
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Work with cluster drivers: programs that make clusters at a provider
    #[command(subcommand)]
    Driver(DriverCommand),
    /// Run kubectl against a cluster, with your login
    Kubectl(KubectlArgs),
    /// Show the logs of a pod or workload in a cluster: kubectl logs
    Logs(KubectlArgs),
    /// Run a command in a pod of a cluster: kubectl exec
    Exec(KubectlArgs),
    /// Show the events of a cluster: kubectl events
    Events(KubectlArgs),
    /// Show what runs in your clusters
    Ps(PsArgs),
    /// Show the objects of any type in one cluster or in all
    Get(GetArgs),
    /// Find objects by a part of their names, in all clusters
    Search(SearchArgs),
    /// Work with projects
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Work with namespaces of a cluster
    #[command(subcommand, visible_alias = "ns")]
    Namespace(NamespaceCommand),
    /// Work with nodes of a cluster
    #[command(subcommand)]
    Node(NodeCommand),
    /// Work with users
    #[command(subcommand)]
    User(UserCommand),
    /// Work with roles
    #[command(subcommand)]
    Role(RoleCommand),
    /// Explain who may do what, and why
    #[command(subcommand)]
    Access(AccessCommand),
    /// Work with identity providers, such as LDAP directories
    #[command(subcommand)]
    AuthProvider(AuthProviderCommand),
    /// Work with groups of directories
    #[command(subcommand)]
    Group(GroupCommand),
    /// Work with API tokens of your own
    #[command(subcommand)]
    Token(TokenCommand),
    /// Work with settings of the server
    #[command(subcommand, visible_alias = "setting")]
    Settings(SettingsCommand),
    /// Show the audit log: logins, refusals, requests to the server and to clusters
    Audit(AuditArgs),
    /// Show objects of any type as the server returns them
    Inspect(InspectArgs),
    /// Create or change objects as files describe them
    Apply(ApplyArgs),
    /// Wait until an object has a state or condition
    Wait(WaitCommandArgs),
    /// Print a short-lived credential for kubectl
    #[command(hide = true)]
    Credential(CredentialArgs),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
}

/// Shells with a completion script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Encodings of data on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum OutputFormat {
    #[default]
    Table,
    /// A table with more columns.
    Wide,
    Json,
    Yaml,
    /// The name of each object, as commands accept it.
    Name,
    /// The id of each object; also `--quiet`.
    Id,
    /// The JSON rendered by a template. It is parsed once and lives as long as the process.
    JsonPath(&'static Template),
}

impl OutputFormat {
    /// Accepted values, with their meaning.
    pub const OFFERED: [(&str, &str); 6] = [
        ("table", "aligned columns"),
        ("wide", "more columns"),
        ("json", "as the server returns it"),
        ("yaml", "as the server returns it"),
        ("name", "names only, one a line"),
        ("jsonpath=", "the JSON rendered by a template, such as {[*].name}"),
    ];

    /// Whether it is a table.
    pub fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
}

impl FromStr for OutputFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(template) = text.strip_prefix("jsonpath=") {
            return Ok(Self::JsonPath(Box::leak(Box::new(Template::parse(template)?))));
        }
        match text {
            "table" => Ok(Self::Table),
            "wide" => Ok(Self::Wide),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            "name" => Ok(Self::Name),
            _ => Err("must be table, wide, json, yaml, name or jsonpath=TEMPLATE".to_owned()),
        }
    }
}

/// Which server to use.
#[derive(Args, Clone, Debug, Default)]
pub struct ServerArgs {
    /// Login to use, by its name or the URL of its server [default: the current one]
    #[arg(long, env = "DROVER_SERVER", value_name = "NAME|URL", add = completion::logins())]
    pub server: Option<String>,
}

impl ServerArgs {
    /// Name or URL of the login to use; the current one if absent.
    pub fn name(&self) -> Option<&str> {
        self.server.as_deref()
    }
}

/// Which server, and how to show its response.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    /// Format of the data on stdout: table, wide, json, yaml, name or jsonpath=TEMPLATE
    #[arg(
        short, long, default_value = "table", hide_default_value = true, value_name = "FORMAT",
        add = completion::formats()
    )]
    pub output: OutputFormat,
}

/// How to show a list.
#[derive(Args, Clone, Debug, Default)]
pub struct ListArgs {
    #[command(flatten)]
    pub output: OutputArgs,
    /// Print ids only, one a line
    #[arg(short, long, conflicts_with = "output")]
    pub quiet: bool,
    /// Continue after the list, and print changes
    #[arg(short, long)]
    pub watch: bool,
}

impl ListArgs {
    /// The format of the list: ids alone with `--quiet`.
    pub fn format(&self) -> OutputFormat {
        if self.quiet { OutputFormat::Id } else { self.output.output }
    }
}

/// Which cluster; the context's if omitted.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArg {
    /// Name or id of the cluster [default: the context's]
    #[arg(long, env = "DROVER_CLUSTER", value_name = "CLUSTER", add = completion::clusters())]
    pub cluster: Option<String>,
}

impl ClusterArg {
    /// Name or id of the cluster; that of the context if absent.
    pub fn name(&self) -> Option<&str> {
        self.cluster.as_deref().filter(|name| !name.is_empty())
    }
}

/// Whether to wait for the operation that a command started.
#[derive(Args, Clone, Debug)]
pub struct WaitArgs {
    /// Wait until it is active
    #[arg(long)]
    pub wait: bool,
    /// Stop waiting after this long; the operation continues
    #[arg(long, value_parser = duration, default_value = "5m", value_name = "TIME")]
    pub timeout: Duration,
}

/// Value parser of a hidden argument, for a user that is named without `--user`.
fn user_without_flag(name: &str) -> Result<String, String> {
    Err(format!("the user is named with a flag: --user {name}"))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("must be KEY=VALUE".to_owned()),
    }
}

/// `90s`, `5m`, `12h`, `30d`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a whole number with s, m, h or d, such as 90s or 5m".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let seconds = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}
