//! One line of the audit log: an Event of `audit.k8s.io/v1`, fields in upstream's order.

use std::collections::BTreeMap;

use api_meta::status::Status;
use serde::Serialize;
use serde_json::{Value, json};

use super::policy::{Level, Stage};
use crate::attributes::UserInfo;
use crate::request::RequestInfo;

/// Bytes of one event. Above it goes without bodies, and says so.
pub const EVENT_SIZE_MAX: usize = 100 * 1024;
/// What an event without its bodies says.
const TRUNCATED: &str = "audit.k8s.io/truncated";

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    kind: &'static str,
    api_version: &'static str,
    pub level: &'static str,
    #[serde(rename = "auditID")]
    pub audit_id: String,
    pub stage: &'static str,
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    pub verb: &'static str,
    pub user: User,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impersonated_user: Option<User>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    pub source_ips: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_ref: Option<ObjectRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_object: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_object: Option<Value>,
    pub request_received_timestamp: String,
    pub stage_timestamp: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Who asked, or whom that one stood in for.
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

/// What was asked for.
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

    /// Takes over what the object of the request says and the path does not.
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

/// Now, to the microsecond.
pub fn now() -> String {
    time(jiff::Timestamp::now())
}

/// A time, to the microsecond.
pub fn time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

impl Event {
    /// Of a request that has just come in.
    pub fn new(level: Level, audit_id: &str, request_uri: &str, info: &RequestInfo) -> Self {
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

    /// The line, its end included. Bodies that make it too long are left out.
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

/// The part of a `Status` that is told at every level.
pub fn status_of(status: &Value, code: u16) -> Value {
    let mut told = json!({"metadata": {}});
    for field in ["status", "message", "reason", "details"] {
        if !status[field].is_null() {
            told[field] = status[field].clone();
        }
    }
    told["code"] = code.into();
    told
}

/// The same of a refusal.
pub fn refusal(status: &Status) -> Value {
    status_of(&status.to_json(), status.code)
}

/// Takes `managedFields` out of an object, and of the items of a list.
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
