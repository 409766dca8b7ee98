//! The code flow of OAuth 2 with PKCE, for providers whose own API says who logged in; and tokens
//! with which the server itself reads there.

use std::time::Duration;

use http::{StatusCode, header};
use oauth2::basic::{BasicClient, BasicErrorResponse, BasicTokenResponse};
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet,
    EndpointSet, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    TokenResponse, TokenUrl,
};
use openidconnect::HttpResponse;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::form_urlencoded;

use super::http::{HttpClient, HttpError, chain};
use super::{CodeAttempt, ProviderError, ReturnedCode};
use crate::secret::Secret;

/// How long before its end a token is not used any more.
const TOKEN_MARGIN: Duration = Duration::from_secs(60);
/// Lifetime of a token that says nothing about it.
const TOKEN_LIFE: Duration = Duration::from_secs(300);

type OauthClient =
    BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// A client of a provider.
pub(super) struct CodeFlow<'a> {
    pub authorize_url: String,
    pub token_url: String,
    pub client_id: &'a str,
    pub client_secret: &'a str,
    /// Where the browser comes back to.
    pub callback: &'a str,
    pub scopes: Vec<String>,
    /// The field of the configuration that says where the provider is.
    pub address_field: &'static str,
}

/// Why an exchange gave no token.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// The provider's word for the cause, and its explanation.
    Refused(TokenRefusal),
    Failed(String),
    Misconfigured(ProviderError),
}

/// How a provider refuses.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TokenRefusal {
    pub error: String,
    #[serde(default)]
    pub error_description: String,
}

impl ExchangeError {
    /// The general meaning; `secret_field` has the secret of the client.
    pub fn into_provider_error(self, secret_field: &'static str) -> ProviderError {
        let refusal = match self {
            Self::Refused(refusal) => refusal,
            Self::Failed(cause) => {
                return ProviderError::Unavailable(format!("the exchange failed: {cause}"));
            }
            Self::Misconfigured(error) => return error,
        };
        let text = refusal.error_description;
        match refusal.error.as_str() {
            "invalid_grant" | "bad_verification_code" => {
                tracing::info!(text, "the provider refused a code");
                ProviderError::Wrong
            }
            "invalid_client" | "unauthorized_client" | "incorrect_client_credentials" => {
                let text = format!("the provider refuses this client ({text}); check its id too");
                ProviderError::Misconfigured { field: secret_field, text }
            }
            other => ProviderError::Unavailable(format!(
                "the provider refuses the exchange: {other}: {text}"
            )),
        }
    }
}

impl CodeFlow<'_> {
    fn client(&self) -> Result<OauthClient, ProviderError> {
        let wrong = |error: oauth2::url::ParseError| ProviderError::Misconfigured {
            field: self.address_field,
            text: error.to_string(),
        };
        let authorize = AuthUrl::new(self.authorize_url.clone()).map_err(wrong)?;
        let token = TokenUrl::new(self.token_url.clone()).map_err(wrong)?;
        let back = RedirectUrl::new(self.callback.to_owned()).map_err(|error| {
            let text = format!("the address of this server is not a URL: {error}");
            ProviderError::Unavailable(text)
        })?;
        Ok(BasicClient::new(ClientId::new(self.client_id.to_owned()))
            .set_client_secret(ClientSecret::new(self.client_secret.to_owned()))
            .set_auth_uri(authorize)
            .set_token_uri(token)
            .set_redirect_uri(back)
            .set_auth_type(AuthType::RequestBody))
    }

    /// Where the browser logs in, with `more` parameters.
    pub fn login_url(
        &self,
        attempt: &CodeAttempt,
        more: &[(&str, &str)],
    ) -> Result<String, ProviderError> {
        let verifier = PkceCodeVerifier::new(attempt.verifier.expose().to_owned());
        let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
        let state = CsrfToken::new(attempt.state.clone());
        let client = self.client()?;
        let mut request = client.authorize_url(move || state);
        for (name, value) in more {
            request = request.add_extra_param(*name, *value);
        }
        let scopes = self.scopes.iter().map(|scope| Scope::new(scope.clone()));
        let (url, _) = request.add_scopes(scopes).set_pkce_challenge(challenge).url();
        Ok(url.into())
    }

    /// The access token of who logged in.
    pub async fn redeem(
        &self,
        http: &HttpClient,
        attempt: &CodeAttempt,
        returned: &ReturnedCode,
    ) -> Result<Secret, ExchangeError> {
        let client = self.client().map_err(ExchangeError::Misconfigured)?;
        let code = AuthorizationCode::new(returned.code.expose().to_owned());
        let verifier = PkceCodeVerifier::new(attempt.verifier.expose().to_owned());
        let request = client.exchange_code(code).set_pkce_verifier(verifier);
        let tokens: BasicTokenResponse = request.request_async(http).await.map_err(refused)?;
        Ok(Secret::new(tokens.access_token().secret()))
    }
}

