//! What can be typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

/// The commands; the binary flattens them into its own.
#[derive(Clone, Debug, Subcommand)]
pub enum CliArgs {
    /// Log in to a server and remember the login
    Login(LoginArgs),
    /// End the login and forget it
    Logout(ServerArgs),
    /// Work with clusters
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Run kubectl against a cluster, with your login
    Kubectl(KubectlArgs),
    /// Work with API tokens of your own
    #[command(subcommand)]
    Token(TokenCommand),
    /// Work with users
    #[command(subcommand)]
    User(UserCommand),
    /// Work with roles
    #[command(subcommand)]
    Role(RoleCommand),
    /// Work with projects
    #[command(subcommand)]
    Project(ProjectCommand),
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
    /// Server to use, one that you are logged in to [default: the last login]
    #[arg(long, env = "DROVER_SERVER", value_name = "URL", value_hint = ValueHint::Url)]
    pub server: Option<String>,
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

#[derive(Args, Clone)]
pub struct LoginArgs {
    /// URL of the server, such as https://drover.example.com
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub url: String,
    /// User name; asked for when neither it nor a token is given
    #[arg(long, short)]
    pub username: Option<String>,
    /// Password; asked for when left out
    #[arg(long, short, env = "DROVER_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// Log in with an API token instead
    #[arg(
        long, env = "DROVER_TOKEN", hide_env_values = true, conflicts_with_all = ["username"]
    )]
    pub token: Option<String>,
    /// PEM file of the certificate authority that the server's certificate must come from
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ca_file: Option<PathBuf>,
    /// Trust the server's certificate authority without asking when it is not known
    #[arg(long, short)]
    pub yes: bool,
}

impl std::fmt::Debug for LoginArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginArgs")
            .field("url", &self.url)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum ClusterCommand {
    /// List clusters
    #[command(visible_alias = "list")]
    Ls(OutputArgs),
    /// Show one cluster
    Get {
        /// Name or id
        cluster: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Import an existing cluster: apply the agent to it and wait until it is active
    Import(ImportArgs),
    /// Create a cluster
    Create {
        /// Name
        name: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Print a kubeconfig with a token and the certificate authority inside
    Kubeconfig {
        /// Name or id
        cluster: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Open a shell with kubectl in a cluster
    Shell {
        /// Name or id
        cluster: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Stop managing a cluster and leave what runs in it as it is
    Detach(DetachArgs),
    /// Remove a cluster, and what was put into it
    #[command(visible_alias = "remove")]
    Rm(RemoveArgs),
}

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
    /// Go on with a cluster of this name whose import did not finish
    #[arg(long)]
    pub resume: bool,
    /// Give up after this long, such as 90s, 5m or 1h
    #[arg(long, value_parser = duration, default_value = "5m")]
    pub timeout: Duration,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Args, Clone, Debug)]
pub struct RemoveArgs {
    /// Name or id
    pub cluster: String,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// Do not wait for a cluster that cannot be reached; what is left in it is reported
    #[arg(long)]
    pub force: bool,
    /// Give up waiting after this long; the removal goes on
    #[arg(long, value_parser = duration, default_value = "5m")]
    pub timeout: Duration,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(Args, Clone, Debug)]
pub struct DetachArgs {
    /// Name or id
    pub cluster: String,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// Give up waiting after this long; detaching goes on
    #[arg(long, value_parser = duration, default_value = "5m")]
    pub timeout: Duration,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(Args, Clone, Debug)]
pub struct KubectlArgs {
    /// Name or id of the cluster
    #[arg(long)]
    pub cluster: String,
    #[command(flatten)]
    pub server: ServerArgs,
    /// What kubectl is given
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub args: Vec<std::ffi::OsString>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// List your tokens
    #[command(visible_alias = "list")]
    Ls(OutputArgs),
    /// Create a token; it is printed once and cannot be shown again
    Create {
        /// What it is for
        #[arg(long, default_value = "")]
        description: String,
        /// How long it holds, such as 12h or 30d; 0 is as long as the server allows
        #[arg(long, value_parser = duration, default_value = "0")]
        ttl: Duration,
        /// Good for this cluster only: name or id
        #[arg(long)]
        cluster: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Delete tokens
    #[command(visible_alias = "remove")]
    Rm {
        /// Ids
        #[arg(required = true)]
        tokens: Vec<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
}

#[derive(Clone, Subcommand)]
pub enum UserCommand {
    /// List users
    #[command(visible_alias = "list")]
    Ls(OutputArgs),
    /// Create a user who logs in with a password
    Create {
        /// Name to log in with
        username: String,
        /// Name shown to people
        #[arg(long)]
        display_name: Option<String>,
        /// Password; asked for when left out
        #[arg(long, env = "DROVER_USER_PASSWORD", hide_env_values = true)]
        password: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Delete users
    #[command(visible_alias = "remove")]
    Rm {
        /// User names or ids
        #[arg(required = true)]
        users: Vec<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
}

impl std::fmt::Debug for UserCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ls(_) => "Ls",
            Self::Create { .. } => "Create",
            Self::Rm { .. } => "Rm",
        })
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum RoleCommand {
    /// List role templates
    #[command(visible_alias = "list")]
    Ls(OutputArgs),
    /// Give a user a role in a cluster
    Grant {
        /// Name or id of the role template, such as cluster-member
        role: String,
        /// Name or id of the cluster
        #[arg(long)]
        cluster: String,
        /// Name or id of the user
        #[arg(long)]
        user: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Take a role in a cluster from a user
    Revoke {
        /// Name or id of the role template
        role: String,
        /// Name or id of the cluster
        #[arg(long)]
        cluster: String,
        /// Name or id of the user
        #[arg(long)]
        user: String,
        #[command(flatten)]
        server: ServerArgs,
    },
}

#[derive(Clone, Debug, Subcommand)]
pub enum ProjectCommand {
    /// List projects
    #[command(visible_alias = "list")]
    Ls {
        /// Of this cluster only: name or id
        #[arg(long)]
        cluster: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
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
