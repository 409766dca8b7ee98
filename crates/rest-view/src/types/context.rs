//! The context of every operation: the caller, the client that acts as the caller, and how links
//! are built.

use std::net::IpAddr;
use std::ops::Deref;

use http::HeaderMap;
use identity::browser::CsrfToken;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::audit::AuditNotes;
use crate::types::registry::Registry;
use crate::types::urls::Urls;

/// The user who sent a request, as authenticated.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The object name of the user (`u-abcde`); empty for an anonymous caller.
    pub user_id: String,
    /// Name of the token that was presented. Logout deletes it, and lists mark it as current.
    pub token_id: Option<String>,
    /// The only cluster (resource with a sub-context) for which the presented token is valid. Other
    /// paths are refused, and a credential that is made for the caller must not reach further.
    pub token_cluster: Option<String>,
    /// The authentication provider that the user logged in with.
    pub auth_provider: Option<String>,
    /// Names of the groups of the user, as the API server receives them.
    pub groups: Vec<String>,
    /// The CSRF value that a change must repeat; only for callers with a login cookie.
    pub csrf: Option<CsrfToken>,
    /// Source address of the request, if it is known.
    pub address: Option<IpAddr>,
    /// Cancelled when the presented credential is no longer valid. What outlives the request must
    /// end with it.
    pub ended: CancellationToken,
    /// Collects what the audit event of the request records beside the caller.
    pub audit: AuditNotes,
}

impl Caller {
    /// A caller with this id, without groups, token or address.
    pub fn user(user_id: &str) -> Self {
        Self { user_id: user_id.to_owned(), ..Self::default() }
    }
    /// An anonymous caller: reaches only public versions and public ids.
    pub fn anonymous() -> Self {
        Self::default()
    }
    /// Whether the request came without a valid credential.
    pub fn is_anonymous(&self) -> bool {
        self.user_id.is_empty()
    }
}

/// The resource with a sub-context that a path goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Id of its type (`cluster`).
    pub kind: String,
    /// Its id.
    pub id: String,
}

/// What the presentation of a resource depends on, beside the resource. It has no client:
/// presentation does no I/O.
#[derive(Clone, Copy)]
pub struct Presentation<'a> {
    /// Available actions and personal fields depend on the caller.
    pub caller: &'a Caller,
    /// Builds the links.
    pub urls: &'a Urls,
    /// All types, for links between them.
    pub registry: &'a Registry,
    /// The time of the request.
    pub now: Timestamp,
    /// The client requested `actionLinks` instead of `actions`.
    pub action_links: bool,
}

/// One request, as stores and actions receive it.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// What the response is rendered with.
    pub presentation: Presentation<'a>,
    /// Acts with the caller's identity and rights, never more.
    pub client: &'a kube::Client,
    /// Lists everything that is stored. For decisions only: what it reads is not shown to the
    /// caller.
    pub(crate) server: &'a kube::Client,
    /// Headers of the request.
    pub headers: &'a HeaderMap,
    /// The resource that the path is inside of. A store of a type in a sub-context serves the
    /// objects of this resource only.
    pub inside: Option<&'a Inside>,
    /// Query pairs in order, decoded.
    pub query: &'a [(String, String)],
}

impl<'a> Deref for Context<'a> {
    type Target = Presentation<'a>;

    fn deref(&self) -> &Self::Target {
        &self.presentation
    }
}

impl<'a> Context<'a> {
    /// A request that is inside of nothing; what the server decides is decided with the caller's
    /// own client.
    pub fn new(
        presentation: Presentation<'a>,
        client: &'a kube::Client,
        headers: &'a HeaderMap,
        query: &'a [(String, String)],
    ) -> Self {
        Self { presentation, client, server: client, headers, inside: None, query }
    }
    /// The same request, whose stores use `client` instead. It must act as the same caller.
    pub fn through(&self, client: &'a kube::Client) -> Self {
        Self { client, ..*self }
    }
    /// The same request with the server's own client, for decisions that do not depend on the
    /// caller.
    pub(crate) fn as_server(&self) -> Self {
        Self { client: self.server, ..*self }
    }
    /// The first value of a query parameter.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
