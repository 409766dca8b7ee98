//! Password hashes: one Secret per local user, in a namespace of their own.

use feature_kit::ownership::owner_reference;
use std::collections::BTreeMap;

use api_management::setting::PASSWORD_MIN_LENGTH;
use api_management::{User, keys};
use controller::{Attempt, ensure};
use identity::Secret as Hidden;
use identity::password::{Lane, PasswordError, password_problem};
use identity::throttle::{Refusal, ThrottleKey};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use crate::directory::Directory;
use crate::login::{BUSY_RETRY_SECONDS, seconds};

/// Key of the hash in the Secret.
const HASH_KEY: &str = "hash";
/// Field of a user: whether clients require a new password. Users set it; a changed password clears
/// it.
pub(crate) const MUST_CHANGE: &str = "mustChangePassword";
/// Shortest password when the setting cannot be read.
const LENGTH_MIN: usize = 12;

/// Why a password was not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetPasswordError {
    #[error("no such user")]
    NoUser,
    #[error("invalid current password")]
    WrongCurrent,
    /// Too many wrong ones.
    #[error("too many wrong passwords; try again in {0} s")]
    Slowed(u64),
    /// Too many passwords are checked at once. Says nothing about this one, and is not counted.
    #[error("too many passwords are being checked; try again in {BUSY_RETRY_SECONDS} s")]
    Busy,
    /// What the new password must be.
    #[error("new password {0}")]
    Unfit(String),
    #[error("could not set the password: {0}")]
    Failed(String),
}

impl From<PasswordError> for SetPasswordError {
    fn from(error: PasswordError) -> Self {
        match error {
            PasswordError::Busy => Self::Busy,
            failed @ PasswordError::Failed(_) => Self::Failed(failed.to_string()),
        }
    }
}

/// The Secret that holds a user's hash; it goes when the user goes.
pub(crate) fn secret(user: &User, hash: String) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: user.metadata.name.clone(),
            namespace: Some(keys::PASSWORDS_NS.to_owned()),
            owner_references: Some(vec![owner_reference(user)]),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(
            HASH_KEY.to_owned(),
            k8s_openapi::ByteString(hash.into_bytes()),
        )])),
        ..Secret::default()
    }
}

/// Stores a hash, replacing the one before.
pub(crate) async fn store(
    client: &Client,
    user: &User,
    hash: String,
) -> Result<(), controller::ReconcileError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), keys::PASSWORDS_NS);
    ensure::like(&api, &secret(user, hash)).await.map(drop)
}

impl Directory {
    /// The stored hash of a user; none when the user has no password.
    pub(crate) async fn stored_hash(&self, user_id: &str) -> Result<Option<String>, String> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), keys::PASSWORDS_NS);
        let secret = api.get_opt(user_id).await.attempt(|| "read password hash".to_owned());
        let secret = secret.map_err(|error| error.chain())?;
        let hash = secret.and_then(|secret| secret.data?.remove(HASH_KEY));
        Ok(hash.and_then(|hash| String::from_utf8(hash.0).ok()))
    }

    /// Whether a password may be set for who logs in with this name.
    ///
    /// # Errors
    /// What it must be.
    pub fn check_password(&self, new: &Hidden, username: &str) -> Result<(), SetPasswordError> {
        let length_min = self.settings.get(PASSWORD_MIN_LENGTH).parse().unwrap_or(LENGTH_MIN);
        match password_problem(new, username, length_min) {
            Some(problem) => Err(SetPasswordError::Unfit(problem)),
            None => Ok(()),
        }
    }

    /// Sets a user's password. The caller has checked the right to do it.
    ///
    /// # Errors
    /// The user is gone, the password unfit, or the API refused.
    pub async fn set_password(&self, user: &str, new: Hidden) -> Result<(), SetPasswordError> {
        let user = self.user(user).await.ok_or(SetPasswordError::NoUser)?;
        self.check_password(&new, &user.username)?;
        let failed = |error: String| SetPasswordError::Failed(error);
        let hash = self.passwords.hash(new).await?;
        store(&self.client, &user, hash).await.map_err(|error| failed(error.chain()))
    }

    /// Changes one's own password, for who knows the current one. Clears `mustChangePassword`, as
    /// Rancher does.
    ///
    /// # Errors
    /// As [`Self::set_password`], or the current password is wrong, which is not tried for ever.
    pub async fn change_password(
        &self,
        user: &str,
        current: Hidden,
        new: Hidden,
    ) -> Result<(), SetPasswordError> {
        let key = ThrottleKey::new("change password", &[user.as_bytes()]);
        let mut attempt = self.changes.attempt(key).await.map_err(|refusal| match refusal {
            Refusal::Slowed(wait) => SetPasswordError::Slowed(seconds(wait)),
            Refusal::Busy => SetPasswordError::Busy,
        })?;
        let slot = self.passwords.acquire_slot(Lane::Known).await?;
        let stored = self.stored_hash(user).await.map_err(SetPasswordError::Failed)?;
        attempt.begin();
        if !slot.verify(stored, current).await? {
            return Err(SetPasswordError::WrongCurrent);
        }
        attempt.succeed();
        self.set_password(user, new).await?;
        if let Err(error) = self.end_must_change(user).await {
            // The password is set all the same, and clients require one more.
            tracing::warn!(%error, user, "field \"{MUST_CHANGE}\" stays as it is");
        }
        Ok(())
    }

    /// The user has chosen a password, so clients no longer have to require one.
    async fn end_must_change(&self, user: &str) -> Result<(), kube::Error> {
        if !self.user(user).await.is_some_and(|user| user.must_change_password) {
            return Ok(());
        }
        let api: Api<User> = Api::all(self.client.clone());
        let change = Patch::Merge(json!({MUST_CHANGE: null}));
        api.patch(user, &PatchParams::default(), &change).await.map(drop)
    }
}
