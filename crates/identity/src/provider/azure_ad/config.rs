//! The configuration of a tenant, read from its object.

use serde::Deserialize;
use serde_json::Value;

use super::super::http::secure_url;
use super::super::{AZURE_CALLBACK_PATH, CALLBACK_PATH, Problem};

const LOGIN_HOST: &str = "https://login.microsoftonline.com/";
const GRAPH: &str = "https://graph.microsoft.com";
/// The API before Graph, which Microsoft has switched off.
const RETIRED_GRAPH: &str = "graph.windows.net";
/// What the paths of the endpoints have whose parameters are used here.
const ENDPOINT_VERSION: &str = "/v2.0/";

/// How to reach a tenant. The names are those of the object.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AzureAdConfig {
    pub application_id: String,
    pub application_secret: String,
    pub tenant_id: String,
    /// Below it are the endpoints of all tenants; empty for the public cloud.
    pub endpoint: String,
    /// Empty for the one below `endpoint`.
    pub auth_endpoint: String,
    /// Empty for the one below `endpoint`.
    pub token_endpoint: String,
    /// Empty for that of the public cloud.
    pub graph_endpoint: String,
    /// Where Microsoft sends browsers back to; empty for the address of this server.
    pub rancher_url: String,
}

impl AzureAdConfig {
    /// The configuration in an object. Pure.
    ///
    /// # Errors
    /// Every field that is not right.
    pub fn read(object: &Value) -> Result<Self, Vec<Problem>> {
        let config: Self = super::super::config_in(object)?;
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// Where browsers come back to, if the configuration says so.
    pub fn callback(&self) -> Option<&str> {
        (!self.rancher_url.is_empty()).then_some(&self.rancher_url)
    }

    /// Where browsers log in.
    pub fn authorize_url(&self) -> String {
        self.or_below_endpoint(&self.auth_endpoint, "authorize")
    }

    /// Where codes and secrets are exchanged for tokens.
    pub fn token_url(&self) -> String {
        self.or_below_endpoint(&self.token_endpoint, "token")
    }

    /// Graph, without a slash at the end.
    pub fn graph_url(&self) -> &str {
        match self.graph_endpoint.trim_end_matches('/') {
            "" => GRAPH,
            url => url,
        }
    }

    fn or_below_endpoint(&self, url: &str, name: &str) -> String {
        if !url.is_empty() {
            return url.to_owned();
        }
        let endpoint = if self.endpoint.is_empty() { LOGIN_HOST } else { &self.endpoint };
        format!("{}/{}/oauth2/v2.0/{name}", endpoint.trim_end_matches('/'), self.tenant_id)
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |field, text: &str| problems.push(Problem { field, text: text.to_owned() });
        for (field, value, what) in [
            ("applicationId", &self.application_id, "the application (client) id"),
            ("applicationSecret", &self.application_secret, "a client secret of the application"),
            ("tenantId", &self.tenant_id, "the directory (tenant) id"),
        ] {
            if value.is_empty() {
                add(field, &format!("is empty; enter {what}"));
            }
        }
        if self.tenant_id.contains(['/', '?', '#', '%']) {
            add("tenantId", "must be an id or a domain name");
        }
        for (field, value) in [
            ("endpoint", &self.endpoint),
            ("authEndpoint", &self.auth_endpoint),
            ("tokenEndpoint", &self.token_endpoint),
            ("graphEndpoint", &self.graph_endpoint),
        ] {
            match secure_url(value) {
                _ if value.is_empty() => {}
                Err(text) => add(field, &text),
                Ok(url) if url.host_str() == Some(RETIRED_GRAPH) => {
                    add(
                        field,
                        &format!("is an API that Microsoft has switched off; enter {GRAPH}"),
                    );
                }
                Ok(_) if is_login(field) && !value.contains(ENDPOINT_VERSION) => {
                    add(field, "must be the endpoint of version 2, with /oauth2/v2.0/ in its path");
                }
                Ok(_) => {}
            }
        }
        let is_callback = |path: &str| [CALLBACK_PATH, AZURE_CALLBACK_PATH].contains(&path);
        if !self.rancher_url.is_empty()
            && !secure_url(&self.rancher_url).is_ok_and(|url| is_callback(url.path()))
        {
            let text = format!("must be the https address of this server with {CALLBACK_PATH}");
            add("rancherUrl", &text);
        }
        problems
    }
}

fn is_login(field: &str) -> bool {
    matches!(field, "authEndpoint" | "tokenEndpoint")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(object: &Value) -> Vec<&'static str> {
        let problems = AzureAdConfig::read(object).err().unwrap_or_default();
        problems.into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn endpoints_follow_from_the_tenant_unless_they_are_given() {
        let mut object = json!({"applicationId": "a", "applicationSecret": "s", "tenantId": "t"});
        let config = AzureAdConfig::read(&object).ok().unwrap();
        assert_eq!(
            config.authorize_url(),
            "https://login.microsoftonline.com/t/oauth2/v2.0/authorize"
        );
        assert_eq!(config.graph_url(), "https://graph.microsoft.com");
        object["endpoint"] = "https://login.microsoftonline.us/".into();
        object["graphEndpoint"] = "https://graph.microsoft.us/".into();
        let config = AzureAdConfig::read(&object).ok().unwrap();
        assert_eq!(config.token_url(), "https://login.microsoftonline.us/t/oauth2/v2.0/token");
        assert_eq!(config.graph_url(), "https://graph.microsoft.us");
    }

    #[test]
    fn every_field_that_is_not_right_is_named() {
        assert_eq!(fields(&json!({})), ["applicationId", "applicationSecret", "tenantId"]);
        let object = json!({
            "applicationId": "a", "applicationSecret": "s", "tenantId": "t/../x",
            "endpoint": "http://login.example",
            "authEndpoint": "https://login.microsoftonline.com/t/oauth2/authorize",
            "graphEndpoint": "https://graph.windows.net/",
            "rancherUrl": "https://drover.example/verify-auth/azure",
        });
        let expected = ["tenantId", "endpoint", "authEndpoint", "graphEndpoint", "rancherUrl"];
        assert_eq!(fields(&object), expected);
    }
}
