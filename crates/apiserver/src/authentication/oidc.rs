//! Identity tokens of an OpenID Connect provider.
//!
//! [`OidcConfig`] says which tokens are accepted and how their claims are mapped. A token is
//! verified with the provider's keys (`keys`). They are fetched with the first token of the
//! provider, and again when a token names an unknown key.

mod keys;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use super::bearer::{TokenAuthenticator, TokenUser};
use super::certificates::CREDENTIAL_ID;
use super::jwt::{TokenClaims, UnverifiedToken};
use super::remote::{Remote, RemoteError};
use crate::attributes::{InvalidCredential, UserInfo};
pub use keys::{Algorithm, KeySet};

/// The minimum interval between two fetches of the provider's keys, failed ones included: tokens
/// with invented key IDs must not cause requests to the provider.
pub const KEY_FETCH_PAUSE: Duration = Duration::from_secs(10);
/// The path of the provider's discovery document, after its issuer URL.
const DISCOVERY_PATH: &str = "/.well-known/openid-configuration";

/// Which tokens are accepted, and how their claims are mapped. The names are those of
/// kube-apiserver's flags.
#[derive(Clone, Debug)]
pub struct OidcConfig {
    /// `--oidc-issuer-url`: the `iss` claim of accepted tokens, an HTTPS URL.
    pub issuer_url: String,
    /// `--oidc-client-id`: the audience that a token must have.
    pub client_id: String,
    /// `--oidc-username-claim`: the claim with the user name.
    pub username_claim: String,
    /// `--oidc-username-prefix`: `-` is no prefix; `None` is the issuer and `#`, or no prefix for
    /// the claim `email`.
    pub username_prefix: Option<String>,
    /// `--oidc-groups-claim`: the claim with the groups; `None` for no groups.
    pub groups_claim: Option<String>,
    /// `--oidc-groups-prefix`: the prefix of every group.
    pub groups_prefix: String,
    /// `--oidc-required-claim`: claims that a token must have, with their values.
    pub required_claims: BTreeMap<String, String>,
    /// `--oidc-signing-algs`: the allowed algorithms, at least one.
    pub algorithms: Vec<Algorithm>,
    /// The minimum interval between two fetches of the keys; usually [`KEY_FETCH_PAUSE`].
    pub key_fetch_pause: Duration,
    /// The content of `--oidc-ca-file` in PEM; empty trusts the system's CAs.
    pub ca_pem: Vec<u8>,
}

/// Authenticates the tokens of one provider.
pub struct OidcTokens {
    config: OidcConfig,
    username_prefix: String,
    discovery: Remote,
    keys: arc_swap::ArcSwapOption<KeySet>,
    fetching: tokio::sync::Mutex<Fetching>,
}

#[derive(Default)]
struct Fetching {
    last: Option<Instant>,
    /// The location of the keys, once the provider has published it.
    keys: Option<Remote>,
}

/// An invalid setting; the text names the flag.
#[derive(Debug, thiserror::Error)]
pub enum OidcConfigError {
    /// The issuer URL is no HTTPS URL, or the CA file cannot be used.
    #[error("oidc-issuer-url: {0}")]
    Issuer(#[from] RemoteError),
    /// The issuer URL has a query or a fragment.
    #[error("oidc-issuer-url: \"{0}\" must have no query and no fragment")]
    IssuerParts(String),
    /// The client ID is empty.
    #[error("oidc-client-id: must not be empty")]
    ClientId,
    /// The user name claim is empty.
    #[error("oidc-username-claim: must not be empty")]
    UsernameClaim,
    /// No algorithm is allowed.
    #[error("oidc-signing-algs: name at least one")]
    Algorithms,
}

/// Why a token of the provider is invalid, for the log.
#[derive(Debug, thiserror::Error)]
enum TokenError {
    #[error("its signature is invalid, or its algorithm is not allowed")]
    Signature,
    #[error("it is expired or not yet valid")]
    Time,
    #[error("its audience is another client")]
    Audience,
    #[error("its claim \"{0}\" is missing or invalid")]
    Claim(String),
    #[error("its e-mail address is not verified")]
    EmailNotVerified,
    #[error("the provider's keys are not known: {0}")]
    Keys(#[from] RemoteError),
}

impl OidcTokens {
    /// Creates the authenticator. Sends no request to the provider yet.
    ///
    /// # Errors
    /// An invalid setting. The error names the flag; the caller does not start.
    pub fn new(config: OidcConfig) -> Result<Self, OidcConfigError> {
        let issuer = &config.issuer_url;
        if issuer.contains(['?', '#']) {
            return Err(OidcConfigError::IssuerParts(issuer.clone()));
        }
        if config.client_id.is_empty() {
            return Err(OidcConfigError::ClientId);
        }
        if config.username_claim.is_empty() {
            return Err(OidcConfigError::UsernameClaim);
        }
        if config.algorithms.is_empty() {
            return Err(OidcConfigError::Algorithms);
        }
        let discovery = format!("{}{DISCOVERY_PATH}", issuer.trim_end_matches('/'));
        let discovery = Remote::new(&discovery, &config.ca_pem)?;
        let username_prefix = match config.username_prefix.as_deref() {
            Some("-") => String::new(),
            Some(prefix) if !prefix.is_empty() => prefix.to_owned(),
            _ if config.username_claim == "email" => String::new(),
            _ => format!("{issuer}#"),
        };
        Ok(Self {
            config,
            username_prefix,
            discovery,
            keys: arc_swap::ArcSwapOption::empty(),
            fetching: tokio::sync::Mutex::default(),
        })
    }

