//! The API of Google Kubernetes Engine, version 1, for one cluster.
//! <https://cloud.google.com/kubernetes-engine/docs/reference/rest>

use anyhow::{Context, Result, ensure};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::options::GkeOptions;
use crate::cloud::{Cloud, CloudError};

const API: &str = "https://container.googleapis.com/v1";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// RFC 7523: a signed assertion is exchanged for a token.
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Google gives tokens of at most an hour.
const ASSERTION_SECONDS: u64 = 3600;

/// A key of a service account, as Google writes it to a file.
#[derive(Deserialize)]
struct AccountKey {
    client_email: String,
    private_key: String,
    private_key_id: String,
    token_uri: String,
}

/// What the key signs.
#[derive(Serialize)]
struct Assertion<'a> {
    iss: &'a str,
    scope: &'a str,
    aud: &'a str,
    iat: u64,
    exp: u64,
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
}

/// A cluster, as Google shows it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GkeCluster {
    /// `PROVISIONING`, `RUNNING`, `RECONCILING`, `STOPPING`, `ERROR` or `DEGRADED`.
    pub status: String,
    /// Why it is in `ERROR`.
    pub status_message: String,
    /// An address.
    pub endpoint: String,
    pub master_auth: MasterAuth,
    /// Version of the control plane.
    pub current_master_version: String,
    pub node_pools: Vec<NodePool>,
    /// Labels of it.
    pub resource_labels: serde_json::Map<String, Value>,
}

/// By what clients know the control plane.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MasterAuth {
    /// PEM in base64.
    pub cluster_ca_certificate: String,
}

/// Nodes of one kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodePool {
    pub name: String,
    /// Version of the nodes.
    pub version: String,
    pub initial_node_count: i64,
}

/// Something that takes Google minutes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Operation {
    pub name: String,
    /// `PENDING`, `RUNNING`, `DONE` or `ABORTING`.
    pub status: String,
    /// What it did not do, if it is done.
    pub error: Option<OperationError>,
}

/// Why Google did not do it, in its own words.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct OperationError {
    pub message: String,
}

/// The API, with a token.
pub struct Gke {
    cloud: Cloud,
    token: String,
    /// Path of the location.
    location: String,
    cluster: String,
}

impl Gke {
    /// Gets a token by the credential.
    ///
    /// # Errors
    /// The credential is none, or Google refuses it.
    pub async fn open(options: &GkeOptions) -> Result<Self> {
        let cloud = Cloud::new("Google", explain)?;
        let token = token(&cloud, &options.credential).await?;
        let (project, location) = (&options.project_id, options.location()?);
        let location = format!("projects/{project}/locations/{location}");
        Ok(Self { cloud, token, location, cluster: options.name.clone() })
    }

    /// With which the cluster knows the service account, for an hour.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The cluster, if it exists.
    pub async fn cluster(&self) -> Result<Option<GkeCluster>> {
        let path = format!("{}/clusters/{}", self.location, self.cluster);
        match self.call(Method::GET, &path, None).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.has_status(StatusCode::NOT_FOUND) => Ok(None),
            Err(error) => Err(error).context("cannot read the cluster"),
        }
    }

    /// How far something is that was ordered.
    pub async fn operation(&self, name: &str) -> Result<Operation, CloudError> {
        let path = format!("{}/operations/{name}", self.location);
        self.call(Method::GET, &path, None).await
    }

    /// Orders the cluster.
    pub async fn create(&self, cluster: Value) -> Result<Operation, CloudError> {
        let path = format!("{}/clusters", self.location);
        let body = json!({ "cluster": cluster });
        self.call(Method::POST, &path, Some(body)).await
    }

    /// Changes something of the cluster.
    pub async fn update(&self, update: Value) -> Result<Operation, CloudError> {
        let path = format!("{}/clusters/{}", self.location, self.cluster);
        self.call(Method::PUT, &path, Some(json!({ "update": update }))).await
    }

    /// Sets the number of nodes of a pool, in each zone.
    pub async fn set_size(&self, pool: &str, count: i64) -> Result<Operation, CloudError> {
        let path = format!("{}/clusters/{}/nodePools/{pool}:setSize", self.location, self.cluster);
        self.call(Method::POST, &path, Some(json!({"nodeCount": count}))).await
    }

    /// Has the cluster removed.
    pub async fn delete(&self) -> Result<(), CloudError> {
        let path = format!("{}/clusters/{}", self.location, self.cluster);
        match self.call(Method::DELETE, &path, None).await {
            Err(error) if error.has_status(StatusCode::NOT_FOUND) => Ok(()),
            done => done.map(|_: Value| ()),
        }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<T, CloudError> {
        let build = || {
            let url = format!("{API}/{path}");
            let request = self.cloud.http().request(method.clone(), url).bearer_auth(&self.token);
            let request = match &body {
                Some(body) => request.json(body),
                None => request,
            };
            Ok(request.build()?)
        };
        self.cloud.call(build).await?.json()
    }
}

/// A token for a service account.
async fn token(cloud: &Cloud, credential: &str) -> Result<String> {
    let key: AccountKey = serde_json::from_str(credential).context(
        "the option credential is no key of a service account; it needs the whole JSON file",
    )?;
    ensure!(
        key.token_uri.starts_with("https://"),
        "the address token_uri in the option credential must begin with https://"
    );
    let private = EncodingKey::from_rsa_pem(key.private_key.as_bytes())
        .context("the private key in the option credential cannot be read")?;
    let build = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
        let claims = Assertion {
            iss: &key.client_email,
            scope: SCOPE,
            aud: &key.token_uri,
            iat: now,
            exp: now + ASSERTION_SECONDS,
        };
        let header =
            Header { kid: Some(key.private_key_id.clone()), ..Header::new(Algorithm::RS256) };
        let assertion = jsonwebtoken::encode(&header, &claims, &private)?;
        let form = [("grant_type", GRANT), ("assertion", assertion.as_str())];
        Ok(cloud.http().post(&key.token_uri).form(&form).build()?)
    };
    let response = cloud.call(build).await;
    let response = response.with_context(|| format!("no token for {}", key.client_email))?;
    Ok(response.json::<TokenResponse>()?.access_token)
}

/// A refusal of the API, or of the token's server.
fn explain(body: &str) -> Option<(String, String)> {
    let body: Value = serde_json::from_str(body).ok()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if body["error"].is_string() {
        return Some((text(&body["error"]), text(&body["error_description"])));
    }
    Some((text(&body["error"]["status"]), body["error"]["message"].as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_both_kinds_are_read() {
        let api = r#"{"error": {"code": 403, "message": "Quota 'CPUS' exceeded", "status": "RESOURCE_EXHAUSTED"}}"#;
        let expected = ("RESOURCE_EXHAUSTED".to_owned(), "Quota 'CPUS' exceeded".to_owned());
        assert_eq!(explain(api), Some(expected));
        let token = r#"{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}"#;
        let expected = ("invalid_grant".to_owned(), "Invalid JWT Signature.".to_owned());
        assert_eq!(explain(token), Some(expected));
        assert_eq!(explain("<html>"), None);
    }

    #[tokio::test]
    async fn a_credential_that_is_no_key_is_named() {
        let open = async |credential: &str| {
            let options = GkeOptions { credential: credential.to_owned(), ..GkeOptions::default() };
            Gke::open(&options).await.err().unwrap().to_string()
        };
        assert!(open("secret").await.contains("needs the whole JSON file"));
        let key = r#"{"client_email": "a", "private_key": "b", "private_key_id": "c", "token_uri": "https://d"}"#;
        assert!(open(key).await.contains("private key"));
    }
}
