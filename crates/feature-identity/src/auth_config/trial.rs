//! The test of a configuration: a login with it, before it is stored.
//!
//! Where people log in on the provider's own pages the test has two parts: [`begin`] says where,
//! and [`log_in`] takes the code that came back. Both are requests of the same user, and a code
//! that was made for anybody else is refused: otherwise whoever sneaks in a code of theirs would
//! become one person with an administrator.

use std::sync::Arc;
use std::time::Duration;

use identity::Secret;
use identity::provider::{CodeAttempt, CodeLogin, CodeProvider, ProviderError, ReturnedCode};
use identity::{IdentityProvider, generate_key};
use rest_view::{ApiError, Caller};
use serde_json::{Map, Value};

use super::actions::refusal;
use crate::code_login::TEST_STATE;
use crate::directory::Directory;
use crate::provider_kind::{Backend, LoginWay, ProviderKind};
use crate::short_lived::ShortLived;

/// How long a test may take at the provider.
const TEST_TIME_MAX: Duration = Duration::from_secs(900);
/// Tests under way at once; a new one displaces the oldest.
const TESTS_MAX: usize = 100;

/// Tests on the pages of providers that are under way: one per user and provider. In memory only.
pub struct PendingTests(ShortLived<(String, &'static str), CodeAttempt>);

impl Default for PendingTests {
    fn default() -> Self {
        Self(ShortLived::new(TESTS_MAX, TEST_TIME_MAX))
    }
}

impl PendingTests {
    fn begin(&self, user: &str, kind: &'static ProviderKind) -> CodeAttempt {
        let attempt = CodeAttempt::of(&generate_key(), TEST_STATE);
        self.0.store((user.to_owned(), kind.name), attempt.clone());
        attempt
    }

    fn take(&self, user: &str, kind: &'static ProviderKind) -> Option<CodeAttempt> {
        self.0.take(&(user.to_owned(), kind.name))
    }
}

/// Where the caller logs in with the configuration.
///
/// # Errors
/// The configuration is not right, or the provider does not respond.
pub async fn begin(
    directory: &Directory,
    kind: &'static ProviderKind,
    config: &Value,
    caller: &Caller,
) -> Result<String, ApiError> {
    let Backend::Codes(provider) = open(directory, kind, config).await? else {
        return Err(ApiError::no_such_id());
    };
    let attempt = directory.code_logins.tests.begin(&caller.user_id, kind);
    provider.login_url(&attempt).await.map_err(|error| explained(kind, error))
}

/// Who logs in with the configuration, as the input of `testAndApply` says.
///
/// # Errors
/// The configuration is not right, nobody logged in, or the provider does not respond.
pub async fn log_in(
    directory: &Arc<Directory>,
    kind: &'static ProviderKind,
    config: &Value,
    input: &Map<String, Value>,
    caller: &Caller,
) -> Result<CodeLogin, ApiError> {
    match open(directory, kind, config).await? {
        Backend::Passwords(provider) => with_password(provider.as_ref(), kind, input).await,
        Backend::Codes(provider) => {
            let attempt = directory.code_logins.tests.take(&caller.user_id, kind);
            with_code(provider.as_ref(), kind, input, attempt).await
        }
    }
}

async fn open(
    directory: &Directory,
    kind: &'static ProviderKind,
    config: &Value,
) -> Result<Backend, ApiError> {
    let object = directory.providers.with_credentials(config.clone()).await;
    let object = object.map_err(|cause| ApiError::new(503, "ServiceUnavailable", cause))?;
    kind.open(&object, directory.providers.callback()).map_err(refusal)
}

fn text<'a>(input: &'a Map<String, Value>, field: &str) -> &'a str {
    input.get(field).and_then(Value::as_str).unwrap_or_default()
}

async fn with_password(
    provider: &dyn IdentityProvider,
    kind: &'static ProviderKind,
    input: &Map<String, Value>,
) -> Result<CodeLogin, ApiError> {
    let (username, password) = (text(input, "username"), Secret::new(text(input, "password")));
    for (field, value) in [("username", username), ("password", password.expose())] {
        if value.is_empty() {
            let text = "enter an account of the directory to test the configuration with";
            return Err(ApiError::invalid_field("MissingRequired", field, text));
        }
    }
    let person = provider.authenticate(username, &password).await;
    let person = person.map_err(|error| explained(kind, error))?;
    Ok(CodeLogin { person, grant: None })
}

async fn with_code(
    provider: &dyn CodeProvider,
    kind: &'static ProviderKind,
    input: &Map<String, Value>,
    attempt: Option<CodeAttempt>,
) -> Result<CodeLogin, ApiError> {
    let code = text(input, "code");
    if code.is_empty() {
        let text = "call configureTest, log in at the address that it returns, and send the code \
                    that comes back";
        return Err(ApiError::invalid_field("MissingRequired", "code", text));
    }
    let attempt = attempt.ok_or_else(|| {
        let text = "you have no test under way; call configureTest first";
        ApiError::invalid_field("InvalidOption", "code", text)
    })?;
    let returned = ReturnedCode { code: Secret::new(code), issuer: None };
    provider.redeem(&attempt, &returned).await.map_err(|error| explained(kind, error))
}

fn explained(kind: &'static ProviderKind, error: ProviderError) -> ApiError {
    let (account, wrong) = match kind.way {
        LoginWay::Password => (
            "username",
            "the service account works, but the directory has no such user below userSearchBase, \
             or the password is wrong; check both, and userLoginAttribute",
        ),
        LoginWay::Pages => (
            "code",
            "the provider does not accept this code for this test, or who logged in is none of its \
             users; call configureTest and log in once more",
        ),
    };
    match error {
        ProviderError::Wrong => ApiError::invalid_field("InvalidOption", account, wrong),
        ProviderError::Disabled => {
            let text = "the provider has disabled this account; test with another one";
            ApiError::invalid_field("InvalidOption", account, text)
        }
        ProviderError::Unavailable(cause) => {
            let text = format!("{cause}; {}", kind.check);
            ApiError::invalid_field("InvalidOption", kind.address_field, text)
        }
        ProviderError::Misconfigured { field, text } => {
            ApiError::invalid_field("InvalidOption", field, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &ProviderKind = &ProviderKind::OIDC;

    #[tokio::test(start_paused = true)]
    async fn a_test_belongs_to_who_began_it_and_ends() {
        let tests = PendingTests::default();
        let attempt = tests.begin("u-1", KIND);
        assert!(tests.take("u-2", KIND).is_none());
        assert!(tests.take("u-1", KIND).is_some_and(|taken| taken.is_state(&attempt.state)));
        assert!(tests.take("u-1", KIND).is_none(), "taken twice");
        tests.begin("u-1", KIND);
        tokio::time::advance(TEST_TIME_MAX).await;
        assert!(tests.take("u-1", KIND).is_none(), "taken too late");
    }
}
