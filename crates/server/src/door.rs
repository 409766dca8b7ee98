//! What a request leaves in the audit log when the management API does not record it: refusals,
//! logins, agents, requests to downstream clusters, and what the REST view answers itself.
//!
//! [`Door::open`] begins with the request, the router adds what it learns, [`DoorRecord::respond`]
//! writes the event. What the management API records of a request is not recorded again.

mod uri;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use api_meta::audit::{self as names, AuditEvent};
use apiserver::attributes::UserInfo;
use apiserver::audit::{Audit, Origin, Outside, Record};
use apiserver::body::ending::GuardedBody;
use apiserver::request::{Query, RequestInfo};
use apiserver::serve::PeerAddress;
use cluster_access::proxy::Relay;
use http::{Extensions, HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use jiff::Timestamp;
use parking_lot::Mutex;
use rest_view::audit::Noted;
use tokio_util::sync::CancellationToken;
use tunnel::{Accepted, ConnectAttempt, Observer};

use crate::authentication::Refusal;
use crate::router::{CLUSTERS, LOCAL, Outbound, is_public_view, is_view};

/// Code of a request whose client did not wait for the response.
const CLIENT_GONE: u16 = 499;
/// Longest time from the end of a minute to the event that says what was left out in it.
const SUMMARIZE_EVERY: Duration = Duration::from_secs(5);
/// Characters of an annotation's value.
const VALUE_LENGTH_MAX: usize = 256;
/// Who an agent is in events.
const AGENT: &str = "system:drover:agent:";
/// Headers of clients that request impersonation.
const IMPERSONATE_USER: &str = "impersonate-user";

/// Begins the records of requests. Cheap to clone.
#[derive(Clone)]
pub struct Door(Option<Arc<Audit>>);

/// One request. Clones are of the same one. Without an audit log it does nothing.
#[derive(Clone)]
pub struct DoorRecord(Option<Arc<Inner>>);

struct Inner {
    audit: Arc<Audit>,
    origin: Origin,
    method: Method,
    uri: Uri,
    impersonates: Option<String>,
    received_at: Timestamp,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    user: Option<UserInfo>,
    event: Option<AuditEvent>,
    cluster: Option<String>,
    annotations: Vec<(&'static str, String)>,
    /// Its event is written, or is the business of something else.
    is_over: bool,
}

/// Ends the record of a request whose client has gone.
pub struct Abandoned(DoorRecord);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.complete(CLIENT_GONE);
    }
}

impl Door {
    /// Records nothing without `audit`.
    pub fn new(audit: Option<Arc<Audit>>) -> Self {
        Self(audit)
    }

    /// Begins with a request, into whose extensions its origin goes for the management API.
    /// `sender`: who sent it, as far as proxies are trusted.
    pub fn open<B>(&self, request: &mut Request<B>, sender: Option<IpAddr>) -> DoorRecord {
        if self.0.is_none() {
            return DoorRecord(None);
        }
        let addresses = addresses(request.extensions(), sender);
        let origin = Origin::new(addresses, request.headers());
        request.extensions_mut().insert(origin.clone());
        self.begin(origin, request)
    }

    /// As [`Self::open`], for a request that is made for one that came from `origin`.
    pub fn begin<B>(&self, origin: Origin, request: &Request<B>) -> DoorRecord {
        let Some(audit) = &self.0 else { return DoorRecord(None) };
        DoorRecord(Some(Arc::new(Inner {
            audit: audit.clone(),
            origin,
            method: request.method().clone(),
            uri: request.uri().clone(),
            impersonates: impersonates(request.headers()),
            received_at: Timestamp::now(),
            state: Mutex::default(),
        })))
    }
}

/// Writes until `stop` how many events were left out; see [`apiserver::audit::strangers`].
pub async fn summarize(audit: Option<Arc<Audit>>, stop: CancellationToken) {
    let Some(audit) = audit else { return };
    let mut look = tokio::time::interval(SUMMARIZE_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = look.tick() => audit.summarize(),
        }
    }
}

