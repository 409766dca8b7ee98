//! The whole server as a service: authentication, authorization, routing.
//!
//! [`crate::serve`] serves it over TLS. Inside the process, a caller that puts its [`UserInfo`]
//! into the extensions of the request is trusted, since nothing outside can do that.

mod request_context;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use api_meta::duration;
use api_meta::status::Status;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, request};
use request_context::{RequestContext, is_long_running};
use tokio::sync::watch;

use crate::aggregation::{AggregatedApi, Aggregation, ApiServiceTable, proxy};
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

/// Longest handling of a request that is not long-running, including its wait for a seat.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);
/// Longest handling of a mutating request, once it has its seat.
const WRITE_TIME_MAX: Duration = Duration::from_secs(34);
/// Seconds after which a client that was rejected with 429 may retry.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// The required parts of a server.
pub struct Parts {
    pub registry: Arc<Registry>,
    /// Authenticates requests from outside the process.
    pub authenticator: Arc<dyn Authenticator>,
    /// Authorizes every request.
    pub authorizer: Arc<dyn Authorizer>,
    /// The version that `/version` returns: `v1.36.3`.
    pub git_version: String,
}

/// The optional parts of a server.
#[derive(Default)]
pub struct Operations {
    /// `None`: the initial priority levels, whatever is stored.
    pub flow_control: Option<Arc<FlowControl>>,
    /// `None`: no requests are recorded.
    pub audit: Option<Arc<Audit>>,
    /// Serves logs of pods, commands in them and their ports.
    pub connector: Option<Arc<dyn Connector>>,
    /// The aggregated APIs.
    pub aggregation: Arc<Aggregation>,
    /// Tasks that must run for the server to be healthy.
    pub tasks: Vec<TaskCheck>,
}

/// The API server. Cheap to clone: all clones are one server.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<ApiServerInner>,
}

struct ApiServerInner {
    parts: Parts,
    documents: Documents,
    readiness: AtomicU8,
    flow_control: Arc<FlowControl>,
    audit: Option<Arc<Audit>>,
    connector: Option<Arc<dyn Connector>>,
    aggregation: Arc<Aggregation>,
    tasks: Vec<TaskCheck>,
    /// Becomes `true` when long-running responses must end.
    ending: watch::Sender<bool>,
}

impl ApiServer {
    /// A server without optional parts. Not ready until [`ApiServer::set_ready`].
    pub fn new(parts: Parts) -> Self {
        Self::with(parts, Operations::default())
    }

    /// A server with these optional parts. Not ready until [`ApiServer::set_ready`].
    pub fn with(parts: Parts, operations: Operations) -> Self {
        let documents = Documents::new(
            parts.registry.clone(),
            operations.aggregation.clone(),
            &parts.git_version,
        );
        let initial = || FlowControl::new(parts.registry.metrics().clone());
        let inner = ApiServerInner {
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

    /// Publishes the keys that verify service account tokens, as OpenID documents. Only the first
    /// call counts.
    pub fn serve_openid(&self, documents: OpenIdDocuments) {
        self.inner.documents.set_openid(documents);
    }

    /// Where its objects are read and written.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.inner.parts.registry
    }

    /// Who authorizes its requests.
    pub fn authorizer(&self) -> &Arc<dyn Authorizer> {
        &self.inner.parts.authorizer
    }

    /// The audit log, for components in front of this server.
    pub fn audit(&self) -> Option<&Arc<Audit>> {
        self.inner.audit.as_ref()
    }

    /// Sets whether `/readyz` passes.
    pub fn set_ready(&self, ready: bool) {
        let readiness = if ready { Readiness::Ready } else { Readiness::Starting };
        self.inner.readiness.store(readiness as u8, Ordering::Release);
    }

    /// Whether `/readyz` may pass: marked ready, and not stopping.
    pub fn is_ready(&self) -> bool {
        self.readiness() == Readiness::Ready
    }

    fn readiness(&self) -> Readiness {
        Readiness::from_number(self.inner.readiness.load(Ordering::Acquire))
    }

    /// `/readyz` fails from now on, and nothing else changes: load balancers have time to send
    /// requests to another server.
    pub fn begin_stop(&self) {
        self.inner.readiness.store(Readiness::Ending as u8, Ordering::Release);
    }

    /// Ends all watches, each at a random moment within [`WATCH_END_SPREAD`].
    pub fn end_watches(&self) {
        self.inner.ending.send_replace(true);
    }

    /// The server as one in-process identity uses it. Requests are authorised, not authenticated.
    pub fn as_user(&self, user: UserInfo) -> AsUser {
        AsUser { server: self.clone(), user }
    }

    /// Responds to one request. A panic in a handler is an internal error of this request alone.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        // A body is read only once the caller is authorised to change something.
        let is_outside = parts.extensions.get::<PeerAddress>().is_some();
        let sender = if is_outside { Sender::Authenticated } else { Sender::Inside };
        let body = RequestBody::new(body, sender);
        let registry = self.registry();
        let mut context = RequestContext::begin(&parts, registry.metrics(), &registry.catalog());
        let response = self.respond(parts, body, &mut context);
        match std::panic::AssertUnwindSafe(response).catch_unwind().await {
            Ok(response) => context.finish(response).await,
            Err(_) => {
                tracing::error!("a request handler panicked");
                context.finish_panicked()
            }
        }
    }

