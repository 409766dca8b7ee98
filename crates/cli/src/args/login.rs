//! Logging in, and choosing between logins.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{OutputArgs, OutputFormat};
use crate::completion;

/// Flags of `drover login`.
#[derive(Args, Clone)]
pub struct LoginArgs {
    /// URL of the server, such as https://drover.example.com
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub url: String,
    /// Name for this login [default: host and port of the server]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// User name; prompted for if neither it nor a token is given
    #[arg(long, short)]
    pub username: Option<String>,
    /// Identity provider that checks who you are, such as openldap or oidc [default: local]
    #[arg(
        long, value_name = "NAME", default_value = "local", hide_default_value = true,
        conflicts_with_all = ["token", "token_stdin"]
    )]
    pub provider: String,
    /// Do not open a browser for a provider with pages of its own; only print the address
    #[arg(long)]
    pub no_browser: bool,
    /// Password, visible to others on this machine; prompted for if omitted
    #[arg(long, short, env = "DROVER_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// Read the password from stdin
    #[arg(long, conflicts_with_all = ["password", "token", "token_stdin"])]
    pub password_stdin: bool,
    /// New password, if the current one must be changed; visible to others on this machine
    #[arg(long, env = "DROVER_NEW_PASSWORD", hide_env_values = true, value_name = "PASSWORD")]
    pub new_password: Option<String>,
    /// Read the new password from stdin; with --password-stdin it is the second line
    #[arg(long, conflicts_with = "new_password")]
    pub new_password_stdin: bool,
    /// Log in with an API token instead, visible to others on this machine
    #[arg(
        long, env = "DROVER_TOKEN", hide_env_values = true, conflicts_with_all = ["username"]
    )]
    pub token: Option<String>,
    /// Log in with an API token read from stdin
    #[arg(long, conflicts_with_all = ["username", "token"])]
    pub token_stdin: bool,
    /// PEM file of the certificate authority that must have issued the server's certificate
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ca_file: Option<PathBuf>,
    /// Trust the server's certificate authority without a prompt if it is unknown
    #[arg(long, short)]
    pub yes: bool,
    /// Do not make this the current login, unless there is none
    #[arg(long)]
    pub keep_current: bool,
}

impl std::fmt::Debug for LoginArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginArgs")
            .field("url", &self.url)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// Flags of `drover version`.
#[derive(Args, Clone, Debug)]
pub struct VersionArgs {
    /// Only the version of this program
    #[arg(long)]
    pub client: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Commands about stored logins and their defaults.
#[derive(Clone, Debug, Subcommand)]
pub enum ContextCommand {
    /// List your logins
    #[command(visible_alias = "list")]
    Ls {
        /// Format of the data on stdout: table, wide, json, yaml, name or jsonpath=TEMPLATE
        #[arg(
            short, long, default_value = "table", hide_default_value = true, value_name = "FORMAT",
            add = completion::formats()
        )]
        output: OutputFormat,
    },
    /// Choose the login, cluster and project that commands use
    Use {
        /// Name of the login [default: the current one]
        #[arg(add = completion::logins())]
        name: Option<String>,
        /// Cluster that commands use when none is given: name or id
        #[arg(long, add = completion::clusters())]
        cluster: Option<String>,
        /// Project that commands use when none is given: name or id
        #[arg(long, add = completion::projects())]
        project: Option<String>,
        /// Forget the chosen cluster and project
        #[arg(long, conflicts_with_all = ["cluster", "project"])]
        clear: bool,
    },
    /// Show the login, cluster and project that commands use
    Current {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Forget a login that has been ended, with the authority that was trusted for it
    #[command(visible_alias = "remove")]
    Rm {
        /// Name of the login
        #[arg(add = completion::logins())]
        name: String,
    },
}
