//! The audit log: who asked for what, in whose name, and what came of it.
//!
//! [`policy`] says which requests are recorded and how much of them, [`event`] is what is written,
//! [`log`] the file. A [`Record`] goes with one request; handlers and admission add to it through
//! its [`Sink`], which is in the request's extensions and in `WriteOptions`. A server in front of this
//! one says by [`Origin`] where a request comes from, and records its own by [`Audit::begin_outside`].

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
use policy::{Level, Policy, Sensitive, Stage, Verdict};
use strangers::{Strangers, Summary};

/// What is recorded where.
pub struct AuditSettings {
    pub policy: Policy,
    pub log: LogSettings,
    /// Beyond [`policy::SENSITIVE`].
    pub sensitive: Vec<Sensitive>,
}

/// What a program is told about its audit log, by kube-apiserver's flags.
#[derive(Clone, Debug, Default)]
pub struct AuditFlags {
    /// Absent: nothing is recorded.
    pub log_path: Option<PathBuf>,
    /// Absent: metadata of everything but health checks.
    pub policy_file: Option<PathBuf>,
    /// Megabytes of one file; absent is [`LOG_SIZE_MEGABYTES`].
    pub log_maxsize: Option<u32>,
    /// Earlier files, 0 for all; absent is [`LOG_BACKUPS`].
    pub log_maxbackup: Option<u32>,
    /// Days, 0 for ever; absent is [`LOG_AGE_DAYS`].
    pub log_maxage: Option<u32>,
}

/// Default size of one file.
pub const LOG_SIZE_MEGABYTES: u32 = 100;
/// Default number of earlier files.
pub const LOG_BACKUPS: u32 = 9;
/// Default age at which earlier files go.
pub const LOG_AGE_DAYS: u32 = 30;

impl AuditFlags {
    /// What the flags come to; `None` without a log.
    ///
    /// # Errors
    /// The policy cannot be read or used, or flags contradict one another.
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
    fn read_policy(file: Option<&Path>) -> Result<Policy, String> {
        let Some(path) = file else { return Ok(Policy::default()) };
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("audit-policy-file: cannot read \"{shown}\": {error}"))?;
        Policy::parse(&text)
            .map_err(|problem| format!("audit-policy-file: \"{shown}\" cannot be used: {problem}"))
    }
}

/// The log and its policy. Share it in an `Arc`; dropping the last one writes what still waits.
pub struct Audit {
    policy: Policy,
    sensitive: Vec<Sensitive>,
    log: Log,
    metrics: Arc<Metrics>,
    strangers: Mutex<Strangers>,
    path: PathBuf,
}

/// A request that a server in front of the API answers itself, or sends elsewhere.
pub struct Outside<'a> {
    /// Path and query as they are to be recorded: without secrets.
    pub uri: &'a str,
    pub info: &'a RequestInfo,
    /// Absent: nobody proved to be behind it.
    pub user: Option<&'a UserInfo>,
    pub origin: &'a Origin,
    pub received_at: jiff::Timestamp,
    pub event: AuditEvent,
}

impl Audit {
    /// # Errors
    /// The log cannot be opened.
    pub fn open(settings: AuditSettings, metrics: Arc<Metrics>) -> io::Result<Self> {
        let mut sensitive = policy::SENSITIVE.to_vec();
        sensitive.extend(settings.sensitive);
        let path = settings.log.path.clone();
        let log = Log::open(settings.log, metrics.audit.lost.clone())?;
        let strangers = Mutex::new(Strangers::new(Instant::now()));
        Ok(Self { policy: settings.policy, sensitive, log, metrics, strangers, path })
    }

    /// Where the log is, for [`read::search`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins to record a request; `None` when the policy wants nothing of it. `user` is who has
    /// proved to be behind it, absent when nobody has.
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
        let verdict = self.policy.verdict(user, info, &self.sensitive);
        if verdict.level == Level::None {
            return None;
        }
        let uri = parts.uri.path_and_query().map_or("", |uri| uri.as_str());
        let mut event = Event::new(verdict.level, audit_id, uri, info);
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
        let sink = Sink { level: verdict.level, gathered: Arc::default() };
        Some(Record { audit: self.clone(), verdict, event, sink, stranger, kind: None })
    }

    /// Begins to record a request that is none of this API; `None` when the policy wants nothing of it. Never more
    /// than metadata.
    pub fn begin_outside(self: &Arc<Self>, request: &Outside<'_>) -> Option<Record> {
        let Outside { origin, info, .. } = request;
        if origin.is_silent() {
            return None;
        }
        let mut verdict = self.policy.verdict(request.user, info, &self.sensitive);
        if verdict.level == Level::None {
            return None;
        }
        verdict.level = Level::Metadata;
        origin.record(info.verb);
        let mut event = Event::new(verdict.level, &crate::stored::new_uid(), request.uri, info);
        event.request_received_timestamp = event::time(request.received_at);
        event.user = request.user.map(event::User::from).unwrap_or_default();
        event.source_ips = origin.source_ips();
        event.user_agent = origin.user_agent().to_owned();
        let stranger = is_stranger(request.user).then(|| Stranger { address: origin.sender() });
        shorten(&mut event, stranger.as_ref());
        let sink = Sink { level: verdict.level, gathered: Arc::default() };
        sink.annotate(names::EVENT, request.event.as_str());
        let kind = Some(request.event);
        Some(Record { audit: self.clone(), verdict, event, sink, stranger, kind })
    }

    /// Whether an event of a caller without credentials may be written; see [`strangers`].
    fn admit(&self, stranger: &Stranger, kind: AuditEvent) -> bool {
        let mut strangers = self.strangers.lock();
        let summary = strangers.turn(Instant::now(), false);
        let is_admitted = strangers.admit(stranger.address, kind);
        drop(strangers);
        self.write_summary(summary);
        if !is_admitted {
            self.metrics.audit.suppressed.inc();
        }
        is_admitted
    }

    /// Writes how many events of callers without credentials were left out in the minute before, if it is over. Call
    /// it now and then: it happens by itself only when the next of them comes, and at the end.
    pub fn summarize(&self) {
        let summary = self.strangers.lock().turn(Instant::now(), false);
        self.write_summary(summary);
    }

    fn write_summary(&self, summary: Option<Summary>) {
        let Some(summary) = summary else { return };
        let info = RequestInfo::default();
        let mut event = Event::new(Level::Metadata, &crate::stored::new_uid(), "", &info);
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
        let summary = self.strangers.lock().turn(Instant::now(), true);
        self.write_summary(summary);
    }
}