    async fn respond(
        &self,
        mut parts: request::Parts,
        body: RequestBody,
        context: &mut RequestContext,
    ) -> Result<Response<Body>, Status> {
        if is_long_running(&context.info) {
            let user = self.identify(&mut parts, context).await?;
            return self.serve(&parts, &user, context, body).await;
        }
        let limit = request_time(&context.query)?;
        let response = async {
            let user = self.identify(&mut parts, context).await?;
            self.serve(&parts, &user, context, body).await
        };
        match tokio::time::timeout(limit, response).await {
            Ok(response) => response,
            Err(_) => {
                context.flow_schema_headers = None;
                Ok(request_timeout_response())
            }
        }
    }

    /// The caller: the in-process identity, or the one that the credentials prove; then the
    /// identity that it impersonates.
    async fn identify(
        &self,
        parts: &mut request::Parts,
        context: &mut RequestContext,
    ) -> Result<UserInfo, Status> {
        let audit = self.inner.audit.as_ref();
        let in_process_user = parts.extensions.remove::<UserInfo>();
        let user = match in_process_user {
            Some(user) => user,
            None => match self.inner.parts.authenticator.authenticate(parts).await {
                Ok(Some(user)) => user,
                Ok(None) | Err(_) => {
                    audit.inspect(|audit| context.record_unauthenticated(audit, parts));
                    return Err(Status::unauthorized());
                }
            },
        };
        if user.name != USER_ANONYMOUS {
            serve::mark_authenticated(&parts.extensions);
        }
        authentication::strip_credentials(&mut parts.headers);
        audit.inspect(|audit| context.record(audit, parts, &user));
        let effective = impersonate(&mut parts.headers, user, &*self.inner.parts.authorizer)?;
        if let Some(original) = effective.original {
            context.record_impersonation(&effective.user);
            parts.extensions.insert(original);
        }
        Ok(effective.user)
    }

    /// Serves a request of a known caller: waits for a seat, authorizes, responds.
    async fn serve(
        &self,
        parts: &request::Parts,
        user: &UserInfo,
        context: &mut RequestContext,
        body: RequestBody,
    ) -> Result<Response<Body>, Status> {
        // A watch releases its seat once it has begun, other requests when the response is ready.
        let _admitted = match self.admit(user, context).await {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(*refusal),
        };
        let info = &context.info;
        let attributes = Attributes::of_request(user, info, info.verb);
        match self.inner.parts.authorizer.authorize(&attributes) {
            Decision::Allow { reason } => context.record_decision("allow", &reason),
            Decision::Deny { reason } | Decision::NoOpinion { reason } => {
                context.record_decision("forbid", &reason);
                return Err(crate::authorization::forbidden(&attributes, &reason));
            }
        }
        self.route(parts, user, context, body).await
    }

