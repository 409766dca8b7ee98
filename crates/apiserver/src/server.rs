//! The whole server as a service: identity, authorization, routing.
//!
//! Outside it is served over TLS by [`crate::serve`]; inside the process a caller that puts its [`UserInfo`] into the
//! request's extensions is believed, since nothing outside can.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use api_meta::duration;
use api_meta::status::Status;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, request};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::Semaphore;

use crate::aggregation::{Elsewhere, Table, proxy};
use crate::attributes::{Attributes, Authenticator, Authorizer, Decision, UserInfo};
use crate::authentication;
use crate::body::decode::BODY_SIZE_MAX;
use crate::body::negotiate;
use crate::body::read::{ReadError, read};
use crate::body::respond::{self, Body};
use crate::documents::OpenIdDocuments;
use crate::handlers;
use crate::health;
use crate::impersonation::{ImpersonatedBy, impersonate};
use crate::registry::Registry;
use crate::request::{Query, RequestInfo};
use crate::warnings;

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Requests that only read, at once.
const READS_MAX: usize = 400;
/// Requests that change something, at once.
const WRITES_MAX: usize = 200;
/// Longest handling of a request that is no watch.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

/// A request's body, not yet read.
pub struct Inbound(UnsyncBoxBody<Bytes, BoxError>);

impl Inbound {
    /// All of it, within the limit.
    pub async fn read(self) -> Result<Bytes, Status> {
        read(self.0, BODY_SIZE_MAX).await.map_err(|error| match error {
            ReadError::TooLarge { size_max } => {
                Status::too_large(format!("Request entity too large: limit is {size_max}"))
            }
            broken @ ReadError::Broken { .. } => Status::bad_request(broken.to_string()),
        })
    }
}

/// A named function, because a closure would not be general enough over lifetimes.
fn boxed<E: Into<BoxError>>(error: E) -> BoxError {
    error.into()
}

/// What the server is made of.
pub struct Parts {
    pub registry: Arc<Registry>,
    pub authenticator: Arc<dyn Authenticator>,
    pub authorizer: Arc<dyn Authorizer>,
    /// What `/version` says: `v1.36.3`.
    pub git_version: String,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

struct Inner {
    parts: Parts,
    documents: crate::documents::Documents,
    ready: AtomicBool,
    reads: Semaphore,
    writes: Semaphore,
}

impl ApiServer {
    /// Not ready until [`ApiServer::set_ready`].
    pub fn new(parts: Parts) -> Self {
        let documents =
            crate::documents::Documents::new(parts.registry.clone(), &parts.git_version);
        let inner = Inner {
            parts,
            documents,
            ready: AtomicBool::new(false),
            reads: Semaphore::new(READS_MAX),
            writes: Semaphore::new(WRITES_MAX),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Lets others find what service account tokens are verified with. Only the first call counts.
    pub fn serve_openid(&self, documents: OpenIdDocuments) {
        self.inner.documents.set_openid(documents);
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.inner.parts.registry
    }

    pub fn authorizer(&self) -> &Arc<dyn Authorizer> {
        &self.inner.parts.authorizer
    }

    /// What `/readyz` says.
    pub fn set_ready(&self, ready: bool) {
        self.inner.ready.store(ready, Ordering::Release);
    }

    pub fn is_ready(&self) -> bool {
        self.inner.ready.load(Ordering::Acquire)
    }

    /// The server as seen by one in-process identity. Requests are authorised, not authenticated.
    pub fn as_user(&self, user: UserInfo) -> AsUser {
        AsUser { server: self.clone(), user }
    }

    /// Answers one request. A panic inside is an internal error of this request alone.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let body = Inbound(body.map_err(boxed).boxed_unsync());
        let audit_id = parts
            .headers
            .get("audit-id")
            .cloned()
            .unwrap_or_else(|| header(&crate::registry::new_uid()));
        let form = negotiate::refusal(&parts.headers);
        let answered = std::panic::AssertUnwindSafe(self.answer(parts, body)).catch_unwind().await;
        let mut response = match answered {
            Ok(Ok(response)) => response,
            Ok(Err(status)) => respond::refusal(form, &status),
            Err(_) => {
                tracing::error!("a request handler panicked");
                let status = Status::internal("the request handler failed; see the server log");
                respond::refusal(form, &status)
            }
        };
        response.headers_mut().insert("audit-id", audit_id);
        response
    }

    async fn answer(
        &self,
        mut parts: request::Parts,
        body: Inbound,
    ) -> Result<Response<Body>, Status> {
        let user = self.identify(&mut parts).await?;
        let query = Query::parse(parts.uri.query());
        let path = parts.uri.path().to_owned();
        let info = RequestInfo::parse(&parts.method, &path, &query);
        authorize(&*self.inner.parts.authorizer, &user, &info, info.verb)?;
        let permit = self.admit(&user, &info)?;
        if info.verb == "watch" {
            drop(permit);
            return self.route(&parts, &user, &info, &query, body).await;
        }
        let limit = request_time(&query)?;
        tokio::time::timeout(limit, self.route(&parts, &user, &info, &query, body))
            .await
            .unwrap_or_else(|_| {
                Err(Status::timeout(
                    "Timeout: request did not complete within the allotted timeout",
                ))
            })
    }

    /// Who asks: the in-process identity, or what the credentials prove; then whom that identity stands in for.
    async fn identify(&self, parts: &mut request::Parts) -> Result<UserInfo, Status> {
        let trusted = parts.extensions.remove::<UserInfo>();
        let user = match trusted {
            Some(user) => user,
            None => match self.inner.parts.authenticator.authenticate(parts).await {
                Ok(Some(user)) => user,
                Ok(None) | Err(_) => return Err(Status::unauthorized()),
            },
        };
        authentication::strip_credentials(&mut parts.headers);
        let effective = impersonate(&mut parts.headers, user, &*self.inner.parts.authorizer)?;
        if let Some(original) = effective.original {
            parts.extensions.insert(ImpersonatedBy(original));
        }
        Ok(effective.user)
    }

    /// A place among the requests in flight. Masters always get one.
    fn admit(
        &self,
        user: &UserInfo,
        info: &RequestInfo,
    ) -> Result<Option<tokio::sync::SemaphorePermit<'_>>, Status> {
        if user.in_group(crate::attributes::GROUP_MASTERS) || info.verb == "watch" {
            return Ok(None);
        }
        let reads = matches!(info.verb, "get" | "list" | "head" | "options");
        let pool = if reads { &self.inner.reads } else { &self.inner.writes };
        pool.try_acquire().map(Some).map_err(|_| {
            Status::too_many_requests("too many requests are in flight, please try again later", 1)
        })
    }

