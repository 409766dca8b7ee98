//! What Secrets of each kind hold, field by field.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rest_view::Mapper;
use serde_json::{Map, Value, json};

const DOCKER_CONFIG: &str = ".dockerconfigjson";
/// Annotations that say whose token it is.
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// A key of the Secret's data, as text.
pub(super) fn text(stored: &Value, key: &str) -> Option<String> {
    let bytes = STANDARD.decode(stored["data"].get(key)?.as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}

/// Puts text into the Secret's data; absent stays as it is, null removes.
pub(super) fn put(stored: &mut Value, key: &str, sent: Option<&Value>) {
    match sent {
        Some(Value::String(text)) => stored["data"][key] = STANDARD.encode(text).into(),
        Some(Value::Null) => {
            if let Some(data) = stored["data"].as_object_mut() {
                data.remove(key);
            }
        }
        _ => {}
    }
}

pub(super) fn show(stored: &Value, key: &str, fields: &mut Map<String, Value>, name: &str) {
    if let Some(text) = text(stored, key) {
        fields.insert(name.to_owned(), text.into());
    }
}

/// A name with a password.
pub struct BasicAuth;

impl Mapper for BasicAuth {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>) {
        show(stored, "username", fields, "username");
    }
    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        put(stored, "username", input.get("username"));
        put(stored, "password", input.get("password"));
    }
}

/// A key for SSH. Its fingerprint is not computed.
pub struct SshAuth;

impl Mapper for SshAuth {
    fn to_view(&self, _: &Value, _: &mut Map<String, Value>) {}

    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        let sent = input.get("privateKey").map(|sent| match sent.as_str() {
            // Input is trimmed, and programs for SSH take no key without its last line end.
            Some(key) if !key.ends_with('\n') => format!("{key}\n").into(),
            _ => sent.clone(),
        });
        put(stored, "ssh-privatekey", sent.as_ref());
    }
}

/// A token that Kubernetes created for a service account, or is requested to create.
pub struct ServiceAccountToken;

impl Mapper for ServiceAccountToken {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>) {
        for (name, key) in [("accountName", ACCOUNT_NAME), ("accountUid", ACCOUNT_UID)] {
            if let Some(found) = stored["metadata"]["annotations"].get(key) {
                fields.insert(name.to_owned(), found.clone());
            }
        }
        show(stored, "ca.crt", fields, "caCrt");
    }
    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        for (name, key) in [("accountName", ACCOUNT_NAME), ("accountUid", ACCOUNT_UID)] {
            if let Some(sent) = input.get(name).filter(|sent| sent.is_string()) {
                stored["metadata"]["annotations"][key] = sent.clone();
            }
        }
        put(stored, "ca.crt", input.get("caCrt"));
        put(stored, "token", input.get("token"));
    }
}

/// Logins at registries. A registry that is sent without a password retains its stored one.
pub struct DockerCredential;

impl DockerCredential {
    fn registries(stored: &Value) -> Map<String, Value> {
        let config = text(stored, DOCKER_CONFIG).unwrap_or_default();
        match serde_json::from_str::<Value>(&config).unwrap_or_default()["auths"].take() {
            Value::Object(registries) => registries,
            _ => Map::new(),
        }
    }
}

impl Mapper for DockerCredential {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>) {
        let shown = Self::registries(stored).into_iter().map(|(host, entry)| {
            let mut shown = json!({});
            for name in ["username", "email"] {
                if entry[name].is_string() {
                    shown[name] = entry[name].clone();
                }
            }
            (host, shown)
        });
        fields.insert("registries".to_owned(), Value::Object(shown.collect()));
    }

    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        let sent = match input.get("registries") {
            Some(sent) => sent.as_object().cloned().unwrap_or_default(),
            None if text(stored, DOCKER_CONFIG).is_some() => return,
            None => Map::new(),
        };
        let known = Self::registries(stored);
        let auths: Map<String, Value> = sent
            .into_iter()
            .map(|(host, entry)| {
                let known = known.get(&host).unwrap_or(&Value::Null);
                let entry = registry(&entry, known);
                (host, entry)
            })
            .collect();
        put(stored, DOCKER_CONFIG, Some(&json!({ "auths": auths }).to_string().into()));
    }
}

fn registry(sent: &Value, known: &Value) -> Value {
    let same_user = sent["username"].is_null() || sent["username"] == known["username"];
    let mut out = json!({});
    for name in ["username", "password", "email", "auth"] {
        let kept = if same_user { &known[name] } else { &Value::Null };
        let value = if sent[name].is_string() { &sent[name] } else { kept };
        if value.is_string() {
            out[name] = value.clone();
        }
    }
    // What clients of registries read; it must say the same.
    if let (Some(user), Some(password)) = (out["username"].as_str(), out["password"].as_str())
        && !sent["auth"].is_string()
    {
        out["auth"] = STANDARD.encode(format!("{user}:{password}")).into();
    }
    out
}
