//! One aggregated server: its location, how it is trusted, and the connections to it.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use super::FrontProxy;
use super::proxy::set_user_headers;
use crate::attributes::{GROUP_MASTERS, UserInfo};
use crate::body::BoxError;
use crate::fields::str_of;
use crate::registry::Registry;
use crate::webhook::{Connector, Trust, reason};

/// The user name of this server's own requests.
const OWN_NAME: &str = "system:kube-aggregator";
/// The deadline of the response to such a request.
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(5);
/// The size of such a response, in bytes.
const RESPONSE_SIZE_MAX: usize = 16 * 1024 * 1024;
/// The number of endpoints of one server with pooled connections.
const TARGETS_MAX: usize = 8;
/// How long an idle connection is pooled.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// The body of a request to another server.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, BoxError>;
type HttpClient = Client<Connector, RequestBody>;

/// Why there is no response, in the words of Go's `net/http`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SendError(pub String);

/// An aggregated server. When the spec of the APIService changes, a new value is created.
pub(crate) struct Remote {
    pub namespace: String,
    pub service: String,
    pub port: u16,
    trust: Trust,
    clients: Mutex<BTreeMap<(String, u16), HttpClient>>,
    /// Notified when the server should be checked before the interval ends.
    pub(super) recheck: Notify,
}

impl Remote {
    /// Creates the server from a validated `spec` that names a Service.
    pub(super) fn of(spec: &Value, front_proxy: Option<&FrontProxy>) -> Self {
        let service = &spec["service"];
        let bundle = str_of(&spec["caBundle"]);
        let port = service["port"].as_u64().and_then(|port| port.try_into().ok());
        let trust = Trust {
            // An undecodable bundle is passed on, so that the system CAs are not trusted instead.
            ca_bundle: STANDARD.decode(bundle).unwrap_or_else(|_| bundle.into()),
            unverified: spec["insecureSkipTLSVerify"] == true,
            identity: front_proxy.map(FrontProxy::identity),
        };
        Self {
            namespace: str_of(&service["namespace"]).to_owned(),
            service: str_of(&service["name"]).to_owned(),
            port: port.unwrap_or(443),
            trust,
            clients: Mutex::default(),
            recheck: Notify::new(),
        }
    }

    /// The current host and port.
    ///
    /// # Errors
    /// The Service has no address.
    pub(super) async fn target(&self, registry: &Registry) -> Result<(String, u16), SendError> {
        registry.service_target(&self.namespace, &self.service, self.port).await.map_err(SendError)
    }

    /// Sends a request whose URI is a path, over HTTP/1.1. The body of the response has no
    /// deadline.
    ///
    /// # Errors
    /// The server cannot be reached or is not trusted; it is then rechecked soon.
    pub(crate) async fn send(
        &self,
        registry: &Registry,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendError> {
        let result = self.try_send(registry, request).await;
        if result.is_err() {
            self.recheck.notify_one();
        }
        result
    }

    /// Sends a request of this server itself, as a member of the masters group, and reads the whole
    /// response.
    ///
    /// # Errors
    /// As [`Remote::send`], and when the response takes longer than [`RESPONSE_TIME_MAX`] or is
    /// larger than [`RESPONSE_SIZE_MAX`].
    pub(crate) async fn request(
        &self,
        registry: &Registry,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
    ) -> Result<Response<Bytes>, SendError> {
        let failed = |error: &dyn std::fmt::Display| SendError(error.to_string());
        let body = Empty::new().map_err(BoxError::from).boxed_unsync();
        let request = Request::builder().method(method).uri(path).body(body);
        let mut request = request.map_err(|error| failed(&error))?;
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(|error| failed(&error))?;
            request.headers_mut().insert(name, value);
        }
        set_user_headers(request.headers_mut(), &UserInfo::new(OWN_NAME, &[GROUP_MASTERS]));
        let response = async {
            let (parts, body) = self.try_send(registry, request).await?.into_parts();
            let body = Limited::new(body, RESPONSE_SIZE_MAX).collect().await;
            let body = body.map_err(|error| SendError(reason(&*error)))?.to_bytes();
            Ok(Response::from_parts(parts, body))
        };
        let result = tokio::time::timeout(RESPONSE_TIME_MAX, response).await;
        result.unwrap_or_else(|_| Err(failed(&"context deadline exceeded")))
    }

    async fn try_send(
        &self,
        registry: &Registry,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendError> {
        let target = self.target(registry).await?;
        let path = request.uri().path_and_query().cloned();
        let uri = Uri::builder()
            .scheme("https")
            .authority(authority(&target))
            .path_and_query(path.unwrap_or(PathAndQuery::from_static("/")))
            .build();
        *request.uri_mut() = uri.map_err(|error| SendError(error.to_string()))?;
        let client = self.client(target)?;
        client.request(request).await.map_err(|error| SendError(reason(&error)))
    }

    fn client(&self, target: (String, u16)) -> Result<HttpClient, SendError> {
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(&target) {
            return Ok(client.clone());
        }
        let name = format!("{}.{}.svc", self.service, self.namespace);
        let connector = Connector::new(target.clone(), &name, &self.trust)
            .map_err(|error| SendError(error.0))?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .build(connector);
        if clients.len() >= TARGETS_MAX {
            clients.pop_first();
        }
        clients.insert(target, client.clone());
        Ok(client)
    }
}

/// Formats `host:port`, with brackets around an IPv6 address.
pub(super) fn authority((host, port): &(String, u16)) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
