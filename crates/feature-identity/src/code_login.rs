//! Logging in on the pages of a provider.
//!
//! A browser begins at [`START`] and is sent to the provider; it comes back to `/verify-auth` with
//! a code, which is exchanged for who the user is. Nothing is kept here meanwhile: the browser's
//! own cookie ([`attempt`]) holds the secret from which everything is derived that must fit
//! together, so a code, a state or an answer that was made for another browser is refused.
//!
//! A terminal logs in with a browser beside it ([`terminal`]): the browser gets a code that is good
//! once, for this terminal only.

pub mod attempt;
mod terminal;

use std::net::IpAddr;
use std::sync::Arc;

use api_meta::audit::{self as names, AuditEvent};
use feature_kit::route::{Handler, Request, Response, text};
use futures::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, header};
use identity::Secret;
use identity::browser::login_cookies;
use identity::cross_site::Origin;
use identity::provider::{CALLBACK_PATH, CodeLogin, CodeProvider, ProviderError, ReturnedCode};
use identity::throttle::{Refusal, Throttle, ThrottleKey, ThrottlePolicy, ThrottledAttempt};
use url::form_urlencoded;

use self::attempt::{AttemptCookie, Purpose};
use self::terminal::TerminalLogins;
use crate::auth_config::PendingTests;
use crate::directory::Directory;
use crate::login::{LoginError, LoginRequest, seconds};
use crate::provider_kind::Backend;
use crate::providers::OpenProvider;
use crate::token::issue::Issued;

/// A login begins here; the name of the provider follows.
pub const START: &str = "/v1-login/";
/// Begins the state of a login, and of a test of a configuration.
pub(crate) const LOGIN_STATE: &str = "l-";
pub(crate) const TEST_STATE: &str = "t-";
/// The page of the web interface that says why a login failed, and lets users try again.
const LOGIN_PAGE: &str = "/login";
/// The page of the web interface that shows a code for a terminal.
const CODE_PAGE: &str = "/login/code";
/// Says that a login has been sent to the host that the provider sends browsers back to.
const MOVED: &str = "moved";

/// Failed logins from one address that cost nothing yet, and those under way at once. Each calls
/// the provider.
const ATTEMPTS: ThrottlePolicy = ThrottlePolicy { free_failures: 100, under_way_max: 8 };

/// Logins on the pages of providers that are under way.
pub struct CodeLogins {
    throttle: Throttle,
    pub(crate) terminals: TerminalLogins,
    pub(crate) tests: PendingTests,
}

impl Default for CodeLogins {
    fn default() -> Self {
        Self {
            throttle: Throttle::new(ATTEMPTS),
            terminals: TerminalLogins::default(),
            tests: PendingTests::default(),
        }
    }
}

impl CodeLogins {
    async fn attempt(&self, address: Option<IpAddr>) -> Result<ThrottledAttempt<'_>, LoginError> {
        let key = address.map_or_else(
            || ThrottleKey::new("code login", &[]),
            identity::login_throttle::address_key,
        );
        self.throttle.attempt(key).await.map_err(|refusal| match refusal {
            Refusal::Slowed(wait) => LoginError::Slowed(seconds(wait)),
            Refusal::Busy => LoginError::Busy,
        })
    }
}

/// Counts an attempt, but not one that failed by no fault of whoever made it.
fn decided<T>(turn: ThrottledAttempt<'_>, result: Result<T, LoginError>) -> Result<T, LoginError> {
    match &result {
        Ok(_) => turn.succeed(),
        Err(LoginError::Wrong) => drop(turn),
        Err(_) => turn.withdraw(),
    }
    result
}

/// Sends browsers to the provider.
pub fn start(directory: &Arc<Directory>) -> Arc<dyn Handler> {
    Arc::new(Start(directory.clone()))
}

/// Takes browsers back from providers.
pub fn callback(directory: &Arc<Directory>) -> Arc<dyn Handler> {
    Arc::new(Callback(directory.clone()))
}

