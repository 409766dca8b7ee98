//! Users, roles, tokens, settings.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::{
    ClusterArg, ListArgs, OutputArgs, ProjectArg, ServerArgs, duration, user_without_flag,
};
use crate::completion;

/// Commands about tokens of the caller.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// List your tokens
    #[command(visible_alias = "list")]
    Ls(ListArgs),
    /// Create a token; it is printed once and cannot be shown again
    Create {
        /// What it is for
        #[arg(long, default_value = "")]
        description: String,
        /// How long it is valid, such as 12h or 30d; 0 is as long as the server allows
        #[arg(long, value_parser = duration, default_value = "0")]
        ttl: Duration,
        /// Valid for this cluster only: name or id
        #[arg(long, add = completion::clusters())]
        cluster: Option<String>,
        /// Valid in the namespaces of this project only: name or id
        #[arg(long, add = completion::projects())]
        project: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Delete tokens
    #[command(visible_alias = "remove")]
    Rm {
        /// Ids
        #[arg(required = true, add = completion::tokens())]
        tokens: Vec<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// Commands about users of the server.
#[derive(Clone, Subcommand)]
pub enum UserCommand {
    /// List users
    #[command(visible_alias = "list")]
    Ls(ListArgs),
    /// Show one user
    Get {
        /// User name or id
        #[arg(add = completion::users())]
        user: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Create a user who logs in with a password
    Create {
        /// Name to log in with
        username: String,
        /// Display name
        #[arg(long)]
        display_name: Option<String>,
        /// Global role to give, can be repeated [default: those that new users have]
        #[arg(long, value_name = "ROLE", add = completion::global_roles())]
        global_role: Vec<String>,
        /// Give no global role
        #[arg(long, conflicts_with = "global_role")]
        no_global_role: bool,
        #[command(flatten)]
        password: NewPassword,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Block users from logging in, and end their logins
    Disable {
        /// User names or ids
        #[arg(required = true, add = completion::users())]
        users: Vec<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Let disabled users log in again
    Enable {
        /// User names or ids
        #[arg(required = true, add = completion::users())]
        users: Vec<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Change your own password, or give another user a new one
    SetPassword {
        /// User name or id; your own password if omitted
        #[arg(add = completion::users())]
        user: Option<String>,
        /// Your current password, visible to others on this machine; prompted for if omitted
        #[arg(long, env = "DROVER_PASSWORD", hide_env_values = true, value_name = "PASSWORD")]
        current_password: Option<String>,
        /// Read your current password from stdin; with --password-stdin the new one is the second
        /// line
        #[arg(long, conflicts_with_all = ["user", "current_password"])]
        current_password_stdin: bool,
        #[command(flatten)]
        password: NewPassword,
        /// Also end the user's tokens for the API and in kubeconfigs; logins end in any case
        #[arg(long)]
        end_tokens: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Delete users
    #[command(visible_alias = "remove")]
    Rm {
        /// User names or ids
        #[arg(required = true, add = completion::users())]
        users: Vec<String>,
        /// Do not prompt for confirmation
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// The source of a new password.
#[derive(Args, Clone)]
pub struct NewPassword {
    /// Password, visible to others on this machine; prompted for if omitted
    #[arg(long, env = "DROVER_USER_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// Read the password from stdin
    #[arg(long, conflicts_with = "password")]
    pub password_stdin: bool,
}

impl std::fmt::Debug for UserCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ls(_) => "Ls",
            Self::Get { .. } => "Get",
            Self::Create { .. } => "Create",
            Self::Disable { .. } => "Disable",
            Self::Enable { .. } => "Enable",
            Self::SetPassword { .. } => "SetPassword",
            Self::Rm { .. } => "Rm",
        })
    }
}

/// Commands about roles and their bindings.
#[derive(Clone, Debug, Subcommand)]
pub enum RoleCommand {
    /// List roles: those for clusters and projects, and global ones
    #[command(visible_alias = "list")]
    Ls(ListArgs),
    /// Show one role with its rules
    Get {
        /// Name or id
        #[arg(add = completion::roles())]
        role: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List who has which role in a cluster or project, or globally
    Bindings {
        #[command(flatten)]
        scope: RoleScope,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Give a user or group a role in a cluster or project, or a global role
    Grant {
        #[command(flatten)]
        target: RoleTarget,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Take a role in a cluster or project, or a global role, from a user or group
    Revoke {
        #[command(flatten)]
        target: RoleTarget,
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// A cluster, or a project in it, or the whole server.
#[derive(Args, Clone, Debug)]
pub struct RoleScope {
    /// A global role: in the server itself, whatever cluster the context selects
    #[arg(long, conflicts_with = "project")]
    pub global: bool,
    #[command(flatten)]
    pub cluster: super::ClusterArg,
    #[command(flatten)]
    pub project: ProjectArg,
}

/// Who has a role.
#[derive(Args, Clone, Debug)]
pub struct RoleHolder {
    /// Name or id of the user
    #[arg(long, required_unless_present = "group", add = completion::users())]
    pub user: Option<String>,
    /// A group instead of a user: its principal id, such as github_team://42
    #[arg(long, value_name = "PRINCIPAL", conflicts_with = "user")]
    pub group: Option<String>,
}

/// Which role, in which scope, of which user or group.
#[derive(Args, Clone, Debug)]
pub struct RoleTarget {
    /// Name or id of the role, such as cluster-member
    #[arg(add = completion::roles())]
    pub role: String,
    #[command(flatten)]
    pub scope: RoleScope,
    #[command(flatten)]
    pub holder: RoleHolder,
    #[arg(value_name = "USER", hide = true, value_parser = user_without_flag)]
    pub misplaced_user: Option<String>,
}

/// Commands that explain what users may do.
#[derive(Clone, Debug, Subcommand)]
pub enum AccessCommand {
    /// Explain why a user may do something in a cluster, or which right is missing
    Why {
        /// Name or id of the user; "me" is you
        #[arg(add = completion::users())]
        user: String,
        #[command(flatten)]
        request: AccessRequest,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show who would gain and lose rights by a change of roles or bindings, without making it
    Diff(AccessDiffArgs),
    /// List who may do something in a cluster
    Who {
        #[command(flatten)]
        request: AccessRequest,
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// Roles and bindings that are not written yet.
#[derive(Args, Clone, Debug)]
pub struct AccessDiffArgs {
    /// YAML or JSON with roles and bindings, as for "drover apply"; "-" for stdin
    #[arg(
        short, long = "file", value_name = "FILE", required = true,
        value_hint = clap::ValueHint::FilePath
    )]
    pub files: Vec<PathBuf>,
    /// Show what deleting these objects would do
    #[arg(long)]
    pub delete: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A request to a cluster.
#[derive(Args, Clone, Debug)]
pub struct AccessRequest {
    /// Verb, such as get, list, create or delete
    pub verb: String,
    /// Plural of a resource, with its API group and subresource: pods, pods/exec, deployments.apps;
    /// or a path, such as /metrics
    pub resource: String,
    /// Name of an object; any object if omitted
    pub name: Option<String>,
    #[command(flatten)]
    pub cluster: ClusterArg,
    /// Namespace of the request; all namespaces if omitted
    #[arg(long, short)]
    pub namespace: Option<String>,
}

/// Commands about identity providers.
#[derive(Clone, Debug, Subcommand)]
pub enum AuthProviderCommand {
    /// List identity providers
    #[command(visible_alias = "list")]
    Ls(ListArgs),
    /// Show the configuration of a provider, without its secrets
    Get {
        /// Name, such as openldap
        name: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Test a configuration with an account of the provider, and change nothing
    Test {
        #[command(flatten)]
        login: ProviderLoginArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Test a configuration with an account of the provider, and enable it if the login works; the
    /// account becomes one of your principals
    Enable {
        #[command(flatten)]
        login: ProviderLoginArgs,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Disable a provider, remove its configuration and end the logins through it
    Disable {
        /// Name, such as openldap
        name: String,
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// A configuration of an identity provider, and the account that tests it.
#[derive(Args, Clone)]
pub struct ProviderLoginArgs {
    /// Name: openldap, freeipa, activedirectory, azuread, github, googleoauth, keycloakoidc or oidc
    pub name: String,
    /// File with the fields of the configuration, YAML or JSON; - for stdin
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
    /// Name of an account in the directory. Not for providers with pages of their own, where you
    /// log in with a browser
    #[arg(long, short)]
    pub username: Option<String>,
    /// Its password, visible to others on this machine; prompted for if omitted
    #[arg(long, short, env = "DROVER_USER_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// Read its password from stdin
    #[arg(long, conflicts_with = "password")]
    pub password_stdin: bool,
    /// Do not open a browser; only print the address of the page to log in on
    #[arg(long)]
    pub no_browser: bool,
}

impl std::fmt::Debug for ProviderLoginArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderLoginArgs").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Commands about groups of directories.
#[derive(Clone, Debug, Subcommand)]
pub enum GroupCommand {
    /// List the groups that have roles, with the roles
    #[command(visible_alias = "list")]
    Ls(ListArgs),
    /// Read the groups of users from their directories now
    Refresh {
        /// User names or ids; all users if omitted
        #[arg(add = completion::users())]
        users: Vec<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// Commands about settings of the server.
#[derive(Clone, Debug, Subcommand)]
pub enum SettingsCommand {
    /// List settings
    #[command(visible_alias = "list")]
    Ls(ListArgs),
    /// Print the value of a setting
    Get {
        /// Name
        #[arg(add = completion::settings())]
        name: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Change a setting
    Set {
        /// Name
        #[arg(add = completion::settings())]
        name: String,
        /// Value
        value: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Reset settings to their default values
    Reset {
        /// Names
        #[arg(required = true, add = completion::settings())]
        names: Vec<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
}
