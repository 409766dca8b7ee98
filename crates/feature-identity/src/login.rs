//! From a login name and a password to a token.
//!
//! Unknown users cost as much time as known ones, and get the same answer. Failures are counted by
//! login name and by address, and slow further tries down: one name tried with many passwords, and
//! one password with many names.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use api_management::setting::{AUTH_USER_SESSION_TTL_MINUTES, KUBECONFIG_TOKEN_TTL_MINUTES};
use api_management::token::{KIND_KUBECONFIG, KIND_SESSION};
use identity::Secret;
use identity::throttle::address_key;

use crate::directory::Directory;
use crate::token::issue::{Issued, TokenRequest};

/// Lifetime of a login when the setting cannot be read, in minutes.
const SESSION_TTL_MINUTES: i64 = 960;

/// What is presented at login.
#[derive(Clone, Debug)]
pub struct LoginRequest {
    pub username: String,
    pub password: Secret,
    /// Kept with the token.
    pub description: String,
    /// The token goes into a kubeconfig; with the only cluster it is to be good for, if any.
    pub kubeconfig: Option<Option<String>>,
    /// Where it comes from, if that is known.
    pub address: Option<IpAddr>,
}

/// Why a login failed. The texts are what clients know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// 401, code `Unauthorized`.
    #[error("authentication failed")]
    Wrong,
    /// 403, code `PermissionDenied`.
    #[error("Permission Denied")]
    Disabled,
    /// 429: too many failures for this name, or from this address.
    #[error("too many failed logins; try again in {0} s")]
    Slowed(u64),
    /// 503: the server has just started.
    #[error("the server is still starting; try again in a few seconds")]
    Starting,
    /// 500.
    #[error("Server error while authenticating")]
    Failed(String),
}

impl Directory {
    /// Checks name and password and makes a token.
    ///
    /// # Errors
    /// See [`LoginError`]; a failure is not told apart further than the texts do.
    pub async fn login(&self, request: LoginRequest) -> Result<Issued, LoginError> {
        if !self.synced().await {
            return Err(LoginError::Starting);
        }
        let name = request.username.as_str();
        let address = request.address.map(address_key);
        // Each counts as failed until it succeeds, so that many at once are slowed down too.
        let slowed = |wait: Duration| LoginError::Slowed(wait.as_secs().max(1));
        if let Some(address) = &address {
            self.addresses.attempt(address, Instant::now()).map_err(slowed)?;
        }
        self.names.attempt(name, Instant::now()).map_err(slowed)?;
        let user = self.user_by_username(name);
        let id = user.as_ref().and_then(|user| user.metadata.name.clone());
        let stored = match &id {
            Some(id) => self.stored_hash(id).await.map_err(LoginError::Failed)?,
            None => None,
        };
        let matches = self.passwords.verify(stored, request.password.clone()).await;
        let (Some(user), Some(id), true) = (user, id, matches) else {
            return Err(LoginError::Wrong);
        };
        self.names.succeeded(name);
        address.inspect(|address| self.addresses.forgive(address));
        if !user.is_enabled() {
            return Err(LoginError::Disabled);
        }
        let token = self.token_of_login(&id, &request);
        self.issue(token).await.map_err(|error| LoginError::Failed(error.chain()))
    }

    fn token_of_login(&self, user_id: &str, request: &LoginRequest) -> TokenRequest {
        let minutes = |name: &str| self.settings.minutes_as_millis(name);
        let session = minutes(AUTH_USER_SESSION_TTL_MINUTES);
        let session = session.unwrap_or(SESSION_TTL_MINUTES * 60_000);
        let base = TokenRequest {
            user_id: user_id.to_owned(),
            kind: KIND_SESSION,
            description: request.description.clone(),
            ttl_millis: session,
            cluster: None,
            derived: false,
            auth_provider: "local".to_owned(),
        };
        match &request.kubeconfig {
            None => base,
            Some(cluster) => TokenRequest {
                kind: KIND_KUBECONFIG,
                ttl_millis: minutes(KUBECONFIG_TOKEN_TTL_MINUTES).unwrap_or(session),
                cluster: cluster.clone(),
                derived: true,
                ..base
            },
        }
    }
}