    async fn route(
        &self,
        parts: &request::Parts,
        user: &UserInfo,
        info: &RequestInfo,
        query: &Query,
        body: Inbound,
    ) -> Result<Response<Body>, Status> {
        let registry = self.registry();
        if let Some(elsewhere) = elsewhere(&registry.aggregation(), info) {
            return Ok(proxy::forward(registry, &elsewhere, parts, user, body.0).await);
        }
        if !info.is_resource {
            return self.route_path(parts, info, query).await;
        }
        let catalog = registry.catalog();
        let Some(resource) = catalog.get(&info.group, &info.version, &info.resource) else {
            return if is_built_in(&catalog, info) {
                Err(Status::unknown_resource())
            } else {
                Ok(respond::not_found())
            };
        };
        let context = handlers::Context {
            registry,
            resource: resource.clone(),
            info,
            query,
            parts,
            user,
            authorizer: &*self.inner.parts.authorizer,
        };
        let answer = handlers::handle(context, body).await;
        let Some(warning) = resource.strategy.deprecation() else { return answer };
        let form = negotiate::refusal(&parts.headers);
        let mut response = answer.unwrap_or_else(|status| respond::refusal(form, &status));
        warnings::add(response.headers_mut(), &[warning.to_owned()]);
        Ok(response)
    }

    async fn route_path(
        &self,
        parts: &request::Parts,
        info: &RequestInfo,
        query: &Query,
    ) -> Result<Response<Body>, Status> {
        if let Some(response) = health::answer(&info.path, query, self.is_ready()) {
            return Ok(response);
        }
        let path = info.path.trim_end_matches('/');
        self.inner.documents.answer(parts, path, query).await
    }
}

/// The other server of what a request is about: objects of a version, its discovery, its schema.
fn elsewhere(table: &Table, info: &RequestInfo) -> Option<Elsewhere> {
    let path = info.path.trim_end_matches('/');
    let place = path.strip_prefix("/openapi/v3").unwrap_or(path).strip_prefix("/apis/");
    let (group, version) = match place.and_then(|place| place.split_once('/')) {
        _ if info.is_resource => (info.group.as_str(), info.version.as_str()),
        Some(place) => place,
        None => return None,
    };
    table.elsewhere(group, version).cloned()
}

/// A group with a built-in resource answers for unknown versions and resources with a Status, others in plain text.
fn is_built_in(catalog: &crate::Catalog, info: &RequestInfo) -> bool {
    catalog.all().any(|resource| resource.group == info.group && !resource.custom)
}

/// Whether the request is allowed as `verb`, its own or one that it comes to.
pub(crate) fn authorize(
    authorizer: &dyn Authorizer,
    user: &UserInfo,
    info: &RequestInfo,
    verb: &str,
) -> Result<(), Status> {
    let attributes = attributes(user, info, verb);
    match authorizer.authorize(&attributes) {
        Decision::Allow { .. } => Ok(()),
        Decision::Deny { reason } | Decision::NoOpinion { reason } => {
            Err(crate::authorization::forbidden(&attributes, &reason))
        }
    }
}

fn attributes(user: &UserInfo, info: &RequestInfo, verb: &str) -> Attributes {
    Attributes {
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

/// `?timeout=` may lower the limit.
fn request_time(query: &Query) -> Result<Duration, Status> {
    let text = query.text("timeout");
    if text.is_empty() {
        return Ok(REQUEST_TIME_MAX);
    }
    let seconds = duration::seconds(text).map_err(|problem| {
        Status::bad_request(format!("invalid timeout specified in the request URL - {problem}"))
    })?;
    if seconds > 0.0 && seconds < REQUEST_TIME_MAX.as_secs_f64() {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Ok(REQUEST_TIME_MAX)
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("invalid"))
}

/// See [`ApiServer::as_user`].
#[derive(Clone)]
pub struct AsUser {
    server: ApiServer,
    user: UserInfo,
}

impl<B> tower::Service<Request<B>> for AsUser
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.user.clone());
        let server = self.server.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}
