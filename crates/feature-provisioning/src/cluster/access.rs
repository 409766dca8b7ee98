//! The API of a cluster that a driver made: how this server reaches it without the agent, the
//! account where the driver could make none, and the agent's objects in it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cluster_access::{Address, BearerToken, Endpoint, Route};
use driver_host::{EgressException, egress};
use http::Uri;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::record::ClusterRecord;

const HTTPS_PORT: u16 = 443;
/// Owner of the fields of what is applied.
const FIELD_MANAGER: &str = "drover";

/// What a driver returned does not lead to the API of the cluster.
#[derive(Debug, thiserror::Error)]
pub enum NoAccess {
    /// There is no address.
    #[error("the driver returned no endpoint of the cluster")]
    NoEndpoint,
    /// The address is none.
    #[error(
        "the driver returned \"{0}\" as the endpoint of the cluster; it must be https://HOST:PORT"
    )]
    Endpoint(String),
    /// The certificate authority has another form.
    #[error("the driver returned a certificate authority of the cluster that is not PEM in base64")]
    NoAuthority,
    /// There is no token, and nothing with which one could be made.
    #[error("the driver returned no token for the cluster, and no other credential")]
    NoToken,
    /// The account could not be made.
    #[error("an account in the cluster cannot be made with what the driver returned: {0}")]
    Account(String),
}

/// Where the API is, and the credential that the driver returned.
///
/// # Errors
/// Something is missing, or has another form.
pub fn endpoint(record: &ClusterRecord) -> Result<Endpoint, NoAccess> {
    let address = address(&record.endpoint)?;
    // Without one, the certificate is from an authority that machines trust.
    let pem = BASE64_STANDARD.decode(record.root_ca_cert.trim());
    let pem = pem.map_err(|_| NoAccess::NoAuthority)?;
    let ca_pem = String::from_utf8(pem).map_err(|_| NoAccess::NoAuthority)?;
    let token = record.service_account_token.trim();
    if token.is_empty() {
        return Err(NoAccess::NoToken);
    }
    Ok(Endpoint {
        address,
        ca_pem,
        server_name: None,
        token: BearerToken::new(token),
        route: Route::Direct,
    })
}

/// The host and the port of an endpoint, with or without `https://`.
fn address(endpoint: &str) -> Result<Address, NoAccess> {
    if endpoint.trim().is_empty() {
        return Err(NoAccess::NoEndpoint);
    }
    let invalid = || NoAccess::Endpoint(endpoint.to_owned());
    let text = endpoint.trim();
    let text = text.strip_prefix("https://").unwrap_or(text).trim_end_matches('/');
    let uri: Uri = format!("https://{text}").parse().map_err(|_| invalid())?;
    let host = uri.host().ok_or_else(invalid)?;
    let port = uri.port_u16();
    let address = format!("{host}:{}", port.unwrap_or(HTTPS_PORT));
    // A path, a user, or a port that is none would be lost.
    let is_all = text == host || port.is_some() && text == address;
    if is_all { address.parse().map_err(|_| invalid()) } else { Err(invalid()) }
}

/// Makes the account that drivers make, where the driver made none: those of before 2022 cannot on
/// Kubernetes 1.24 and newer. Uses the administrator's credential that the driver returned.
///
/// # Errors
/// There is no such credential, or the cluster refuses it.
pub async fn make_account(
    record: &mut ClusterRecord,
    exceptions: &[EgressException],
) -> Result<(), NoAccess> {
    let address = address(&record.endpoint)?;
    if !has_administrator(record) {
        return Err(NoAccess::NoToken);
    }
    let failed = |cause: String| NoAccess::Account(cause);
    // What a driver says of its cluster leads no further than the driver itself.
    let allowed = egress::addresses(address.host(), address.port(), exceptions).await;
    allowed.map_err(|error| failed(error.to_string()))?;
    let client = driver_sdk::service_account::connect(&record.to_info()).await;
    let client = client.map_err(|error| failed(format!("{error:#}")))?;
    let token = driver_sdk::service_account::token(&client).await;
    record.service_account_token = token.map_err(|error| failed(format!("{error:#}")))?;
    Ok(())
}

/// Whether there is a credential beside the token.
pub fn has_administrator(record: &ClusterRecord) -> bool {
    let has_certificate = !record.client_certificate.is_empty() && !record.client_key.is_empty();
    !record.endpoint.is_empty() && (has_certificate || !record.password.is_empty())
}

/// Of the agent's objects, so that a change is seen.
pub fn checksum(objects: &[Value]) -> String {
    let bytes = serde_json::to_vec(objects).unwrap_or_default();
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Applies the agent's objects in a cluster, in their order.
///
/// # Errors
/// The cluster cannot be reached, or refuses.
pub async fn apply(client: &Client, objects: &[Value]) -> Result<(), kube::Error> {
    let options = PatchParams::apply(FIELD_MANAGER).force();
    for object in objects {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = text(&object["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let kind = text(&object["kind"]);
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
        let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let name = text(&object["metadata"]["name"]);
        api.patch(&name, &options, &Patch::Apply(object)).await?;
    }
    Ok(())
}
