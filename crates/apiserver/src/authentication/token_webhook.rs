//! Tokens that another service knows: it is sent a TokenReview, and its answer holds for a while.

use std::collections::HashMap;
use std::time::{Duration, Instant};

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

/// Answers that are remembered.
const REMEMBERED_MAX: usize = 4096;
/// Tries of one question, and the pause before the second; each next one is half as long again.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// How the service is asked.
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

/// Asks one service about tokens. Only hashes of tokens are kept.
pub struct TokenWebhook {
    remote: Remote,
    authorization: Option<HeaderValue>,
    version: ReviewVersion,
    keep: Duration,
    remembered: Mutex<HashMap<[u8; 32], Remembered>>,
}

/// When it was answered, and whose token it is.
type Remembered = (Instant, Option<TokenUser>);

/// A file that does not say how the service is reached.
#[derive(Debug, thiserror::Error)]
#[error("the kubeconfig of the token webhook {0}")]
pub struct WebhookFileError(String);

impl TokenWebhook {
    /// `kubeconfig` names the service as Kubernetes' own file for this does: the current context's
    /// cluster, and its user's token if it has one. Paths in it are taken from `folder`. An answer
    /// is remembered for `keep`.
    ///
    /// # Errors
    /// A file that names no service, or asks for something that is not offered, such as client
    /// certificates.
    pub fn new(
        kubeconfig: &str,
        folder: &std::path::Path,
        version: ReviewVersion,
        keep: Duration,
    ) -> Result<Self, WebhookFileError> {
        let failed = WebhookFileError;
        let file: Value = serde_saphyr::from_str(kubeconfig)
            .map_err(|error| failed(format!("cannot be read: {error}")))?;
        let named = |list: &str, name: &Value, of: &str| {
            let items = file[list].as_array().map(Vec::as_slice).unwrap_or_default();
            let found = items.iter().find(|item| item["name"] == *name).map(|item| &item[of]);
            found.ok_or_else(|| failed(format!("has no entry {name} in \"{list}\"")))
        };
        let context = named("contexts", &file["current-context"], "context")?;
        let cluster = named("clusters", &context["cluster"], "cluster")?;
        let user = match &context["user"] {
            Value::Null => &Value::Null,
            name if name == "" => &Value::Null,
            name => named("users", name, "user")?,
        };
        let read = |path: &str| {
            let path = folder.join(path);
            let read = std::fs::read_to_string(&path);
            read.map_err(|error| failed(format!("names \"{}\": {error}", path.display())))
        };
        let offered = ["server", "certificate-authority", "certificate-authority-data"];
        only(cluster, "cluster", &offered).map_err(failed)?;
        only(user, "user", &["token", "tokenFile"]).map_err(failed)?;
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
        let mut authorization = authorization
            .transpose()
            .map_err(|_| failed("has a token that cannot stand in a header".to_owned()))?;
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        Ok(Self { remote, authorization, version, keep, remembered: Mutex::default() })
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
        if let Some((until, known)) = self.remembered.lock().get(&hash)
            && Instant::now() < *until
        {
            return Ok(known.clone());
        }
        let found = self.ask(token, audiences).await.map_err(|error| {
            tracing::warn!(%error, "cannot ask the token webhook");
            InvalidCredential
        })?;
        let mut remembered = self.remembered.lock();
        let now = Instant::now();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.retain(|_, (until, _)| now < *until);
        }
        if remembered.len() < REMEMBERED_MAX {
            remembered.insert(hash, (now + self.keep, found.clone()));
        }
        Ok(found)
    }

    async fn ask(
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
        let mut pause = PAUSE;
        let mut tries = 1;
        let answer = loop {
            match self.remote.post(self.authorization.as_ref(), body.clone()).await {
                Err(error) if error.is_passing() && tries < TRIES => {
                    tracing::debug!(%error, "asking the token webhook again");
                    tokio::time::sleep(pause).await;
                    pause += pause / 2;
                    tries += 1;
                }
                answered => break answered?,
            }
        };
        let review: Review =
            serde_json::from_slice(&answer).map_err(|error| self.remote.unusable(error))?;
        if !review.status.error.is_empty() {
            tracing::debug!(error = review.status.error, "the token webhook refused a token");
        }
        Ok(review.status.user_for(audiences))
    }
}

/// Refuses what would be ignored.
fn only(section: &Value, name: &str, offered: &[&str]) -> Result<(), String> {
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
    /// A service that does not know of audiences speaks for all of them.
    fn user_for(self, wanted: &[String]) -> Option<TokenUser> {
        let meant: Vec<String> = wanted
            .iter()
            .filter(|wanted| self.audiences.is_empty() || self.audiences.contains(wanted))
            .cloned()
            .collect();
        let named = self.authenticated && !self.user.username.is_empty();
        if !named || (meant.is_empty() && !wanted.is_empty()) {
            return None;
        }
        let ReviewUser { username, uid, groups, extra } = self.user;
        let user = UserInfo { name: username, uid, groups, extra };
        Some(TokenUser { user, audiences: meant })
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
