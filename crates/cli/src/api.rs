//! A client of the API `/v3` for the commands: collections, resources by id or name, actions.

use std::path::Path;

use http::{Method, StatusCode};
use serde_json::Value;

use crate::config::{self, Config, Login, LoginContext};
use crate::denied::{Denied, Verb};
use crate::error::{CliError, Failure};
use crate::http::Http;
use crate::similar;
use crate::tls::Trust;

/// Maximum number of pages of a list.
const PAGES_MAX: usize = 1_000;

/// Maximum number of objects of a list.
const ITEMS_MAX: usize = 500_000;
/// Objects on a page of a Kubernetes list.
const KUBE_PAGE_SIZE: usize = 500;
/// Used in place of a stored login: a token and the authority of its server.
const TOKEN_VARIABLE: &str = "DROVER_TOKEN";
const CA_FILE_VARIABLE: &str = "DROVER_CA_FILE";

/// A logged-in client.
pub struct Api {
    http: Http,
    name: String,
    context: LoginContext,
}

impl Api {
    /// Opens a client with the named login, else the current one. `DROVER_TOKEN` overrides both.
    pub fn open(server: Option<&str>) -> Result<Self, CliError> {
        let config = config::load(&config::path()?)?;
        let token = std::env::var(TOKEN_VARIABLE).unwrap_or_default();
        if !token.is_empty() {
            return Self::with_token(&config, server, token);
        }
        let (name, context) = config.select(server)?;
        Self::new(name, context.clone())
    }

    fn with_token(config: &Config, server: Option<&str>, token: String) -> Result<Self, CliError> {
        let known = server.map_or(Some(config.current.as_str()), Some);
        let known = known.and_then(|name| config.contexts.get(name));
        let url = match (known, server) {
            (Some(context), _) => context.server.clone(),
            (None, Some(server)) => config::normal_url(server)?,
            (None, None) => {
                let text = format!("{TOKEN_VARIABLE} is set, and no server is named");
                return Err(CliError::usage(text).hint("name it with --server or DROVER_SERVER"));
            }
        };
        let ca_cert = match std::env::var_os(CA_FILE_VARIABLE).filter(|file| !file.is_empty()) {
            Some(file) => read_authority(Path::new(&file))?,
            None => config.authority(&url).unwrap_or_default(),
        };
        let login = Login { token, ca_cert, ..Login::default() };
        let chosen = known.cloned().unwrap_or_default();
        Self::new(&url, LoginContext { server: url.clone(), login, ..chosen })
    }

    /// A client with the login of `context`, which is called `name`.
    pub fn new(name: &str, context: LoginContext) -> Result<Self, CliError> {
        let trust = match context.login.ca_cert.as_str() {
            "" => Trust::System,
            pem => Trust::Authority(pem.to_owned()),
        };
        let http = Http::new(&context.server, &trust, &context.login.token)?;
        Ok(Self { http, name: name.to_owned(), context })
    }

    /// A second client with the same login and a connection of its own.
    pub fn another(&self) -> Self {
        Self { http: self.http.another(), name: self.name.clone(), context: self.context.clone() }
    }

    /// URL of the server, without a path.
    pub fn url(&self) -> &str {
        self.http.url()
    }
    /// Name of the context.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The cluster and project that commands use if they name none.
    pub fn context(&self) -> &LoginContext {
        &self.context
    }
    /// The login that requests are sent with.
    pub fn login(&self) -> &Login {
        &self.context.login
    }

