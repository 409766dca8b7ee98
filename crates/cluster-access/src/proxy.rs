//! The authentication proxy: `/k8s/clusters/<id>/…` to that cluster's API server, under the
//! identity that we resolved.
//!
//! What goes downstream is built from nothing: a header is there because [`headers`] lists it or
//! because [`identity`] wrote it. No header of the client can name who it is, in whatever spelling,
//! position or protocol; its own `Impersonate-*` is a request to us ([`impersonation`]), granted or
//! refused, never ignored and never passed on. Bodies and watches stream; upgrades are relayed as
//! bytes ([`upgrade`]).
//!
//! Who somebody is and whom they may impersonate is the [`AccessResolver`]'s business; what they
//! may do is the downstream API server's.

mod answer;
mod headers;
pub mod identity;
pub mod impersonation;
mod path;
mod preview;
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
use crate::reading::{Kind, Reader, bounded};
use headers::{filter_response, request_headers};
pub use identity::{Caller, Identity};
use identity::{GROUP_AUTHENTICATED, write_identity};
pub use impersonation::{Attributes, Impersonation};
use path::ClusterPath;
pub use preview::{CheckedWrite, WriteCheck};
use revocation::{Revocable, Revocation};
pub use upgrade::Relay;
use upgrade::Wanted;

/// An identity as it is to be written, and what ends its open streams.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub identity: Identity,
    /// Cancelled when what this identity rests on (a role, a membership) is gone.
    pub revoked: CancellationToken,
}

/// Knows who people are in a cluster, and whom they may be. Asked for each request, so a change
/// holds on the next one.
///
/// Refusals are the `Status` that the client gets.
pub trait AccessResolver: Send + Sync + 'static {
    /// The caller's full identity in `cluster`, role groups included.
    ///
    /// Also the place to refuse an unknown cluster, or one that the caller may not know about
    /// (404).
    fn resolve<'a>(
        &'a self,
        cluster: &'a str,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Result<Resolved, Status>>;

    /// Whether the caller may impersonate one thing: the verb `impersonate` on `what`.
    fn may_impersonate<'a>(
        &'a self,
        cluster: &'a str,
        caller: &'a Caller,
        what: &'a Attributes,
    ) -> BoxFuture<'a, Result<bool, Status>>;

    /// The full identity of whom the caller asked to be and may be, role groups included.
    fn resolve_impersonated<'a>(
        &'a self,
        cluster: &'a str,
        caller: &'a Caller,
        wanted: &'a Impersonation,
    ) -> BoxFuture<'a, Result<Resolved, Status>>;
}

/// The proxy. Cheap to clone.
#[derive(Clone)]
pub struct Proxy {
    access: ClusterAccess,
    resolver: Arc<dyn AccessResolver>,
    /// Groups that only we give; a client that asks to be in one is refused.
    reserved_group_prefix: Arc<str>,
    write_checks: Arc<[Arc<dyn WriteCheck>]>,
}

/// Who a request is made as, and what that rests on: for an impersonated identity also the caller's
/// own access, which gives the right to it.
struct AccessOf {
    identity: Identity,
    rests_on: Vec<CancellationToken>,
}

impl Proxy {
    pub fn new(
        access: ClusterAccess,
        resolver: Arc<dyn AccessResolver>,
        reserved_group_prefix: &str,
    ) -> Self {
        let reserved_group_prefix = reserved_group_prefix.into();
        Self { access, resolver, reserved_group_prefix, write_checks: Arc::default() }
    }

    /// Has writes checked before they go into a cluster.
    #[must_use]
    pub fn checking(self, write_checks: impl IntoIterator<Item = Arc<dyn WriteCheck>>) -> Self {
        Self { write_checks: write_checks.into_iter().collect(), ..self }
    }

