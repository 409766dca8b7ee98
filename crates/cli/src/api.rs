//! The API `/v3` as the commands use it: collections, resources by id or name, actions.

use std::path::Path;

use http::{Method, StatusCode};
use serde_json::Value;

use crate::config::{self, Config, Context, Login};
use crate::denied::{Denied, Verb};
use crate::error::{CliError, Failure};
use crate::http::Http;
use crate::similar;
use crate::tls::Trust;

/// Pages of a list that are followed.
const PAGES_MAX: usize = 1_000;

/// Objects of a list that are taken.
const ITEMS_MAX: usize = 500_000;
/// Objects on a page of a Kubernetes list.
const KUBE_PAGE_SIZE: usize = 500;
/// In place of a remembered login: a token and the authority of its server.
const TOKEN_VARIABLE: &str = "DROVER_TOKEN";
const CA_FILE_VARIABLE: &str = "DROVER_CA_FILE";

/// A logged-in client.
pub struct Api {
    http: Http,
    name: String,
    context: Context,
}

impl Api {
    /// With the login named, else the current one; `DROVER_TOKEN` takes the place of both.
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
        Self::new(&url, Context { server: url.clone(), login, ..chosen })
    }

    /// `name`: of the context.
    pub fn new(name: &str, context: Context) -> Result<Self, CliError> {
        let trust = match context.login.ca_cert.as_str() {
            "" => Trust::System,
            pem => Trust::Authority(pem.to_owned()),
        };
        let http = Http::new(&context.server, &trust, &context.login.token)?;
        Ok(Self { http, name: name.to_owned(), context })
    }

    /// The same login on a connection of its own.
    pub fn another(&self) -> Self {
        Self { http: self.http.another(), name: self.name.clone(), context: self.context.clone() }
    }

    pub fn url(&self) -> &str {
        self.http.url()
    }
    /// Name of the context.
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn context(&self) -> &Context {
        &self.context
    }
    pub fn login(&self) -> &Login {
        &self.context.login
    }

    /// One request; null for an empty answer. `what` names the object in errors.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        what: &str,
    ) -> Result<Value, CliError> {
        let verb = Verb::of(&method, path);
        let answer = self.http.send(method, path, body.map(Value::to_string)).await?;
        if !answer.status.is_success() {
            let refused: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let mut error = self.refusal(answer.status, &refused, what);
            if error.failure == Failure::Forbidden {
                error.denied = Some(Box::new(Denied::new(self.another(), verb, path, body)));
            }
            return Err(error);
        }
        if answer.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer.body).map_err(|_| self.odd(what, "is no JSON"))
    }

    /// An answer that a server of ours does not give.
    fn odd(&self, what: &str, why: &str) -> CliError {
        CliError::new(Failure::Other, format!("{what}: the answer of {} {why}", self.url()))
            .hint("check that the URL is that of a Drover server, not of a page before it")
    }

    fn refusal(&self, status: StatusCode, body: &Value, what: &str) -> CliError {
        let said = body["message"].as_str().filter(|text| !text.is_empty());
        let said = said.map_or_else(|| format!("the server answered {status}"), str::to_owned);
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
        let error = CliError::new(failure, format!("{what}: {}", self.with_own_name(&said)));
        match failure {
            Failure::Unauthenticated => error.hint(format!("run \"drover login {}\"", self.url())),
            Failure::Invalid => error.hint("correct what is named and try again"),
            Failure::NotFound => error.hint("check the name or id"),
            Failure::Conflict => error.hint("choose another name, or change the one that is there"),
            Failure::Timeout => error.hint("try again"),
            Failure::Other if status.is_server_error() => error.hint("look into the server's log"),
            Failure::Unreachable => error.hint("try again; \"drover cluster ls\" shows the states"),
            _ => error,
        }
    }

    /// The server's words with the caller's login name in place of their id.
    fn with_own_name(&self, said: &str) -> String {
        let Login { user, username, .. } = self.login();
        match user.is_empty() || username.is_empty() {
            true => said.to_owned(),
            false => said.replace(&format!("\"{user}\""), &format!("\"{username}\"")),
        }
    }

    /// Text that is not JSON, such as a manifest.
    pub async fn text(&self, path: &str, what: &str) -> Result<String, CliError> {
        let answer = self.http.send(Method::GET, path, None).await?;
        if !answer.status.is_success() {
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            return Err(self.refusal(answer.status, &body, what));
        }
        String::from_utf8(answer.body.to_vec())
            .map_err(|_| CliError::new(Failure::Other, format!("{what}: the answer is not text")))
    }

    /// All resources of a collection, page by page.
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
                return Err(self.odd(&what, "is no list"));
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

    /// All objects of a Kubernetes collection, such as
    /// `/k8s/clusters/local/api/v1/namespaces`, page by page.
    pub async fn list_kube(&self, collection: &str, what: &str) -> Result<Vec<Value>, CliError> {
        let mut all = Vec::new();
        let mut from = String::new();
        for _ in 0..PAGES_MAX {
            let path = format!("{collection}?limit={KUBE_PAGE_SIZE}{from}");
            let mut page = self.call(Method::GET, &path, None, what).await?;
            let Value::Array(items) = page["items"].take() else {
                return Err(self.odd(what, "is no list"));
            };
            all.extend(items);
            match text(&page["metadata"], "continue") {
                "" => return Ok(all),
                next => from = format!("&continue={}", encode(next)),
            }
        }
        Err(CliError::new(Failure::Other, format!("{what}: more than {PAGES_MAX} pages")))
    }

    pub async fn create(&self, plural: &str, body: &Value, what: &str) -> Result<Value, CliError> {
        self.call(Method::POST, &format!("/v3/{plural}"), Some(body), what).await
    }
    pub async fn get(&self, plural: &str, id: &str, what: &str) -> Result<Value, CliError> {
        let path = format!("/v3/{plural}/{}", encode(id));
        self.call(Method::GET, &path, None, what).await
    }
    /// Changes the fields that are given.
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
    pub async fn delete(&self, plural: &str, id: &str, what: &str) -> Result<Value, CliError> {
        let path = format!("/v3/{plural}/{}", encode(id));
        self.call(Method::DELETE, &path, None, what).await
    }
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

    /// The one resource with this id or name.
    pub async fn resolve(&self, kind: &Named<'_>, name: &str) -> Result<Value, CliError> {
        let what = format!("{} \"{name}\"", kind.singular);
        match self.get(kind.plural, name, &what).await {
            Ok(found) => return Ok(found),
            // Without the right to read what does not exist, one is told 403.
            Err(error) if matches!(error.failure, Failure::NotFound | Failure::Forbidden) => {}
            Err(error) => return Err(error),
        }
        let mut query = vec![(kind.name_field, name)];
        query.extend(kind.inside);
        let mut found = self.list(kind.plural, &query).await?;
        // Types without such a filter list all.
        found.retain(|item| query.iter().all(|(field, wanted)| text(item, field) == *wanted));
        if !found.is_empty() {
            return one_of(kind.singular, name, found);
        }
        let known = self.list(kind.plural, &kind.inside.into_iter().collect::<Vec<_>>()).await;
        Err(none_of(kind, name, &known.unwrap_or_default()))
    }
}