    /// Sends one request and returns the response body; null for an empty body. `what` names the
    /// object in errors.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        what: &str,
    ) -> Result<Value, CliError> {
        let verb = Verb::of(&method, path);
        let response = self.http.send(method, path, body.map(Value::to_string)).await?;
        if !response.status.is_success() {
            let refused: Value = serde_json::from_slice(&response.body).unwrap_or_default();
            let mut error = self.refusal(response.status, &refused, what);
            if error.failure == Failure::Forbidden {
                error.denied = Some(Box::new(Denied::new(self.another(), verb, path, body)));
            }
            return Err(error);
        }
        if response.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&response.body)
            .map_err(|_| self.unexpected_response(what, "is not JSON"))
    }

    /// The error for a response that a Drover server does not send.
    fn unexpected_response(&self, what: &str, why: &str) -> CliError {
        CliError::new(Failure::Other, format!("{what}: the response of {} {why}", self.url()))
            .hint("check that the URL is that of a Drover server, and that no proxy in front of it responds instead")
    }

    fn refusal(&self, status: StatusCode, body: &Value, what: &str) -> CliError {
        let message = body["message"].as_str().filter(|text| !text.is_empty());
        let message =
            message.map_or_else(|| format!("the server responded with {status}"), str::to_owned);
        let failure = match status {
            StatusCode::UNAUTHORIZED => Failure::Unauthenticated,
            StatusCode::FORBIDDEN => Failure::Forbidden,
            StatusCode::NOT_FOUND => Failure::NotFound,
            StatusCode::CONFLICT => Failure::Conflict,
            StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST => Failure::Invalid,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => Failure::Unreachable,
            StatusCode::GATEWAY_TIMEOUT => Failure::Timeout,
            _ => Failure::Other,
        };
        let error = CliError::new(failure, format!("{what}: {}", self.with_own_name(&message)));
        match failure {
            Failure::Unauthenticated => error.hint(format!("run \"drover login {}\"", self.url())),
            Failure::Invalid => error.hint("correct the named field and try again"),
            Failure::NotFound => error.hint("check the name or id"),
            Failure::Conflict => error.hint("choose another name, or change the existing object"),
            Failure::Timeout => error.hint("try again"),
            Failure::Other if status.is_server_error() => error.hint("check the server's log"),
            Failure::Unreachable => error.hint("try again; \"drover cluster ls\" shows the states"),
            _ => error,
        }
    }

    /// A message of the server, with the caller's login name in place of the id.
    fn with_own_name(&self, message: &str) -> String {
        let Login { user, username, .. } = self.login();
        match user.is_empty() || username.is_empty() {
            true => message.to_owned(),
            false => message.replace(&format!("\"{user}\""), &format!("\"{username}\"")),
        }
    }

    /// Gets text that is not JSON, such as a manifest.
    pub async fn text(&self, path: &str, what: &str) -> Result<String, CliError> {
        let response = self.http.send(Method::GET, path, None).await?;
        if !response.status.is_success() {
            let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
            return Err(self.refusal(response.status, &body, what));
        }
        String::from_utf8(response.body.to_vec())
            .map_err(|_| CliError::new(Failure::Other, format!("{what}: the response is not text")))
    }

    /// Lists all resources of a collection, page by page.
    pub async fn list(&self, plural: &str, query: &[(&str, &str)]) -> Result<Vec<Value>, CliError> {
        let query: Vec<String> =
            query.iter().map(|(key, value)| format!("{key}={}", encode(value))).collect();
        let mut path = match query.as_slice() {
            [] => format!("/v3/{plural}"),
            query => format!("/v3/{plural}?{}", query.join("&")),
        };
        let what = format!("listing {plural}");
        let mut all = Vec::new();
        for _ in 0..PAGES_MAX {
            let mut page = self.call(Method::GET, &path, None, &what).await?;
            let Value::Array(items) = page["data"].take() else {
                return Err(self.unexpected_response(&what, "is not a list"));
            };
            all.extend(items);
            if all.len() > ITEMS_MAX {
                let text = format!("{what}: more than {ITEMS_MAX} objects");
                return Err(CliError::new(Failure::Other, text));
            }
            match page["pagination"]["next"].as_str() {
                Some(next) => path = path_of(next),
                None => return Ok(all),
            }
        }
        Err(CliError::new(Failure::Other, format!("{what}: more than {PAGES_MAX} pages")))
    }

    /// Lists all objects of a Kubernetes collection, such as
    /// `/k8s/clusters/local/api/v1/namespaces`, page by page.
    pub async fn list_kube(&self, collection: &str, what: &str) -> Result<Vec<Value>, CliError> {
        let mut all = Vec::new();
        let mut from = String::new();
        for _ in 0..PAGES_MAX {
            let path = format!("{collection}?limit={KUBE_PAGE_SIZE}{from}");
            let mut page = self.call(Method::GET, &path, None, what).await?;
            let Value::Array(items) = page["items"].take() else {
                return Err(self.unexpected_response(what, "is not a list"));
            };
            all.extend(items);
            match text(&page["metadata"], "continue") {
                "" => return Ok(all),
                next => from = format!("&continue={}", encode(next)),
            }
        }
        Err(CliError::new(Failure::Other, format!("{what}: more than {PAGES_MAX} pages")))
    }

    /// Creates an object of the collection `plural`, and returns it. `what` describes the request
    /// in errors.
    ///
    /// # Errors
    /// The request fails, or the server refuses it.
    pub async fn create(&self, plural: &str, body: &Value, what: &str) -> Result<Value, CliError> {
        self.call(Method::POST, &format!("/v3/{plural}"), Some(body), what).await
    }
    /// Reads the object `id` of the collection `plural`. `what` describes the request in errors.
    ///
    /// # Errors
    /// The object does not exist, or the request fails.
    pub async fn get(&self, plural: &str, id: &str, what: &str) -> Result<Value, CliError> {
        let path = format!("/v3/{plural}/{}", encode(id));
        self.call(Method::GET, &path, None, what).await
    }
    /// Changes the given fields.
    pub async fn update(
        &self,
        plural: &str,
        id: &str,
        fields: &Value,
        what: &str,
    ) -> Result<Value, CliError> {
        let path = format!("/v3/{plural}/{}", encode(id));
        self.call(Method::PUT, &path, Some(fields), what).await
    }
    /// Deletes the object `id` of the collection `plural`, and returns the response. `what`
    /// describes the request in errors.
    ///
    /// # Errors
    /// The request fails, or the server refuses it.
    pub async fn delete(&self, plural: &str, id: &str, what: &str) -> Result<Value, CliError> {
        let path = format!("/v3/{plural}/{}", encode(id));
        self.call(Method::DELETE, &path, None, what).await
    }
    /// Runs an action of an object, and returns its result. `what` describes the request in errors.
    ///
    /// # Errors
    /// The request fails, or the server refuses it.
    pub async fn action(
        &self,
        plural: &str,
        id: &str,
        action: &str,
        body: &Value,
        what: &str,
    ) -> Result<Value, CliError> {
        let path = format!("/v3/{plural}/{}?action={action}", encode(id));
        self.call(Method::POST, &path, Some(body), what).await
    }

    /// Finds the one resource with this id or name.
    pub async fn resolve(&self, kind: &NamedType<'_>, name: &str) -> Result<Value, CliError> {
        let what = format!("{} \"{name}\"", kind.singular);
        match self.get(kind.plural, name, &what).await {
            Ok(found) => return Ok(found),
            // For objects that do not exist, a caller without the right to read them gets 403.
            Err(error) if matches!(error.failure, Failure::NotFound | Failure::Forbidden) => {}
            Err(error) => return Err(error),
        }
        let mut query = vec![(kind.name_field, name)];
        query.extend(kind.inside);
        let mut found = self.list(kind.plural, &query).await?;
        // Types without this filter return all objects.
        found.retain(|item| query.iter().all(|(field, expected)| text(item, field) == *expected));
        if !found.is_empty() {
            return only_match(kind.singular, name, found);
        }
        let known = self.list(kind.plural, &kind.inside.into_iter().collect::<Vec<_>>()).await;
        Err(not_found_error(kind, name, &known.unwrap_or_default()))
    }
}