    async fn identify(
        &self,
        token: &str,
        audiences: &[String],
        now: f64,
    ) -> Result<Option<TokenUser>, InvalidCredential> {
        let Some(token) = UnverifiedToken::parse(token) else { return Ok(None) };
        let Some(claims) = token.unverified_claims() else { return Ok(None) };
        if claims.get("iss").and_then(Value::as_str) != Some(self.config.issuer_url.as_str()) {
            return Ok(None);
        }
        match self.verify(&token, &claims, now).await {
            Ok(user) => Ok(Some(TokenUser { user, audiences: audiences.to_vec() })),
            Err(reason) => {
                tracing::debug!(%reason, issuer = self.config.issuer_url, "refused a token");
                Err(InvalidCredential)
            }
        }
    }

    async fn verify(
        &self,
        token: &UnverifiedToken<'_>,
        unverified: &TokenClaims,
        now: f64,
    ) -> Result<UserInfo, TokenError> {
        let mut allowed = self.config.algorithms.iter();
        let algorithm =
            *allowed.find(|allowed| allowed.0 == token.algorithm()).ok_or(TokenError::Signature)?;
        // Before the signature: outdated tokens must not cause requests for keys.
        self.check_audience_and_time(unverified, now)?;
        let verify = |keys: Arc<KeySet>| keys.verify(token, algorithm);
        let known = self.keys.load_full();
        let claims = match known.clone().and_then(verify) {
            Some(claims) => claims,
            None => {
                let fetched = self.fetch(known.as_ref()).await?;
                fetched.and_then(verify).ok_or(TokenError::Signature)?
            }
        };
        self.user(&claims)
    }

    /// Fetches newer keys than `known`, unless another task has or the minimum interval has not
    /// passed.
    async fn fetch(&self, known: Option<&Arc<KeySet>>) -> Result<Option<Arc<KeySet>>, RemoteError> {
        let mut fetching = self.fetching.lock().await;
        let current = self.keys.load_full();
        let newer = match (&current, known) {
            (Some(current), Some(known)) => !Arc::ptr_eq(current, known),
            (current, _) => current.is_some(),
        };
        let pause = self.config.key_fetch_pause;
        if newer || fetching.last.is_some_and(|last| last.elapsed() < pause) {
            return Ok(current);
        }
        fetching.last = Some(Instant::now());
        if fetching.keys.is_none() {
            fetching.keys = Some(self.discover().await?);
        }
        let remote = fetching.keys.as_ref().expect("it was just set");
        let keys = KeySet::parse(&remote.get().await?).map_err(|error| remote.unusable(error))?;
        let keys = Arc::new(keys);
        self.keys.store(Some(keys.clone()));
        Ok(Some(keys))
    }

    async fn discover(&self) -> Result<Remote, RemoteError> {
        #[derive(Deserialize)]
        struct Discovery {
            issuer: String,
            jwks_uri: String,
        }
        let response = self.discovery.get().await?;
        let found: Discovery =
            serde_json::from_slice(&response).map_err(|error| self.discovery.unusable(error))?;
        if found.issuer != self.config.issuer_url {
            let reason = format!("it is of the issuer \"{}\"", found.issuer);
            return Err(self.discovery.unusable(reason));
        }
        Remote::new(&found.jwks_uri, &self.config.ca_pem)
    }

    fn check_audience_and_time(&self, claims: &TokenClaims, now: f64) -> Result<(), TokenError> {
        let token_audiences = strings(claims.get("aud")).unwrap_or_default();
        if !token_audiences.contains(&self.config.client_id) {
            return Err(TokenError::Audience);
        }
        let expires = claims.get("exp").and_then(Value::as_f64).ok_or(TokenError::Time)?;
        let is_early = claims
            .get("nbf")
            .is_some_and(|begins| begins.as_f64().is_none_or(|begins| now < begins));
        if expires < now || is_early { Err(TokenError::Time) } else { Ok(()) }
    }

    /// Maps verified claims to an identity.
    fn user(&self, claims: &TokenClaims) -> Result<UserInfo, TokenError> {
        let unusable = |claim: &str| TokenError::Claim(claim.to_owned());
        let username = &self.config.username_claim;
        let name = claims.get(username).and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| unusable(username))?;
        // Without the claim the address counts as verified.
        if username == "email"
            && claims.get("email_verified").is_some_and(|verified| *verified != true)
        {
            return Err(TokenError::EmailNotVerified);
        }
        let groups = match &self.config.groups_claim {
            Some(claim) if claims.contains_key(claim) => {
                strings(claims.get(claim)).ok_or_else(|| unusable(claim))?
            }
            _ => Vec::new(),
        };
        for (claim, expected) in &self.config.required_claims {
            if claims.get(claim).and_then(Value::as_str) != Some(expected.as_str()) {
                return Err(unusable(claim));
            }
        }
        let prefix = &self.config.groups_prefix;
        let mut user = UserInfo {
            name: format!("{}{name}", self.username_prefix),
            groups: groups.iter().map(|group| format!("{prefix}{group}")).collect(),
            ..UserInfo::default()
        };
        if let Some(id) = claims.get("jti").and_then(Value::as_str).filter(|id| !id.is_empty()) {
            user.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        Ok(user)
    }
}

/// Parses a claim with one text or a list of texts.
fn strings(claim: Option<&Value>) -> Option<Vec<String>> {
    match claim? {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(many) => many.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

impl TokenAuthenticator for OidcTokens {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Result<Option<TokenUser>, InvalidCredential>> {
        let now = jiff::Timestamp::now().as_millisecond() as f64 / 1000.0;
        Box::pin(self.identify(token, audiences, now))
    }
}
