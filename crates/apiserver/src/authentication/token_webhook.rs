//! Tokens of another service: it receives a TokenReview, and its response is cached for a while.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use backoff::Backoff;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use http::HeaderValue;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::bearer::{TokenAuthenticator, TokenUser};
use super::remote::{Remote, RemoteError};
use crate::attributes::{InvalidCredential, UserInfo};

/// The number of cached responses.
const CACHED_MAX: usize = 4096;
/// The number of attempts of one review.
const ATTEMPTS: u32 = 4;
/// The pauses between attempts.
const RETRY: Backoff =
    Backoff::new(Duration::from_millis(500), Duration::from_secs(2)).with_factor(1.5);

/// The API version of the reviews that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "authentication.k8s.io/v1",
            Self::V1Beta1 => "authentication.k8s.io/v1beta1",
        }
    }
}

/// Authenticates tokens with one service. Only hashes of tokens are stored.
pub struct TokenWebhook {
    remote: Remote,
    authorization: Option<HeaderValue>,
    version: ReviewVersion,
    cache_ttl: Duration,
    cache: Mutex<HashMap<[u8; 32], CachedResponse>>,
}

/// When a cached response expires, and the identity of the token, if valid.
type CachedResponse = (Instant, Option<TokenUser>);

/// An invalid kubeconfig of the service.
#[derive(Debug, thiserror::Error)]
#[error("the kubeconfig of the token webhook {0}")]
pub struct WebhookFileError(String);

impl TokenWebhook {
    /// Creates the authenticator. `kubeconfig` has the format of kube-apiserver's file: it uses the
    /// cluster of the current context, and its user's token if there is one. Relative paths in it
    /// start at `folder`. A response is cached for `cache_ttl`.
    ///
    /// # Errors
    /// The file names no service, or requires an unsupported feature such as client certificates.
    /// The caller does not start.
    pub fn new(
        kubeconfig: &str,
        folder: &std::path::Path,
        version: ReviewVersion,
        cache_ttl: Duration,
    ) -> Result<Self, WebhookFileError> {
        let failed = WebhookFileError;
        let file: Value = serde_saphyr::from_str(kubeconfig)
            .map_err(|error| failed(format!("cannot be read: {error}")))?;
        let find_entry = |list: &str, name: &Value, of: &str| {
            let items = file[list].as_array().map(Vec::as_slice).unwrap_or_default();
            let found = items.iter().find(|item| item["name"] == *name).map(|item| &item[of]);
            found.ok_or_else(|| failed(format!("has no entry {name} in \"{list}\"")))
        };
        let context = find_entry("contexts", &file["current-context"], "context")?;
        let cluster = find_entry("clusters", &context["cluster"], "cluster")?;
        let user = match &context["user"] {
            Value::Null => &Value::Null,
            name if name == "" => &Value::Null,
            name => find_entry("users", name, "user")?,
        };
        let read = |path: &str| {
            let path = folder.join(path);
            let read = std::fs::read_to_string(&path);
            read.map_err(|error| failed(format!("names \"{}\": {error}", path.display())))
        };
        let offered = ["server", "certificate-authority", "certificate-authority-data"];
        check_fields(cluster, "cluster", &offered).map_err(failed)?;
        check_fields(user, "user", &["token", "tokenFile"]).map_err(failed)?;
        let ca_pem =
            match (&cluster["certificate-authority-data"], &cluster["certificate-authority"]) {
                (Value::String(data), _) => STANDARD.decode(data).map_err(|_| {
                    failed("has certificate-authority-data that is not base64".into())
                })?,
                (_, Value::String(path)) => read(path)?.into_bytes(),
                _ => Vec::new(),
            };
        let url = cluster["server"].as_str().unwrap_or_default();
        let remote = Remote::new(url, &ca_pem)
            .map_err(|error| failed(format!("names no usable server: {error}")))?;
        let token = match (&user["token"], &user["tokenFile"]) {
            (Value::String(token), _) => Some(token.clone()),
            (_, Value::String(path)) => Some(read(path)?.trim().to_owned()),
            _ => None,
        };
        let authorization = token.map(|token| HeaderValue::from_str(&format!("Bearer {token}")));
        let mut authorization = authorization.transpose().map_err(|_| {
            failed("has a token with characters that a header cannot contain".to_owned())
        })?;
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        Ok(Self { remote, authorization, version, cache_ttl, cache: Mutex::default() })
    }

