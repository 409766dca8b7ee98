//! The context of one request, from its arrival to the end of its response: what is known of it,
//! for headers, metrics and the audit log.

use std::sync::Arc;
use std::time::Instant;

use api_meta::status::Status;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode, request};
use http_body_util::BodyExt;
use serde_json::Value;

use crate::attributes::UserInfo;
use crate::audit::event::EVENT_SIZE_MAX;
use crate::audit::{Audit, Record};
use crate::body::ending::GuardedBody;
use crate::body::negotiate::{self, ResponseFormat};
use crate::body::respond::{self, Body};
use crate::catalog::Catalog;
use crate::connect::LONG_RUNNING;
use crate::connect::LongRunning;
use crate::flow_control::FlowSchemaHeaders;
use crate::metrics::{Counted, Labels, Metrics};
use crate::request::{Query, RequestInfo};
use crate::resource::Resource;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const FLOW_SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// Bytes of the longest response that is parsed to find a `Status`.
const STATUS_SIZE_MAX: usize = 4 * 1024;
/// Annotation of an event whose body was too large to be recorded.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// The context of one request. Dropping it before [`RequestContext::finish`] records that the
/// client disconnected.
pub struct RequestContext {
    pub info: RequestInfo,
    pub query: Query,
    /// The resource that the request addresses, if it exists.
    pub resource: Option<Arc<Resource>>,
    /// How the request was classified, once it was.
    pub flow_schema_headers: Option<FlowSchemaHeaders>,
    metrics: Arc<Metrics>,
    labels: Labels,
    counted: Option<Counted>,
    audit_id: HeaderValue,
    record: Option<Record>,
    format: ResponseFormat,
    begun: Instant,
    /// The HTTP code of a long-running response.
    long_running_code: Option<u16>,
    ended: bool,
}

impl RequestContext {
    /// Parses the request, and counts it as being handled.
    pub fn begin(parts: &request::Parts, metrics: &Arc<Metrics>, catalog: &Catalog) -> Self {
        let query = Query::parse(parts.uri.query());
        let info = RequestInfo::parse(&parts.method, parts.uri.path(), &query);
        let resource = catalog.get(&info.group, &info.version, &info.resource).cloned();
        let resource = resource.filter(|_| info.is_resource);
        let media = negotiate::content_type(&parts.headers);
        let is_apply = media.is_some_and(|media| media.starts_with("application/apply-patch"));
        let labels = Labels::new(&info, &query, resource.is_some(), is_apply);
        let reads = matches!(info.verb, "get" | "list" | "head" | "options");
        let counted = (!is_long_running(&info)).then(|| metrics.in_flight(reads));
        let given = parts.headers.get(AUDIT_ID).cloned();
        let audit_id = given.unwrap_or_else(|| {
            HeaderValue::from_str(&crate::stored::new_uid()).expect("a UID is a header value")
        });
        Self {
            info,
            query,
            resource,
            flow_schema_headers: None,
            metrics: metrics.clone(),
            labels,
            counted,
            audit_id,
            record: None,
            format: negotiate::refusal(&parts.headers),
            begun: Instant::now(),
            long_running_code: None,
            ended: false,
        }
    }

    /// Begins the audit record that the policy requires, and puts its [`Sink`](crate::audit::Sink)
    /// into the extensions of the request.
    pub fn record(&mut self, audit: &Arc<Audit>, parts: &mut request::Parts, user: &UserInfo) {
        let id = String::from_utf8_lossy(self.audit_id.as_bytes());
        self.record = audit.begin(parts, &id, &self.info, Some(user));
        if let Some(record) = &mut self.record {
            record.write_received();
            parts.extensions.insert(record.sink());
        }
    }

    /// Records a request that was not authenticated.
    pub fn record_unauthenticated(&mut self, audit: &Arc<Audit>, parts: &request::Parts) {
        let id = String::from_utf8_lossy(self.audit_id.as_bytes());
        if let Some(mut record) = audit.begin(parts, &id, &self.info, None) {
            record.write_unauthenticated(Status::unauthorized().to_json());
        }
    }

    /// Records that the caller acts as `user`.
    pub fn record_impersonation(&mut self, user: &UserInfo) {
        if let Some(record) = &mut self.record {
            record.set_impersonated_user(user);
        }
    }

    /// Records the decision of the authorizer (`allow` or `forbid`), and its reason.
    pub fn record_decision(&self, decision: &'static str, reason: &str) {
        if let Some(record) = &self.record {
            record.sink().annotate("authorization.k8s.io/decision", decision);
            record.sink().annotate("authorization.k8s.io/reason", reason);
        }
    }

