//! A login under way on the pages of a provider, as the browser's own cookie holds it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue};
use identity::Secret;
use identity::browser::cookies;
use identity::provider::CodeAttempt;
use serde::{Deserialize, Serialize};

use super::LOGIN_STATE;

/// No other host can set it, and no script can read it.
const NAME: &str = "__Host-drover-login";
/// How long a login may take at the provider, in seconds.
const AGE_MAX_SECONDS: u32 = 600;
/// Longest address of a page to return to, in bytes.
const PAGE_MAX: usize = 1024;
/// Characters of a challenge: SHA-256 in base64url.
const CHALLENGE_LENGTH: usize = 43;

/// A terminal that waits for a login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    /// SHA-256 of what the terminal will present, in base64url.
    pub challenge: String,
    /// Where it listens on the computer of the browser.
    pub port: Option<u16>,
}

/// What the login is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// This page of the web interface.
    Page(String),
    Terminal(Terminal),
}

impl Purpose {
    /// From the parameters with which a login begins.
    ///
    /// # Errors
    /// What is not right with them.
    pub fn of(parameter: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let Some(challenge) = parameter("challenge") else {
            let to = parameter("to").filter(|to| is_own_page(to));
            return Ok(Self::Page(to.unwrap_or_else(|| "/".to_owned())));
        };
        let is_base64url = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
        if challenge.len() != CHALLENGE_LENGTH || !challenge.bytes().all(is_base64url) {
            return Err(format!(
                "challenge must be the SHA-256 of a secret in base64url: {CHALLENGE_LENGTH} \
                 characters"
            ));
        }
        let port = parameter("port").map(|port| port.parse::<u16>()).transpose();
        let port = port.map_err(|_| "port must be a number from 1 to 65535".to_owned())?;
        Ok(Self::Terminal(Terminal { challenge, port }))
    }

    /// The page of the web interface, if it is one.
    pub fn page(&self) -> Option<&str> {
        match self {
            Self::Page(to) => Some(to),
            Self::Terminal(_) => None,
        }
    }

    fn is_right(&self) -> bool {
        match self {
            Self::Page(to) => is_own_page(to),
            Self::Terminal(terminal) => terminal.challenge.len() == CHALLENGE_LENGTH,
        }
    }
}

/// Whether a browser takes it for a page of this host. `//host` and `/\host` are other hosts.
fn is_own_page(to: &str) -> bool {
    let mut rest = to.bytes();
    rest.next() == Some(b'/')
        && !matches!(rest.next(), Some(b'/' | b'\\'))
        && to.len() <= PAGE_MAX
        && to.bytes().all(|c| c.is_ascii_graphic() && c != b'\\')
}

/// See the module.
pub struct AttemptCookie {
    pub provider: String,
    pub purpose: Purpose,
    secret: Secret,
}

impl AttemptCookie {
    /// A new one, with a secret of its own.
    pub fn new(provider: &str, purpose: Purpose) -> Self {
        let secret = identity::generate_key();
        Self { provider: provider.to_owned(), purpose, secret }
    }

    /// The one that a request has; none if it has none that is right.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let mut parts = cookies(headers, NAME).next()?.splitn(3, '.');
        let (provider, secret, purpose) = (parts.next()?, parts.next()?, parts.next()?);
        let purpose = URL_SAFE_NO_PAD.decode(purpose).ok()?;
        let purpose: Purpose = serde_json::from_slice(&purpose).ok()?;
        let is_right = !secret.is_empty() && purpose.is_right();
        is_right.then(|| Self {
            provider: provider.to_owned(),
            purpose,
            secret: Secret::new(secret),
        })
    }

    /// What must fit together in this login.
    pub fn attempt(&self) -> CodeAttempt {
        CodeAttempt::of(&self.secret, LOGIN_STATE)
    }

    /// Sent only by top-level navigation from other sites: that is how the browser comes back.
    pub fn set(&self) -> HeaderValue {
        let purpose = serde_json::to_vec(&self.purpose).unwrap_or_default();
        let purpose = URL_SAFE_NO_PAD.encode(purpose);
        let value = format!("{}.{}.{purpose}", self.provider, self.secret.expose());
        cookie(&value, AGE_MAX_SECONDS)
    }

    /// Makes the browser delete it.
    pub fn forget() -> HeaderValue {
        cookie("", 0)
    }
}

fn cookie(value: &str, age_seconds: u32) -> HeaderValue {
    let text =
        format!("{NAME}={value}; Path=/; Max-Age={age_seconds}; Secure; HttpOnly; SameSite=Lax");
    let mut cookie = HeaderValue::from_str(&text).expect("base64 and names of providers are ASCII");
    cookie.set_sensitive(true);
    cookie
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;

    use super::*;

    fn returned(set: &HeaderValue) -> HeaderMap {
        let pair = set.to_str().unwrap().split(';').next().unwrap().to_owned();
        HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(&pair).unwrap())])
    }

    #[test]
    fn a_cookie_comes_back_as_it_was_set() {
        let challenge = "a".repeat(CHALLENGE_LENGTH);
        let terminal = Purpose::Terminal(Terminal { challenge, port: Some(4321) });
        for purpose in [Purpose::Page("/c/local?x=1#y".to_owned()), terminal] {
            let cookie = AttemptCookie::new("oidc", purpose.clone());
            let read = AttemptCookie::read(&returned(&cookie.set())).unwrap();
            assert_eq!((read.provider.as_str(), read.purpose), ("oidc", purpose));
            assert!(cookie.attempt().is_state(&CodeAttempt::of(&read.secret, LOGIN_STATE).state));
        }
        assert!(AttemptCookie::read(&returned(&AttemptCookie::forget())).is_none());
    }

    #[test]
    fn two_logins_have_nothing_in_common() {
        let attempt = || AttemptCookie::new("oidc", Purpose::Page("/".to_owned())).attempt();
        let (one, other) = (attempt(), attempt());
        assert!(!one.is_state(&other.state) && !one.is_state(""));
        assert_ne!(one.nonce.expose(), other.nonce.expose());
        assert_ne!(one.verifier.expose(), other.verifier.expose());
        assert_ne!(one.verifier.expose(), one.nonce.expose());
    }

    #[test]
    fn only_pages_of_this_host_are_returned_to() {
        for (to, is_own) in [
            ("/", true),
            ("/c/local/nodes?x=1", true),
            ("", false),
            ("//evil.example", false),
            ("/\\evil.example", false),
            ("https://evil.example", false),
            ("javascript:alert(1)", false),
            ("/a\nb", false),
            ("/a b", false),
        ] {
            assert_eq!(is_own_page(to), is_own, "{to:?}");
        }
        let purpose = Purpose::of(|name| (name == "to").then(|| "//evil.example".to_owned()));
        assert_eq!(purpose, Ok(Purpose::Page("/".to_owned())));
    }

    #[test]
    fn a_terminal_needs_a_challenge_and_a_port() {
        let of = |challenge: &str, port: &str| {
            let (challenge, port) = (challenge.to_owned(), port.to_owned());
            Purpose::of(move |name| match name {
                "challenge" => Some(challenge.clone()),
                "port" => Some(port.clone()).filter(|port| !port.is_empty()),
                _ => None,
            })
        };
        let challenge = "b".repeat(CHALLENGE_LENGTH);
        assert!(of(&challenge, "").is_ok() && of(&challenge, "80").is_ok());
        assert!(of(&challenge, "65536").is_err() && of(&challenge, "x").is_err());
        assert!(of("short", "").is_err() && of(&"=".repeat(CHALLENGE_LENGTH), "").is_err());
    }
}
