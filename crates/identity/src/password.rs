//! Password hashes: argon2id, on threads that may block, a bounded number at once.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use crate::secret::Secret;

/// Memory of one hash, in KiB: the smallest that OWASP names, so that [`HASHES_MAX`] of them stay
/// below 20 MiB.
const MEMORY_KIB: u32 = 9 * 1024;
/// Twice what OWASP wants with this memory; measured, some 45 ms on one core of a small server.
const PASSES: u32 = 8;
const LANES: u32 = 1;
/// Hashes at once; more wait. Bounds memory and leaves processors to other work.
const HASHES_MAX: usize = 2;
/// Hashes waited for, those at work included; further ones are refused at once.
pub const HASHES_WAITING_MAX: usize = 128;
/// What a stored hash may ask for: an imported one must not exhaust the server.
const STORED_MEMORY_KIB_MAX: u32 = 64 * 1024;
const STORED_PASSES_MAX: u32 = 16;
/// Longest password taken, in bytes; longer ones only cost time.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Length of a generated password.
const GENERATED_LENGTH: usize = 20;

/// Hashes and compares passwords. Cheap to clone.
#[derive(Clone)]
pub struct Passwords {
    places: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// Compared with when there is no such user, so that the answer takes as long.
    decoy: Arc<str>,
}

/// The hash could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot hash a password: {0}")]
pub struct PasswordError(String);

impl Default for Passwords {
    fn default() -> Self {
        // A valid hash of nothing anybody knows: salt and output are arbitrary.
        let decoy = format!(
            "$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}$ZHJvdmVyLWRlY295LXNhbHQ$\
             qqfxSFRVSrNxWr0hw5QU2rcOHUJzIxdCb7VS3h1E2J0"
        );
        Self {
            places: Arc::new(Semaphore::new(HASHES_MAX)),
            waiting: Arc::new(Semaphore::new(HASHES_WAITING_MAX)),
            decoy: decoy.into(),
        }
    }
}

fn hasher() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("constants are in range");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

impl Passwords {
    /// The hash to store, in PHC form.
    pub async fn hash(&self, password: Secret) -> Result<String, PasswordError> {
        self.blocking(move || {
            let hash = hasher().hash_password(password.expose().as_bytes());
            hash.map(|hash| hash.to_string()).map_err(|error| PasswordError(error.to_string()))
        })
        .await?
    }

    /// Whether the password is the one that was hashed. Without a stored hash the answer is no,
    /// after the same work.
    pub async fn verify(&self, stored: Option<String>, password: Secret) -> bool {
        if password.expose().is_empty() || password.expose().len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let known = stored.is_some();
        let stored = stored.unwrap_or_else(|| self.decoy.to_string());
        let matches = self.blocking(move || {
            usable(&stored).is_some_and(|(hash, _)| {
                hasher().verify_password(password.expose().as_bytes(), &hash).is_ok()
            })
        });
        let matches = matches.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a password was not compared, so it does not match");
            false
        });
        known & matches
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let _waiting = self
            .waiting
            .try_acquire()
            .map_err(|_| PasswordError("too many logins at once, try again".to_owned()))?;
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.expect("the semaphore is never closed");
        // The place goes along: the work goes on when the caller no longer waits.
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.map_err(|error| PasswordError(error.to_string()))
    }
}

/// A stored hash, if it is argon2id within limits.
fn usable(stored: &str) -> Option<(PasswordHash, Params)> {
    let hash = PasswordHash::new(stored).ok()?;
    let params = Params::try_from(&hash).ok()?;
    let within = params.m_cost() <= STORED_MEMORY_KIB_MAX && params.t_cost() <= STORED_PASSES_MAX;
    (within && hash.algorithm.as_str() == "argon2id").then_some((hash, params))
}

/// Whether a stored hash was not made as hashes are made today: hash again at the next login.
pub fn is_outdated(stored: &str) -> bool {
    usable(stored).is_none_or(|(_, params)| {
        (params.m_cost(), params.t_cost(), params.p_cost()) != (MEMORY_KIB, PASSES, LANES)
    })
}

/// A random password that people can type.
pub fn generate_password() -> Secret {
    Secret::new(crate::token::random_text(GENERATED_LENGTH))
}

/// Why a new password is not taken.
pub fn password_problem(password: &Secret, login_name: &str, length_min: usize) -> Option<String> {
    let text = password.expose();
    if text.chars().count() < length_min {
        return Some(format!("must have at least {length_min} characters"));
    }
    if text.len() > PASSWORD_BYTES_MAX {
        return Some(format!("must have at most {PASSWORD_BYTES_MAX} bytes"));
    }
    (!login_name.is_empty() && text.to_lowercase() == login_name.to_lowercase())
        .then(|| "must not be the login name".to_owned())
}
