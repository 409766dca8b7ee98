//! What can be typed.

mod access;
mod cluster;
mod login;
mod project;
mod resource;

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

pub use access::{
    NewPassword, RoleCommand, RoleTarget, SettingsCommand, TokenCommand, UserCommand,
};
pub use cluster::{
    ClusterCommand, CreateClusterArgs, CredentialArgs, DetachArgs, ImportArgs, KubeconfigArgs,
    KubectlArgs, RemoveArgs,
};
pub use login::{ContextCommand, LoginArgs};
pub use project::{Member, NamespaceCommand, ProjectArg, ProjectCommand};
pub use resource::{ApplyArgs, AuditArgs, InspectArgs, PsArgs, WaitCommandArgs};

use crate::completion;

/// The commands; the binary flattens them into its own.
#[derive(Clone, Debug, Subcommand)]
pub enum CliArgs {
    /// Log in to a server and remember the login
    Login(LoginArgs),
    /// End the login and forget it
    Logout(ServerArgs),
    /// Work with your logins: which server, cluster and project commands use
    #[command(subcommand)]
    Context(ContextCommand),
    /// Work with clusters
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Run kubectl against a cluster, with your login
    Kubectl(KubectlArgs),
    /// Show what runs in your clusters
    Ps(PsArgs),
    /// Work with projects
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Work with namespaces of a cluster
    #[command(subcommand, visible_alias = "ns")]
    Namespace(NamespaceCommand),
    /// Work with users
    #[command(subcommand)]
    User(UserCommand),
    /// Work with roles
    #[command(subcommand)]
    Role(RoleCommand),
    /// Work with API tokens of your own
    #[command(subcommand)]
    Token(TokenCommand),
    /// Work with settings of the server
    #[command(subcommand, visible_alias = "setting")]
    Settings(SettingsCommand),
    /// Show the audit log: logins, refusals, requests to the server and to clusters
    Audit(AuditArgs),
    /// Show objects of any type as the server has them
    Inspect(InspectArgs),
    /// Create or change objects as files describe them
    Apply(ApplyArgs),
    /// Wait until something holds of an object
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

/// Shells that completion scripts are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Forms of data on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[default]
    Table,
    Json,
    Yaml,
}

/// Which server to talk to.
#[derive(Args, Clone, Debug, Default)]
pub struct ServerArgs {
    /// Login to use, by its name or the URL of its server [default: the current one]
    #[arg(long, env = "DROVER_SERVER", value_name = "NAME|URL", add = completion::logins())]
    pub server: Option<String>,
}

impl ServerArgs {
    pub fn name(&self) -> Option<&str> {
        self.server.as_deref()
    }
}

/// Which server, and how to show what it answers.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    /// Form of the data on stdout
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// Which cluster; the context's when left out.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArg {
    /// Name or id of the cluster [default: the context's]
    #[arg(long, env = "DROVER_CLUSTER", value_name = "CLUSTER", add = completion::clusters())]
    pub cluster: Option<String>,
}

impl ClusterArg {
    pub fn name(&self) -> Option<&str> {
        self.cluster.as_deref().filter(|name| !name.is_empty())
    }
}

/// Whether to wait for what a command started.
#[derive(Args, Clone, Debug)]
pub struct WaitArgs {
    /// Wait until it is active
    #[arg(long)]
    pub wait: bool,
    /// Give up waiting after this long; what was started goes on
    #[arg(long, value_parser = duration, default_value = "5m", value_name = "TIME")]
    pub timeout: Duration,
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
