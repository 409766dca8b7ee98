//! The whole server as a service: identity, authorization, routing.
//!
//! Outside it is served over TLS by [`crate::serve`]; inside the process a caller that puts its [`UserInfo`] into the
//! request's extensions is believed, since nothing outside can.

mod exchange;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use api_meta::duration;
use api_meta::status::Status;
use bytes::Bytes;
use exchange::{Exchange, is_long_running};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, request};
use tokio::sync::watch;

use crate::aggregation::{Aggregation, Elsewhere, Table, proxy};
use crate::attributes::{
    Attributes, Authenticator, Authorizer, Decision, USER_ANONYMOUS, UserInfo,
};
use crate::audit::Audit;
use crate::authentication;
use crate::body::read::Sender;
use crate::body::respond::{self, Body};
use crate::body::{BoxError, RequestBody};
use crate::connect::Connector;
use crate::documents::{Documents, OpenIdDocuments};
use crate::flow_control::{self, Admitted, FlowControl};
use crate::handlers;
use crate::health::{Health, Readiness, TaskCheck};
use crate::impersonation::impersonate;
use crate::metrics;
use crate::registry::Registry;
use crate::request::{Query, RequestInfo};
use crate::resource::Resource;
use crate::serve::{self, PeerAddress};
use crate::warnings;

pub use crate::handlers::WATCH_END_SPREAD;

/// Longest handling of a request that is no watch, its wait for a seat included.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);
/// Longest handling of one that changes something, once it has its seat.
const WRITE_TIME_MAX: Duration = Duration::from_secs(34);
/// When a client that was turned away may come again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// What the server is made of.
pub struct Parts {
    pub registry: Arc<Registry>,
    pub authenticator: Arc<dyn Authenticator>,
    pub authorizer: Arc<dyn Authorizer>,
    /// What `/version` says: `v1.36.3`.
    pub git_version: String,
}

/// What stands around a server's requests beside its [`Parts`].
#[derive(Default)]
pub struct Operations {
    /// Absent: the levels that every server has from the start, whatever is stored.
    pub flow_control: Option<Arc<FlowControl>>,
    /// Absent: nothing is recorded.
    pub audit: Option<Arc<Audit>>,
    /// Serves logs of pods, commands in them and their ports.
    pub connector: Option<Arc<dyn Connector>>,
    /// What other servers serve of this API.
    pub aggregation: Arc<Aggregation>,
    /// What must go on for the server to be alive.
    pub tasks: Vec<TaskCheck>,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

struct Inner {
    parts: Parts,
    documents: Documents,
    readiness: AtomicU8,
    flow_control: Arc<FlowControl>,
    audit: Option<Arc<Audit>>,
    connector: Option<Arc<dyn Connector>>,
    aggregation: Arc<Aggregation>,
    tasks: Vec<TaskCheck>,
    /// Turns true when long answers are to end.
    ending: watch::Sender<bool>,
}

impl ApiServer {
    /// Not ready until [`ApiServer::set_ready`].
    pub fn new(parts: Parts) -> Self {
        Self::with(parts, Operations::default())
    }

