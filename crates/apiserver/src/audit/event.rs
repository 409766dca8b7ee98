//! One line of the audit log: an Event of `audit.k8s.io/v1`, with its fields in the order of
//! kube-apiserver.

use std::collections::BTreeMap;

use api_meta::status::Status;
use serde::Serialize;
use serde_json::{Value, json};

use super::policy::{AuditLevel, Stage};
use crate::attributes::UserInfo;
use crate::request::RequestInfo;

/// The size of one event, in bytes. A larger event is written without bodies and with an
/// annotation.
pub const EVENT_SIZE_MAX: usize = 100 * 1024;
/// The annotation of an event without its bodies.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// An audit event. See the Kubernetes API reference for its fields.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    kind: &'static str,
    api_version: &'static str,
    /// The name of an [`AuditLevel`].
    pub level: &'static str,
    #[serde(rename = "auditID")]
    pub audit_id: String,
    /// The name of a [`Stage`].
    pub stage: &'static str,
    /// Path and query.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    pub verb: &'static str,
    pub user: User,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impersonated_user: Option<User>,
    /// The addresses of the client and of proxies, the client first.
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    pub source_ips: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_ref: Option<ObjectRef>,
    /// The fields of a `Status`, and the HTTP status as `code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_status: Option<Value>,
    /// The request body at the levels that include it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_object: Option<Value>,
    /// The response body at the level that includes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_object: Option<Value>,
    /// RFC 3339, to the microsecond.
    pub request_received_timestamp: String,
    /// RFC 3339, to the microsecond.
    pub stage_timestamp: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The caller, or the user whom the caller impersonates.
#[derive(Clone, Debug, Default, Serialize)]
pub struct User {
    #[serde(skip_serializing_if = "String::is_empty")]
    username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, Vec<String>>,
}

impl From<&UserInfo> for User {
    fn from(user: &UserInfo) -> Self {
        Self {
            username: user.name.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: user.extra.clone(),
        }
    }
}

/// The object or resource of a request.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    pub resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    pub api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

impl ObjectRef {
    /// The reference in the path of a request; `None` for a path that is no resource.
    pub fn of(info: &RequestInfo) -> Option<Self> {
        info.is_resource.then(|| Self {
            resource: info.resource.clone(),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            api_group: info.group.clone(),
            api_version: info.version.clone(),
            subresource: info.subresource.clone(),
            ..Self::default()
        })
    }

    /// Adds what the metadata of the request's object says and the path does not.
    pub fn complete(&mut self, object: &Value) {
        for (field, name) in [
            (&mut self.namespace, "namespace"),
            (&mut self.name, "name"),
            (&mut self.uid, "uid"),
            (&mut self.resource_version, "resourceVersion"),
        ] {
            if field.is_empty() {
                *field = object["metadata"][name].as_str().unwrap_or_default().to_owned();
            }
        }
    }
}

/// The current time in RFC 3339, to the microsecond.
pub fn now() -> String {
    time(jiff::Timestamp::now())
}

/// Formats a time in RFC 3339, to the microsecond.
pub fn time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

impl Event {
    /// Creates the event of a request that has just arrived. Both times are now.
    pub fn new(level: AuditLevel, audit_id: &str, request_uri: &str, info: &RequestInfo) -> Self {
        let now = now();
        Self {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: level.as_str(),
            audit_id: audit_id.to_owned(),
            stage: Stage::RequestReceived.as_str(),
            request_uri: request_uri.to_owned(),
            verb: info.verb,
            user: User::default(),
            impersonated_user: None,
            source_ips: Vec::new(),
            user_agent: String::new(),
            object_ref: ObjectRef::of(info),
            response_status: None,
            request_object: None,
            response_object: None,
            request_received_timestamp: now.clone(),
            stage_timestamp: now,
            annotations: BTreeMap::new(),
        }
    }

    /// Encodes the event as a line, including its newline. Removes bodies that exceed
    /// [`EVENT_SIZE_MAX`].
    pub fn line(&mut self) -> Vec<u8> {
        let encode = |event: &Self| {
            let mut line = serde_json::to_vec(event).expect("texts and trees serialise");
            line.push(b'\n');
            line
        };
        let line = encode(self);
        if line.len() <= EVENT_SIZE_MAX {
            return line;
        }
        (self.request_object, self.response_object) = (None, None);
        self.annotations.insert(TRUNCATED.to_owned(), "true".to_owned());
        encode(self)
    }
}

/// The fields of a `Status` that are recorded at every level, with the HTTP status `code`.
pub fn status_of(status: &Value, code: u16) -> Value {
    let mut recorded = json!({"metadata": {}});
    for field in ["status", "message", "reason", "details"] {
        if !status[field].is_null() {
            recorded[field] = status[field].clone();
        }
    }
    recorded["code"] = code.into();
    recorded
}

/// Like [`status_of`], for a `Status` with its own code.
pub fn refusal(status: &Status) -> Value {
    status_of(&status.to_json(), status.code)
}

/// Removes `managedFields` from an object, and from the items of a list.
pub fn drop_managed_fields(object: &mut Value) {
    let drop = |object: &mut Value| {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    };
    drop(object);
    let items = object.get_mut("items").and_then(Value::as_array_mut);
    items.into_iter().flatten().for_each(drop);
}
