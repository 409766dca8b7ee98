//! The identity providers under `/v3-public`: where clients that have no token yet get one.

use std::sync::Arc;

use api_meta::audit::{self as names, AuditEvent};
use feature_kit::view::PUBLIC;
use futures::future::BoxFuture;
use http::{StatusCode, header};
use identity::Secret;
use identity::browser::login_cookies;
use jiff::Timestamp;
use rest_view::{
    Action, ActionHandler, ActionRequest, ActionResponse, ApiError, Caller, Context, Descriptor,
    Field, FieldType, Key, ListScope, Methods, Presentation, Resource, Store, StructType,
};
use serde_json::{Map, Value, json};

use crate::code_login::{self, TerminalCode};
use crate::directory::Directory;
use crate::login::{BUSY_RETRY_SECONDS, LoginError, LoginRequest};
use crate::provider_kind::{LoginWay, ProviderKind};
use crate::providers::LOCAL;
use crate::token::issue::Issued;
use crate::token::view as token_view;

/// Public type of this server itself.
const LOCAL_TYPE: &str = "localProvider";
/// The type of the input of a login with name and password.
const PASSWORD_INPUT: &str = "basicLogin";
/// Where a browser logs in.
const REDIRECT_URL: &str = "redirectUrl";
/// How clients request a token that goes into a kubeconfig; a cluster's id may follow.
const KUBECONFIG: &str = "kubeconfig";

/// The types of the providers, and the list of all.
pub fn views(directory: &Arc<Directory>) -> Vec<Descriptor> {
    let store = |only| Arc::new(Providers { directory: directory.clone(), only });
    // All enabled providers, each shown as its own type.
    let all = Descriptor::with_store("authProvider", "authProviders", store(None))
        .version(PUBLIC)
        .methods(Methods::READ)
        .formatter(as_own_type);
    let view = |name: &'static str, id: &str, input: &str| {
        // The handler reads the body itself: what clients leave out is not missed.
        let login = Login { directory: directory.clone(), provider: name };
        let mut action = Action::new("login", login).output("token");
        action.input = Some(input.to_owned());
        let mut view = Descriptor::with_store(id, &format!("{id}s"), store(Some(name)))
            .version(PUBLIC)
            .methods(Methods::READ)
            .action(action);
        view.base_type = Some("authProvider".to_owned());
        view
    };
    let local = view(LOCAL, LOCAL_TYPE, PASSWORD_INPUT)
        .types([StructType::writable(PASSWORD_INPUT, password_input()), token_view::struct_type()]);
    let external = ProviderKind::ALL.into_iter().map(|kind| {
        let view = view(kind.name, kind.public_type, kind.types.login);
        match kind.way {
            LoginWay::Password => view,
            LoginWay::Pages => {
                let view = view.root([Field::string(REDIRECT_URL)]).formatter(with_redirect);
                let declares = kind.declares(|kind| kind.types.login);
                let input = StructType::writable(kind.types.login, code_input());
                if declares { view.types([input]) } else { view }
            }
        }
    });
    [all, local].into_iter().chain(external).collect()
}

fn password_input() -> Vec<Field> {
    vec![
        Field::string("description"),
        // Blanks around it count.
        Field::new("password", FieldType::Password),
        Field::string("responseType"),
        Field::int("ttl"),
        Field::string("username"),
    ]
}

/// The code is one that this server gave to a browser, for the terminal that knows the verifier.
fn code_input() -> Vec<Field> {
    vec![
        Field::string("code"),
        Field::new("codeVerifier", FieldType::Password),
        Field::string("description"),
        Field::string("responseType"),
        Field::int("ttl"),
    ]
}

fn type_of(provider: &str) -> Option<&'static str> {
    if provider == LOCAL {
        return Some(LOCAL_TYPE);
    }
    ProviderKind::of_name(provider).map(|kind| kind.public_type)
}

