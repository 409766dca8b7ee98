//! The API `/v3` as the commands use it: collections, resources by id or name, actions.

use http::{Method, StatusCode};
use serde_json::Value;

use crate::config::{self, Login};
use crate::error::{CliError, Failure};
use crate::http::Http;
use crate::tls::Trust;

/// Pages of a list that are followed.
const PAGES_MAX: usize = 1_000;

/// A logged-in client.
pub struct Api {
    http: Http,
    login: Login,
}

impl Api {
    /// With the login on `server`, or the last one.
    pub fn open(server: Option<&str>) -> Result<Self, CliError> {
        let config = config::load(&config::path()?)?;
        let (url, login) = config.login(server)?;
        Self::new(&url, login.clone())
    }
    pub fn new(url: &str, login: Login) -> Result<Self, CliError> {
        let trust = match login.ca_cert.as_str() {
            "" => Trust::System,
            pem => Trust::Authority(pem.to_owned()),
        };
        Ok(Self { http: Http::new(url, &trust, &login.token)?, login })
    }
    pub fn url(&self) -> &str {
        self.http.url()
    }
    pub fn login(&self) -> &Login {
        &self.login
    }

    /// One request; `None` for an empty answer. `what` names the object in errors.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        what: &str,
    ) -> Result<Value, CliError> {
        let answer = self.http.send(method, path, body.map(Value::to_string)).await?;
        if answer.status.is_success() {
            return Ok(serde_json::from_slice(&answer.body).unwrap_or_default());
        }
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        Err(self.refusal(answer.status, &body, what))
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
        let error = CliError::new(failure, format!("{what}: {said}"));
        match failure {
            Failure::Unauthenticated => error.hint(format!("run \"drover login {}\"", self.url())),
            _ => error,
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
            if let Value::Array(items) = page["data"].take() {
                all.extend(items);
            }
            match page["pagination"]["next"].as_str() {
                Some(next) => path = path_of(next),
                None => return Ok(all),
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

    /// The one resource with this id or name. `field`: what people call its name.
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
        let found = self.list(kind.plural, &query).await?;
        one_of(kind.singular, name, found)
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
pub const USER: Named<'_> =
    Named { singular: "user", plural: "users", name_field: "username", inside: None };
pub const ROLE: Named<'_> =
    Named { singular: "role", plural: "roletemplates", name_field: "name", inside: None };

/// Exactly one, or an error that lists the ids.
fn one_of(singular: &str, name: &str, mut found: Vec<Value>) -> Result<Value, CliError> {
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let text = format!("no {singular} has the name or id \"{name}\"");
            Err(CliError::new(Failure::NotFound, text)
                .hint(format!("\"drover {singular} ls\" shows those you may see")))
        }
        _ => {
            let ids: Vec<&str> = found.iter().filter_map(|item| item["id"].as_str()).collect();
            let text = format!("{} {singular}s have the name \"{name}\"", ids.len());
            Err(CliError::new(Failure::Conflict, text)
                .hint(format!("use one of the ids: {}", ids.join(", "))))
        }
    }
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
        assert_eq!(one_of("cluster", "x", vec![]).unwrap_err().failure, Failure::NotFound);
        assert_eq!(one_of("cluster", "x", vec![json!({"id": "c-1"})]).unwrap()["id"], "c-1");
    }

    #[test]
    fn a_url_of_another_host_is_followed_on_ours() {
        assert_eq!(path_of("https://other:1/v3/x?marker=a%20b"), "/v3/x?marker=a%20b");
        assert_eq!(path_of("/v3/x"), "/v3/x");
    }
}