/// The caller, and what stands between.
fn addresses(extensions: &Extensions, sender: Option<IpAddr>) -> Vec<IpAddr> {
    let peer = extensions.get::<PeerAddress>().map(|peer| peer.0.ip().to_canonical());
    let mut addresses: Vec<IpAddr> = sender.into_iter().chain(peer).collect();
    addresses.dedup();
    addresses
}

fn impersonates(headers: &HeaderMap) -> Option<String> {
    let user = headers.get(IMPERSONATE_USER)?.to_str().ok()?;
    Some(user.chars().take(VALUE_LENGTH_MAX).collect())
}

impl DoorRecord {
    fn update(&self, change: impl FnOnce(&mut State)) {
        if let Some(inner) = &self.0 {
            change(&mut inner.state.lock());
        }
    }

    /// Where the request comes from, for those that are made for it.
    pub fn origin(&self) -> Origin {
        self.0.as_ref().map(|inner| inner.origin.clone()).unwrap_or_default()
    }

    /// Who proved to be behind it.
    pub fn user(&self, user: impl FnOnce() -> UserInfo) {
        self.update(|state| state.user = Some(user()));
    }

    /// What it is, when its path does not say so.
    pub fn event(&self, event: AuditEvent) {
        self.update(|state| state.event = Some(event));
    }

    /// The downstream cluster that it is for.
    pub fn cluster(&self, cluster: &str) {
        self.update(|state| {
            state.cluster = Some(cluster.chars().take(VALUE_LENGTH_MAX).collect());
        });
    }

    /// Its credentials were refused.
    pub fn refuse(&self, refusal: &Refusal) {
        self.update(|state| match refusal {
            Refusal::Unauthenticated { token, reason, .. } => {
                state.event = Some(AuditEvent::CredentialRefused);
                state.annotations.push((names::REASON, reason.clone()));
                let token = token.iter().map(|token| (names::TOKEN, token.clone()));
                state.annotations.extend(token);
            }
            Refusal::CrossSite(problem) => {
                state.event = Some(AuditEvent::CrossSiteRefused);
                state.annotations.push((names::REASON, problem.to_string()));
            }
        });
    }

    /// Its credentials hold for something else.
    pub fn refuse_here(&self, reason: &str) {
        self.update(|state| {
            state.event = Some(AuditEvent::CredentialRefused);
            state.annotations.push((names::REASON, reason.to_owned()));
        });
    }

    /// Takes over what the view learnt.
    pub fn note(&self, noted: Noted) {
        self.update(|state| {
            state.event = noted.event.or(state.event);
            state.annotations.extend(noted.annotations);
            if let Some((id, login_name)) = noted.user {
                let extra = [("username".to_owned(), vec![login_name])].into();
                state.user = Some(UserInfo { name: id, extra, ..UserInfo::default() });
            }
        });
    }

    /// Whoever drops it before the response has left the request to nobody.
    pub fn abandoned(&self) -> Abandoned {
        Abandoned(self.clone())
    }

    /// The request is an agent's: its event says what came of it, and nothing else does.
    pub fn observer(&self) -> Observer {
        self.update(|state| state.is_over = true);
        let record = self.clone();
        Box::new(move |attempt| record.agent(&attempt))
    }

    fn agent(&self, attempt: &ConnectAttempt) {
        let Some(inner) = &self.0 else { return };
        let (event, code, reason) = match &attempt.result {
            Ok(Accepted::Registered) => (AuditEvent::AgentRegistered, 101, None),
            Ok(Accepted::Known) => (AuditEvent::AgentConnected, 101, None),
            Err(refusal) => (AuditEvent::AgentRefused, refusal.code, Some(&refusal.message)),
        };
        self.update(|state| {
            state.is_over = false;
            state.event = Some(event);
            state.cluster = attempt.cluster.as_ref().map(|cluster| cluster.to_string());
            let hello = attempt.hello.iter();
            state.annotations.extend(hello.flat_map(|hello| {
                [
                    (names::AGENT_KEY, hello.key.to_string()),
                    (names::AGENT_VERSION, hello.agent_version.clone()),
                ]
            }));
            state.annotations.extend(reason.map(|reason| (names::REASON, reason.clone())));
            if let (Ok(_), Some(cluster)) = (&attempt.result, &attempt.cluster) {
                let name = format!("{AGENT}{cluster}");
                state.user = Some(UserInfo { name, ..UserInfo::default() });
            }
        });
        if let Some(mut record) = inner.end(code) {
            record.write_complete(code, None);
        }
    }

