//! Names in audit events that Kubernetes does not define: the kind of a request to Drover, and
//! annotations.
//!
//! They are part of the interface: filters, dashboards and alerts of users depend on them.

/// The kind of the request: the value is one of [`AuditEvent`].
pub const EVENT: &str = "drover.io/event";
/// Id of the downstream cluster of the request.
pub const CLUSTER: &str = "drover.io/cluster";
/// Name of the token that was presented, created or deleted; never its key.
pub const TOKEN: &str = "drover.io/token";
/// The login name that was presented, if a user has it.
pub const LOGIN_NAME: &str = "drover.io/login-name";
/// Id of the user whose password or tokens were changed, when that is not the caller.
pub const SUBJECT: &str = "drover.io/subject";
/// Why the request was refused.
pub const REASON: &str = "drover.io/reason";
/// Identifier of the agent's public key.
pub const AGENT_KEY: &str = "drover.io/agent-key";
/// The version that the agent reports.
pub const AGENT_VERSION: &str = "drover.io/agent-version";
/// Number of events that were not written one by one.
pub const SUPPRESSED: &str = "drover.io/suppressed";
/// That number by kind of event: `credential-refused=120,login-refused=3`.
pub const SUPPRESSED_EVENTS: &str = "drover.io/suppressed-events";

/// The kind of a request to Drover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuditEvent {
    /// A login succeeded; it created a token.
    Login,
    /// The name and password do not match, or the user is disabled.
    LoginRefused,
    /// The password was not compared, because too many attempts had failed.
    LoginSlowed,
    Logout,
    /// A token was created for the API or a kubeconfig, with another token.
    TokenCreated,
    TokenDeleted,
    PasswordChanged,
    /// A change of a password was refused.
    PasswordRefused,
    /// The credential is missing, invalid, or valid only for another cluster.
    CredentialRefused,
    /// A page of another origin used a login.
    CrossSiteRefused,
    /// An agent's first key was registered.
    AgentRegistered,
    /// An agent with a registered key connected.
    AgentConnected,
    AgentRefused,
    /// Forwarded to a downstream cluster.
    Proxied,
    /// A user opened a kubectl shell in a cluster.
    ShellOpened,
    /// A user read the audit log.
    AuditRead,
    /// Any other request that this server handled itself.
    Request,
    /// Summarises the events of callers without credentials above their budget.
    Suppressed,
}

impl AuditEvent {
    /// Every kind, in the order of the variants.
    pub const ALL: [Self; 18] = [
        Self::Login,
        Self::LoginRefused,
        Self::LoginSlowed,
        Self::Logout,
        Self::TokenCreated,
        Self::TokenDeleted,
        Self::PasswordChanged,
        Self::PasswordRefused,
        Self::CredentialRefused,
        Self::CrossSiteRefused,
        Self::AgentRegistered,
        Self::AgentConnected,
        Self::AgentRefused,
        Self::Proxied,
        Self::ShellOpened,
        Self::AuditRead,
        Self::Request,
        Self::Suppressed,
    ];

    /// The value of the annotation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::LoginRefused => "login-refused",
            Self::LoginSlowed => "login-slowed",
            Self::Logout => "logout",
            Self::TokenCreated => "token-created",
            Self::TokenDeleted => "token-deleted",
            Self::PasswordChanged => "password-changed",
            Self::PasswordRefused => "password-refused",
            Self::CredentialRefused => "credential-refused",
            Self::CrossSiteRefused => "cross-site-refused",
            Self::AgentRegistered => "agent-registered",
            Self::AgentConnected => "agent-connected",
            Self::AgentRefused => "agent-refused",
            Self::Proxied => "proxied",
            Self::ShellOpened => "shell-opened",
            Self::AuditRead => "audit-read",
            Self::Request => "request",
            Self::Suppressed => "suppressed",
        }
    }
}
