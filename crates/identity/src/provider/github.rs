//! GitHub and GitHub Enterprise: people log in there by OAuth 2, and its API says who they are and
//! in which organisations and teams.
//!
//! The protocol is `oauth2`'s; [`api`] reads what is needed of GitHub's API. A login's access token
//! is its grant: with it the user is read anew, and others are searched as the user who searches.

mod api;
mod config;

use futures::future::BoxFuture;
use oauth2::basic::{BasicClient, BasicErrorResponse, BasicTokenResponse};
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet,
    EndpointSet, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    TokenResponse, TokenUrl,
};
use serde::Deserialize;

use self::api::GithubApi;
pub use self::config::GithubConfig;
use super::http::{HttpClient, HttpError, chain};
use super::{
    CodeAttempt, CodeLogin, CodeProvider, Principal, PrincipalKind, Principals, Problem,
    ProviderError, Refreshed, ReturnedCode,
};
use crate::secret::Secret;

/// Name of its configuration, and prefix of its principals.
pub const PROVIDER: &str = "github";
pub const CONFIG_TYPE: &str = "githubConfig";
pub const PUBLIC_TYPE: &str = "githubProvider";

/// Lets the organisations and teams of the user be read, and nothing else.
const SCOPE: &str = "read:org";

type OauthClient =
    BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// GitHub with its configuration.
pub struct Github {
    config: GithubConfig,
    /// Where the browser comes back to.
    callback: String,
    http: HttpClient,
}

impl Github {
    /// GitHub as it is configured; it sends browsers back to `callback`. Sends nothing.
    ///
    /// # Errors
    /// This system has no usable certificate authorities.
    pub fn new(config: GithubConfig, callback: String) -> Result<Self, Problem> {
        let http = HttpClient::new("", "").map_err(|text| Problem {
            field: "hostname",
            text: format!("is not usable: {text}"),
        })?;
        Ok(Self { config, callback, http })
    }

    fn oauth(&self) -> Result<OauthClient, ProviderError> {
        let base = self.config.web_url();
        let wrong = |error: oauth2::url::ParseError| ProviderError::Misconfigured {
            field: "hostname",
            text: error.to_string(),
        };
        let authorize = AuthUrl::new(format!("{base}/login/oauth/authorize")).map_err(wrong)?;
        let token = TokenUrl::new(format!("{base}/login/oauth/access_token")).map_err(wrong)?;
        let back = RedirectUrl::new(self.callback.clone()).map_err(|error| {
            let text = format!("the setting server-url is not a URL: {error}");
            ProviderError::Unavailable(text)
        })?;
        Ok(BasicClient::new(ClientId::new(self.config.client_id.clone()))
            .set_client_secret(ClientSecret::new(self.config.client_secret.clone()))
            .set_auth_uri(authorize)
            .set_token_uri(token)
            .set_redirect_uri(back)
            .set_auth_type(AuthType::RequestBody))
    }

    fn api<'a>(&'a self, token: Option<&'a Secret>) -> GithubApi<'a> {
        GithubApi { http: &self.http, base: self.config.api_url(), token }
    }

    async fn redeem_code(
        &self,
        attempt: &CodeAttempt,
        returned: &ReturnedCode,
    ) -> Result<CodeLogin, ProviderError> {
        let client = self.oauth()?;
        let code = AuthorizationCode::new(returned.code.expose().to_owned());
        let verifier = PkceCodeVerifier::new(attempt.verifier.expose().to_owned());
        let request = client.exchange_code(code).set_pkce_verifier(verifier);
        let tokens: BasicTokenResponse =
            request.request_async(&self.http).await.map_err(not_redeemed)?;
        let grant = Secret::new(tokens.access_token().secret());
        let person = self.api(Some(&grant)).person().await?;
        Ok(CodeLogin { person, grant: Some(grant) })
    }
}

/// GitHub says with status 200 that it refuses.
#[derive(Deserialize)]
struct GithubRefusal {
    error: String,
    #[serde(default)]
    error_description: String,
}

fn not_redeemed(error: RequestTokenError<HttpError, BasicErrorResponse>) -> ProviderError {
    let refusal = match &error {
        RequestTokenError::Parse(_, body) => serde_json::from_slice::<GithubRefusal>(body).ok(),
        _ => None,
    };
    let Some(refusal) = refusal else {
        return ProviderError::Unavailable(format!("the exchange failed: {}", chain(&error)));
    };
    let text = refusal.error_description;
    match refusal.error.as_str() {
        "bad_verification_code" => {
            tracing::info!(text, "GitHub refused a code");
            ProviderError::Wrong
        }
        "incorrect_client_credentials" => {
            let text = format!("GitHub refuses this client ({text}); check clientId too");
            ProviderError::Misconfigured { field: "clientSecret", text }
        }
        other => {
            ProviderError::Unavailable(format!("GitHub refuses the exchange: {other}: {text}"))
        }
    }
}

impl CodeProvider for Github {
    fn login_url<'a>(
        &'a self,
        attempt: &'a CodeAttempt,
    ) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(async move {
            let verifier = PkceCodeVerifier::new(attempt.verifier.expose().to_owned());
            let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
            let state = CsrfToken::new(attempt.state.clone());
            let client = self.oauth()?;
            let request = client.authorize_url(move || state);
            let request = request.add_scope(Scope::new(SCOPE.to_owned()));
            let (url, _) = request.set_pkce_challenge(challenge).url();
            Ok(url.into())
        })
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
        grant: &'a Secret,
    ) -> BoxFuture<'a, (Refreshed, Option<Secret>)> {
        Box::pin(async move {
            let refreshed = match self.api(Some(grant)).person().await {
                Ok(person) if person.user.id == user => Refreshed::Known(person),
                Ok(_) | Err(ProviderError::Wrong) => Refreshed::Gone,
                Err(ProviderError::Disabled) => Refreshed::Disabled,
                Err(error) => Refreshed::Unavailable(error.to_string()),
            };
            (refreshed, None)
        })
    }
}

impl Principals for Github {
    fn search<'a>(
        &'a self,
        text: &'a str,
        kind: Option<PrincipalKind>,
        grant: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Vec<Principal>, ProviderError>> {
        Box::pin(async move { self.api(grant).search(text, kind).await })
    }

    fn principal<'a>(
        &'a self,
        id: &'a str,
        grant: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Option<Principal>, ProviderError>> {
        Box::pin(async move { self.api(grant).principal(id).await })
    }
}