struct Start(Arc<Directory>);
struct Callback(Arc<Directory>);

/// The parameters of a request.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(request: &Request) -> Self {
        let query = request.parts.uri.query().unwrap_or_default();
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

fn go_to(url: &str) -> Response {
    let mut response = text(StatusCode::SEE_OTHER, "");
    let location = HeaderValue::from_str(url);
    response.headers_mut().insert(
        header::LOCATION,
        location.unwrap_or_else(|_| HeaderValue::from_static(LOGIN_PAGE)),
    );
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Back to the login page, which explains `failed`.
fn failed(provider: &str, failed: &str, to: Option<&str>) -> Response {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("provider", provider).append_pair("failed", failed);
    if let Some(to) = to {
        query.append_pair("to", to);
    }
    go_to(&format!("{LOGIN_PAGE}?{}", query.finish()))
}

/// The word by which the login page knows why a login failed.
fn word(error: &LoginError) -> &'static str {
    match error {
        LoginError::Wrong => "refused",
        LoginError::Disabled => "disabled",
        LoginError::NotAllowed => "notAllowed",
        LoginError::Unreachable(_) | LoginError::Starting => "unreachable",
        LoginError::Slowed(_) | LoginError::Busy => "busy",
        LoginError::NameTooLong | LoginError::Failed(_) => "error",
    }
}

fn only_get(request: &Request) -> Option<Response> {
    if request.parts.method == Method::GET {
        return None;
    }
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "logins begin with GET\n");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
    Some(response)
}

impl Directory {
    /// The provider, if people log in on its own pages.
    pub(crate) async fn open_for_codes(&self, name: &str) -> Result<Arc<OpenProvider>, LoginError> {
        if !self.synced().await {
            return Err(LoginError::Starting);
        }
        let open = self.providers.open(name).await.map_err(LoginError::Unreachable)?;
        match open.backend {
            Backend::Codes(_) => Ok(open),
            Backend::Passwords(_) => {
                let text = format!("provider \"{name}\" has no pages to log in on");
                Err(LoginError::Unreachable(text))
            }
        }
    }

    /// Makes the token of a login on the pages of a provider.
    ///
    /// # Errors
    /// See [`LoginError`].
    async fn log_in_with_code(
        &self,
        open: &OpenProvider,
        login: &CodeLogin,
        request: &LoginRequest,
    ) -> Result<Issued, LoginError> {
        let grant = login.grant.as_ref();
        let issued = self.log_in_person(open, &login.person, grant, request).await?;
        self.recheck(open.kind.name, issued).await
    }
}

impl Start {
    async fn redirect(&self, request: Request) -> Response {
        if let Some(refused) = only_get(&request) {
            return refused;
        }
        let path = request.parts.uri.path().strip_prefix(START).unwrap_or_default().to_owned();
        let query = Query::of(&request);
        let purpose = match Purpose::of(|name| query.get(name).map(str::to_owned)) {
            Ok(purpose) => purpose,
            Err(problem) => return text(StatusCode::BAD_REQUEST, format!("{problem}\n")),
        };
        match self.begin(&path, &request, &query, purpose).await {
            Ok(response) => response,
            Err(error) => {
                tracing::warn!(provider = path, reason = reason(&error), "a login cannot begin");
                failed(&path, word(&error), query.get("to"))
            }
        }
    }

    async fn begin(
        &self,
        name: &str,
        request: &Request,
        query: &Query,
        purpose: Purpose,
    ) -> Result<Response, LoginError> {
        let mut turn = self.0.code_logins.attempt(request.sender).await?;
        let open = self.0.open_for_codes(name).await?;
        let Backend::Codes(provider) = &open.backend else {
            return Err(LoginError::Unreachable(name.to_owned()));
        };
        if let Some(there) = other_host(provider.as_ref(), request, query) {
            return Ok(go_to(&there));
        }
        let cookie = AttemptCookie::new(open.kind.name, purpose);
        turn.begin();
        let url = provider.login_url(&cookie.attempt()).await.map_err(login_error);
        let mut response = go_to(&decided(turn, url)?);
        response.headers_mut().append(header::SET_COOKIE, cookie.set());
        Ok(response)
    }
}

