//! One other server: where it is, how it is believed, the connections to it.

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
use super::proxy::tell_user;
use crate::attributes::{GROUP_MASTERS, UserInfo};
use crate::body::BoxError;
use crate::fields::str_of;
use crate::registry::Registry;
use crate::webhook::{Connector, Trust, reason};

/// Who this server is when it asks on its own account.
const OWN_NAME: &str = "system:kube-aggregator";
/// An answer to such a question must be there within this, and not be larger.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
const ANSWER_SIZE_MAX: usize = 16 * 1024 * 1024;
/// Endpoints of one server whose connections are kept.
const TARGETS_MAX: usize = 8;
/// How long a connection without a request is kept.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// The body of a request on its way to another server.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, BoxError>;
type HttpClient = Client<Connector, RequestBody>;

/// Why there is no answer. Text in the words of Go's `net/http`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SendError(pub String);

/// See the module. Another spec of the APIService is another value.
pub(crate) struct Remote {
    pub namespace: String,
    pub service: String,
    pub port: u16,
    trust: Trust,
    clients: Mutex<BTreeMap<(String, u16), HttpClient>>,
    /// Told when it should be looked at again, before it is time.
    pub(super) doubted: Notify,
}

impl Remote {
    /// From a validated `spec` that names a Service.
    pub(super) fn of(spec: &Value, front_proxy: Option<&FrontProxy>) -> Self {
        let service = &spec["service"];
        let bundle = str_of(&spec["caBundle"]);
        let port = service["port"].as_u64().and_then(|port| port.try_into().ok());
        let trust = Trust {
            // What does not decode is no reason to believe the machine's authorities.
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
            doubted: Notify::new(),
        }
    }

    /// Where it is at the moment.
    ///
    /// # Errors
    /// The Service leads nowhere.
    pub(super) async fn target(&self, registry: &Registry) -> Result<(String, u16), SendError> {
        registry.service_target(&self.namespace, &self.service, self.port).await.map_err(SendError)
    }

    /// Sends a request whose URI is a path, over HTTP/1.1. The body of the answer has no deadline.
    ///
    /// # Errors
    /// The server cannot be reached or is not believed; it is then looked at again soon.
    pub(crate) async fn send(
        &self,
        registry: &Registry,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendError> {
        let sent = self.try_send(registry, request).await;
        if sent.is_err() {
            self.doubted.notify_one();
        }
        sent
    }

    /// Asks on this server's own account, with every right, and reads the whole answer.
    ///
    /// # Errors
    /// As [`Remote::send`], also when it takes longer than [`ANSWER_TIME_MAX`] or is larger than
    /// [`ANSWER_SIZE_MAX`].
    pub(crate) async fn ask(
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
        tell_user(request.headers_mut(), &UserInfo::new(OWN_NAME, &[GROUP_MASTERS]));
        let answer = async {
            let (parts, body) = self.try_send(registry, request).await?.into_parts();
            let body = Limited::new(body, ANSWER_SIZE_MAX).collect().await;
            let body = body.map_err(|error| SendError(reason(&*error)))?.to_bytes();
            Ok(Response::from_parts(parts, body))
        };
        let answered = tokio::time::timeout(ANSWER_TIME_MAX, answer).await;
        answered.unwrap_or_else(|_| Err(failed(&"context deadline exceeded")))
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

/// `host:port`, brackets around an IPv6 address.
pub(super) fn authority((host, port): &(String, u16)) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