    /// Writes the event of a response, or what has begun of it.
    pub fn respond(&self, mut response: Response<Outbound>) -> Response<Outbound> {
        let Some(inner) = &self.0 else { return response };
        let code = response.status().as_u16();
        let relay = response.extensions_mut().remove::<Relay>();
        let has_begun =
            response.status().is_success() || response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let goes_on = relay.is_some() || has_begun && inner.is_long_running();
        let Some(mut record) = inner.end(code) else { return response };
        if !goes_on {
            record.write_complete(code, None);
            return response;
        }
        record.write_started(code);
        let ending = LongRunning { record, code };
        match relay {
            Some(relay) => {
                relay.hold(ending);
                response
            }
            None => response.map(|body| GuardedBody::new(body, ending).boxed_unsync()),
        }
    }

    fn complete(&self, code: u16) {
        let record = self.0.as_ref().and_then(|inner| inner.end(code));
        if let Some(mut record) = record {
            record.write_complete(code, None);
        }
    }
}

/// A response that goes on; its end is an event, too.
struct LongRunning {
    record: Record,
    code: u16,
}

impl Drop for LongRunning {
    fn drop(&mut self) {
        self.record.write_complete(self.code, None);
    }
}

impl Inner {
    /// Makes the record, once, of a request that is to have one.
    fn end(&self, code: u16) -> Option<Record> {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.is_over, true) {
            return None;
        }
        let path = self.uri.path();
        let event = state.event.or_else(|| self.event_of_path(code, state.user.is_some()))?;
        let changes = !matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if event == AuditEvent::Request && self.origin.is_recorded(changes) {
            return None;
        }
        let mut record = self.audit.begin_outside(&Outside {
            uri: &uri::recorded(&self.uri),
            info: &self.info(),
            user: state.user.as_ref(),
            origin: &self.origin,
            received_at: self.received_at,
            event,
        })?;
        let sink = record.sink();
        if downstream(path).is_some()
            && let Some(user) = &self.impersonates
        {
            record.set_requested_user(user);
        }
        if let Some(cluster) = state.cluster.take() {
            sink.annotate(names::CLUSTER, cluster);
        }
        for (name, value) in state.annotations.drain(..) {
            sink.annotate(name, value.chars().take(VALUE_LENGTH_MAX).collect::<String>());
        }
        Some(record)
    }

    /// What a request is of which nothing else is known; `None`: no event.
    fn event_of_path(&self, code: u16, is_known: bool) -> Option<AuditEvent> {
        let path = self.uri.path();
        let refused = code == StatusCode::UNAUTHORIZED.as_u16() && !is_known;
        if downstream(path).is_some() {
            return Some(if refused { AuditEvent::CredentialRefused } else { AuditEvent::Proxied });
        }
        if is_public_view(path) && !is_known && self.method == Method::GET {
            // What the login page reads.
            return None;
        }
        let of_view = if refused { AuditEvent::CredentialRefused } else { AuditEvent::Request };
        is_view(path).then_some(of_view)
    }

    /// What is requested: of a downstream cluster, in its own terms.
    fn info(&self) -> RequestInfo {
        let query = Query::parse(self.uri.query());
        let path = self.uri.path();
        let path = downstream(path).map_or(path, |(_, below)| below);
        let mut info = RequestInfo::parse(&self.method, path, &query);
        if let Some((first, _)) = info.subresource.split_once('/') {
            info.subresource = first.to_owned();
        }
        info
    }

    fn is_long_running(&self) -> bool {
        let info = self.info();
        let follows = || Query::parse(self.uri.query()).flag("follow");
        info.verb == "watch" || info.subresource == "log" && follows()
    }
}

/// The downstream cluster that a path is for, and the path there.
fn downstream(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix(CLUSTERS)?;
    let (cluster, below) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    (cluster != LOCAL).then_some((cluster, below))
}
