//! What every operation carries: who asks, the client that acts as them, and how links are built.

use std::net::IpAddr;
use std::ops::Deref;

use http::HeaderMap;
use identity::browser::CsrfToken;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::audit::AuditNotes;
use crate::types::registry::Registry;
use crate::types::urls::Urls;

/// Who sent the request, as authentication found out.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The object name of the user (`u-abcde`); empty for nobody.
    pub user_id: String,
    /// The token presented, for logout and "current".
    pub token_id: Option<String>,
    /// The only cluster (resource with a sub-context) that the token presented is good for: other
    /// paths are refused, and whatever is made for the caller must not reach further.
    pub token_cluster: Option<String>,
    /// The provider that vouched for the user.
    pub auth_provider: Option<String>,
    pub groups: Vec<String>,
    /// What a change must repeat; only for who came by a login cookie.
    pub csrf: Option<CsrfToken>,
    /// Where the request comes from, as far as it is known.
    pub address: Option<IpAddr>,
    /// Fires when the credential that was presented no longer holds: what outlives the request ends with it.
    pub ended: CancellationToken,
    /// What the request's audit event is to say beside that.
    pub audit: AuditNotes,
}

impl Caller {
    pub fn user(user_id: &str) -> Self {
        Self { user_id: user_id.to_owned(), ..Self::default() }
    }
    /// Nobody: reaches public versions and public ids only.
    pub fn anonymous() -> Self {
        Self::default()
    }
    pub fn is_anonymous(&self) -> bool {
        self.user_id.is_empty()
    }
}

/// The resource with a sub-context that a path goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Its type.
    pub kind: String,
    pub id: String,
}

/// What showing a resource depends on, beside the resource. No way to ask anybody anything.
#[derive(Clone, Copy)]
pub struct Presentation<'a> {
    pub caller: &'a Caller,
    pub urls: &'a Urls,
    pub registry: &'a Registry,
    /// The time of the request.
    pub now: Timestamp,
    /// The caller asked for `actionLinks` in place of `actions`.
    pub action_links: bool,
}

/// One request, as stores and actions see it.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub presentation: Presentation<'a>,
    /// Acts with the caller's identity and rights, never more.
    pub client: &'a kube::Client,
    /// Lists all that is stored. Only decides: nobody is shown what it reads.
    pub(crate) server: &'a kube::Client,
    pub headers: &'a HeaderMap,
    /// The resource that the path is inside of. A store of a type in a sub-context answers for it.
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
    /// The same request, whose stores use another client. It must act as the same caller.
    pub fn through(&self, client: &'a kube::Client) -> Self {
        Self { client, ..*self }
    }
    /// The same request with the eyes of the server, for what it decides whoever asks.
    pub(crate) fn as_server(&self) -> Self {
        Self { client: self.server, ..*self }
    }
    /// The first value of a query parameter.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
