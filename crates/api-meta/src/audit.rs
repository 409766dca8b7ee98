//! Names in audit events that Kubernetes has no place for: what a request was to Drover, and annotations.
//!
//! They are part of the interface: filters, dashboards and alerts of others rest on them.

/// What a request was: the value is one of [`AuditEvent`].
pub const EVENT: &str = "drover.io/event";
/// The downstream cluster that it was about.
pub const CLUSTER: &str = "drover.io/cluster";
/// Name of the token that was presented, made or ended; never its key.
pub const TOKEN: &str = "drover.io/token";
/// The login name that was presented, if a user has it.
pub const LOGIN_NAME: &str = "drover.io/login-name";
/// The user that a password or tokens were changed of, when it is another one than the caller.
pub const SUBJECT: &str = "drover.io/subject";
/// Why it was refused.
pub const REASON: &str = "drover.io/reason";
/// Identifier of the agent's public key.
pub const AGENT_KEY: &str = "drover.io/agent-key";
/// What the agent says its version is.
pub const AGENT_VERSION: &str = "drover.io/agent-version";
/// Number of events that were not written one by one.
pub const SUPPRESSED: &str = "drover.io/suppressed";
/// The same by what they were: `credential-refused=120,login-refused=3`.
pub const SUPPRESSED_EVENTS: &str = "drover.io/suppressed-events";

/// What a request was to Drover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuditEvent {
    /// A login succeeded; it made a token.
    Login,
    /// Name and password do not fit, or the user is disabled.
    LoginRefused,
    /// Not tried, because too many failed before.
    LoginSlowed,
    Logout,
    /// A token was made for the API or a kubeconfig, with another token.
    TokenCreated,
    TokenDeleted,
    PasswordChanged,
    /// A change of a password was refused.
    PasswordRefused,
    /// Credentials do not hold, hold elsewhere only, or are missing.
    CredentialRefused,
    /// A page of another origin used a login.
    CrossSiteRefused,
    /// An agent's first key was registered.
    AgentRegistered,
    /// An agent with a registered key connected.
    AgentConnected,
    AgentRefused,
    /// Sent on to a downstream cluster.
    Proxied,
    /// Somebody read the audit log.
    AuditRead,
    /// Any other request that this server answered itself.
    Request,
    /// Stands for events of callers without credentials above their budget.
    Suppressed,
}

impl AuditEvent {
    pub const ALL: [Self; 17] = [
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
        Self::AuditRead,
        Self::Request,
        Self::Suppressed,
    ];

    /// The annotation's value.
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
            Self::AuditRead => "audit-read",
            Self::Request => "request",
            Self::Suppressed => "suppressed",
        }
    }
}
