//! Azure AD, which is called Microsoft Entra ID now: people log in there by OAuth 2, and Microsoft
//! Graph says who they are and in which groups.
//!
//! A login only says whose it is. Everything else the server reads as the registered application:
//! groups never come from a token, which has none for members of many. So a user is read anew
//! without anything that the user left here, and is known to be disabled.

mod config;
mod graph;

use futures::future::BoxFuture;

pub use self::config::AzureAdConfig;
use self::graph::Graph;
use super::http::HttpClient;
use super::oauth::{CodeFlow, ExchangeError, OwnReader, OwnToken};
use super::{
    CodeAttempt, CodeLogin, CodeProvider, Person, Principal, PrincipalKind, Principals, Problem,
    ProviderError, Refreshed, ReturnedCode,
};
use crate::secret::Secret;

/// Name of its configuration, and prefix of its principals.
pub const PROVIDER: &str = "azuread";
pub const CONFIG_TYPE: &str = "azureADConfig";
pub const PUBLIC_TYPE: &str = "azureADProvider";

/// The field with the application's secret.
const SECRET_FIELD: &str = "applicationSecret";

/// A tenant with its configuration.
pub struct AzureAd {
    config: AzureAdConfig,
    /// Where the browser comes back to.
    callback: String,
    http: HttpClient,
    own: OwnToken,
}

impl AzureAd {
    /// A tenant; it sends browsers back to `callback`, unless the configuration says where to.
    /// Sends nothing.
    ///
    /// # Errors
    /// This system has no usable certificate authorities.
    pub fn new(config: AzureAdConfig, callback: String) -> Result<Self, Problem> {
        let http = HttpClient::new("", "").map_err(|text| Problem {
            field: "endpoint",
            text: format!("is not usable: {text}"),
        })?;
        let callback = config.callback().map_or(callback, str::to_owned);
        Ok(Self { config, callback, http, own: OwnToken::default() })
    }

    fn flow(&self) -> CodeFlow<'_> {
        CodeFlow {
            authorize_url: self.config.authorize_url(),
            token_url: self.config.token_url(),
            client_id: &self.config.application_id,
            client_secret: &self.config.application_secret,
            callback: &self.callback,
            scopes: vec!["openid".to_owned(), format!("{}/User.Read", self.config.graph_url())],
            address_field: "authEndpoint",
        }
    }

    /// Graph, read as the application.
    fn graph(&self) -> Graph<'_> {
        let form = || {
            Ok(vec![
                ("grant_type", "client_credentials".to_owned()),
                ("client_id", self.config.application_id.clone()),
                ("client_secret", self.config.application_secret.clone()),
                ("scope", format!("{}/.default", self.config.graph_url())),
            ])
        };
        let reader = OwnReader {
            http: &self.http,
            service: graph::SERVICE,
            token: &self.own,
            token_url: self.config.token_url(),
            form: Box::new(form),
            explain: explained,
        };
        Graph { reader, base: self.config.graph_url() }
    }

    async fn redeem_code(
        &self,
        attempt: &CodeAttempt,
        returned: &ReturnedCode,
    ) -> Result<CodeLogin, ProviderError> {
        let token = self.flow().redeem(&self.http, attempt, returned).await.map_err(explained)?;
        let id = graph::id_of(&self.http, self.config.graph_url(), &token).await?;
        let person = self.graph().person(&id).await?;
        Ok(CodeLogin { person: person.ok_or(ProviderError::Wrong)?, grant: None })
    }

    async fn read_again(&self, user: &str) -> Result<Option<Person>, ProviderError> {
        let Some(id) = user.strip_prefix(graph::USER_PREFIX) else { return Ok(None) };
        self.graph().person(id).await
    }
}

/// Names the field that Microsoft's error code is about.
fn explained(error: ExchangeError) -> ProviderError {
    /// Codes of Microsoft, and the fields that they are about.
    const CODES: [(&str, &str); 5] = [
        ("AADSTS90002", "tenantId"),
        ("AADSTS900023", "tenantId"),
        ("AADSTS700016", "applicationId"),
        ("AADSTS7000215", SECRET_FIELD),
        ("AADSTS7000222", SECRET_FIELD),
    ];
    if let ExchangeError::Refused(refusal) = &error {
        let text = &refusal.error_description;
        let code = text.split(':').next().unwrap_or_default();
        if let Some((_, field)) = CODES.iter().find(|(known, _)| *known == code) {
            let text = text.lines().next().unwrap_or_default().to_owned();
            return ProviderError::Misconfigured { field, text };
        }
    }
    error.into_provider_error(SECRET_FIELD)
}

impl CodeProvider for AzureAd {
    fn login_url<'a>(
        &'a self,
        attempt: &'a CodeAttempt,
    ) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(std::future::ready(self.flow().login_url(attempt, &[("response_mode", "query")])))
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

impl Principals for AzureAd {
    fn search<'a>(
        &'a self,
        text: &'a str,
        kind: Option<PrincipalKind>,
        _: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Vec<Principal>, ProviderError>> {
        Box::pin(async move { self.graph().search(text.trim(), kind).await })
    }

    fn principal<'a>(
        &'a self,
        id: &'a str,
        _: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Option<Principal>, ProviderError>> {
        Box::pin(async move { self.graph().principal(id).await })
    }
}

#[cfg(test)]
mod tests {
    use super::super::oauth::TokenRefusal;
    use super::*;

    #[test]
    fn microsofts_codes_name_the_field_that_is_wrong() {
        let of = |error: &str, description: &str| {
            explained(ExchangeError::Refused(TokenRefusal {
                error: error.to_owned(),
                error_description: description.to_owned(),
            }))
        };
        for (code, expected) in [
            ("AADSTS90002: Tenant 'x' not found.", "tenantId"),
            ("AADSTS700016: Application 'x' was not found.\r\nTrace ID: 1", "applicationId"),
            ("AADSTS7000215: Invalid client secret provided.", "applicationSecret"),
            ("AADSTS7000222: The provided client secret keys are expired.", "applicationSecret"),
        ] {
            match of("invalid_client", code) {
                ProviderError::Misconfigured { field, text } => {
                    assert_eq!(field, expected);
                    assert!(!text.contains("Trace"), "{text}");
                }
                other => panic!("{code}: {other}"),
            }
        }
        assert_eq!(of("invalid_grant", "AADSTS54005: already redeemed"), ProviderError::Wrong);
    }
}