/// A type whose resources users name on the command line.
pub struct NamedType<'a> {
    pub singular: &'a str,
    pub plural: &'a str,
    /// The field that users call the name.
    pub name_field: &'a str,
    /// An additional filter: field and value.
    pub inside: Option<(&'a str, &'a str)>,
}

pub const CLUSTER: NamedType<'_> =
    NamedType { singular: "cluster", plural: "clusters", name_field: "name", inside: None };
pub const PROJECT: NamedType<'_> =
    NamedType { singular: "project", plural: "projects", name_field: "name", inside: None };
pub const USER: NamedType<'_> =
    NamedType { singular: "user", plural: "users", name_field: "username", inside: None };
pub const ROLE: NamedType<'_> =
    NamedType { singular: "role", plural: "roletemplates", name_field: "name", inside: None };
pub const GLOBAL_ROLE: NamedType<'_> =
    NamedType { singular: "global role", plural: "globalroles", name_field: "name", inside: None };

/// The only one of `found`, or an error that lists the ids.
fn only_match(singular: &str, name: &str, mut found: Vec<Value>) -> Result<Value, CliError> {
    if found.len() == 1 {
        return Ok(found.remove(0));
    }
    let ids: Vec<&str> = found.iter().map(id).collect();
    let text = format!("{} {singular}s have the name \"{name}\"", ids.len());
    Err(CliError::new(Failure::Conflict, text)
        .hint(format!("use one of the ids: {}", ids.join(", "))))
}