/// Where the login must begin instead: the cookie must be that of the host to which the provider
/// sends the browser back.
fn other_host(provider: &dyn CodeProvider, request: &Request, query: &Query) -> Option<String> {
    if query.get(MOVED).is_some() {
        return None;
    }
    let callback = provider.callback();
    let (there, here) = (Origin::parse(callback)?, Origin::parse(&request.base_url())?);
    if there == here {
        return None;
    }
    let (base, _) = callback.rsplit_once(CALLBACK_PATH)?;
    let uri = &request.parts.uri;
    let mut more = form_urlencoded::Serializer::new(uri.query().unwrap_or_default().to_owned());
    Some(format!("{base}{}?{}", uri.path(), more.append_pair(MOVED, "1").finish()))
}

/// A failure of a provider as that of a login.
pub(crate) fn login_error(error: ProviderError) -> LoginError {
    match error {
        ProviderError::Wrong => LoginError::Wrong,
        ProviderError::Disabled => LoginError::Disabled,
        other => LoginError::Unreachable(other.to_string()),
    }
}

/// For the log: what the texts for users leave out.
fn reason(error: &LoginError) -> String {
    match error {
        LoginError::Unreachable(cause) | LoginError::Failed(cause) => cause.clone(),
        other => other.to_string(),
    }
}

impl Callback {
    async fn take_back(&self, request: Request) -> Response {
        if let Some(refused) = only_get(&request) {
            return refused;
        }
        let query = Query::of(&request);
        let state = query.get("state").unwrap_or_default();
        if state.starts_with(TEST_STATE) {
            return test_page(&query);
        }
        let cookie = AttemptCookie::read(&request.parts.headers);
        let Some(cookie) = cookie.filter(|cookie| cookie.attempt().is_state(state)) else {
            return failed("", "expired", None);
        };
        let (provider, to) = (cookie.provider.clone(), cookie.purpose.page().map(str::to_owned));
        let mut response = match self.finish(&request, &query, cookie).await {
            Ok(response) => response,
            Err(error) => {
                record_refusal(&request, &provider, &error);
                failed(&provider, word(&error), to.as_deref())
            }
        };
        // A code is good once, and so is what belongs to it.
        response.headers_mut().append(header::SET_COOKIE, AttemptCookie::forget());
        response
    }

    async fn finish(
        &self,
        request: &Request,
        query: &Query,
        cookie: AttemptCookie,
    ) -> Result<Response, LoginError> {
        if let Some(error) = query.get("error") {
            let text = query.get("error_description").unwrap_or_default();
            tracing::info!(provider = cookie.provider, error, text, "the provider refused a login");
            return Ok(failed(&cookie.provider, "denied", cookie.purpose.page()));
        }
        let mut turn = self.0.code_logins.attempt(request.sender).await?;
        let open = self.0.open_for_codes(&cookie.provider).await?;
        let Backend::Codes(provider) = &open.backend else {
            return Err(LoginError::Unreachable(cookie.provider));
        };
        let returned = ReturnedCode {
            code: Secret::new(query.get("code").unwrap_or_default()),
            issuer: query.get("iss").map(str::to_owned),
        };
        turn.begin();
        let login = provider.redeem(&cookie.attempt(), &returned).await.map_err(login_error);
        let login = decided(turn, login)?;
        match cookie.purpose {
            Purpose::Page(to) => {
                let issued =
                    self.0.log_in_with_code(&open, &login, &LoginRequest::default()).await?;
                record_login(request, &login, &issued);
                let mut response = go_to(&to);
                for cookie in login_cookies(&issued.key) {
                    response.headers_mut().append(header::SET_COOKIE, cookie);
                }
                Ok(response)
            }
            Purpose::Terminal(terminal) => {
                let port = terminal.port;
                let code =
                    self.0.code_logins.terminals.add(&cookie.provider, login, terminal.challenge);
                Ok(code_page("terminal", &code, port))
            }
        }
    }
}

