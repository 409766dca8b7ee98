//! The configuration of a provider of OpenID Connect, read from its object.

use serde::Deserialize;
use serde_json::Value;

use super::super::CALLBACK_PATH;
use super::super::Problem;
use super::super::http::{HttpClient, secure_url};

/// The claim with the groups, unless the configuration names another one.
pub const GROUPS_CLAIM: &str = "groups";

/// How to reach a provider, and what its claims are called. The names are those of the object.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OidcConfig {
    /// The provider's name, and the URL below which its metadata are.
    pub issuer: String,
    /// Replaces the authorization endpoint of the metadata.
    pub auth_endpoint: String,
    pub client_id: String,
    /// Empty for a public client.
    pub client_secret: String,
    /// Where the provider sends browsers back to.
    pub rancher_url: String,
    /// Separated by blanks; empty for the default.
    pub scope: String,
    /// PEM; empty to trust the authorities of this system.
    pub certificate: String,
    /// PEM of the key of `certificate`, for providers that request a client certificate.
    pub private_key: String,
    pub groups_claim: String,
}

impl OidcConfig {
    /// The configuration in an object. Pure.
    ///
    /// # Errors
    /// Every field that is not right.
    pub fn read(object: &Value) -> Result<Self, Vec<Problem>> {
        let config: Self = super::super::config_in(object)?;
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// The name of the claim with the groups.
    pub fn groups_claim(&self) -> &str {
        if self.groups_claim.is_empty() { GROUPS_CLAIM } else { &self.groups_claim }
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |field, text: &str| problems.push(Problem { field, text: text.to_owned() });
        match secure_url(&self.issuer) {
            Ok(url) if url.query().is_some() || url.fragment().is_some() => {
                add("issuer", "must be a URL without query and fragment");
            }
            Ok(_) => {}
            Err(text) => add("issuer", &text),
        }
        if !self.auth_endpoint.is_empty()
            && let Err(text) = secure_url(&self.auth_endpoint)
        {
            add("authEndpoint", &text);
        }
        if self.client_id.is_empty() {
            add("clientId", "is empty; enter the id that the provider has for Drover");
        }
        match secure_url(&self.rancher_url) {
            Ok(url) if url.path() != CALLBACK_PATH || url.query().is_some() => {
                let text = format!(
                    "must be the address of this server with the path {CALLBACK_PATH}, as it is \
                     registered at the provider"
                );
                add("rancherUrl", &text);
            }
            Ok(_) => {}
            Err(text) => add("rancherUrl", &text),
        }
        // A reference to a key stands where its PEM is; it is read when the provider is opened.
        let key = if is_pem(&self.private_key) { self.private_key.as_str() } else { "" };
        if let Err(text) = HttpClient::new(&self.certificate, key) {
            add("certificate", &format!("is not usable: {text}"));
        }
        problems
    }
}

fn is_pem(text: &str) -> bool {
    text.contains("-----BEGIN")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields_of(problems: Vec<Problem>) -> Vec<&'static str> {
        problems.into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn every_field_that_is_not_right_is_named() {
        let problems = OidcConfig::read(&json!({"enabled": true})).err().unwrap();
        assert_eq!(fields_of(problems), ["issuer", "clientId", "rancherUrl"]);
        let object = json!({
            "issuer": "http://idp.example/realm", "clientId": "drover",
            "rancherUrl": "https://drover.example/login", "certificate": "no PEM",
            "authEndpoint": "ftp://idp.example",
        });
        let problems = OidcConfig::read(&object).err().unwrap();
        assert_eq!(fields_of(problems), ["issuer", "authEndpoint", "rancherUrl", "certificate"]);
    }

    #[test]
    fn a_right_configuration_is_read() {
        let object = json!({
            "issuer": "https://idp.example/realms/one", "clientId": "drover", "clientSecret": null,
            "rancherUrl": "https://drover.example/verify-auth", "groupSearchEnabled": false,
        });
        let config = OidcConfig::read(&object).ok().unwrap();
        assert_eq!((config.client_secret.as_str(), config.groups_claim()), ("", "groups"));
    }
}
