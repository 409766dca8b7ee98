//! From a request's credentials to an identity that handlers may act for.
//!
//! [`Authenticated`] is the only type that carries one, and only this module makes it, after the
//! cross-site check: a handler cannot be given an identity from a cookie that a foreign page may
//! have used.

use std::ops::Deref;
use std::sync::Arc;

use api_meta::status::Status;
use feature_kit::Settings;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request};
use identity::browser::CsrfToken;
use identity::credential::PresentedCredential;
use identity::cross_site::{self, CrossSite, Origin};
use identity::{Authenticate, Identity, Presented, Refused, TokenSource};
use rest_view::Urls;

/// Verifies credentials of requests.
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
    Unauthenticated { token: Option<String>, reason: String, login: Option<LoginEnd> },
    #[error(transparent)]
    CrossSite(#[from] CrossSite),
}

/// Why the login of a browser no longer holds, for the user. Whoever does not have the key of its
/// token learns nothing of that token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginEnd {
    #[error("the login has expired")]
    Expired,
    #[error("the user of this login is disabled or was deleted")]
    NoUser,
    /// Tokens that have expired are deleted after some time, too.
    #[error(
        "the login has ended: it expired, or a logout, a new password or an administrator ended it"
    )]
    Ended,
    #[error("the login cookie cannot be read")]
    Unreadable,
}

impl LoginEnd {
    fn of(refused: Refused) -> Self {
        match refused {
            Refused::Expired => Self::Expired,
            Refused::NoUser => Self::NoUser,
            Refused::Unknown | Refused::WrongKey | Refused::Disabled => Self::Ended,
        }
    }
}

impl Refusal {
    /// There are no credentials.
    pub fn nothing() -> Self {
        Self::Unauthenticated { token: None, reason: "no credentials".to_owned(), login: None }
    }

    fn unreadable(reason: &str, headers: &HeaderMap) -> Self {
        let login = (!headers.contains_key(AUTHORIZATION)).then_some(LoginEnd::Unreadable);
        Self::Unauthenticated { token: None, reason: reason.to_owned(), login }
    }

    /// The login that the request came with and that has ended.
    pub fn login_end(&self) -> Option<LoginEnd> {
        match self {
            Self::Unauthenticated { login, .. } => *login,
            Self::CrossSite(_) => None,
        }
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

    /// Whose token the request presents, in a header or a login cookie. `None`: there is no token
    /// of ours; what there is may be for the API server to verify.
    ///
    /// Forwarded headers of those who are not trusted must be removed before.
    pub async fn identify<B>(
        &self,
        request: &Request<B>,
    ) -> Result<Option<Authenticated>, Refusal> {
        let presented = match identity::read_credential(request.headers()) {
            PresentedCredential::Nothing => return Ok(None),
            PresentedCredential::Foreign if request.headers().contains_key(AUTHORIZATION) => {
                return Ok(None);
            }
            PresentedCredential::Foreign => {
                return Err(Refusal::unreadable("not a login cookie", request.headers()));
            }
            PresentedCredential::Ambiguous => {
                return Err(Refusal::unreadable("more than one credential", request.headers()));
            }
            PresentedCredential::Token(presented) => presented,
        };
        let csrf = match presented.source {
            TokenSource::Header => None,
            TokenSource::Cookie => {
                cross_site::check_cookie(request, &self.own_origins(request))?;
                Some(CsrfToken::of(&presented.token))
            }
        };
        let identity = self.verify(&presented).await?;
        Ok(Some(Authenticated { identity, csrf }))
    }

    /// As [`Self::identify`], where logins begin. The cookie of an earlier login means nothing
    /// there, since such requests may come from other sites by their nature; a write that a foreign
    /// page sends is refused. Nor does a token that no longer holds: whoever has one is here to get
    /// another.
    ///
    /// # Errors
    /// [`Refusal::CrossSite`] alone.
    pub async fn identify_at_login<B>(
        &self,
        request: &Request<B>,
    ) -> Result<Option<Authenticated>, Refusal> {
        if let PresentedCredential::Token(presented) = identity::read_credential(request.headers())
            && presented.source == TokenSource::Header
            && let Ok(identity) = self.verify(&presented).await
        {
            return Ok(Some(Authenticated { identity, csrf: None }));
        }
        cross_site::check_anonymous(request, &self.own_origins(request))?;
        Ok(None)
    }

    async fn verify(&self, presented: &Presented) -> Result<Identity, Refusal> {
        self.tokens.authenticate(presented).await.map_err(|refused| {
            tracing::debug!(token = presented.token.name, %refused, "a token was refused");
            let token = Some(presented.token.name.clone());
            let login = (presented.source == TokenSource::Cookie).then(|| LoginEnd::of(refused));
            Refusal::Unauthenticated { token, reason: refused.to_string(), login }
        })
    }

    /// Where our own pages come from: the address that this request was sent to, and the one we are
    /// known by.
    fn own_origins<B>(&self, request: &Request<B>) -> Vec<Origin> {
        let reached = Urls::of_request(request.headers(), request.uri());
        let known = self.settings.server_url();
        [reached.base(), &known].into_iter().filter_map(Origin::parse).collect()
    }
}
