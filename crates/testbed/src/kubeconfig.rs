//! Self-contained kubeconfig files: they refer to no other file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::certificates::Issued;

/// The text of a kubeconfig for `server`, trusting `ca_pem`, as the holder of `client`.
pub(crate) fn render(server: &str, ca_pem: &str, user: &str, client: &Issued) -> String {
    let ca = STANDARD.encode(ca_pem);
    let certificate = STANDARD.encode(&client.certificate_pem);
    let key = STANDARD.encode(&client.key_pem);
    // Every JSON string is a YAML string.
    let user = serde_json::Value::from(user).to_string();
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: testbed
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: testbed
  context:
    cluster: testbed
    user: {user}
current-context: testbed
"
    )
}