/// The error that none of the known objects has the name or id, with the closest name.
fn not_found_error(kind: &NamedType<'_>, name: &str, known: &[Value]) -> CliError {
    let singular = kind.singular;
    let names = known.iter().map(|item| text(item, kind.name_field));
    let meant = similar::closest(name, names.chain(known.iter().map(id)));
    let list = match singular {
        "cluster" | "project" | "role" | "user" => format!("{singular} ls"),
        "global role" => "role ls".to_owned(),
        _ => format!("inspect {singular}"),
    };
    let shows = format!("\"drover {list}\" shows those you may see");
    CliError::new(Failure::NotFound, format!("no {singular} has the name or id \"{name}\"")).hint(
        match meant {
            Some(meant) => format!("did you mean \"{meant}\"? {shows}"),
            None => shows,
        },
    )
}

/// Path and query of a URL. The host is dropped: a server may use another name for itself than this
/// client.
pub fn path_of(url: &str) -> String {
    url.parse::<http::Uri>()
        .ok()
        .and_then(|uri| uri.path_and_query().map(ToString::to_string))
        .unwrap_or_else(|| url.to_owned())
}

/// Percent-encodes a path segment or query value.
pub fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Reads the PEM text of a certificate authority.
pub fn read_authority(file: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(file).map_err(|error| {
        let text = format!("reading the certificate authority \"{}\": {error}", file.display());
        CliError::new(Failure::Other, text).hint("give a readable PEM file")
    })
}

/// Id of an object; its name in a cluster, where names are the ids.
pub fn id(resource: &Value) -> &str {
    match text(resource, "id") {
        "" => text(&resource["metadata"], "name"),
        id => id,
    }
}

/// The name that users call an object, which commands also accept.
pub fn name(resource: &Value) -> &str {
    [text(resource, "username"), text(resource, "name")]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| id(resource))
}

/// A text field, empty when absent.
pub fn text<'a>(resource: &'a Value, field: &str) -> &'a str {
    resource[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_ambiguous_name_is_an_error_that_lists_the_ids() {
        let found = vec![json!({"id": "c-1"}), json!({"id": "c-2"})];
        let error = only_match("cluster", "x", found).unwrap_err();
        assert_eq!(error.failure, Failure::Conflict);
        assert_eq!(error.hint.as_deref(), Some("use one of the ids: c-1, c-2"));
        assert_eq!(error.failure, Failure::Conflict);
        assert_eq!(only_match("cluster", "x", vec![json!({"id": "c-1"})]).unwrap()["id"], "c-1");
    }

    #[test]
    fn mistyped_object_name_suggests_the_closest_one_the_caller_may_see() {
        let known = [json!({"id": "c-1", "name": "demo"}), json!({"id": "c-2", "name": "north"})];
        let error = not_found_error(&CLUSTER, "dmeo", &known);
        assert_eq!(error.failure, Failure::NotFound);
        let hint = "did you mean \"demo\"? \"drover cluster ls\" shows those you may see";
        assert_eq!(error.hint.as_deref(), Some(hint));
        let hint = not_found_error(&CLUSTER, "unrelated", &known).hint.unwrap();
        assert_eq!(hint, "\"drover cluster ls\" shows those you may see");
        // Roles have ids that people type.
        let roles = [json!({"id": "cluster-member", "name": "Cluster Member"})];
        let hint = not_found_error(&ROLE, "cluster-membr", &roles).hint.unwrap();
        assert!(hint.starts_with("did you mean \"cluster-member\"?"), "{hint}");
    }

    #[test]
    fn path_of_drops_the_host_of_a_url() {
        assert_eq!(path_of("https://other:1/v3/x?marker=a%20b"), "/v3/x?marker=a%20b");
        assert_eq!(path_of("/v3/x"), "/v3/x");
    }
}
