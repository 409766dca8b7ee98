//! The audit log: who requested what, in whose name, and with which result.
//!
//! [`policy`] decides which requests are recorded and in which detail, [`event`] is the written
//! line, [`log`] the file. A [`Record`] belongs to one request. Handlers and admission add to it
//! through its [`Sink`], which is in the request's extensions and in `WriteOptions`. A server in
//! front of this one passes the source of a request by [`Origin`], and records its own requests by
//! [`Audit::begin_outside`].

pub mod event;
pub mod log;
pub mod origin;
pub mod policy;
pub mod read;
pub mod strangers;

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use api_meta::audit::{self as names, AuditEvent};
use event::Event;
use http::{HeaderMap, request};
use log::{Log, LogSettings};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::attributes::{USER_ANONYMOUS, UserInfo};
use crate::metrics::Metrics;
use crate::request::RequestInfo;
use crate::serve::PeerAddress;

pub use origin::Origin;
use policy::{AuditDecision, AuditLevel, AuditPolicy, Sensitive, Stage};
use strangers::{Strangers, Summary};

/// What is recorded, and in which file.
pub struct AuditSettings {
    /// Which requests are recorded, and in which detail.
    pub policy: AuditPolicy,
    /// The file and its rotation.
    pub log: LogSettings,
    /// Sensitive resources in addition to [`policy::SENSITIVE`].
    pub sensitive: Vec<Sensitive>,
}

/// The audit flags of a program, with the names of kube-apiserver's.
#[derive(Clone, Debug, Default)]
pub struct AuditFlags {
    /// `None` records nothing.
    pub log_path: Option<PathBuf>,
    /// `None` records metadata of everything except health checks.
    pub policy_file: Option<PathBuf>,
    /// The size of one file in megabytes (MiB); `None` is [`LOG_SIZE_MEGABYTES`].
    pub log_maxsize: Option<u32>,
    /// The number of rotated files that are retained, 0 for all; `None` is [`LOG_BACKUPS`].
    pub log_maxbackup: Option<u32>,
    /// The age in days at which rotated files are deleted, 0 for never; `None` is [`LOG_AGE_DAYS`].
    pub log_maxage: Option<u32>,
}

/// The default size of one file.
pub const LOG_SIZE_MEGABYTES: u32 = 100;
/// The default number of rotated files.
pub const LOG_BACKUPS: u32 = 9;
/// The default age at which rotated files are deleted.
pub const LOG_AGE_DAYS: u32 = 30;

impl AuditFlags {
    /// Converts the flags to settings and reads the policy file; `None` without a log.
    ///
    /// # Errors
    /// The policy file cannot be read or is invalid, or flags contradict each other. The text names
    /// the flag; the caller does not start.
    pub fn resolve(&self) -> Result<Option<AuditSettings>, String> {
        let Some(path) = &self.log_path else {
            return match &self.policy_file {
                Some(_) => Err("audit-policy-file needs audit-log-path: where to write".to_owned()),
                None => Ok(None),
            };
        };
        let size = self.log_maxsize.unwrap_or(LOG_SIZE_MEGABYTES);
        if path.as_os_str() == "-" || size == 0 {
            let text = "audit-log-path must be a file, and audit-log-maxsize at least 1";
            return Err(text.to_owned());
        }
        let days = self.log_maxage.unwrap_or(LOG_AGE_DAYS);
        let log = LogSettings {
            path: path.clone(),
            size_max: u64::from(size) * 1024 * 1024,
            backups_max: self.log_maxbackup.unwrap_or(LOG_BACKUPS) as usize,
            age_max: Duration::from_secs(u64::from(days) * 24 * 60 * 60),
        };
        let policy = AuditSettings::read_policy(self.policy_file.as_deref())?;
        Ok(Some(AuditSettings { policy, log, sensitive: Vec::new() }))
    }
}

impl AuditSettings {
    /// The policy in a file, or the default one.
    fn read_policy(file: Option<&Path>) -> Result<AuditPolicy, String> {
        let Some(path) = file else { return Ok(AuditPolicy::default()) };
        let display_path = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            format!("audit-policy-file: cannot read \"{display_path}\": {error}")
        })?;
        AuditPolicy::parse(&text).map_err(|problem| {
            format!("audit-policy-file: \"{display_path}\" cannot be used: {problem}")
        })
    }
}