    async fn identify(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Option<TokenUser>, InvalidCredential> {
        let mut hash = Sha256::new();
        hash.update(token);
        for audience in audiences {
            hash.update([0_u8]);
            hash.update(audience);
        }
        let hash: [u8; 32] = hash.finalize().into();
        if let Some((until, known)) = self.cache.lock().get(&hash)
            && Instant::now() < *until
        {
            return Ok(known.clone());
        }
        let found = self.review(token, audiences).await.map_err(|error| {
            tracing::warn!(%error, "cannot call the token webhook");
            InvalidCredential
        })?;
        let mut cache = self.cache.lock();
        let now = Instant::now();
        if cache.len() >= CACHED_MAX {
            cache.retain(|_, (until, _)| now < *until);
        }
        if cache.len() < CACHED_MAX {
            cache.insert(hash, (now + self.cache_ttl, found.clone()));
        }
        Ok(found)
    }

    async fn review(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Option<TokenUser>, RemoteError> {
        let review = json!({
            "apiVersion": self.version.api_version(),
            "kind": "TokenReview",
            "metadata": {},
            "spec": {"token": token, "audiences": audiences},
            "status": {"user": {}},
        });
        let body = bytes::Bytes::from(review.to_string());
        let mut attempts = 1;
        let response = loop {
            match self.remote.post(self.authorization.as_ref(), body.clone()).await {
                Err(error) if error.is_transient() && attempts < ATTEMPTS => {
                    tracing::debug!(%error, "retrying the token webhook");
                    tokio::time::sleep(RETRY.delay(attempts)).await;
                    attempts += 1;
                }
                result => break result?,
            }
        };
        let review: Review =
            serde_json::from_slice(&response).map_err(|error| self.remote.unusable(error))?;
        if !review.status.error.is_empty() {
            tracing::debug!(error = review.status.error, "the token webhook refused a token");
        }
        Ok(review.status.user_for(audiences))
    }
}

/// Refuses fields that would be ignored.
fn check_fields(section: &Value, name: &str, offered: &[&str]) -> Result<(), String> {
    let given = section.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    match given.into_iter().find(|key| !offered.contains(key)) {
        None => Ok(()),
        Some(key) => Err(format!(
            "has \"{key}\" in its {name}, which is not offered; use {}",
            offered.join(", ")
        )),
    }
}

#[derive(Deserialize)]
struct Review {
    #[serde(default)]
    status: ReviewStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReviewStatus {
    authenticated: bool,
    user: ReviewUser,
    audiences: Vec<String>,
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReviewUser {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: std::collections::BTreeMap<String, Vec<String>>,
}

impl ReviewStatus {
    /// The identity, if the token is valid for one of `requested`. A service without audiences
    /// accepts all of them.
    fn user_for(self, requested: &[String]) -> Option<TokenUser> {
        let audiences: Vec<String> = requested
            .iter()
            .filter(|requested| self.audiences.is_empty() || self.audiences.contains(requested))
            .cloned()
            .collect();
        let is_valid = self.authenticated && !self.user.username.is_empty();
        if !is_valid || (audiences.is_empty() && !requested.is_empty()) {
            return None;
        }
        let ReviewUser { username, uid, groups, extra } = self.user;
        let user = UserInfo { name: username, uid, groups, extra };
        Some(TokenUser { user, audiences })
    }
}

impl TokenAuthenticator for TokenWebhook {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Result<Option<TokenUser>, InvalidCredential>> {
        Box::pin(self.identify(token, audiences))
    }
}
