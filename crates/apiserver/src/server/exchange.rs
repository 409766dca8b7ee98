//! One request from its coming in to the end of its answer: what is known of it, for all that is
//! told of it besides the answer: headers, metrics and the audit log.

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
use crate::body::ending::Ending;
use crate::body::negotiate::{self, Format};
use crate::body::respond::{self, Body};
use crate::catalog::Catalog;
use crate::connect::LONG_RUNNING;
use crate::connect::LongRunning;
use crate::flow_control::Marks;
use crate::metrics::{Counted, Labels, Metrics};
use crate::request::{Query, RequestInfo};
use crate::resource::Resource;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const FLOW_SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// Longest answer that is looked through for a `Status`.
const STATUS_SIZE_MAX: usize = 4 * 1024;
/// What an event says whose body was too large to be recorded.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// See the module.
pub struct Exchange {
    pub info: RequestInfo,
    pub query: Query,
    /// What the request is for, if there is such a resource.
    pub resource: Option<Arc<Resource>>,
    /// By what its turn was decided.
    pub marks: Option<Marks>,
    metrics: Arc<Metrics>,
    labels: Labels,
    counted: Option<Counted>,
    audit_id: HeaderValue,
    record: Option<Record>,
    form: Format,
    begun: Instant,
    /// The code of an answer that goes on for long.
    goes_on: Option<u16>,
    ended: bool,
}

impl Exchange {
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
            marks: None,
            metrics: metrics.clone(),
            labels,
            counted,
            audit_id,
            record: None,
            form: negotiate::refusal(&parts.headers),
            begun: Instant::now(),
            goes_on: None,
            ended: false,
        }
    }

    /// Begins to record, as the policy wants it. The sink goes with the request.
    pub fn record(&mut self, audit: &Arc<Audit>, parts: &mut request::Parts, user: &UserInfo) {
        let id = String::from_utf8_lossy(self.audit_id.as_bytes());
        self.record = audit.begin(parts, &id, &self.info, Some(user));
        if let Some(record) = &mut self.record {
            record.received();
            parts.extensions.insert(record.sink());
        }
    }

    /// Records a request that nobody proved to be behind.
    pub fn record_unauthenticated(&mut self, audit: &Arc<Audit>, parts: &request::Parts) {
        let id = String::from_utf8_lossy(self.audit_id.as_bytes());
        if let Some(mut record) = audit.begin(parts, &id, &self.info, None) {
            record.unauthenticated(Status::unauthorized().to_json());
        }
    }

    /// The asker acts as `user`.
    pub fn impersonated(&mut self, user: &UserInfo) {
        if let Some(record) = &mut self.record {
            record.impersonated(user);
        }
    }

    /// Notes whether the request was allowed, and why.
    pub fn authorized(&self, decision: &'static str, reason: &str) {
        if let Some(record) = &self.record {
            record.sink().annotate("authorization.k8s.io/decision", decision);
            record.sink().annotate("authorization.k8s.io/reason", reason);
        }
    }

    /// The handler failed: an internal error of this request alone.
    pub fn panicked(mut self) -> Response<Body> {
        let status = Status::internal("the request handler failed; see the server log");
        let response = self.marked(respond::refusal(self.form, &status));
        if let Some(mut record) = self.record.take() {
            record.panicked(&status);
        }
        self.count(status.code);
        response
    }

    /// Tells of the answer, and gives it its headers.
    pub async fn answered(mut self, answer: Result<Response<Body>, Status>) -> Response<Body> {
        let refused = answer.as_ref().err().map(Status::to_json);
        let response = answer.unwrap_or_else(|status| respond::refusal(self.form, &status));
        let response = self.marked(response);
        let code = response.status().as_u16();
        let goes_on =
            response.status().is_success() || response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if is_long_running(&self.info) && goes_on {
            return self.go_on(response, code);
        }
        self.counted = None;
        let Some(mut record) = self.record.take() else {
            self.count(code);
            return response;
        };
        let (body, response) = match refused {
            Some(status) => (Some(status), response),
            None => self.recorded(&record, response).await,
        };
        record.complete(code, body);
        self.count(code);
        response
    }

    fn marked(&self, mut response: Response<Body>) -> Response<Body> {
        let headers = response.headers_mut();
        headers.insert(AUDIT_ID, self.audit_id.clone());
        if let Some(marks) = &self.marks {
            headers.insert(FLOW_SCHEMA_UID, marks.flow_schema_uid.clone());
            headers.insert(PRIORITY_LEVEL_UID, marks.priority_level_uid.clone());
        }
        response
    }

    /// An answer whose end is not now: the exchange ends with its body, or with what follows it.
    fn go_on(mut self, mut response: Response<Body>, code: u16) -> Response<Body> {
        self.counted = Some(self.metrics.long_running(&self.labels));
        self.goes_on = Some(code);
        if let Some(record) = &mut self.record {
            record.started(code);
        }
        if let Some(long_running) = response.extensions_mut().remove::<LongRunning>() {
            long_running.hold(self);
            return response;
        }
        response.map(|body| Ending::new(body, self).boxed_unsync())
    }

    /// The answer's body as it is recorded.
    async fn recorded(
        &self,
        record: &Record,
        response: Response<Body>,
    ) -> (Option<Value>, Response<Body>) {
        let may_be_status = self.info.verb == "delete";
        if !self.info.is_resource || !(record.wants_response() || may_be_status) {
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
            || bytes.len() > if record.wants_response() { EVENT_SIZE_MAX } else { STATUS_SIZE_MAX };
        let value = (!too_large).then(|| decoded(&bytes, protobuf)).flatten();
        if too_large && record.wants_response() {
            record.sink().annotate(TRUNCATED, "true");
        }
        (value, Response::from_parts(parts, respond::full(bytes)))
    }

    fn count(&mut self, code: u16) {
        self.ended = true;
        self.metrics.answered(&self.labels, code, self.begun.elapsed());
    }
}

fn decoded(bytes: &Bytes, protobuf: bool) -> Option<Value> {
    if protobuf {
        return kubernetes_protobuf::decode(bytes, None).ok();
    }
    serde_json::from_slice(bytes).ok()
}

/// Whether the answer has no end of its own.
pub fn is_long_running(info: &RequestInfo) -> bool {
    info.verb == "watch" || (info.is_resource && LONG_RUNNING.contains(&info.subresource.as_str()))
}

impl Drop for Exchange {
    /// The end of a long answer, or of a request whose client did not wait for its answer.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        /// Not of the standard, and yet what proxies call it.
        const CLIENT_GONE: u16 = 499;
        let gone = || {
            let text = "the client went away; what it asked for may have been done";
            Status::new(CLIENT_GONE, "ClientGone", text).to_json()
        };
        if let Some(mut record) = self.record.take() {
            match self.goes_on {
                Some(code) => record.complete(code, None),
                None => record.complete(CLIENT_GONE, Some(gone())),
            }
        }
        let code = self.goes_on.unwrap_or(CLIENT_GONE);
        self.count(code);
    }
}
