//! From a login name and a password to a token.
//!
//! Unknown users cost as much time as known ones, and get the same response. Failures slow further
//! attempts down: [`identity::login_throttle`].

use controller::ReconcileError;
use std::net::IpAddr;
use std::time::Duration;

use api_management::setting::{AUTH_USER_SESSION_TTL_MINUTES, KUBECONFIG_TOKEN_TTL_MINUTES};
use api_management::token::{KIND_KUBECONFIG, KIND_SESSION};
use api_management::user::USERNAME_MAX;
use identity::Secret;
use identity::password::{Lane, PasswordError};
use identity::provider::Person;
use identity::throttle::Refusal;
use kube::ResourceExt;

use crate::code_login::login_error;
use crate::directory::Directory;
use crate::provider_kind::Backend;
use crate::providers::OpenProvider;
use crate::token::issue::{Issued, TokenOrigin, TokenRequest};

/// Lifetime of a login when the setting cannot be read, in minutes.
const SESSION_TTL_MINUTES: i64 = 960;

/// When a client may try again that was refused because of too many others, in seconds.
pub(crate) const BUSY_RETRY_SECONDS: u64 = 2;

/// What is presented at login.
#[derive(Clone, Debug, Default)]
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
    /// 401: the provider knows the user, but its access mode does not let the user in.
    #[error("you may not log in here; an administrator can allow it")]
    NotAllowed,
    /// 503: the provider does not respond, or is not configured well. Says nothing about the user.
    #[error("the directory cannot be used now; try again later, or log in as a local user")]
    Unreachable(String),
    /// 429: too many failures for this name, or from this address.
    #[error("too many failed logins; try again in {0} s")]
    Slowed(u64),
    /// 422: no user can have such a name. Not counted, so that nothing is kept of it.
    #[error("a login name has at most {USERNAME_MAX} characters")]
    NameTooLong,
    /// 503: too many logins at once. Says nothing about the password, and is not counted.
    #[error("too many logins at once; try again in {BUSY_RETRY_SECONDS} s")]
    Busy,
    /// 503: the server has just started.
    #[error("the server is still starting; try again in a few seconds")]
    Starting,
    /// 500.
    #[error("Server error while authenticating")]
    Failed(String),
}

/// A wait in whole seconds, at least one.
pub(crate) fn seconds(wait: Duration) -> u64 {
    wait.as_secs_f64().ceil().max(1.0) as u64
}

fn not_compared(error: PasswordError) -> LoginError {
    match error {
        PasswordError::Busy => LoginError::Busy,
        failed @ PasswordError::Failed(_) => LoginError::Failed(failed.to_string()),
    }
}

impl Directory {
    /// Checks name and password and makes a token.
    ///
    /// # Errors
    /// See [`LoginError`]; a failure is not distinguished further than the texts do.
    pub async fn login(&self, request: LoginRequest) -> Result<Issued, LoginError> {
        if !self.synced().await {
            return Err(LoginError::Starting);
        }
        let name = request.username.as_str();
        if name.chars().nth(USERNAME_MAX).is_some() {
            return Err(LoginError::NameTooLong);
        }
        let mut attempt =
            self.logins.attempt(name, request.address).await.map_err(|refusal| match refusal {
                Refusal::Slowed(wait) => LoginError::Slowed(seconds(wait)),
                Refusal::Busy => LoginError::Busy,
            })?;
        let lane = if attempt.is_known() { Lane::Known } else { Lane::Stranger };
        let slot = self.passwords.acquire_slot(lane).await.map_err(not_compared)?;
        let user = self.user_by_username(name);
        let id = user.as_ref().and_then(|user| user.metadata.name.clone());
        let stored = match &id {
            Some(id) => self.stored_hash(id).await.map_err(LoginError::Failed)?,
            None => None,
        };
        attempt.begin();
        let compared = slot.verify(stored.clone(), request.password.clone()).await;
        let matches = compared.map_err(not_compared)?;
        let (Some(user), Some(id), true) = (user, id, matches) else {
            return Err(LoginError::Wrong);
        };
        attempt.succeed();
        if !user.is_enabled() {
            return Err(LoginError::Disabled);
        }
        let token = self.token_of_login(&id, &request);
        let failed = |error: ReconcileError| LoginError::Failed(error.chain());
        let issued = self.issue(token).await.map_err(failed)?;
        // Whoever set another password meanwhile has ended all logins but this one.
        if self.stored_hash(&id).await.map_err(LoginError::Failed)? != stored {
            self.revoke(&issued.key.name).await.map_err(failed)?;
            return Err(LoginError::Wrong);
        }
        Ok(issued)
    }

