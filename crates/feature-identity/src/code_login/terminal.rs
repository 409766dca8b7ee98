//! Logins of terminals: the user logged in with a browser, and the terminal has not taken its token
//! yet. Kept in memory only: a login that a stop of the server ends is begun again.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use identity::provider::CodeLogin;
use identity::{Secret, random_text};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

/// How long a code is good.
const GOOD_FOR: Duration = Duration::from_secs(300);
/// Characters of a code: 95 bits.
const CODE_LENGTH: usize = 20;
/// Logins that wait at once; a new one displaces the oldest.
const WAITING_MAX: usize = 1000;

struct WaitingLogin {
    provider: String,
    login: CodeLogin,
    challenge: String,
    since: Instant,
}

/// See the module.
#[derive(Default)]
pub struct TerminalLogins(Mutex<HashMap<String, WaitingLogin>>);

impl TerminalLogins {
    /// The code with which the terminal that made `challenge` takes the login.
    pub fn add(&self, provider: &str, login: CodeLogin, challenge: String) -> String {
        let code = random_text(CODE_LENGTH);
        let mut waiting = self.0.lock();
        waiting.retain(|_, login| login.since.elapsed() < GOOD_FOR);
        if waiting.len() >= WAITING_MAX
            && let Some((oldest, _)) = waiting.iter().min_by_key(|(_, login)| login.since)
        {
            let oldest = oldest.clone();
            waiting.remove(&oldest);
        }
        let (provider, since) = (provider.to_owned(), Instant::now());
        waiting.insert(code.clone(), WaitingLogin { provider, login, challenge, since });
        code
    }

    /// The login with this code, for the terminal that knows what its challenge was made of. The
    /// code is used up, whether it fits or not.
    pub fn take(&self, provider: &str, code: &str, verifier: &Secret) -> Option<CodeLogin> {
        let waiting = self.0.lock().remove(code)?;
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose().as_bytes()));
        let fits: bool = digest.as_bytes().ct_eq(waiting.challenge.as_bytes()).into();
        let is_good = waiting.since.elapsed() < GOOD_FOR && waiting.provider == provider;
        (fits && is_good).then_some(waiting.login)
    }
}

#[cfg(test)]
mod tests {
    use identity::provider::{Person, Principal, PrincipalKind};

    use super::*;

    fn login(id: &str) -> CodeLogin {
        let name = id.to_owned();
        let kind = PrincipalKind::User;
        let user =
            Principal { id: name.clone(), kind, display_name: name.clone(), login_name: name };
        CodeLogin { person: Person { user, groups: Vec::new() }, grant: None }
    }

    fn challenge(verifier: &str) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_code_is_good_once_for_its_terminal_and_not_for_long() {
        let logins = TerminalLogins::default();
        let verifier = Secret::new("verifier");
        let add = || logins.add("oidc", login("ada"), challenge("verifier"));
        let code = add();
        assert!(logins.take("oidc", &code, &verifier).is_some());
        assert!(logins.take("oidc", &code, &verifier).is_none(), "used twice");
        assert!(logins.take("oidc", &add(), &Secret::new("other")).is_none());
        assert!(logins.take("keycloakoidc", &add(), &verifier).is_none());
        let code = add();
        assert!(logins.take("oidc", &code, &Secret::new("guess")).is_none());
        assert!(logins.take("oidc", &code, &verifier).is_none(), "good after a wrong guess");
        let code = add();
        tokio::time::advance(GOOD_FOR).await;
        assert!(logins.take("oidc", &code, &verifier).is_none(), "good for too long");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_of_too_many_logins_is_forgotten() {
        let logins = TerminalLogins::default();
        let first = logins.add("oidc", login("first"), challenge("v"));
        tokio::time::advance(Duration::from_secs(1)).await;
        for _ in 0..WAITING_MAX {
            logins.add("oidc", login("next"), challenge("v"));
        }
        assert_eq!(logins.0.lock().len(), WAITING_MAX);
        assert!(logins.take("oidc", &first, &Secret::new("v")).is_none());
    }
}
