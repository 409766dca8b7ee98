//! Google Workspace: people log in with their Google account, and the Directory API says who they
//! are in the organisation and in which groups.
//!
//! The directory is read by a service account on behalf of an administrator of the organisation
//! (domain-wide delegation), so a user is read anew without anything that the user left here.

mod config;
mod directory;

use futures::future::BoxFuture;
use jsonwebtoken::{Algorithm, Header};
use serde::{Deserialize, Serialize};

pub use self::config::GoogleConfig;
use self::config::{OauthClientKey, ServiceAccountKey};
use self::directory::GoogleDirectory;
use super::http::{HttpClient, decode};
use super::oauth::{CodeFlow, ExchangeError, OwnReader, OwnToken};
use super::{
    CodeAttempt, CodeLogin, CodeProvider, Person, Principal, PrincipalKind, Principals, Problem,
    ProviderError, Refreshed, ReturnedCode,
};
use crate::secret::Secret;

/// Name of its configuration, and prefix of its principals.
pub const PROVIDER: &str = "googleoauth";
pub const CONFIG_TYPE: &str = "googleOauthConfig";
pub const PUBLIC_TYPE: &str = "googleOAuthProvider";

const SCOPES: [&str; 3] = ["openid", "profile", "email"];
/// What the service account may read, each for the whole organisation.
const DIRECTORY_SCOPES: &str = "https://www.googleapis.com/auth/admin.directory.user.readonly \
                                https://www.googleapis.com/auth/admin.directory.group.readonly";
/// Lifetime of what the service account signs, in seconds: the most that Google accepts.
const ASSERTION_SECONDS: i64 = 3600;
/// The grant that a signature of the service account gets.
const JWT_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// An organisation with its configuration.
pub struct Google {
    config: GoogleConfig,
    client: OauthClientKey,
    account: ServiceAccountKey,
    /// Where the browser comes back to.
    callback: String,
    http: HttpClient,
    own: OwnToken,
}

/// What Google says about who logged in.
#[derive(Deserialize)]
struct UserInfo {
    sub: String,
    /// The domain of the user's organisation; absent for an account without one.
    #[serde(default)]
    hd: String,
}

/// What the service account signs to get a token.
#[derive(Serialize)]
struct Assertion<'a> {
    iss: &'a str,
    /// The administrator on whose behalf it reads.
    sub: &'a str,
    scope: &'a str,
    aud: &'a str,
    iat: i64,
    exp: i64,
}

impl Google {
    /// An organisation; it sends browsers back to `callback`. Sends nothing.
    ///
    /// # Errors
    /// A credential is not readable, or this system has no usable certificate authorities.
    pub fn new(config: GoogleConfig, callback: String) -> Result<Self, Problem> {
        let (client, account) = (config.client()?, config.account()?);
        let http = HttpClient::new("", "").map_err(|text| Problem {
            field: "userInfoEndpoint",
            text: format!("is not usable: {text}"),
        })?;
        Ok(Self { config, client, account, callback, http, own: OwnToken::default() })
    }