/// The audit log with its policy. Share it in an `Arc`; dropping the last one writes the queued
/// events.
pub struct Audit {
    policy: AuditPolicy,
    sensitive: Vec<Sensitive>,
    log: Log,
    metrics: Arc<Metrics>,
    strangers: Mutex<Strangers>,
    path: PathBuf,
}

/// A request that a server in front of the API handles itself or forwards.
pub struct Outside<'a> {
    /// Path and query to record, without secrets.
    pub uri: &'a str,
    /// The parsed request; its verb is recorded.
    pub info: &'a RequestInfo,
    /// `None` for a request without valid credentials.
    pub user: Option<&'a UserInfo>,
    /// Where the request comes from.
    pub origin: &'a Origin,
    /// When the request arrived.
    pub received_at: jiff::Timestamp,
    /// The kind of event, which is an annotation of it.
    pub event: AuditEvent,
}

impl Audit {
    /// Opens the log and starts its writer thread.
    ///
    /// # Errors
    /// The file cannot be opened for writing, or the thread cannot be started.
    pub fn open(settings: AuditSettings, metrics: Arc<Metrics>) -> io::Result<Self> {
        let mut sensitive = policy::SENSITIVE.to_vec();
        sensitive.extend(settings.sensitive);
        let path = settings.log.path.clone();
        let log = Log::open(settings.log, metrics.audit.lost.clone())?;
        let strangers = Mutex::new(Strangers::new(Instant::now()));
        Ok(Self { policy: settings.policy, sensitive, log, metrics, strangers, path })
    }

    /// The path of the log, for [`read::search`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins to record a request. `None` when the policy excludes it or its [`Origin`] is silent.
    /// `user` is the authenticated user, if any.
    pub fn begin(
        self: &Arc<Self>,
        parts: &request::Parts,
        audit_id: &str,
        info: &RequestInfo,
        user: Option<&UserInfo>,
    ) -> Option<Record> {
        let origin = parts.extensions.get::<Origin>();
        if origin.is_some_and(Origin::is_silent) {
            return None;
        }
        let decision = self.policy.decide(user, info, &self.sensitive);
        if decision.level == AuditLevel::None {
            return None;
        }
        let uri = parts.uri.path_and_query().map_or("", |uri| uri.as_str());
        let mut event = Event::new(decision.level, audit_id, uri, info);
        event.user = user.map(event::User::from).unwrap_or_default();
        let address;
        match origin {
            Some(origin) => {
                origin.record(info.verb);
                event.source_ips = origin.source_ips();
                event.user_agent = origin.user_agent().to_owned();
                address = origin.sender();
            }
            None => {
                event.source_ips = source_ips(parts);
                event.user_agent = origin::user_agent(&parts.headers);
                address = parts.extensions.get::<PeerAddress>().map(|peer| peer.0.ip());
            }
        }
        let stranger = is_stranger(user).then_some(Stranger { address });
        shorten(&mut event, stranger.as_ref());
        let sink = Sink { level: decision.level, gathered: Arc::default() };
        Some(Record { audit: self.clone(), decision, event, sink, stranger, kind: None })
    }

    /// Begins to record a request outside the API, at the level of metadata. `None` when the policy
    /// excludes it or its [`Origin`] is silent.
    pub fn begin_outside(self: &Arc<Self>, request: &Outside<'_>) -> Option<Record> {
        let Outside { origin, info, .. } = request;
        if origin.is_silent() {
            return None;
        }
        let mut decision = self.policy.decide(request.user, info, &self.sensitive);
        if decision.level == AuditLevel::None {
            return None;
        }
        decision.level = AuditLevel::Metadata;
        origin.record(info.verb);
        let mut event = Event::new(decision.level, &crate::stored::new_uid(), request.uri, info);
        event.request_received_timestamp = event::time(request.received_at);
        event.user = request.user.map(event::User::from).unwrap_or_default();
        event.source_ips = origin.source_ips();
        event.user_agent = origin.user_agent().to_owned();
        let stranger = is_stranger(request.user).then(|| Stranger { address: origin.sender() });
        shorten(&mut event, stranger.as_ref());
        let sink = Sink { level: decision.level, gathered: Arc::default() };
        sink.annotate(names::EVENT, request.event.as_str());
        let kind = Some(request.event);
        Some(Record { audit: self.clone(), decision, event, sink, stranger, kind })
    }

