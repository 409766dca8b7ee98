//! Who asks for what: the identity behind a request, and what it wants, as authorization sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::request::RequestInfo;

/// An authenticated identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Every identity but the anonymous one is in this group.
pub const GROUP_AUTHENTICATED: &str = "system:authenticated";
pub const GROUP_UNAUTHENTICATED: &str = "system:unauthenticated";
/// Members pass authorization unasked.
pub const GROUP_MASTERS: &str = "system:masters";
pub const USER_ANONYMOUS: &str = "system:anonymous";

impl UserInfo {
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        Self { name: name.to_owned(), groups, ..Self::default() }
    }
    pub fn anonymous() -> Self {
        Self::new(USER_ANONYMOUS, &[GROUP_UNAUTHENTICATED])
    }
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

/// What a request wants to do. Empty text means "none".
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Attributes {
    pub user: UserInfo,
    pub verb: String,
    /// False for paths that are no resource; then only `verb` and `path` count.
    pub is_resource: bool,
    pub group: String,
    pub version: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub path: String,
}

impl Attributes {
    /// Of a request that `user` sends, as `verb`: its own, or one that it amounts to.
    pub fn of_request(user: &UserInfo, info: &RequestInfo, verb: &str) -> Self {
        Self {
            user: user.clone(),
            verb: verb.to_owned(),
            is_resource: info.is_resource,
            group: info.group.clone(),
            version: info.version.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            path: info.path.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow {
        reason: String,
    },
    /// Refused; no later authorizer is asked.
    Deny {
        reason: String,
    },
    NoOpinion {
        reason: String,
    },
}

/// Turns credentials into an identity.
pub trait Authenticator: Send + Sync + 'static {
    /// `Ok(None)`: no credential of this kind in the request. `Err(())`: one that does not hold; the request is 401
    /// unless another authenticator accepts it. Client certificates are in `parts.extensions` as
    /// [`ClientCertificates`].
    fn authenticate<'a>(
        &'a self,
        parts: &'a http::request::Parts,
    ) -> BoxFuture<'a, Result<Option<UserInfo>, InvalidCredential>>;
}

/// A credential was given and does not hold.
#[derive(Clone, Copy, Debug)]
pub struct InvalidCredential;

/// The chain of the client's certificate, leaf first, DER. The client has the key of the leaf; who
/// vouches for the chain is up to the TLS configuration, so whoever reads it verifies it
/// ([`crate::authentication::CertificateVerifier`]).
#[derive(Clone, Debug)]
pub struct ClientCertificates(pub Arc<Vec<Vec<u8>>>);

/// Decides from state in memory; never waits.
pub trait Authorizer: Send + Sync + 'static {
    fn authorize(&self, attributes: &Attributes) -> Decision;

    /// A number that is another one once a decision may come out differently. Closed when none ever does.
    fn changes(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    /// The number that [`Self::changes`] has now.
    fn generation(&self) -> u64 {
        *self.changes().borrow()
    }
}

/// In a request's extensions: what its identity rests on, outside of this server. Streams that the request opened end
/// with the first of it.
#[derive(Clone, Debug, Default)]
pub struct Revocation(Arc<[CancellationToken]>);

impl Revocation {
    /// Revoked when any of `tokens` is cancelled; never, when there is none.
    pub fn new(tokens: impl IntoIterator<Item = CancellationToken>) -> Self {
        Self(tokens.into_iter().collect())
    }

    /// Whether it has happened. It never un-happens.
    pub fn is_revoked(&self) -> bool {
        self.0.iter().any(CancellationToken::is_cancelled)
    }

    /// Waits until the first of it has ended.
    pub async fn revoked(&self) {
        let waits: Vec<_> = self.0.iter().map(|token| Box::pin(token.cancelled())).collect();
        if waits.is_empty() {
            std::future::pending::<()>().await;
        }
        futures::future::select_all(waits).await;
    }
}