    /// Ends a request whose handler panicked: an internal error of this request alone.
    pub fn finish_panicked(mut self) -> Response<Body> {
        let status = Status::internal("the request handler failed; see the server log");
        let response = self.with_headers(respond::refusal(self.format, &status));
        if let Some(mut record) = self.record.take() {
            record.write_panicked(&status);
        }
        self.count(status.code);
        response
    }

    /// Ends the request: adds the headers to the response, and reports it to metrics and audit. A
    /// long-running response is reported when its body ends.
    pub async fn finish(mut self, response: Result<Response<Body>, Status>) -> Response<Body> {
        let refused = response.as_ref().err().map(Status::to_json);
        let response = response.unwrap_or_else(|status| respond::refusal(self.format, &status));
        let response = self.with_headers(response);
        let code = response.status().as_u16();
        let is_open =
            response.status().is_success() || response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if is_long_running(&self.info) && is_open {
            return self.continue_long_running(response, code);
        }
        self.counted = None;
        let Some(mut record) = self.record.take() else {
            self.count(code);
            return response;
        };
        let (body, response) = match refused {
            Some(status) => (Some(status), response),
            None => self.recorded_body(&record, response).await,
        };
        record.write_complete(code, body);
        self.count(code);
        response
    }

    fn with_headers(&self, mut response: Response<Body>) -> Response<Body> {
        let headers = response.headers_mut();
        headers.insert(AUDIT_ID, self.audit_id.clone());
        if let Some(flow_schema_headers) = &self.flow_schema_headers {
            headers.insert(FLOW_SCHEMA_UID, flow_schema_headers.flow_schema_uid.clone());
            headers.insert(PRIORITY_LEVEL_UID, flow_schema_headers.priority_level_uid.clone());
        }
        response
    }

    /// A long-running response: the context ends with its body, or with the connection that follows
    /// it.
    fn continue_long_running(mut self, mut response: Response<Body>, code: u16) -> Response<Body> {
        self.counted = Some(self.metrics.long_running(&self.labels));
        self.long_running_code = Some(code);
        if let Some(record) = &mut self.record {
            record.write_started(code);
        }
        if let Some(long_running) = response.extensions_mut().remove::<LongRunning>() {
            long_running.hold(self);
            return response;
        }
        response.map(|body| GuardedBody::new(body, self).boxed_unsync())
    }

    /// The body of the response as the audit event contains it.
    async fn recorded_body(
        &self,
        record: &Record,
        response: Response<Body>,
    ) -> (Option<Value>, Response<Body>) {
        let may_be_status = self.info.verb == "delete";
        if !self.info.is_resource || !(record.records_response() || may_be_status) {
            return (None, response);
        }
        let (parts, body) = response.into_parts();
        let bytes = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(never) => match never {},
        };
        let protobuf = parts.headers.get(CONTENT_TYPE).is_some_and(|media| {
            media.as_bytes().starts_with(kubernetes_protobuf::MEDIA_TYPE.as_bytes())
        });
        let too_large = parts.headers.contains_key(CONTENT_ENCODING)
            || bytes.len()
                > if record.records_response() { EVENT_SIZE_MAX } else { STATUS_SIZE_MAX };
        let value = (!too_large).then(|| decode_body(&bytes, protobuf)).flatten();
        if too_large && record.records_response() {
            record.sink().annotate(TRUNCATED, "true");
        }
        (value, Response::from_parts(parts, respond::full(bytes)))
    }

    fn count(&mut self, code: u16) {
        self.ended = true;
        self.metrics.record_response(&self.labels, code, self.begun.elapsed());
    }
}

fn decode_body(bytes: &Bytes, protobuf: bool) -> Option<Value> {
    if protobuf {
        return kubernetes_protobuf::decode(bytes, None).ok();
    }
    serde_json::from_slice(bytes).ok()
}

/// Whether the response has no end of its own: watches, followed logs and connections.
pub fn is_long_running(info: &RequestInfo) -> bool {
    info.verb == "watch" || (info.is_resource && LONG_RUNNING.contains(&info.subresource.as_str()))
}

impl Drop for RequestContext {
    /// The end of a long-running response, or of a request whose client disconnected before the
    /// response.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        /// Not a standard code, but what proxies use.
        const CLIENT_DISCONNECTED: u16 = 499;
        let disconnected = || {
            let text = "the client disconnected; its request may have been carried out";
            Status::new(CLIENT_DISCONNECTED, "ClientGone", text).to_json()
        };
        if let Some(mut record) = self.record.take() {
            match self.long_running_code {
                Some(code) => record.write_complete(code, None),
                None => record.write_complete(CLIENT_DISCONNECTED, Some(disconnected())),
            }
        }
        let code = self.long_running_code.unwrap_or(CLIENT_DISCONNECTED);
        self.count(code);
    }
}