    /// Serves one request below `/k8s/clusters/`. Never fails: what goes wrong is a `Status`.
    ///
    /// `request` comes from hyper's server, HTTP/1.1 or HTTP/2, whose upgrade rides in its
    /// extensions; for WebSockets over HTTP/2 the server must have `enable_connect_protocol` set.
    /// Cancelling `caller.revoked` ends the request and every stream that it opened, at once.
    pub async fn handle<B>(&self, caller: Caller, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let is_discovery = path::is_discovery(request.uri());
        match self.forward(caller, request.map(wrap)).await {
            Ok(response) => response,
            Err(status) if is_discovery && status.code == 403 => answer::text(&status),
            Err(status) => answer::status(&status),
        }
    }

    /// As [`Self::handle`], for a response that this server reads itself on behalf of the caller: its size and its
    /// time are bounded.
    pub async fn read<B>(&self, caller: Caller, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let bounds = ClusterPath::parse(request.uri()).ok().and_then(|path| {
            let conduct = self.access.conduct(path.cluster).ok()?;
            Some((conduct, Kind::of(request.method(), &path.target.parse().ok()?)))
        });
        // Without a known cluster nothing is sent to one.
        let Some((conduct, kind)) = bounds else { return self.handle(caller, request).await };
        let sending = async { Ok(self.handle(caller, request).await) };
        let read = bounded(&conduct, Reader::Person, kind, sending).await;
        read.unwrap_or_else(|error| answer::status(&error.to_status()))
    }

    async fn forward(
        &self,
        caller: Caller,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        let path = ClusterPath::parse(request.uri())?;
        let wanted = upgrade::wanted(&request);
        if wanted.is_none() && matches!(*request.method(), Method::CONNECT | Method::TRACE) {
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
        let rests_on = resolved.rests_on.into_iter().chain([caller.revoked]);
        let revocation = Revocation::new(rests_on);
        let cluster = path.cluster.to_owned();
        let answered = async {
            for check in self.write_checks.iter() {
                if check.concerns(downstream.method(), downstream.uri().path()) {
                    let body = std::mem::replace(request.body_mut(), crate::body::empty());
                    let (access, identity) = (&self.access, &resolved.identity);
                    *request.body_mut() =
                        preview::check(access, &**check, &cluster, identity, &downstream, body)
                            .await?;
                }
            }
            match wanted {
                Some(wanted) => {
                    self.upgrade(&cluster, wanted, &mut request, downstream, &revocation).await
                }
                None => self.send(&cluster, request, downstream, &revocation).await,
            }
        };
        tokio::select! {
            answered = answered => answered,
            () = revocation.revoked() => Err(Status::unauthorized()),
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
            return Err(answer::credential_refused());
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
        wanted: Wanted,
        request: &mut Request<Body>,
        mut downstream: Request<()>,
        revocation: &Revocation,
    ) -> Result<Response<Body>, Status> {
        wanted.write_headers(&mut downstream);
        let client = hyper::upgrade::on(request);
        let downstream = downstream.map(|()| crate::body::empty());
        let answer = self.access.upgrade(cluster, downstream).await;
        let answer = answer.map_err(|error| error.to_status())?;
        Ok(wanted.finish(cluster, client, answer, revocation))
    }

    /// Who the request is made as: the caller, or whom it may impersonate.
    async fn resolve(
        &self,
        cluster: &str,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<AccessOf, Status> {
        let own = self.resolver.resolve(cluster, caller).await?;
        let Some(mut wanted) = Impersonation::from_headers(headers)? else {
            return Ok(AccessOf { identity: own.identity, rests_on: vec![own.revoked] });
        };
        wanted.check_groups(caller, &self.reserved_group_prefix)?;
        for attributes in wanted.attributes() {
            if !self.resolver.may_impersonate(cluster, caller, &attributes).await? {
                return Err(attributes.denied(&caller.user));
            }
        }
        wanted.add_implied_groups();
        let mut resolved = self.resolver.resolve_impersonated(cluster, caller, &wanted).await?;
        let groups = &mut resolved.identity.groups;
        if wanted.user != identity::USER_ANONYMOUS
            && !groups.iter().any(|group| group == GROUP_AUTHENTICATED)
        {
            groups.push(GROUP_AUTHENTICATED.to_owned());
        }
        Ok(AccessOf { identity: resolved.identity, rests_on: vec![own.revoked, resolved.revoked] })
    }
}