    fn flow(&self) -> CodeFlow<'_> {
        CodeFlow {
            authorize_url: self.client.auth_uri.clone(),
            token_url: self.client.token_uri.clone(),
            client_id: &self.client.client_id,
            client_secret: self.client.client_secret.expose(),
            callback: &self.callback,
            scopes: SCOPES.map(str::to_owned).to_vec(),
            address_field: config::OAUTH_FIELD,
        }
    }

    /// The directory, read by the service account.
    fn directory(&self) -> GoogleDirectory<'_> {
        let form =
            || Ok(vec![("grant_type", JWT_GRANT.to_owned()), ("assertion", self.assertion()?)]);
        let reader = OwnReader {
            http: &self.http,
            service: directory::SERVICE,
            token: &self.own,
            token_url: self.account.token_uri.clone(),
            form: Box::new(form),
            explain: of_service_account,
        };
        GoogleDirectory { reader, config: &self.config }
    }

    fn assertion(&self) -> Result<String, ProviderError> {
        let now = now_seconds();
        let claims = Assertion {
            iss: &self.account.client_email,
            sub: &self.config.admin_email,
            scope: DIRECTORY_SCOPES,
            aud: &self.account.token_uri,
            iat: now,
            exp: now + ASSERTION_SECONDS,
        };
        let header = Header::new(Algorithm::RS256);
        jsonwebtoken::encode(&header, &claims, &self.account.key).map_err(|error| {
            let field = config::ACCOUNT_FIELD;
            ProviderError::Misconfigured { field, text: format!("the key signs nothing: {error}") }
        })
    }

    async fn redeem_code(
        &self,
        attempt: &CodeAttempt,
        returned: &ReturnedCode,
    ) -> Result<CodeLogin, ProviderError> {
        let token = self.flow().redeem(&self.http, attempt, returned).await;
        let token = token.map_err(|error| error.into_provider_error(config::OAUTH_FIELD))?;
        let url = self.config.user_info_url();
        let info = self.http.get("Google", url, Some(&token), &[]).await?;
        if !info.status().is_success() {
            let text = format!("Google says nothing about the user: status {}", info.status());
            return Err(ProviderError::Unavailable(text));
        }
        let info: UserInfo = decode("Google", &info)?;
        if !info.hd.eq_ignore_ascii_case(&self.config.hostname) {
            tracing::info!(domain = info.hd, "a Google account outside of the organisation");
            return Err(ProviderError::Wrong);
        }
        let person = self.directory().person(&info.sub).await?;
        Ok(CodeLogin { person: person.ok_or(ProviderError::Wrong)?, grant: None })
    }

    async fn read_again(&self, user: &str) -> Result<Option<Person>, ProviderError> {
        let Some(id) = user.strip_prefix(directory::USER_PREFIX) else { return Ok(None) };
        self.directory().person(id).await
    }
}

fn now_seconds() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
}

/// Why the service account got no token.
fn of_service_account(error: ExchangeError) -> ProviderError {
    let refusal = match error {
        ExchangeError::Refused(refusal) => refusal,
        other => return other.into_provider_error(config::ACCOUNT_FIELD),
    };
    let (error, text) = (refusal.error, refusal.error_description);
    match error.as_str() {
        "unauthorized_client" => ProviderError::Misconfigured {
            field: config::ACCOUNT_FIELD,
            text: format!(
                "Google refuses the service account ({text}): give its client id domain-wide \
                 delegation of the scopes {DIRECTORY_SCOPES}"
            ),
        },
        "invalid_grant" if text.contains("email") => ProviderError::Misconfigured {
            field: "adminEmail",
            text: format!("Google has no such administrator ({text})"),
        },
        "invalid_grant" => ProviderError::Misconfigured {
            field: config::ACCOUNT_FIELD,
            text: format!(
                "Google refuses the signature ({text}): make a new key if this one was deleted, \
                 and check the clock of this machine"
            ),
        },
        _ => ProviderError::Unavailable(format!(
            "Google refuses the service account: {error}: {text}"
        )),
    }
}

impl CodeProvider for Google {
    fn login_url<'a>(
        &'a self,
        attempt: &'a CodeAttempt,
    ) -> BoxFuture<'a, Result<String, ProviderError>> {
        let more = [("hd", self.config.hostname.as_str()), ("prompt", "select_account")];
        Box::pin(std::future::ready(self.flow().login_url(attempt, &more)))
    }

    fn callback(&self) -> &str {
        &self.callback
    }

    fn redeem<'a>(
        &'a self,
        attempt: &'a CodeAttempt,
        code: &'a ReturnedCode,
    ) -> BoxFuture<'a, Result<CodeLogin, ProviderError>> {
        Box::pin(self.redeem_code(attempt, code))
    }

    fn refresh<'a>(
        &'a self,
        user: &'a str,
        _: Option<&'a Secret>,
    ) -> BoxFuture<'a, (Refreshed, Option<Secret>)> {
        Box::pin(async move { (Refreshed::of(self.read_again(user).await), None) })
    }
}

impl Principals for Google {
    fn search<'a>(
        &'a self,
        text: &'a str,
        kind: Option<PrincipalKind>,
        _: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Vec<Principal>, ProviderError>> {
        Box::pin(async move { self.directory().search(text, kind).await })
    }

    fn principal<'a>(
        &'a self,
        id: &'a str,
        _: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Option<Principal>, ProviderError>> {
        Box::pin(async move { self.directory().principal(id).await })
    }
}
