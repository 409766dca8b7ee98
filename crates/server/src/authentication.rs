//! From a request's credentials to an identity that handlers may act for.
//!
//! [`Authenticated`] is the only type that carries one, and only this module makes it, after the cross-site check: a
//! handler cannot be given an identity from a cookie that a foreign page may have used.

use std::ops::Deref;
use std::sync::Arc;

use api_meta::status::Status;
use feature_kit::Settings;
use http::Request;
use identity::browser::CsrfToken;
use identity::credential::Found;
use identity::cross_site::{self, CrossSite, Origin};
use identity::{Authenticate, Identity, Presented, Source};
use rest_view::Urls;

/// Verifies credentials.
pub struct Authentication {
    tokens: Arc<dyn Authenticate>,
    settings: Settings,
}

/// The user behind a request, proven by a token that this request may use.
#[derive(Clone, Debug)]
pub struct Authenticated {
    identity: Identity,
    csrf: Option<CsrfToken>,
}

impl Authenticated {
    /// What pages of this login repeat with each change; absent without a login cookie.
    pub fn csrf(&self) -> Option<&CsrfToken> {
        self.csrf.as_ref()
    }
}

impl Deref for Authenticated {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}

/// Why nobody may act on a request.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// `token`: what the token presented is called, not its key. `reason` is not for the client.
    #[error("the credentials do not hold")]
    Unauthenticated { token: Option<String>, reason: String },
    #[error(transparent)]
    CrossSite(#[from] CrossSite),
}

impl Refusal {
    /// There are no credentials.
    pub fn nothing() -> Self {
        Self::Unauthenticated { token: None, reason: "no credentials".to_owned() }
    }

    /// As the Kubernetes API says it.
    pub fn to_status(&self) -> Status {
        match self {
            Self::Unauthenticated { .. } => Status::unauthorized(),
            Self::CrossSite(problem) => Status::new(403, "Forbidden", problem.to_string()),
        }
    }
}

impl Authentication {
    /// Tokens are looked up in `tokens`; own origins and trusted proxies are those of `settings`.
    pub fn new(tokens: Arc<dyn Authenticate>, settings: Settings) -> Self {
        Self { tokens, settings }
    }

    /// Whose token the request presents, in a header or a login cookie. `None`: there is no token of ours; what there
    /// is may be for the API server to verify.
    ///
    /// Forwarded headers of those who are not trusted must be removed before.
    pub async fn identify<B>(
        &self,
        request: &Request<B>,
    ) -> Result<Option<Authenticated>, Refusal> {
        let presented = match identity::presented(request.headers()) {
            Found::Nothing | Found::Foreign => return Ok(None),
            Found::Ambiguous => {
                let reason = "more than one credential".to_owned();
                return Err(Refusal::Unauthenticated { token: None, reason });
            }
            Found::Ours(presented) => presented,
        };
        let csrf = match presented.source {
            Source::Header => None,
            Source::Cookie => {
                cross_site::check_cookie(request, &self.own_origins(request))?;
                Some(CsrfToken::of(&presented.token))
            }
        };
        let identity = self.verify(&presented).await?;
        Ok(Some(Authenticated { identity, csrf }))
    }

    /// As [`Self::identify`], where logins begin. The cookie of an earlier login means nothing there, since such
    /// requests may come from other sites by their nature; a write that a foreign page sends is refused.
    pub async fn identify_at_login<B>(
        &self,
        request: &Request<B>,
    ) -> Result<Option<Authenticated>, Refusal> {
        match identity::presented(request.headers()) {
            Found::Ours(presented) if presented.source == Source::Header => {
                let identity = self.verify(&presented).await?;
                Ok(Some(Authenticated { identity, csrf: None }))
            }
            _ => {
                cross_site::check_anonymous(request, &self.own_origins(request))?;
                Ok(None)
            }
        }
    }

    async fn verify(&self, presented: &Presented) -> Result<Identity, Refusal> {
        self.tokens.authenticate(presented).await.map_err(|refused| {
            tracing::debug!(token = presented.token.name, %refused, "a token was refused");
            let token = Some(presented.token.name.clone());
            Refusal::Unauthenticated { token, reason: refused.to_string() }
        })
    }

    /// Where our own pages come from: the address that this request was sent to, and the one we are known by.
    fn own_origins<B>(&self, request: &Request<B>) -> Vec<Origin> {
        let reached = Urls::of_request(request.headers(), request.uri());
        let known = self.settings.server_url();
        [reached.base(), &known].into_iter().filter_map(Origin::parse).collect()
    }
}
