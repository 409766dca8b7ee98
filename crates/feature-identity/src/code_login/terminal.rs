//! Logins of terminals: the user logged in with a browser, and the terminal has not taken its token
//! yet. Kept in memory only: a login that a stop of the server ends is begun again.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use identity::provider::CodeLogin;
use identity::{Secret, random_text};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::short_lived::ShortLived;

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
}

/// See the module.
pub struct TerminalLogins(ShortLived<String, WaitingLogin>);

impl Default for TerminalLogins {
    fn default() -> Self {
        Self(ShortLived::new(WAITING_MAX, GOOD_FOR))
    }
}

impl TerminalLogins {
    /// The code with which the terminal that made `challenge` takes the login.
    pub fn add(&self, provider: &str, login: CodeLogin, challenge: String) -> String {
        let code = random_text(CODE_LENGTH);
        let provider = provider.to_owned();
        self.0.store(code.clone(), WaitingLogin { provider, login, challenge });
        code
    }

    /// The login with this code, for the terminal that knows what its challenge was made of. The
    /// code is used up, whether it fits or not.
    pub fn take(&self, provider: &str, code: &str, verifier: &Secret) -> Option<CodeLogin> {
        let waiting = self.0.take(code)?;
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose().as_bytes()));
        let fits: bool = digest.as_bytes().ct_eq(waiting.challenge.as_bytes()).into();
        (fits && waiting.provider == provider).then_some(waiting.login)
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
        assert!(logins.take("oidc", &first, &Secret::new("v")).is_none());
    }
}
