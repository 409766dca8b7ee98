//! The configuration of GitHub, read from its object.

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::super::Problem;
use super::super::http::secure_url;

/// The service that everybody knows; others are servers of GitHub Enterprise.
const PUBLIC_HOST: &str = "github.com";
/// Hosts of GitHub Enterprise Cloud with data in a region have names below this one.
const REGIONAL: &str = ".ghe.com";

/// How to reach GitHub. The names are those of the object.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GithubConfig {
    pub client_id: String,
    pub client_secret: String,
    /// With a port, if it is another one than usual.
    pub hostname: String,
    pub tls: bool,
}

impl Default for GithubConfig {
    fn default() -> Self {
        Self {
            client_id: String::new(),
            client_secret: String::new(),
            hostname: PUBLIC_HOST.to_owned(),
            tls: true,
        }
    }
}

impl GithubConfig {
    /// The configuration in an object. Pure.
    ///
    /// # Errors
    /// Every field that is not right.
    pub fn read(object: &Value) -> Result<Self, Vec<Problem>> {
        let config: Self = super::super::config_in(object)?;
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// Below it are the pages.
    pub fn web_url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.hostname)
    }

    /// Below it is the API.
    pub fn api_url(&self) -> String {
        if self.hostname == PUBLIC_HOST || self.hostname.ends_with(REGIONAL) {
            return format!("https://api.{}", self.hostname);
        }
        format!("{}/api/v3", self.web_url())
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |field, text: &str| problems.push(Problem { field, text: text.to_owned() });
        if self.client_id.is_empty() {
            add("clientId", "is empty; enter the client id of the OAuth app");
        }
        if self.client_secret.is_empty() {
            add("clientSecret", "is empty; enter a client secret of the OAuth app");
        }
        let is_host = |url: &Url| {
            url.path() == "/"
                && url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty()
        };
        match Url::parse(&self.web_url()) {
            Ok(url) if is_host(&url) && !self.hostname.ends_with('/') => {
                if let Err(text) = secure_url(&self.web_url()) {
                    add("tls", &format!("must be true: the address {text}"));
                }
            }
            _ => add("hostname", "must be a host name, without scheme and path"),
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(hostname: &str) -> GithubConfig {
        let object = json!({"clientId": "a", "clientSecret": "b", "hostname": hostname});
        GithubConfig::read(&object).ok().unwrap()
    }

    #[test]
    fn the_api_is_where_each_kind_of_github_has_it() {
        for (hostname, api) in [
            ("", "https://api.github.com"),
            ("github.com", "https://api.github.com"),
            ("acme.ghe.com", "https://api.acme.ghe.com"),
            ("git.acme.example", "https://git.acme.example/api/v3"),
            ("git.acme.example:8443", "https://git.acme.example:8443/api/v3"),
        ] {
            assert_eq!(read(hostname).api_url(), api, "{hostname}");
        }
    }

    #[test]
    fn every_field_that_is_not_right_is_named() {
        let fields = |object: Value| -> Vec<&str> {
            let problems = GithubConfig::read(&object).err().unwrap_or_default();
            problems.into_iter().map(|problem| problem.field).collect()
        };
        assert_eq!(fields(json!({})), ["clientId", "clientSecret"]);
        let with = |hostname: &str, tls: bool| json!({"clientId": "a", "clientSecret": "b", "hostname": hostname, "tls": tls});
        assert_eq!(fields(with("https://github.com", true)), ["hostname"]);
        assert_eq!(fields(with("github.com/acme", true)), ["hostname"]);
        assert_eq!(fields(with("user@github.com", true)), ["hostname"]);
        assert_eq!(fields(with("git.acme.example", false)), ["tls"]);
        assert!(fields(with("127.0.0.1:8080", false)).is_empty());
    }
}