fn as_own_type(context: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let Some(id) = type_of(&resource.id) else { return };
    resource.subtype = Some(id.to_owned());
    let own = context.urls.path(&format!("{PUBLIC}/{id}s/{}", resource.id));
    resource.actions.insert("login".to_owned(), context.urls.action(&own, "login"));
    resource.links.insert("self".to_owned(), own);
    with_redirect(context, stored, resource);
}

/// Browsers log in through the provider's own pages at this address.
fn with_redirect(context: &Presentation<'_>, _: &Value, resource: &mut Resource) {
    let way = ProviderKind::of_name(&resource.id).map(|kind| kind.way);
    if way == Some(LoginWay::Pages) {
        let url = context.urls.path(&format!("{}{}", code_login::START, resource.id));
        resource.fields.insert(REDIRECT_URL.to_owned(), url.into());
    }
}

/// Those that are enabled; the local one always is.
struct Providers {
    directory: Arc<Directory>,
    /// Of all, or only this one.
    only: Option<&'static str>,
}

impl Providers {
    fn names(&self) -> Vec<&'static str> {
        let enabled = self.directory.providers.enabled().map(|kind| kind.name);
        let all = [LOCAL].into_iter().chain(enabled);
        all.filter(|name| self.only.is_none_or(|only| only == *name)).collect()
    }
}

fn provider(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

impl Store for Providers {
    fn list<'a>(
        &'a self,
        _: &'a Context<'a>,
        _: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(async { Ok(self.names().into_iter().map(provider).collect()) })
    }
    fn get<'a>(
        &'a self,
        _: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let found = self.names().into_iter().find(|name| *name == key.name);
            found.map(provider).ok_or_else(ApiError::no_such_id)
        })
    }
}

struct Login {
    directory: Arc<Directory>,
    provider: &'static str,
}

impl Login {
    /// The token, and the name of who logged in.
    async fn attempt(
        &self,
        input: &Map<String, Value>,
        request: LoginRequest,
    ) -> Result<(Issued, String), LoginError> {
        let name = request.username.clone();
        match ProviderKind::of_name(self.provider).map(|kind| kind.way) {
            None => Ok((self.directory.login(request).await?, name)),
            Some(LoginWay::Password) => {
                Ok((self.directory.login_at(self.provider, request).await?, name))
            }
            Some(LoginWay::Pages) => {
                let verifier = Secret::new(text(input, "codeVerifier"));
                let code = TerminalCode { code: text(input, "code"), verifier: &verifier };
                self.directory.login_of_terminal(self.provider, code, request).await
            }
        }
    }

    async fn login(&self, request: ActionRequest<'_>) -> Result<ActionResponse, ApiError> {
        let input = &request.input;
        let response_type = text(input, "responseType");
        let login = LoginRequest {
            username: text(input, "username").to_owned(),
            password: Secret::new(text(input, "password")),
            description: text(input, "description").to_owned(),
            kubeconfig: kubeconfig(response_type),
            address: request.context.caller.address,
        };
        let audit = &request.context.caller.audit;
        let name = login.username.clone();
        let is_known = self.provider == LOCAL && self.directory.user_by_username(&name).is_some();
        if is_known {
            // What no user is called may be a password in the wrong field.
            audit.annotate(names::LOGIN_NAME, &name);
        }
        let (issued, name) = match self.attempt(input, login).await {
            Ok(issued) => issued,
            Err(error) => {
                let name = is_known.then_some(name);
                record_refusal(&error, name.as_deref(), request.context.caller);
                return Err(refusal(error));
            }
        };
        audit.event(AuditEvent::Login);
        audit.user(&issued.token.user_id, &name);
        audit.annotate(names::TOKEN, &issued.key.name);
        if response_type == "cookie" {
            return Ok(with_cookies(&issued));
        }
        let mut fields = token_view::issued_fields(&issued, Timestamp::now());
        let id = fields["id"].as_str().unwrap_or_default();
        let own = request.context.urls.path(&format!("{PUBLIC}/tokens/{id}"));
        let links = Map::from_iter([("self".to_owned(), Value::from(own))]);
        fields.insert("links".to_owned(), links.into());
        Ok(ActionResponse::Struct { status: StatusCode::CREATED, id: "token".to_owned(), fields })
    }
}

