//! GitHub and GitHub Enterprise: people log in there by OAuth 2, and its API says who they are and
//! in which organisations and teams.
//!
//! The protocol is `oauth2`'s; [`api`] reads what is needed of GitHub's API. A login's access token
//! is its grant: with it the user is read anew, and others are searched as the user who searches.

mod api;
mod config;

use futures::future::BoxFuture;

use self::api::GithubApi;
pub use self::config::GithubConfig;
use super::http::HttpClient;
use super::oauth::CodeFlow;
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

    fn flow(&self) -> CodeFlow<'_> {
        let base = self.config.web_url();
        CodeFlow {
            authorize_url: format!("{base}/login/oauth/authorize"),
            token_url: format!("{base}/login/oauth/access_token"),
            client_id: &self.config.client_id,
            client_secret: &self.config.client_secret,
            callback: &self.callback,
            scopes: vec![SCOPE.to_owned()],
            address_field: "hostname",
        }
    }

    fn api<'a>(&'a self, token: Option<&'a Secret>) -> GithubApi<'a> {
        GithubApi { http: &self.http, base: self.config.api_url(), token }
    }

    async fn redeem_code(
        &self,
        attempt: &CodeAttempt,
        returned: &ReturnedCode,
    ) -> Result<CodeLogin, ProviderError> {
        let grant = self.flow().redeem(&self.http, attempt, returned).await;
        let grant = grant.map_err(|error| error.into_provider_error("clientSecret"))?;
        let person = self.api(Some(&grant)).person().await?;
        Ok(CodeLogin { person, grant: Some(grant) })
    }
}

impl CodeProvider for Github {
    fn login_url<'a>(
        &'a self,
        attempt: &'a CodeAttempt,
    ) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(std::future::ready(self.flow().login_url(attempt, &[])))
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
        grant: Option<&'a Secret>,
    ) -> BoxFuture<'a, (Refreshed, Option<Secret>)> {
        Box::pin(async move {
            let read = match self.api(grant).person().await {
                Ok(person) => Ok((person.user.id == user).then_some(person)),
                Err(error) => Err(error),
            };
            (Refreshed::of(read), None)
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