/// Nobody proved to be behind the request.
struct Stranger {
    address: Option<IpAddr>,
}

/// What a stranger writes is bounded in size, too.
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

/// Where the request says it comes from, the connection's other end last.
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

/// One request on its way, for the log.
pub struct Record {
    audit: Arc<Audit>,
    verdict: Verdict,
    event: Event,
    sink: Sink,
    /// Present: what it writes has a budget.
    stranger: Option<Stranger>,
    /// Absent: a request of this API.
    kind: Option<AuditEvent>,
}

/// Takes what is learnt of a request where it is learnt. Cheap to clone; does nothing by default.
#[derive(Clone, Debug)]
pub struct Sink {
    level: Level,
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
        Self { level: Level::None, gathered: Arc::default() }
    }
}

impl Sink {
    /// Adds an annotation to the event, such as `example.com/reason`. The first of a key stays.
    pub fn annotate(&self, key: &str, value: impl Into<String>) {
        if self.level == Level::None {
            return;
        }
        let annotations = &mut self.gathered.lock().annotations;
        if annotations.iter().all(|(known, _)| known != key) {
            annotations.push((key.to_owned(), value.into()));
        }
    }

    /// The object of the request. `complete` makes of it what it means, and is called only when
    /// that is recorded.
    pub fn request_object(&self, object: &Value, complete: impl FnOnce(Value) -> Value) {
        if self.level == Level::None {
            return;
        }
        let whole = (self.level >= Level::Request).then(|| complete(object.clone()));
        let mut gathered = self.gathered.lock();
        gathered.reference.complete(object);
        gathered.request = whole;
    }

    /// A body that is no object of the resource, such as a patch.
    pub fn request_body(&self, body: &Value) {
        if self.level >= Level::Request {
            self.gathered.lock().request = Some(body.clone());
        }
    }
}

impl Record {
    pub fn sink(&self) -> Sink {
        self.sink.clone()
    }

    /// Whether the body of the answer is recorded.
    pub fn wants_response(&self) -> bool {
        self.verdict.level == Level::RequestResponse
    }

    /// The asker acts as somebody else.
    pub fn impersonated(&mut self, user: &UserInfo) {
        self.event.impersonated_user = Some(user.into());
    }

    /// The caller asks to act as this user; whether that is granted is decided elsewhere.
    pub fn impersonates(&mut self, user: &str) {
        let user = UserInfo { name: user.to_owned(), ..UserInfo::default() };
        self.event.impersonated_user = Some((&user).into());
    }

    /// Writes that the request came in.
    pub fn received(&mut self) {
        self.write(Stage::RequestReceived);
    }

    /// Writes that an answer has begun that goes on for long.
    pub fn started(&mut self, code: u16) {
        self.event.response_status = Some(json!({"metadata": {}, "code": code}));
        self.write(Stage::ResponseStarted);
    }

    /// Writes that the request was not even looked at, because nobody proved to be behind it.
    pub fn unauthenticated(&mut self, status: Value) {
        self.event.response_status = Some(event::status_of(&status, 401));
        self.event.response_object = self.wants_response().then_some(status);
        self.write(Stage::ResponseStarted);
    }

    /// Writes that the handler failed.
    pub fn panicked(&mut self, status: &api_meta::status::Status) {
        self.event.response_status = Some(event::refusal(status));
        self.write(Stage::Panic);
    }

    /// Writes that the answer was sent. `body` is the answer when it is recorded, or a `Status`.
    pub fn complete(&mut self, code: u16, body: Option<Value>) {
        let status = body.as_ref().filter(|body| body["kind"] == "Status");
        self.event.response_status = Some(match status {
            Some(status) => event::status_of(status, code),
            None => json!({"metadata": {}, "code": code}),
        });
        if self.wants_response() {
            self.event.response_object = body;
        }
        self.write(Stage::ResponseComplete);
    }

    fn write(&mut self, stage: Stage) {
        if self.verdict.omit_stages.contains(&stage) {
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
        if self.verdict.omit_managed_fields {
            let bodies = [&mut event.request_object, &mut event.response_object];
            bodies.into_iter().flatten().for_each(event::drop_managed_fields);
        }
        self.audit.write(self.kind, event);
    }
}