fn text<'a>(input: &'a Map<String, Value>, field: &str) -> &'a str {
    input.get(field).and_then(Value::as_str).unwrap_or_default()
}

impl ActionHandler for Login {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(self.login(request))
    }
}

/// `kubeconfig` or `kubeconfig_<cluster id>`.
fn kubeconfig(response_type: &str) -> Option<Option<String>> {
    let rest = response_type.strip_prefix(KUBECONFIG)?;
    if rest.is_empty() {
        return Some(None);
    }
    let cluster = rest.strip_prefix('_').filter(|cluster| !cluster.is_empty())?;
    Some(Some(cluster.to_owned()))
}

fn with_cookies(issued: &Issued) -> ActionResponse {
    let mut response = http::Response::new(bytes::Bytes::new());
    for cookie in login_cookies(&issued.key) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    ActionResponse::Raw(response)
}

/// Leaves a trace of a login that failed: in the audit log, and of those that were tried in the
/// server's log. `name`: that of a user.
fn record_refusal(error: &LoginError, name: Option<&str>, caller: &Caller) {
    let event = match error {
        LoginError::Slowed(_) | LoginError::Busy | LoginError::Starting => AuditEvent::LoginSlowed,
        _ => AuditEvent::LoginRefused,
    };
    caller.audit.event(event);
    caller.audit.annotate(names::REASON, error.to_string());
    if event == AuditEvent::LoginRefused {
        let address = caller.address.map(|address| address.to_string());
        let address = address.unwrap_or_default();
        let user = name.unwrap_or("[none of this name]");
        tracing::warn!(%address, user, reason = %error, "a login was refused");
    }
}

fn refusal(error: LoginError) -> ApiError {
    let text = error.to_string();
    match error {
        LoginError::Wrong | LoginError::NotAllowed => ApiError::unauthorized(text),
        LoginError::Disabled => ApiError::permission_denied(text),
        LoginError::Slowed(wait) => ApiError::new(429, "TooManyRequests", text).retry_after(wait),
        LoginError::NameTooLong => ApiError::invalid_field("MaxLengthExceeded", "username", text),
        LoginError::Busy | LoginError::Starting => {
            ApiError::new(503, "ServiceUnavailable", text).retry_after(BUSY_RETRY_SECONDS)
        }
        LoginError::Unreachable(cause) => {
            tracing::warn!(%cause, "a directory cannot be used");
            ApiError::new(503, "ServiceUnavailable", text).retry_after(BUSY_RETRY_SECONDS)
        }
        LoginError::Failed(cause) => {
            tracing::error!(%cause, "login failed");
            ApiError::server_error(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_types_request_kubeconfig_tokens() {
        for (requested, meant) in [
            ("", None),
            ("json", None),
            ("cookie", None),
            ("kubeconfig", Some(None)),
            ("kubeconfig_c-1", Some(Some("c-1".to_owned()))),
            ("kubeconfig_", None),
            ("kubeconfigs", None),
        ] {
            assert_eq!(kubeconfig(requested), meant, "{requested}");
        }
    }

    #[test]
    fn each_refusal_has_the_status_that_clients_know() {
        for (error, status, code) in [
            (LoginError::Wrong, 401, "Unauthorized"),
            (LoginError::Disabled, 403, "PermissionDenied"),
            (LoginError::Slowed(3), 429, "TooManyRequests"),
            (LoginError::Starting, 503, "ServiceUnavailable"),
            (LoginError::Busy, 503, "ServiceUnavailable"),
            (LoginError::NameTooLong, 422, "MaxLengthExceeded"),
            (LoginError::Failed("secret detail".to_owned()), 500, "ServerError"),
        ] {
            let answered = refusal(error);
            assert_eq!((answered.status, answered.code.as_str()), (status, code));
            assert!(!answered.message.contains("secret detail"));
        }
    }
}