    /// Whether the budget allows an event of a caller without credentials; see [`strangers`].
    fn admit(&self, stranger: &Stranger, kind: AuditEvent) -> bool {
        let mut strangers = self.strangers.lock();
        let summary = strangers.begin_window(Instant::now(), false);
        let is_admitted = strangers.admit(stranger.address, kind);
        drop(strangers);
        self.write_summary(summary);
        if !is_admitted {
            self.metrics.audit.suppressed.inc();
        }
        is_admitted
    }

    /// Writes the number of suppressed events of callers without credentials in the last minute, if
    /// that minute is over. Call it regularly: it only runs by itself when the next such event
    /// occurs, and on drop.
    pub fn summarize(&self) {
        let summary = self.strangers.lock().begin_window(Instant::now(), false);
        self.write_summary(summary);
    }

    fn write_summary(&self, summary: Option<Summary>) {
        let Some(summary) = summary else { return };
        let info = RequestInfo::default();
        let mut event = Event::new(AuditLevel::Metadata, &crate::stored::new_uid(), "", &info);
        event.stage = Stage::ResponseComplete.as_str();
        event.request_received_timestamp = event::time(summary.since);
        event.source_ips = summary.addresses.iter().map(IpAddr::to_string).collect();
        let by_event: Vec<String> = summary
            .by_event
            .iter()
            .map(|(event, count)| format!("{}={count}", event.as_str()))
            .collect();
        event.annotations = [
            (names::EVENT.to_owned(), AuditEvent::Suppressed.as_str().to_owned()),
            (names::SUPPRESSED.to_owned(), summary.total.to_string()),
            (names::SUPPRESSED_EVENTS.to_owned(), by_event.join(",")),
        ]
        .into();
        self.write(Some(AuditEvent::Suppressed), &mut event);
    }

    fn write(&self, kind: Option<AuditEvent>, event: &mut Event) {
        self.metrics.audit.events.inc();
        if let Some(kind) = kind {
            self.metrics.audit.outside.with_label_values(&[kind.as_str()]).inc();
        }
        self.log.write(event.line());
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        let summary = self.strangers.lock().begin_window(Instant::now(), true);
        self.write_summary(summary);
    }
}

/// The caller of a request without valid credentials.
struct Stranger {
    address: Option<IpAddr>,
}

/// Truncates the texts that such a caller controls.
fn shorten(event: &mut Event, stranger: Option<&Stranger>) {
    if stranger.is_some() {
        for text in [&mut event.user_agent, &mut event.request_uri] {
            text.truncate(text.floor_char_boundary(strangers::TEXT_BYTES_MAX));
        }
    }
}

fn is_stranger(user: Option<&UserInfo>) -> bool {
    user.is_none_or(|user| user.name == USER_ANONYMOUS)
}

/// The addresses in the forwarding headers of the request, then that of the peer.
fn source_ips(parts: &request::Parts) -> Vec<String> {
    let list = |headers: &HeaderMap, name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let hops = values.flat_map(|value| value.split(','));
        let addresses = hops.filter_map(|hop| hop.trim().parse::<std::net::IpAddr>().ok());
        addresses.map(|address| address.to_string()).collect()
    };
    let mut all = list(&parts.headers, "x-forwarded-for");
    for address in list(&parts.headers, "x-real-ip") {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    if let Some(peer) = parts.extensions.get::<PeerAddress>() {
        let peer = peer.0.ip().to_canonical().to_string();
        if all.last() != Some(&peer) {
            all.push(peer);
        }
    }
    all
}

/// The audit record of one request. Each stage writes an event, unless the policy omits it.
pub struct Record {
    audit: Arc<Audit>,
    decision: AuditDecision,
    event: Event,
    sink: Sink,
    /// Set for a request without valid credentials, whose events have a budget.
    stranger: Option<Stranger>,
    /// `None` for a request of this API.
    kind: Option<AuditEvent>,
}

/// Collects facts about a request for its events. Cheap to clone; the default one discards
/// everything.
#[derive(Clone, Debug)]
pub struct Sink {
    level: AuditLevel,
    gathered: Arc<Mutex<Gathered>>,
}

#[derive(Debug, Default)]
struct Gathered {
    annotations: Vec<(String, String)>,
    reference: event::ObjectRef,
    request: Option<Value>,
}

impl Default for Sink {
    fn default() -> Self {
        Self { level: AuditLevel::None, gathered: Arc::default() }
    }
}

impl Sink {
    /// Adds an annotation to the event, such as `example.com/reason`. The first value of a key is
    /// retained.
    pub fn annotate(&self, key: &str, value: impl Into<String>) {
        if self.level == AuditLevel::None {
            return;
        }
        let annotations = &mut self.gathered.lock().annotations;
        if annotations.iter().all(|(known, _)| known != key) {
            annotations.push((key.to_owned(), value.into()));
        }
    }