fn refused(error: RequestTokenError<HttpError, BasicErrorResponse>) -> ExchangeError {
    match &error {
        RequestTokenError::ServerResponse(refusal) => ExchangeError::Refused(TokenRefusal {
            error: refusal.error().to_string(),
            error_description: refusal.error_description().cloned().unwrap_or_default(),
        }),
        // GitHub refuses with status 200.
        RequestTokenError::Parse(_, body) => match serde_json::from_slice(body) {
            Ok(refusal) => ExchangeError::Refused(refusal),
            Err(_) => ExchangeError::Failed(chain(&error)),
        },
        _ => ExchangeError::Failed(chain(&error)),
    }
}

/// The parameters of a request for a token.
pub(super) type TokenForm = Vec<(&'static str, String)>;

/// A token with which the server itself reads at a provider.
#[derive(Default)]
pub(super) struct OwnToken(Mutex<Option<(Secret, Instant)>>);

#[derive(Deserialize)]
struct TokenReply {
    access_token: Secret,
    #[serde(default)]
    expires_in: Option<u64>,
}

impl OwnToken {
    /// The token, which is requested with `form` when there is none that is good for a while.
    async fn get(
        &self,
        http: &HttpClient,
        url: &str,
        form: impl Fn() -> Result<TokenForm, ProviderError>,
    ) -> Result<Secret, ExchangeError> {
        let mut known = self.0.lock().await;
        if let Some((token, end)) = &*known
            && Instant::now() + TOKEN_MARGIN < *end
        {
            return Ok(token.clone());
        }
        let requested_at = Instant::now();
        let form = form().map_err(ExchangeError::Misconfigured)?;
        let reply = request(http, url, &form).await?;
        let life = reply.expires_in.map_or(TOKEN_LIFE, Duration::from_secs);
        *known = Some((reply.access_token.clone(), requested_at + life));
        Ok(reply.access_token)
    }

    async fn forget(&self) {
        *self.0.lock().await = None;
    }
}

/// Reads at a provider as the server itself.
pub(super) struct OwnReader<'a> {
    pub http: &'a HttpClient,
    /// What errors call the provider.
    pub service: &'static str,
    pub token: &'a OwnToken,
    pub token_url: String,
    /// What a token is requested with.
    pub form: Box<dyn Fn() -> Result<TokenForm, ProviderError> + Send + Sync + 'a>,
    /// What it means that there is no token.
    pub explain: fn(ExchangeError) -> ProviderError,
}

impl OwnReader<'_> {
    /// Reads `url`, once more with a new token if the provider ended the token before its time.
    ///
    /// # Errors
    /// There is no token, or the provider does not respond. Never [`ProviderError::Wrong`]: a token
    /// of the server says nothing about a user. Another status that says failure is a response.
    pub async fn get(
        &self,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Result<HttpResponse, ProviderError> {
        let response = self.get_once(url, headers).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        self.token.forget().await;
        let response = self.get_once(url, headers).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let text = format!("{} does not accept the token that it gave", self.service);
            return Err(ProviderError::Unavailable(text));
        }
        Ok(response)
    }

    async fn get_once(
        &self,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Result<HttpResponse, ProviderError> {
        let token = self.token.get(self.http, &self.token_url, &self.form).await;
        let token = token.map_err(|error| match (self.explain)(error) {
            // The server has no code that could be wrong.
            ProviderError::Wrong => {
                let text = format!("{} refuses the server's own login", self.service);
                ProviderError::Unavailable(text)
            }
            other => other,
        })?;
        self.http.get(self.service, url, Some(&token), headers).await
    }
}

async fn request(
    http: &HttpClient,
    url: &str,
    form: &TokenForm,
) -> Result<TokenReply, ExchangeError> {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let request = http::Request::post(url)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json")
        .body(body.into_bytes());
    let request = request.map_err(|error| ExchangeError::Failed(error.to_string()))?;
    let response =
        http.send(request).await.map_err(|error| ExchangeError::Failed(error.to_string()))?;
    let malformed = |error: serde_json::Error| ExchangeError::Failed(error.to_string());
    if response.status().is_success() {
        return serde_json::from_slice(response.body()).map_err(malformed);
    }
    let status = response.status();
    match serde_json::from_slice(response.body()) {
        Ok(refusal) if status.is_client_error() => Err(ExchangeError::Refused(refusal)),
        _ => Err(ExchangeError::Failed(format!("the provider responds with status {status}"))),
    }
}
