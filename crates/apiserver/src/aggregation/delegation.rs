//! How other servers come to believe whom this one serves: a certificate of an authority of its
//! own, and the objects from which they learn of it.

use std::sync::Arc;

use api_meta::status::Status;
use serde_json::{Value, json};

use crate::registry::{Registry, Target, WriteOptions};
use crate::strategy::Operation;

const NAMESPACE: &str = "kube-system";
/// ConfigMap with the authorities.
const CONFIG_MAP: &str = "extension-apiserver-authentication";
/// Role that lets it be read.
const READER: &str = "extension-apiserver-authentication-reader";
/// Common name of the certificate.
pub const COMMON_NAME: &str = "front-proxy-client";

/// The identity by which another server believes the headers that tell it a user.
#[derive(Clone)]
pub struct FrontProxy {
    /// PEM of the authority. It must vouch for nobody else: whoever has a certificate of it can be
    /// anybody.
    pub authority_pem: Arc<str>,
    /// PEM of a client certificate of that authority for [`COMMON_NAME`], and its key.
    pub certificate_pem: Arc<str>,
    pub key_pem: Arc<str>,
}

impl FrontProxy {
    pub(super) fn identity(&self) -> (Arc<str>, Arc<str>) {
        (self.certificate_pem.clone(), self.key_pem.clone())
    }
}

/// Writes what aggregated servers read: authorities and header names, and the right to read them.
/// Authorities that other replicas of this server have written stay.
///
/// # Errors
/// The storage's.
pub async fn publish(
    registry: &Registry,
    front_proxy: &FrontProxy,
    client_authorities_pem: Option<&str>,
) -> Result<(), Status> {
    let names = |names: &[&str]| json!(names).to_string();
    let mut data = json!({
        "requestheader-allowed-names": names(&[COMMON_NAME]),
        "requestheader-username-headers": names(&["X-Remote-User"]),
        "requestheader-uid-headers": names(&["X-Remote-Uid"]),
        "requestheader-group-headers": names(&["X-Remote-Group"]),
        "requestheader-extra-headers-prefix": names(&["X-Remote-Extra-"]),
        "requestheader-client-ca-file": &*front_proxy.authority_pem,
    });
    if let Some(pem) = client_authorities_pem {
        data["client-ca-file"] = pem.into();
    }
    let map = json!({"metadata": {"name": CONFIG_MAP}, "data": data});
    put(registry, "", "configmaps", CONFIG_MAP, map, &|old| merged(old, &data)).await?;
    let rules = json!([{
        "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [CONFIG_MAP],
        "verbs": ["get", "list", "watch"],
    }]);
    let role = json!({
        "metadata": {
            "name": READER,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
        "rules": rules,
    });
    put(registry, "rbac.authorization.k8s.io", "roles", READER, role, &|old| old.clone()).await
}

/// The stored map with these entries; authorities are added to those that are there.
fn merged(old: &Value, data: &Value) -> Value {
    let mut new = old.clone();
    for (key, value) in data.as_object().into_iter().flatten() {
        let before = old["data"][key].as_str().unwrap_or_default();
        let own = value.as_str().unwrap_or_default();
        let text = match key.ends_with("-ca-file") && !before.is_empty() {
            true if before.contains(own.trim()) => before.to_owned(),
            true => format!("{}\n{own}", before.trim_end()),
            false => own.to_owned(),
        };
        new["data"][key] = text.into();
    }
    new
}

/// Creates an object, or changes the one that is there.
async fn put(
    registry: &Registry,
    group: &str,
    plural: &str,
    name: &str,
    object: Value,
    change: &(dyn Fn(&Value) -> Value + Send + Sync),
) -> Result<(), Status> {
    let Some(resource) = registry.find(group, plural) else { return Ok(()) };
    let options = WriteOptions::system();
    match registry.create(&resource, NAMESPACE, object, &options).await {
        Err(status) if status.reason == "AlreadyExists" => {}
        outcome => return outcome.map(drop),
    }
    let target = Target { resource: &resource, namespace: NAMESPACE, name };
    let change = |old: &Value| Ok(change(old));
    registry.modify(&target, Operation::Update, &options, &change).await.map(drop)
}
