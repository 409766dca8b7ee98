//! The authentication proxy: `/k8s/clusters/<id>/…` to that cluster's API server, under the
//! identity that the server resolved.
//!
//! The downstream request is built from an empty one: a header is in it because [`headers`] lists
//! it or because [`identity`] wrote it. No header of the client can set the identity, in any
//! spelling, position or protocol. The client's own `Impersonate-*` headers are a request to this
//! proxy ([`impersonation`]), which grants or refuses it, never ignores it and never passes it on.
//! Bodies and watches stream; upgrades are relayed as bytes ([`upgrade`]).
//!
//! The [`AccessResolver`] decides who the caller is and whom they may impersonate; the downstream
//! API server decides what they may do.

mod headers;
pub mod identity;
pub mod impersonation;
mod path;
mod preview;
mod respond;
mod revocation;
mod upgrade;

use std::sync::Arc;

use api_meta::status::Status;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response};
use tokio_util::sync::CancellationToken;

use crate::access::ClusterAccess;
use crate::body::{Body, BoxError, wrap};
use crate::reading::{ResponseKind, ResponseReader, bound_response};
use headers::{filter_response, request_headers};
use identity::write_identity;
pub use identity::{DownstreamIdentity, GROUP_AUTHENTICATED, ProjectToken, ProxyCaller};
pub use impersonation::{Attributes, Impersonation};
use path::ClusterPath;
pub use preview::{CheckedWrite, WriteCheck};
use revocation::{Revocable, Revocation};
pub use upgrade::Relay;
use upgrade::RequestedUpgrade;

/// A resolved identity, and the token that ends its open streams, and soon its other requests.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub identity: DownstreamIdentity,
    /// Cancelled when the identity loses a role or membership in the cluster.
    pub revoked: CancellationToken,
}

/// Resolves the identity of callers in a cluster, and decides whom they may impersonate. It is
/// called for each request, so a change takes effect with the next one.
///
/// Refusals are the `Status` that the client gets.
pub trait AccessResolver: Send + Sync + 'static {
    /// The caller's full identity in `cluster`, role groups included.
    ///
    /// # Errors
    /// The refusal: 404 for an unknown cluster and for one that the caller must not know about.
    fn resolve<'a>(
        &'a self,
        cluster: &'a str,
        caller: &'a ProxyCaller,
    ) -> BoxFuture<'a, Result<Resolved, Status>>;

    /// Whether the caller has the verb `impersonate` on `what`.
    ///
    /// # Errors
    /// The rights could not be evaluated; the client gets the `Status`.
    fn may_impersonate<'a>(
        &'a self,
        cluster: &'a str,
        caller: &'a ProxyCaller,
        what: &'a Attributes,
    ) -> BoxFuture<'a, Result<bool, Status>>;

    /// The full identity that the caller requested and may impersonate, role groups included.
    ///
    /// # Errors
    /// The identity could not be resolved; the client gets the `Status`.
    fn resolve_impersonated<'a>(
        &'a self,
        cluster: &'a str,
        caller: &'a ProxyCaller,
        requested: &'a Impersonation,
    ) -> BoxFuture<'a, Result<Resolved, Status>>;
}

/// The proxy. Cheap to clone.
#[derive(Clone)]
pub struct Proxy {
    access: ClusterAccess,
    resolver: Arc<dyn AccessResolver>,
    /// Groups that only the resolver grants; a client that requests one is refused.
    reserved_group_prefix: Arc<str>,
    write_checks: Arc<[Arc<dyn WriteCheck>]>,
}

/// The identity of a request, and the tokens of the roles that it depends on: for an impersonated
/// identity also those of the caller, which grant the right to impersonate.
struct AccessOf {
    identity: DownstreamIdentity,
    rests_on: Vec<CancellationToken>,
}

impl Proxy {
    /// A proxy over `access`. Clients cannot impersonate groups that begin with
    /// `reserved_group_prefix`; an empty prefix reserves none.
    pub fn new(
        access: ClusterAccess,
        resolver: Arc<dyn AccessResolver>,
        reserved_group_prefix: &str,
    ) -> Self {
        let reserved_group_prefix = reserved_group_prefix.into();
        Self { access, resolver, reserved_group_prefix, write_checks: Arc::default() }
    }

    /// Sets the checks that run before a write is sent to a cluster. They replace earlier ones.
    #[must_use]
    pub fn checking(self, write_checks: impl IntoIterator<Item = Arc<dyn WriteCheck>>) -> Self {
        Self { write_checks: write_checks.into_iter().collect(), ..self }
    }

    /// Serves one request below `/k8s/clusters/`. Never fails: errors are a `Status` in the
    /// response.
    ///
    /// `request` comes from hyper's server, HTTP/1.1 or HTTP/2, with the upgrade in its extensions;
    /// for WebSockets over HTTP/2 the server must have `enable_connect_protocol` set. Cancelling
    /// `caller.revoked` ends the request and every stream that it opened, at once.
    pub async fn handle<B>(&self, caller: ProxyCaller, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let is_discovery = path::is_discovery(request.uri());
        match self.forward(caller, request.map(wrap)).await {
            Ok(response) => response,
            Err(status) if is_discovery && status.code == 403 => respond::text(&status),
            Err(status) => respond::status(&status),
        }
    }

