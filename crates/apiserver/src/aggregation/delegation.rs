//! How aggregated servers come to trust the user headers of this server: a certificate from its own
//! CA, and the objects that publish this CA.

use std::sync::Arc;

use api_meta::status::Status;
use serde_json::{Value, json};

use crate::registry::{Registry, WriteOptions, WriteTarget};
use crate::strategy::Operation;

const NAMESPACE: &str = "kube-system";
/// The ConfigMap with the CA certificates.
const CONFIG_MAP: &str = "extension-apiserver-authentication";
/// The Role that allows reading the ConfigMap.
const READER: &str = "extension-apiserver-authentication-reader";
/// The common name of the client certificate.
pub const COMMON_NAME: &str = "front-proxy-client";

/// The identity of this server towards aggregated servers, which trust its user headers because of
/// it.
#[derive(Clone)]
pub struct FrontProxy {
    /// The CA certificate in PEM. This CA must sign no other certificates: whoever has one can
    /// impersonate any user.
    pub authority_pem: Arc<str>,
    /// The client certificate for [`COMMON_NAME`] from that CA, in PEM.
    pub certificate_pem: Arc<str>,
    /// The private key of the certificate, in PEM.
    pub key_pem: Arc<str>,
}

impl FrontProxy {
    /// The client certificate and its key, in PEM.
    pub(super) fn identity(&self) -> (Arc<str>, Arc<str>) {
        (self.certificate_pem.clone(), self.key_pem.clone())
    }
}

/// Writes the ConfigMap that aggregated servers read, with CA certificates and header names, and
/// the Role that allows reading it. CA certificates of other replicas are retained.
/// `client_authorities_pem` is the CA of client certificates, in PEM.
///
/// # Errors
/// The status of a failed write.
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
    create_or_update(registry, "", "configmaps", CONFIG_MAP, map, &|old| merge_data(old, &data))
        .await?;
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
    create_or_update(registry, "rbac.authorization.k8s.io", "roles", READER, role, &|old| {
        old.clone()
    })
    .await
}

/// The stored ConfigMap with these entries. CA certificates are appended to the stored ones.
fn merge_data(old: &Value, data: &Value) -> Value {
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

/// Creates an object, or updates the stored one.
async fn create_or_update(
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
        result => return result.map(drop),
    }
    let target = WriteTarget { resource: &resource, namespace: NAMESPACE, name };
    let change = |old: &Value| Ok(change(old));
    registry.modify(&target, Operation::Update, &options, &change).await.map(drop)
}
