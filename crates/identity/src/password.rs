//! Password hashes: argon2id, on threads that may block, a bounded number at once.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::login_throttle::count_refused;
use crate::secret::Secret;

/// Memory of one hash, in KiB: the minimum that OWASP recommends, so that one per [`Lane`] needs
/// less than 20 MiB.
const MEMORY_KIB: u32 = 9 * 1024;
/// Twice the passes that OWASP recommends with this memory; measured, some 45 ms on one core of a
/// small server.
const PASSES: u32 = 8;
const LANES: u32 = 1;
/// Concurrent hashes in each [`Lane`]; further ones wait. Limits memory and leaves processors to
/// other work.
const HASHES_PER_LANE: usize = 1;
/// Hashes that wait in each lane; further ones are refused at once. At 45 ms each, the last one
/// starts within 12 s, which clients wait for a response.
pub const HASHES_WAITING_MAX: usize = 256;
/// Limits of the parameters of a stored hash: an imported one must not exhaust the server.
const STORED_MEMORY_KIB_MAX: u32 = 64 * 1024;
const STORED_PASSES_MAX: u32 = 16;
/// Longest accepted password, in bytes; longer ones only cost time.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Length of a generated password.
const GENERATED_LENGTH: usize = 20;

/// A queue for hashes. Each lane has its own, so that a flood of unknown callers does not delay
/// known ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Authenticated callers, and logins from an address where the name has logged in before.
    Known,
    /// All others.
    Stranger,
}

/// Hashes and compares passwords. Cheap to clone.
#[derive(Clone)]
pub struct Passwords {
    known: HashQueue,
    strangers: HashQueue,
    /// Compared with when the user does not exist, so that the response takes as long.
    decoy: Arc<str>,
}

#[derive(Clone)]
struct HashQueue {
    slots: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Default for HashQueue {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(HASHES_PER_LANE)),
            waiting: Arc::new(Semaphore::new(HASHES_WAITING_MAX)),
        }
    }
}

/// No hash was computed or compared. Reveals nothing about the password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Try again in some seconds.
    #[error("too many passwords are being checked; try again in a few seconds")]
    Busy,
    #[error("cannot hash a password: {0}")]
    Failed(String),
}

/// A slot for one hash, which can start at once.
pub struct HashSlot<'a> {
    passwords: &'a Passwords,
    permit: OwnedSemaphorePermit,
}

impl Default for Passwords {
    fn default() -> Self {
        // A valid hash of an unknown password: salt and output are arbitrary.
        let decoy = format!(
            "$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}$ZHJvdmVyLWRlY295LXNhbHQ$\
             qqfxSFRVSrNxWr0hw5QU2rcOHUJzIxdCb7VS3h1E2J0"
        );
        Self { known: HashQueue::default(), strangers: HashQueue::default(), decoy: decoy.into() }
    }
}

fn hasher() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("constants are in range");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

impl Passwords {
    /// Waits for a slot in the lane.
    ///
    /// # Errors
    /// [`PasswordError::Busy`] at once when [`HASHES_WAITING_MAX`] callers already wait.
    pub async fn acquire_slot(&self, lane: Lane) -> Result<HashSlot<'_>, PasswordError> {
        let queue = match lane {
            Lane::Known => &self.known,
            Lane::Stranger => &self.strangers,
        };
        let _waiting = queue.waiting.try_acquire().map_err(|_| {
            count_refused();
            PasswordError::Busy
        })?;
        let permit = queue.slots.clone().acquire_owned().await;
        Ok(HashSlot { passwords: self, permit: permit.expect("the semaphore is never closed") })
    }

    /// The hash to store, in PHC format, for a known caller.
    ///
    /// # Errors
    /// [`PasswordError`]; nothing is to be stored.
    pub async fn hash(&self, password: Secret) -> Result<String, PasswordError> {
        let work = move || {
            let hash = hasher().hash_password(password.expose().as_bytes());
            hash.map(|hash| hash.to_string())
                .map_err(|error| PasswordError::Failed(error.to_string()))
        };
        self.acquire_slot(Lane::Known).await?.blocking(work).await?
    }
}

impl HashSlot<'_> {
    /// Whether the password is the one that was hashed. Without a stored hash the result is
    /// `false`, after the same work.
    ///
    /// # Errors
    /// [`PasswordError::Failed`]: nothing was compared.
    pub async fn verify(
        self,
        stored: Option<String>,
        password: Secret,
    ) -> Result<bool, PasswordError> {
        if password.expose().is_empty() || password.expose().len() > PASSWORD_BYTES_MAX {
            return Ok(false);
        }
        let known = stored.is_some();
        let stored = stored.unwrap_or_else(|| self.passwords.decoy.to_string());
        let matches = self.blocking(move || {
            usable_hash(&stored).is_some_and(|(hash, _)| {
                hasher().verify_password(password.expose().as_bytes(), &hash).is_ok()
            })
        });
        Ok(known & matches.await?)
    }

    async fn blocking<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let permit = self.permit;
        // The work holds the permit: it continues when the caller no longer waits.
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.map_err(|error| PasswordError::Failed(error.to_string()))
    }
}

/// A stored hash and its parameters, if it is argon2id within limits.
fn usable_hash(stored: &str) -> Option<(PasswordHash, Params)> {
    let hash = PasswordHash::new(stored).ok()?;
    let params = Params::try_from(&hash).ok()?;
    let within = params.m_cost() <= STORED_MEMORY_KIB_MAX && params.t_cost() <= STORED_PASSES_MAX;
    (within && hash.algorithm.as_str() == "argon2id").then_some((hash, params))
}

/// Whether a stored hash was made with other parameters than today: hash the password again at the
/// next login.
pub fn is_outdated(stored: &str) -> bool {
    usable_hash(stored).is_none_or(|(_, params)| {
        (params.m_cost(), params.t_cost(), params.p_cost()) != (MEMORY_KIB, PASSES, LANES)
    })
}

/// A random password that users can type.
pub fn generate_password() -> Secret {
    Secret::new(crate::token::random_text(GENERATED_LENGTH))
}

/// Why a new password is refused; `None` when it is accepted. `length_min` in characters.
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