    /// Like [`Self::handle`], for a response that this server reads itself on behalf of the caller:
    /// its size and time are bounded (32 MiB for a list, 8 MiB for an object).
    pub async fn read<B>(&self, caller: ProxyCaller, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let bounds = ClusterPath::parse(request.uri()).ok().and_then(|path| {
            let conduct = self.access.conduct(path.cluster).ok()?;
            Some((conduct, ResponseKind::of(request.method(), &path.target.parse().ok()?)))
        });
        // No request is sent to an unknown cluster.
        let Some((conduct, kind)) = bounds else { return self.handle(caller, request).await };
        let sending = async { Ok(self.handle(caller, request).await) };
        let read = bound_response(&conduct, ResponseReader::User, kind, sending).await;
        read.unwrap_or_else(|error| respond::status(&error.to_status()))
    }

    async fn forward(
        &self,
        caller: ProxyCaller,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        let path = ClusterPath::parse(request.uri())?;
        let upgrade = upgrade::requested_upgrade(&request);
        if upgrade.is_none() && matches!(*request.method(), Method::CONNECT | Method::TRACE) {
            return Err(Status::method_not_allowed());
        }
        let resolved = self.resolve(path.cluster, &caller, request.headers()).await?;
        let mut downstream = Request::builder()
            .method(request.method())
            .uri(path.target)
            .body(())
            .map_err(|_| Status::bad_request("the path is not a valid request target"))?;
        *downstream.headers_mut() = request_headers(request.headers());
        write_identity(downstream.headers_mut(), &resolved.identity)?;
        let kind = ResponseKind::of(downstream.method(), downstream.uri());
        let is_endless = upgrade.is_some()
            || kind == ResponseKind::Watch
            || path::is_proxied(downstream.uri().path());
        let revocation = Revocation::new(caller.revoked, resolved.rests_on, is_endless);
        let cluster = path.cluster.to_owned();
        let response = async {
            for check in self.write_checks.iter() {
                if check.concerns(downstream.method(), downstream.uri().path()) {
                    let body = std::mem::replace(request.body_mut(), crate::body::empty());
                    let (access, identity) = (&self.access, &resolved.identity);
                    *request.body_mut() =
                        preview::check(access, &**check, &cluster, identity, &downstream, body)
                            .await?;
                }
            }
            match upgrade {
                Some(upgrade) => {
                    self.upgrade(&cluster, upgrade, &mut request, downstream, &revocation).await
                }
                None => self.send(&cluster, request, downstream, &revocation).await,
            }
        };
        tokio::select! {
            response = response => response,
            revoked = revocation.wait_until_revoked() => Err(revoked.to_status()),
        }
    }

    async fn send(
        &self,
        cluster: &str,
        request: Request<Body>,
        downstream: Request<()>,
        revocation: &Revocation,
    ) -> Result<Response<Body>, Status> {
        let is_proxied = path::is_proxied(downstream.uri().path());
        let body = wrap(headers::WithoutTrailers(request.into_body()));
        let downstream = downstream.map(|()| body);
        let response = self.access.forward(cluster, downstream).await;
        let response = response.map_err(|error| error.to_status())?;
        if response.status() == http::StatusCode::UNAUTHORIZED && !is_proxied {
            return Err(respond::credential_refused());
        }
        let (mut parts, body) = response.into_parts();
        parts.headers = filter_response(cluster, &parts.headers);
        let body = wrap(Revocable::new(body, revocation));
        let mut response = Response::new(body);
        *response.status_mut() = parts.status;
        *response.headers_mut() = parts.headers;
        Ok(response)
    }

    async fn upgrade(
        &self,
        cluster: &str,
        upgrade: RequestedUpgrade,
        request: &mut Request<Body>,
        mut downstream: Request<()>,
        revocation: &Revocation,
    ) -> Result<Response<Body>, Status> {
        upgrade.write_headers(&mut downstream);
        let client = hyper::upgrade::on(request);
        let downstream = downstream.map(|()| crate::body::empty());
        let response = self.access.upgrade(cluster, downstream).await;
        let response = response.map_err(|error| error.to_status())?;
        Ok(upgrade.finish(cluster, client, response, revocation))
    }

    /// The identity of the request: the caller's, or the one that the caller may impersonate.
    async fn resolve(
        &self,
        cluster: &str,
        caller: &ProxyCaller,
        headers: &HeaderMap,
    ) -> Result<AccessOf, Status> {
        let own = self.resolver.resolve(cluster, caller).await?;
        let Some(mut requested) = Impersonation::from_headers(headers)? else {
            return Ok(AccessOf { identity: own.identity, rests_on: vec![own.revoked] });
        };
        requested.check_groups(caller, &self.reserved_group_prefix)?;
        for attributes in requested.attributes() {
            if !self.resolver.may_impersonate(cluster, caller, &attributes).await? {
                return Err(attributes.to_refusal(&caller.user));
            }
        }
        requested.add_implied_groups();
        let mut resolved = self.resolver.resolve_impersonated(cluster, caller, &requested).await?;
        let groups = &mut resolved.identity.groups;
        if requested.user != identity::USER_ANONYMOUS
            && !groups.iter().any(|group| group == GROUP_AUTHENTICATED)
        {
            groups.push(GROUP_AUTHENTICATED.to_owned());
        }
        Ok(AccessOf { identity: resolved.identity, rests_on: vec![own.revoked, resolved.revoked] })
    }
}