    /// As [`ApiServer::new`].
    pub fn with(parts: Parts, operations: Operations) -> Self {
        let documents = Documents::new(
            parts.registry.clone(),
            operations.aggregation.clone(),
            &parts.git_version,
        );
        let initial = || FlowControl::new(parts.registry.metrics().clone());
        let inner = Inner {
            flow_control: operations.flow_control.unwrap_or_else(initial),
            audit: operations.audit,
            connector: operations.connector,
            aggregation: operations.aggregation,
            tasks: operations.tasks,
            parts,
            documents,
            readiness: AtomicU8::new(Readiness::Starting as u8),
            ending: watch::Sender::new(false),
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

    /// The audit log, for what stands in front of this server.
    pub fn audit(&self) -> Option<&Arc<Audit>> {
        self.inner.audit.as_ref()
    }

    /// What `/readyz` says.
    pub fn set_ready(&self, ready: bool) {
        let readiness = if ready { Readiness::Ready } else { Readiness::Starting };
        self.inner.readiness.store(readiness as u8, Ordering::Release);
    }

    pub fn is_ready(&self) -> bool {
        self.readiness() == Readiness::Ready
    }

    fn readiness(&self) -> Readiness {
        Readiness::from_number(self.inner.readiness.load(Ordering::Acquire))
    }

    /// `/readyz` says no from now on, and nothing else changes: whoever sends requests here has
    /// time to send them elsewhere.
    pub fn begin_stop(&self) {
        self.inner.readiness.store(Readiness::Ending as u8, Ordering::Release);
    }

    /// Watches end, each at a moment of its own within [`WATCH_END_SPREAD`].
    pub fn end_watches(&self) {
        self.inner.ending.send_replace(true);
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
        // Only who is allowed to change something gets as far as sending a body.
        let is_outside = parts.extensions.get::<PeerAddress>().is_some();
        let sender = if is_outside { Sender::Authenticated } else { Sender::Inside };
        let body = RequestBody::new(body, sender);
        let registry = self.registry();
        let mut exchange = Exchange::begin(&parts, registry.metrics(), &registry.catalog());
        let answer = self.answer(parts, body, &mut exchange);
        match std::panic::AssertUnwindSafe(answer).catch_unwind().await {
            Ok(answer) => exchange.answered(answer).await,
            Err(_) => {
                tracing::error!("a request handler panicked");
                exchange.panicked()
            }
        }
    }

    async fn answer(
        &self,
        mut parts: request::Parts,
        body: RequestBody,
        exchange: &mut Exchange,
    ) -> Result<Response<Body>, Status> {
        if is_long_running(&exchange.info) {
            let user = self.identify(&mut parts, exchange).await?;
            return self.serve(&parts, &user, exchange, body).await;
        }
        let limit = request_time(&exchange.query)?;
        let answer = async {
            let user = self.identify(&mut parts, exchange).await?;
            self.serve(&parts, &user, exchange, body).await
        };
        match tokio::time::timeout(limit, answer).await {
            Ok(answer) => answer,
            Err(_) => {
                exchange.marks = None;
                Ok(out_of_time())
            }
        }
    }

    /// Who asks: the in-process identity, or what the credentials prove; then whom that identity stands in for.
    async fn identify(
        &self,
        parts: &mut request::Parts,
        exchange: &mut Exchange,
    ) -> Result<UserInfo, Status> {
        let audit = self.inner.audit.as_ref();
        let trusted = parts.extensions.remove::<UserInfo>();
        let user = match trusted {
            Some(user) => user,
            None => match self.inner.parts.authenticator.authenticate(parts).await {
                Ok(Some(user)) => user,
                Ok(None) | Err(_) => {
                    audit.inspect(|audit| exchange.record_unauthenticated(audit, parts));
                    return Err(Status::unauthorized());
                }
            },
        };
        if user.name != USER_ANONYMOUS {
            serve::authenticated(&parts.extensions);
        }
        authentication::strip_credentials(&mut parts.headers);
        audit.inspect(|audit| exchange.record(audit, parts, &user));
        let effective = impersonate(&mut parts.headers, user, &*self.inner.parts.authorizer)?;
        if let Some(original) = effective.original {
            exchange.impersonated(&effective.user);
            parts.extensions.insert(original);
        }
        Ok(effective.user)
    }

    /// The way of a request whose asker is known: its turn, whether it is allowed, and the answer.
    async fn serve(
        &self,
        parts: &request::Parts,
        user: &UserInfo,
        exchange: &mut Exchange,
        body: RequestBody,
    ) -> Result<Response<Body>, Status> {
        // A watch gives its seat back once it has begun, others when the answer is there.
        let _admitted = match self.admit(user, exchange).await {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(*refusal),
        };
        let info = &exchange.info;
        let attributes = Attributes::of_request(user, info, info.verb);
        match self.inner.parts.authorizer.authorize(&attributes) {
            Decision::Allow { reason } => exchange.authorized("allow", &reason),
            Decision::Deny { reason } | Decision::NoOpinion { reason } => {
                exchange.authorized("forbid", &reason);
                return Err(crate::authorization::forbidden(&attributes, &reason));
            }
        }
        self.route(parts, user, exchange, body).await
    }

    /// Waits for the request's turn.
    async fn admit(
        &self,
        user: &UserInfo,
        exchange: &mut Exchange,
    ) -> Result<Admitted, Box<Response<Body>>> {
        let seats = exchange
            .resource
            .as_ref()
            .map_or(1, |resource| self.seats(resource, &exchange.info, &exchange.query));
        match self.inner.flow_control.admit(user, &exchange.info, seats).await {
            Ok(admitted) => {
                exchange.marks = Some(admitted.marks.clone());
                Ok(admitted)
            }
            Err(refused) => {
                exchange.marks = Some(refused.marks);
                Err(Box::new(turned_away()))
            }
        }
    }

    fn seats(&self, resource: &Resource, info: &RequestInfo, query: &Query) -> u32 {
        let Ok(cache) = self.registry().cache(resource) else { return 1 };
        if info.verb != "list" {
            return 1;
        }
        let limit = query.text("limit").parse::<usize>().ok().filter(|limit| *limit > 0);
        let objects = cache.len();
        flow_control::list_seats(limit.map_or(objects, |limit| limit.min(objects)))
    }

    async fn route(
        &self,
        parts: &request::Parts,
        user: &UserInfo,
        exchange: &Exchange,
        body: RequestBody,
    ) -> Result<Response<Body>, Status> {
        let (info, query) = (&exchange.info, &exchange.query);
        let registry = self.registry();
        if let Some(elsewhere) = elsewhere(&self.inner.aggregation.table(), info) {
            return Ok(proxy::forward(registry, &elsewhere, parts, user, body.into_inner()).await);
        }
        if !info.is_resource {
            return self.route_path(parts, info, query).await;
        }
        let Some(resource) = &exchange.resource else {
            return if is_built_in(&registry.catalog(), info) {
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
            authorizer: &self.inner.parts.authorizer,
            connector: self.inner.connector.as_ref(),
            ending: &self.inner.ending,
        };
        let answer = in_time(info, handlers::handle(context, body)).await;
        let Some(warning) = resource.strategy.deprecation() else { return answer };
        let form = crate::body::negotiate::refusal(&parts.headers);
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
        let health = Health {
            readiness: self.readiness(),
            registry: self.registry(),
            tasks: &self.inner.tasks,
        };
        if let Some(response) = health.respond(&info.path, query).await {
            return Ok(response);
        }
        let path = info.path.trim_end_matches('/');
        if path == "/metrics" {
            return Ok(self.metrics());
        }
        self.inner.documents.answer(parts, path, query).await
    }

    fn metrics(&self) -> Response<Body> {
        let mut response = respond::text(StatusCode::OK, self.registry().metrics_text());
        let media = HeaderValue::from_static(metrics::MEDIA_TYPE);
        response.headers_mut().insert(http::header::CONTENT_TYPE, media);
        response
    }
}

/// Ends the handling of a write that takes too long.
async fn in_time(
    info: &RequestInfo,
    answer: impl Future<Output = Result<Response<Body>, Status>>,
) -> Result<Response<Body>, Status> {
    if matches!(info.verb, "get" | "list" | "watch") {
        return answer.await;
    }
    tokio::time::timeout(WRITE_TIME_MAX, answer).await.unwrap_or_else(|_| {
        Err(Status::timeout(
            "Timeout: request did not complete within requested timeout - context deadline exceeded",
        ))
    })
}

/// Kubernetes answers so when the whole request takes too long: a `Status` without its type, as text.
fn out_of_time() -> Response<Body> {
    let text = "Timeout: request did not complete within the allotted timeout";
    let mut status = Status::timeout(text).to_json();
    if let Some(fields) = status.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
        fields.entry("details").or_insert_with(|| serde_json::json!({}));
    }
    respond::text(StatusCode::GATEWAY_TIMEOUT, format!("{status}\n"))
}

/// The answer to a request that has no place now.
fn turned_away() -> Response<Body> {
    let text = "Too many requests, please try again later.\n";
    let mut response = respond::text(StatusCode::TOO_MANY_REQUESTS, text);
    let headers = response.headers_mut();
    headers.insert(http::header::RETRY_AFTER, RETRY_AFTER);
    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
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