    /// Waits until the request gets its seats; the error is the 429 response.
    async fn admit(
        &self,
        user: &UserInfo,
        context: &mut RequestContext,
    ) -> Result<Admitted, Box<Response<Body>>> {
        let seats = context
            .resource
            .as_ref()
            .map_or(1, |resource| self.seats(resource, &context.info, &context.query));
        match self.inner.flow_control.admit(user, &context.info, seats).await {
            Ok(admitted) => {
                context.flow_schema_headers = Some(admitted.headers.clone());
                Ok(admitted)
            }
            Err(refused) => {
                context.flow_schema_headers = Some(refused.headers);
                Err(Box::new(too_many_requests()))
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
        context: &RequestContext,
        body: RequestBody,
    ) -> Result<Response<Body>, Status> {
        let (info, query) = (&context.info, &context.query);
        let registry = self.registry();
        if let Some(aggregated) = aggregated_server(&self.inner.aggregation.table(), info) {
            return Ok(proxy::forward(registry, &aggregated, parts, user, body.into_inner()).await);
        }
        if !info.is_resource {
            return self.route_path(parts, info, query).await;
        }
        let Some(resource) = &context.resource else {
            return if is_built_in(&registry.catalog(), info) {
                Err(Status::unknown_resource())
            } else {
                Ok(respond::not_found())
            };
        };
        let handler_context = handlers::HandlerContext {
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
        let response = with_write_timeout(info, handlers::handle(handler_context, body)).await;
        let Some(warning) = resource.strategy.deprecation() else { return response };
        let format = crate::body::negotiate::refusal(&parts.headers);
        let mut response = response.unwrap_or_else(|status| respond::refusal(format, &status));
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
        self.inner.documents.respond(parts, path, query).await
    }

    fn metrics(&self) -> Response<Body> {
        let mut response = respond::text(StatusCode::OK, self.registry().metrics_text());
        let media = HeaderValue::from_static(metrics::MEDIA_TYPE);
        response.headers_mut().insert(http::header::CONTENT_TYPE, media);
        response
    }
}

/// Ends the handling of a write after [`WRITE_TIME_MAX`].
async fn with_write_timeout(
    info: &RequestInfo,
    response: impl Future<Output = Result<Response<Body>, Status>>,
) -> Result<Response<Body>, Status> {
    if matches!(info.verb, "get" | "list" | "watch") {
        return response.await;
    }
    tokio::time::timeout(WRITE_TIME_MAX, response).await.unwrap_or_else(|_| {
        Err(Status::timeout(
            "Timeout: request did not complete within requested timeout - context deadline exceeded",
        ))
    })
}

/// The response of kube-apiserver when the whole request takes too long: a `Status` without its
/// type, as text.
fn request_timeout_response() -> Response<Body> {
    let text = "Timeout: request did not complete within the allotted timeout";
    let mut status = Status::timeout(text).to_json();
    if let Some(fields) = status.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
        fields.entry("details").or_insert_with(|| serde_json::json!({}));
    }
    respond::text(StatusCode::GATEWAY_TIMEOUT, format!("{status}\n"))
}

/// The response to a request that got neither a seat nor a queue slot.
fn too_many_requests() -> Response<Body> {
    let text = "Too many requests, please try again later.\n";
    let mut response = respond::text(StatusCode::TOO_MANY_REQUESTS, text);
    let headers = response.headers_mut();
    headers.insert(http::header::RETRY_AFTER, RETRY_AFTER);
    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The aggregated server that serves the version of the request: its objects, its discovery, its
/// schema.
fn aggregated_server(table: &ApiServiceTable, info: &RequestInfo) -> Option<AggregatedApi> {
    let path = info.path.trim_end_matches('/');
    let rest = path.strip_prefix("/openapi/v3").unwrap_or(path).strip_prefix("/apis/");
    let (group, version) = match rest.and_then(|rest| rest.split_once('/')) {
        _ if info.is_resource => (info.group.as_str(), info.version.as_str()),
        Some(rest) => rest,
        None => return None,
    };
    table.aggregated_api(group, version).cloned()
}

/// Whether the group has a built-in resource. Such groups respond to unknown versions and resources
/// with a Status, others with plain text.
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

/// A service that sends requests as one identity: [`ApiServer::as_user`].
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
