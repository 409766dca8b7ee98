//! The identity behind a request and the attributes of the request, as authorization sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::request::RequestInfo;

/// An authenticated identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The user name, such as `system:serviceaccount:NAMESPACE:NAME`.
    pub name: String,
    /// The UID that the authenticator assigned; empty if there is none.
    pub uid: String,
    pub groups: Vec<String>,
    /// Additional attributes for authorizers, by key.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The group of every identity except the anonymous one.
pub const GROUP_AUTHENTICATED: &str = "system:authenticated";
/// The group of the anonymous identity.
pub const GROUP_UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group whose members bypass authorization.
pub const GROUP_MASTERS: &str = "system:masters";
/// The name of the identity of requests without credentials.
pub const USER_ANONYMOUS: &str = "system:anonymous";

impl UserInfo {
    /// Creates an identity without UID and extra attributes. The groups are exactly those given.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        Self { name: name.to_owned(), groups, ..Self::default() }
    }
    /// The identity of requests without credentials.
    pub fn anonymous() -> Self {
        Self::new(USER_ANONYMOUS, &[GROUP_UNAUTHENTICATED])
    }
    /// Whether the identity is in the group.
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

/// The attributes of a request that authorization decides on. Empty text means "none".
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Attributes {
    pub user: UserInfo,
    /// The verb, such as `get` or `deletecollection`; for a path the HTTP method in lower case.
    pub verb: String,
    /// False for paths that are no resource; then only `verb` and `path` matter.
    pub is_resource: bool,
    /// The API group; empty for the core group.
    pub group: String,
    pub version: String,
    /// The plural of the resource.
    pub resource: String,
    pub subresource: String,
    /// Empty for cluster-scoped resources and requests over all namespaces.
    pub namespace: String,
    /// The name of the object; empty for requests of collections.
    pub name: String,
    /// The path of the request, for paths that are no resource.
    pub path: String,
}

impl Attributes {
    /// The attributes of a request by `user` with `verb`, which is that of the request or one that
    /// it implies.
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

/// The result of authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allowed; no later authorizer is consulted.
    Allow { reason: String },
    /// Denied; no later authorizer is consulted.
    Deny { reason: String },
    /// Not allowed by this authorizer; the next one decides, and without any the request is denied.
    NoOpinion { reason: String },
}

/// Authenticates requests: maps credentials to an identity.
pub trait Authenticator: Send + Sync + 'static {
    /// Authenticates a request. `Ok(None)` means that it has no credential of this kind. Client
    /// certificates are in `parts.extensions` as [`ClientCertificates`].
    ///
    /// # Errors
    /// A credential is invalid. The request gets a 401 unless another authenticator accepts it.
    fn authenticate<'a>(
        &'a self,
        parts: &'a http::request::Parts,
    ) -> BoxFuture<'a, Result<Option<UserInfo>, InvalidCredential>>;
}

/// The request has a credential that is invalid.
#[derive(Clone, Copy, Debug)]
pub struct InvalidCredential;

/// The certificate chain of the client in DER, leaf first. The client has proved possession of the
/// leaf's key. The TLS configuration need not have verified the chain, so every reader verifies it
/// ([`crate::authentication::CertificateVerifier`]).
#[derive(Clone, Debug)]
pub struct ClientCertificates(pub Arc<Vec<Vec<u8>>>);

/// Authorizes requests from state in memory; never waits.
pub trait Authorizer: Send + Sync + 'static {
    /// Decides about a request.
    fn authorize(&self, attributes: &Attributes) -> Decision;

    /// A number that changes whenever a decision may change. The channel is closed when none ever
    /// does.
    fn changes(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    /// The current number of [`Self::changes`].
    fn generation(&self) -> u64 {
        *self.changes().borrow()
    }
}

/// In the extensions of a request: signals of revocation from outside this server. Streams of the
/// request end with the first signal.
#[derive(Clone, Debug, Default)]
pub struct Revocation(Arc<[CancellationToken]>);

impl Revocation {
    /// Revoked when any of `tokens` is cancelled; never, when there is none.
    pub fn new(tokens: impl IntoIterator<Item = CancellationToken>) -> Self {
        Self(tokens.into_iter().collect())
    }

    /// Whether any signal has occurred. It is never reset.
    pub fn is_revoked(&self) -> bool {
        self.0.iter().any(CancellationToken::is_cancelled)
    }

    /// Waits for the first signal; forever when there is none.
    pub async fn revoked(&self) {
        let waits: Vec<_> = self.0.iter().map(|token| Box::pin(token.cancelled())).collect();
        if waits.is_empty() {
            std::future::pending::<()>().await;
        }
        futures::future::select_all(waits).await;
    }
}