/// A type whose resources people name.
pub struct Named<'a> {
    pub singular: &'a str,
    pub plural: &'a str,
    /// Field that people call the name.
    pub name_field: &'a str,
    /// A further filter.
    pub inside: Option<(&'a str, &'a str)>,
}

pub const CLUSTER: Named<'_> =
    Named { singular: "cluster", plural: "clusters", name_field: "name", inside: None };
pub const PROJECT: Named<'_> =
    Named { singular: "project", plural: "projects", name_field: "name", inside: None };
pub const USER: Named<'_> =
    Named { singular: "user", plural: "users", name_field: "username", inside: None };
pub const ROLE: Named<'_> =
    Named { singular: "role", plural: "roletemplates", name_field: "name", inside: None };

/// Exactly one, or an error that lists the ids.
fn one_of(singular: &str, name: &str, mut found: Vec<Value>) -> Result<Value, CliError> {
    if found.len() == 1 {
        return Ok(found.remove(0));
    }
    let ids: Vec<&str> = found.iter().map(id).collect();
    let text = format!("{} {singular}s have the name \"{name}\"", ids.len());
    Err(CliError::new(Failure::Conflict, text)
        .hint(format!("use one of the ids: {}", ids.join(", "))))
}

/// That none of the known objects has the name or id, and which was probably meant.
fn none_of(kind: &Named<'_>, name: &str, known: &[Value]) -> CliError {
    let singular = kind.singular;
    let names = known.iter().map(|item| text(item, kind.name_field));
    let meant = similar::closest(name, names.chain(known.iter().map(id)));
    let list = match singular {
        "cluster" | "project" | "role" | "user" => format!("{singular} ls"),
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

/// Path and query of a URL; servers may know themselves by another host than we do.
pub fn path_of(url: &str) -> String {
    url.parse::<http::Uri>()
        .ok()
        .and_then(|uri| uri.path_and_query().map(ToString::to_string))
        .unwrap_or_else(|| url.to_owned())
}

/// Percent-encodes what may not stand in a path segment or query value.
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

/// The PEM text of a certificate authority.
pub fn read_authority(file: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(file).map_err(|error| {
        let text = format!("reading the certificate authority \"{}\": {error}", file.display());
        CliError::new(Failure::Other, text).hint("give a PEM file that you can read")
    })
}

/// Id of an object; its name in a cluster, where names are the ids.
pub fn id(resource: &Value) -> &str {
    match text(resource, "id") {
        "" => text(&resource["metadata"], "name"),
        id => id,
    }
}

/// What people call an object, which is also what commands take.
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
        let error = one_of("cluster", "x", found).unwrap_err();
        assert_eq!(error.failure, Failure::Conflict);
        assert_eq!(error.hint.as_deref(), Some("use one of the ids: c-1, c-2"));
        assert_eq!(error.failure, Failure::Conflict);
        assert_eq!(one_of("cluster", "x", vec![json!({"id": "c-1"})]).unwrap()["id"], "c-1");
    }

    #[test]
    fn mistyped_object_name_suggests_the_closest_one_the_caller_may_see() {
        let known = [json!({"id": "c-1", "name": "demo"}), json!({"id": "c-2", "name": "north"})];
        let error = none_of(&CLUSTER, "dmeo", &known);
        assert_eq!(error.failure, Failure::NotFound);
        let hint = "did you mean \"demo\"? \"drover cluster ls\" shows those you may see";
        assert_eq!(error.hint.as_deref(), Some(hint));
        let hint = none_of(&CLUSTER, "elsewhere", &known).hint.unwrap();
        assert_eq!(hint, "\"drover cluster ls\" shows those you may see");
        // Roles have ids that people type.
        let roles = [json!({"id": "cluster-member", "name": "Cluster Member"})];
        let hint = none_of(&ROLE, "cluster-membr", &roles).hint.unwrap();
        assert!(hint.starts_with("did you mean \"cluster-member\"?"), "{hint}");
    }

    #[test]
    fn a_url_of_another_host_is_followed_on_ours() {
        assert_eq!(path_of("https://other:1/v3/x?marker=a%20b"), "/v3/x?marker=a%20b");
        assert_eq!(path_of("/v3/x"), "/v3/x");
    }
}