    /// Checks name and password at a directory, finds or makes the user, and makes a token.
    ///
    /// # Errors
    /// See [`LoginError`].
    pub async fn login_at(
        &self,
        provider: &str,
        request: LoginRequest,
    ) -> Result<Issued, LoginError> {
        if !self.synced().await {
            return Err(LoginError::Starting);
        }
        if request.username.chars().nth(USERNAME_MAX).is_some() {
            return Err(LoginError::NameTooLong);
        }
        // Names differ in case only in the eyes of this server, and guesses count for one name.
        let name = format!("{provider}://{}", request.username.to_lowercase());
        let attempt = self.logins.attempt(&name, request.address).await;
        let mut attempt = attempt.map_err(|refusal| match refusal {
            Refusal::Slowed(wait) => LoginError::Slowed(seconds(wait)),
            Refusal::Busy => LoginError::Busy,
        })?;
        let open = self.providers.open(provider).await.map_err(LoginError::Unreachable)?;
        let Backend::Passwords(backend) = &open.backend else { return Err(LoginError::Wrong) };
        attempt.begin();
        let person = backend.authenticate(&request.username, &request.password).await;
        let person = person.map_err(login_error)?;
        attempt.succeed();
        let issued = self.log_in_person(&open, &person, None, &request).await?;
        self.recheck(provider, issued).await
    }

    /// Whoever disabled the provider meanwhile has ended all its logins but this one.
    pub(crate) async fn recheck(
        &self,
        provider: &str,
        issued: Issued,
    ) -> Result<Issued, LoginError> {
        if self.providers.is_enabled(provider) {
            return Ok(issued);
        }
        let revoked = self.revoke(&issued.key.name).await;
        revoked.map_err(|error| LoginError::Failed(error.chain()))?;
        Err(LoginError::Wrong)
    }

    /// Finds or makes the user of a person whom the provider authenticated, and makes a token.
    /// `grant`: with it the provider lets the user be read anew.
    pub(crate) async fn log_in_person(
        &self,
        open: &OpenProvider,
        person: &Person,
        grant: Option<&Secret>,
        request: &LoginRequest,
    ) -> Result<Issued, LoginError> {
        let failed = |error: ReconcileError| LoginError::Failed(error.chain());
        let found = self.user_by_principal(&person.user.id).await.map_err(failed)?;
        if !self.lets_in(&open.access, person, found.as_deref()) {
            return Err(LoginError::NotAllowed);
        }
        let user = match found {
            Some(user) => user,
            None => self.make_user(person).await.map_err(failed)?,
        };
        if !user.is_enabled() {
            return Err(LoginError::Disabled);
        }
        self.give_initial_roles(&user).await.map_err(failed)?;
        let provider = open.kind.name;
        if let Some(grant) = grant {
            self.store_grant(&user, provider, grant).await.map_err(failed)?;
        }
        let token = TokenRequest {
            auth_provider: provider.to_owned(),
            ..self.token_of_login(&user.name_any(), request)
        };
        let origin = TokenOrigin::of(provider, person);
        self.issue_for(token, origin).await.map_err(failed)
    }

    pub(crate) fn token_of_login(&self, user_id: &str, request: &LoginRequest) -> TokenRequest {
        let minutes = |name: &str| self.settings.minutes_as_millis(name);
        let session = minutes(AUTH_USER_SESSION_TTL_MINUTES);
        let session = session.unwrap_or(SESSION_TTL_MINUTES * 60_000);
        let base = TokenRequest {
            user_id: user_id.to_owned(),
            kind: KIND_SESSION,
            description: request.description.clone(),
            ttl_millis: session,
            cluster: None,
            project: None,
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