    /// Records the object of the request. `complete` converts it to what the request means, and is
    /// called only when the body is recorded.
    pub fn request_object(&self, object: &Value, complete: impl FnOnce(Value) -> Value) {
        if self.level == AuditLevel::None {
            return;
        }
        let whole = (self.level >= AuditLevel::Request).then(|| complete(object.clone()));
        let mut gathered = self.gathered.lock();
        gathered.reference.complete(object);
        gathered.request = whole;
    }

    /// Records a body that is no object of the resource, such as a patch.
    pub fn request_body(&self, body: &Value) {
        if self.level >= AuditLevel::Request {
            self.gathered.lock().request = Some(body.clone());
        }
    }
}

impl Record {
    /// The sink of this request.
    pub fn sink(&self) -> Sink {
        self.sink.clone()
    }

    /// Whether the response body is recorded.
    pub fn records_response(&self) -> bool {
        self.decision.level == AuditLevel::RequestResponse
    }

    /// Records the user whom the caller impersonates.
    pub fn set_impersonated_user(&mut self, user: &UserInfo) {
        self.event.impersonated_user = Some(user.into());
    }

    /// Records the user whom the caller requests to impersonate, before that is authorized.
    pub fn set_requested_user(&mut self, user: &str) {
        let user = UserInfo { name: user.to_owned(), ..UserInfo::default() };
        self.event.impersonated_user = Some((&user).into());
    }

    /// Writes the stage `RequestReceived`.
    pub fn write_received(&mut self) {
        self.write(Stage::RequestReceived);
    }

    /// Writes the stage `ResponseStarted` of a long-running response. `code` is its HTTP status.
    pub fn write_started(&mut self, code: u16) {
        self.event.response_status = Some(json!({"metadata": {}, "code": code}));
        self.write(Stage::ResponseStarted);
    }

    /// Writes the stage `ResponseStarted` of a request that was rejected with 401. `status` is the
    /// response body.
    pub fn write_unauthenticated(&mut self, status: Value) {
        self.event.response_status = Some(event::status_of(&status, 401));
        self.event.response_object = self.records_response().then_some(status);
        self.write(Stage::ResponseStarted);
    }

    /// Writes the stage `Panic` of a request whose handler panicked. `status` is the response body.
    pub fn write_panicked(&mut self, status: &api_meta::status::Status) {
        self.event.response_status = Some(event::refusal(status));
        self.write(Stage::Panic);
    }

    /// Writes the stage `ResponseComplete`. `code` is the HTTP status. `body` is the response body
    /// when it is recorded or a `Status`.
    pub fn write_complete(&mut self, code: u16, body: Option<Value>) {
        let status = body.as_ref().filter(|body| body["kind"] == "Status");
        self.event.response_status = Some(match status {
            Some(status) => event::status_of(status, code),
            None => json!({"metadata": {}, "code": code}),
        });
        if self.records_response() {
            self.event.response_object = body;
        }
        self.write(Stage::ResponseComplete);
    }

    fn write(&mut self, stage: Stage) {
        if self.decision.omit_stages.contains(&stage) {
            return;
        }
        if let Some(stranger) = &self.stranger
            && !self.audit.admit(stranger, self.kind.unwrap_or(AuditEvent::Request))
        {
            return;
        }
        let event = &mut self.event;
        event.stage = stage.as_str();
        if stage != Stage::RequestReceived {
            event.stage_timestamp = event::now();
            let gathered = self.sink.gathered.lock();
            event.annotations = gathered.annotations.iter().cloned().collect();
            event.request_object.clone_from(&gathered.request);
            if let Some(reference) = &mut event.object_ref {
                let known = &gathered.reference;
                for (field, value) in [
                    (&mut reference.namespace, &known.namespace),
                    (&mut reference.name, &known.name),
                    (&mut reference.uid, &known.uid),
                    (&mut reference.resource_version, &known.resource_version),
                ] {
                    if field.is_empty() {
                        field.clone_from(value);
                    }
                }
            }
        }
        if self.decision.omit_managed_fields {
            let bodies = [&mut event.request_object, &mut event.response_object];
            bodies.into_iter().flatten().for_each(event::drop_managed_fields);
        }
        self.audit.write(self.kind, event);
    }
}
