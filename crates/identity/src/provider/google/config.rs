//! The configuration of an organisation, read from its object, and the two files of Google in it.

use jsonwebtoken::EncodingKey;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::Problem;
use super::super::http::secure_url;
use crate::secret::Secret;

pub(super) const OAUTH_FIELD: &str = "oauthCredential";
pub(super) const ACCOUNT_FIELD: &str = "serviceAccountCredential";

const USER_INFO: &str = "https://openidconnect.googleapis.com/v1/userinfo";
const DIRECTORY: &str = "https://admin.googleapis.com";
const AUTH_URI: &str = "https://accounts.google.com/o/oauth2/v2/auth";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// How to reach an organisation. The names are those of the object.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GoogleConfig {
    /// The administrator on whose behalf the directory is read.
    pub admin_email: String,
    /// The organisation's domain.
    pub hostname: String,
    /// Whether the groups of a user's groups count too.
    pub nested_group_membership_enabled: bool,
    /// The file of the OAuth client, JSON.
    pub oauth_credential: String,
    /// The file of the service account's key, JSON.
    pub service_account_credential: String,
    /// Empty for Google's own.
    pub user_info_endpoint: String,
    /// Empty for Google's own.
    pub directory_endpoint: String,
}

/// The file of an OAuth client.
#[derive(Deserialize)]
struct OauthFile {
    #[serde(alias = "installed")]
    web: OauthClientKey,
}

/// What is needed of it.
#[derive(Deserialize)]
pub(super) struct OauthClientKey {
    pub client_id: String,
    pub client_secret: Secret,
    #[serde(default = "default_auth_uri")]
    pub auth_uri: String,
    #[serde(default = "default_token_uri")]
    pub token_uri: String,
}

/// What is needed of the file of a service account's key.
#[derive(Deserialize)]
struct AccountFile {
    client_email: String,
    private_key: Secret,
    #[serde(default = "default_token_uri")]
    token_uri: String,
}

/// A service account that can sign.
pub(super) struct ServiceAccountKey {
    pub client_email: String,
    pub token_uri: String,
    pub key: EncodingKey,
}

fn default_auth_uri() -> String {
    AUTH_URI.to_owned()
}
fn default_token_uri() -> String {
    TOKEN_URI.to_owned()
}

/// A file in a field. The text of the error has nothing of the file.
fn parse<T: DeserializeOwned>(field: &'static str, text: &str, what: &str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let text = format!(
            "must be the JSON file of {what} as Google offers it for download; this is not one \
             from line {line}, column {column}"
        );
        Problem { field, text }
    })
}

fn require_secure(field: &'static str, urls: &[&str]) -> Result<(), Problem> {
    for url in urls {
        if let Err(text) = secure_url(url) {
            return Err(Problem { field, text: format!("has an address that {text}: {url}") });
        }
    }
    Ok(())
}