/// Shows a code. It stands after the `#`: that part is not sent to any server.
fn code_page(used_in: &str, code: &str, port: Option<u16>) -> Response {
    let mut fragment = form_urlencoded::Serializer::new(String::new());
    fragment.append_pair("for", used_in).append_pair("code", code);
    if let Some(port) = port {
        fragment.append_pair("port", &port.to_string());
    }
    go_to(&format!("{CODE_PAGE}#{}", fragment.finish()))
}

/// What the provider said to a test goes to who began it, who is logged in and sends it along with
/// the configuration.
fn test_page(query: &Query) -> Response {
    match query.get("code") {
        Some(code) => code_page("test", code, None),
        None => {
            let error = query.get("error").unwrap_or("no code");
            let text = query.get("error_description").unwrap_or_default();
            tracing::info!(error, text, "the provider refused a test");
            failed("", "denied", None)
        }
    }
}

fn record_login(request: &Request, login: &CodeLogin, issued: &Issued) {
    request.audit.event(AuditEvent::Login);
    request.audit.user(&issued.token.user_id, &login.person.user.login_name);
    request.audit.annotate(names::TOKEN, &issued.key.name);
}

fn record_refusal(request: &Request, provider: &str, error: &LoginError) {
    request.audit.event(AuditEvent::LoginRefused);
    request.audit.annotate(names::REASON, error.to_string());
    let address = request.sender.map(|address| address.to_string()).unwrap_or_default();
    tracing::warn!(%address, provider, reason = reason(error), "a login was refused");
}

/// What a terminal presents for its token.
#[derive(Debug)]
pub(crate) struct TerminalCode<'a> {
    pub code: &'a str,
    pub verifier: &'a Secret,
}

impl Directory {
    /// Makes the token of a terminal whose user logged in with a browser.
    ///
    /// # Errors
    /// See [`LoginError`]; a code that does not fit is [`LoginError::Wrong`].
    pub(crate) async fn login_of_terminal(
        &self,
        provider: &str,
        presented: TerminalCode<'_>,
        request: LoginRequest,
    ) -> Result<(Issued, String), LoginError> {
        let mut turn = self.code_logins.attempt(request.address).await?;
        let open = self.open_for_codes(provider).await?;
        turn.begin();
        let terminals = &self.code_logins.terminals;
        let login = terminals.take(provider, presented.code, presented.verifier);
        let login = decided(turn, login.ok_or(LoginError::Wrong))?;
        let issued = self.log_in_with_code(&open, &login, &request).await?;
        Ok((issued, login.person.user.login_name))
    }
}

impl Handler for Start {
    fn handle(&self, request: Request) -> BoxFuture<'_, Response> {
        Box::pin(self.redirect(request))
    }
}

impl Handler for Callback {
    fn handle(&self, request: Request) -> BoxFuture<'_, Response> {
        Box::pin(self.take_back(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_explained_on_the_login_page() {
        let response = failed("oidc", "denied", Some("/c/local?x=1"));
        let location = response.headers()[header::LOCATION].to_str().unwrap();
        assert_eq!(location, "/login?provider=oidc&failed=denied&to=%2Fc%2Flocal%3Fx%3D1");
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
    }

    #[test]
    fn codes_are_shown_where_no_server_sees_them() {
        let response = code_page("terminal", "ab c", Some(4321));
        let location = response.headers()[header::LOCATION].to_str().unwrap();
        assert_eq!(location, "/login/code#for=terminal&code=ab+c&port=4321");
    }
}