/// Whether a field has a file, and not the reference under which it is stored.
fn is_file(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

impl GoogleConfig {
    /// The configuration in an object. Pure.
    ///
    /// # Errors
    /// Every field that is not right.
    pub fn read(object: &Value) -> Result<Self, Vec<Problem>> {
        let config: Self = super::super::config_in(object)?;
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// Where Google says whose a token is.
    pub fn user_info_url(&self) -> &str {
        if self.user_info_endpoint.is_empty() { USER_INFO } else { &self.user_info_endpoint }
    }

    /// The Directory API, without a slash at the end.
    pub fn directory_url(&self) -> &str {
        match self.directory_endpoint.trim_end_matches('/') {
            "" => DIRECTORY,
            url => url,
        }
    }

    /// The OAuth client.
    ///
    /// # Errors
    /// The field has no such file.
    pub(super) fn client(&self) -> Result<OauthClientKey, Problem> {
        let file: OauthFile = parse(OAUTH_FIELD, &self.oauth_credential, "an OAuth client")?;
        require_secure(OAUTH_FIELD, &[&file.web.auth_uri, &file.web.token_uri])?;
        Ok(file.web)
    }

    /// The service account.
    ///
    /// # Errors
    /// The field has no such file, or no usable key in it.
    pub(super) fn account(&self) -> Result<ServiceAccountKey, Problem> {
        let text = &self.service_account_credential;
        let file: AccountFile = parse(ACCOUNT_FIELD, text, "a service account's key")?;
        require_secure(ACCOUNT_FIELD, &[&file.token_uri])?;
        let key = EncodingKey::from_rsa_pem(file.private_key.expose().as_bytes());
        let key = key.map_err(|error| Problem {
            field: ACCOUNT_FIELD,
            text: format!("has no usable private key: {error}"),
        })?;
        Ok(ServiceAccountKey { client_email: file.client_email, token_uri: file.token_uri, key })
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |field, text: &str| problems.push(Problem { field, text: text.to_owned() });
        if !self.admin_email.contains('@') {
            add("adminEmail", "must be the e-mail address of an administrator of the organisation");
        }
        if self.hostname.is_empty() || self.hostname.contains(['/', '@', ':']) {
            add("hostname", "must be the organisation's domain, such as example.org");
        }
        for (field, url) in [
            ("userInfoEndpoint", &self.user_info_endpoint),
            ("directoryEndpoint", &self.directory_endpoint),
        ] {
            if let (false, Err(text)) = (url.is_empty(), secure_url(url)) {
                add(field, &text);
            }
        }
        for (field, text, what) in [
            (OAUTH_FIELD, &self.oauth_credential, "an OAuth client"),
            (ACCOUNT_FIELD, &self.service_account_credential, "a service account's key"),
        ] {
            if text.is_empty() {
                add(field, &format!("is empty; enter the JSON file of {what}"));
            }
        }
        let client = is_file(&self.oauth_credential).then(|| self.client().err()).flatten();
        let account =
            is_file(&self.service_account_credential).then(|| self.account().err()).flatten();
        problems.extend(client.into_iter().chain(account));
        problems
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(object: &Value) -> Vec<&'static str> {
        let problems = GoogleConfig::read(object).err().unwrap_or_default();
        problems.into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn every_field_that_is_not_right_is_named() {
        let all = ["adminEmail", "hostname", OAUTH_FIELD, ACCOUNT_FIELD];
        assert_eq!(fields(&json!({})), all);
        let client = json!({"web": {"client_id": "a", "client_secret": "b",
                                    "token_uri": "http://evil.example/token"}});
        let object = json!({
            "adminEmail": "admin@example.org", "hostname": "example.org",
            "oauthCredential": client.to_string(),
            "serviceAccountCredential": "{\"client_email\": \"a\", \"private_key\": \"canary\"}",
            "directoryEndpoint": "http://admin.example",
        });
        assert_eq!(fields(&object), ["directoryEndpoint", OAUTH_FIELD, ACCOUNT_FIELD]);
        let texts = GoogleConfig::read(&object).err().unwrap();
        assert!(texts.iter().all(|problem| !problem.text.contains("canary")), "{texts:?}");
    }

    #[test]
    fn references_to_stored_files_are_not_read_as_files() {
        let object = json!({
            "adminEmail": "admin@example.org", "hostname": "example.org",
            "oauthCredential": "drover-credential://p-1",
            "serviceAccountCredential": "drover-credential://p-2",
        });
        assert!(fields(&object).is_empty());
        let config = GoogleConfig::read(&object).ok().unwrap();
        assert!(config.client().is_err() && config.account().is_err());
    }

    #[test]
    fn a_client_for_installed_programs_is_one_too() {
        let file = json!({"installed": {"client_id": "a", "client_secret": "b"}}).to_string();
        let config = GoogleConfig { oauth_credential: file, ..GoogleConfig::default() };
        let client = config.client().ok().unwrap();
        assert_eq!((client.auth_uri.as_str(), client.token_uri.as_str()), (AUTH_URI, TOKEN_URI));
    }
}
