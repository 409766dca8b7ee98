//! The API of Azure Resource Manager, for the resources of one subscription.
//! <https://learn.microsoft.com/rest/api/aks>

use anyhow::{Context, Result, bail, ensure};
use reqwest::header::HeaderName;
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::options::AksOptions;
use crate::cloud::{Cloud, CloudError};

/// Where the progress of a change is read.
const OPERATION: HeaderName = HeaderName::from_static("azure-asyncoperation");

/// A resource: its path under the subscription, and the version of its API.
#[derive(Clone, Debug)]
pub struct ResourcePath {
    pub path: String,
    pub version: &'static str,
}

impl ResourcePath {
    /// A resource group of the subscription.
    pub fn group(group: &str) -> Self {
        Self { path: format!("resourceGroups/{group}"), version: "2021-04-01" }
    }

    /// The cluster of these options, which may not exist.
    pub fn cluster(options: &AksOptions) -> Self {
        let (group, name) = (&options.resource_group, &options.name);
        let path = format!(
            "resourceGroups/{group}/providers/Microsoft.ContainerService/managedClusters/{name}"
        );
        Self { path, version: "2024-09-01" }
    }

    /// A workspace for logs.
    pub fn workspace(group: &str, name: &str) -> Self {
        let path = format!(
            "resourceGroups/{group}/providers/Microsoft.OperationalInsights/workspaces/{name}"
        );
        Self { path, version: "2022-10-01" }
    }

    /// Its id, by which other resources name it.
    pub fn id(&self, options: &AksOptions) -> String {
        format!("/subscriptions/{}/{}", options.subscription_id, self.path)
    }

    /// Something of it.
    pub fn child(&self, name: &str) -> Self {
        Self { path: format!("{}/{name}", self.path), version: self.version }
    }
}

/// A change that Azure makes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ArmChange {
    /// `Succeeded`, `Failed`, `Canceled`, or something that goes on.
    pub status: String,
    pub error: Option<ArmChangeError>,
}

/// Why Azure did not make a change, in its own words.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ArmChangeError {
    pub code: String,
    pub message: String,
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
}

/// The API, with a token.
pub struct Arm {
    cloud: Cloud,
    token: String,
    base: Url,
    subscription: String,
}

impl Arm {
    /// Gets a token by the application's secret.
    ///
    /// # Errors
    /// An address is none, or Microsoft refuses the secret.
    pub async fn open(options: &AksOptions) -> Result<Self> {
        let cloud = Cloud::new("Azure", explain)?;
        let base = address("base-url", &options.base_url)?;
        let login = address("auth-base-url", &options.auth_base_url)?;
        let url = login.join(&format!("{}/oauth2/v2.0/token", options.tenant_id))?;
        let scope = base.join(".default")?;
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", &options.client_id),
            ("client_secret", &options.client_secret),
            ("scope", scope.as_str()),
        ];
        let response = cloud.call(|| Ok(cloud.http().post(url.clone()).form(&form).build()?)).await;
        let response = response
            .with_context(|| format!("no token for the application {}", options.client_id))?;
        let token = response.json::<TokenResponse>()?.access_token;
        Ok(Self { cloud, token, base, subscription: options.subscription_id.clone() })
    }

    /// A resource, if it exists.
    pub async fn get<T: DeserializeOwned>(
        &self,
        of: &ResourcePath,
    ) -> Result<Option<T>, CloudError> {
        match self.call(Method::GET, of, None).await {
            Ok((found, _)) => Ok(Some(found)),
            Err(error) if error.has_status(StatusCode::NOT_FOUND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a resource, or changes it into this. Returns where the progress is read, if it takes
    /// time.
    pub async fn put(&self, of: &ResourcePath, body: &Value) -> Result<Option<String>, CloudError> {
        self.call::<Value>(Method::PUT, of, Some(body)).await.map(|(_, operation)| operation)
    }

    /// Has a resource removed; one that does not exist is.
    pub async fn delete(&self, of: &ResourcePath) -> Result<(), CloudError> {
        match self.call::<Value>(Method::DELETE, of, None).await {
            Err(error) if error.has_status(StatusCode::NOT_FOUND) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Does something with a resource that returns something.
    pub async fn post<T: DeserializeOwned>(&self, of: &ResourcePath) -> Result<T, CloudError> {
        self.call(Method::POST, of, None).await.map(|(found, _)| found)
    }

    /// How far a change is.
    pub async fn change(&self, operation: &str) -> Result<ArmChange> {
        let url: Url = operation.parse().context("Azure names no address of the change")?;
        // The token is for Azure only.
        ensure!(url.origin() == self.base.origin(), "Azure names another host for the change");
        let build = || Ok(self.cloud.http().get(url.clone()).bearer_auth(&self.token).build()?);
        Ok(self.cloud.call(build).await?.json()?)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        of: &ResourcePath,
        body: Option<&Value>,
    ) -> Result<(T, Option<String>), CloudError> {
        let path = format!("subscriptions/{}/{}", self.subscription, of.path);
        let build = || {
            let mut url = self.base.join(&path)?;
            url.query_pairs_mut().append_pair("api-version", of.version);
            let request = self.cloud.http().request(method.clone(), url).bearer_auth(&self.token);
            let request = match body {
                Some(body) => request.json(body),
                None => request,
            };
            Ok(request.build()?)
        };
        let response = self.cloud.call(build).await?;
        let operation = response.headers.get(OPERATION).and_then(|value| value.to_str().ok());
        let operation = operation.map(str::to_owned);
        Ok((response.json()?, operation))
    }
}

/// An address that ends with a slash, so that paths can be joined to it.
fn address(option: &str, text: &str) -> Result<Url> {
    let text = format!("{}/", text.trim_end_matches('/'));
    let url: Url = text.parse().with_context(|| format!("the option {option} is no address"))?;
    if url.scheme() != "https" {
        bail!("the option {option} must begin with https://: secrets are sent there");
    }
    Ok(url)
}

/// A refusal of Azure, or of Microsoft's login.
fn explain(body: &str) -> Option<(String, String)> {
    let body: Value = serde_json::from_str(body).ok()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if body["error"].is_string() {
        // Traces and times follow in further lines.
        let description = text(&body["error_description"]);
        let line = description.lines().next().unwrap_or_default().to_owned();
        return Some((text(&body["error"]), line));
    }
    let error = if body["error"].is_object() { &body["error"] } else { &body };
    Some((text(&error["code"]), error["message"].as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_all_kinds_are_read() {
        let login = r#"{"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret.\r\nTrace ID: 1"}"#;
        let expected =
            ("invalid_client".to_owned(), "AADSTS7000215: Invalid client secret.".to_owned());
        assert_eq!(explain(login), Some(expected));
        let expected = Some(("QuotaExceeded".to_owned(), "no cores".to_owned()));
        assert_eq!(
            explain(r#"{"error": {"code": "QuotaExceeded", "message": "no cores"}}"#),
            expected
        );
        assert_eq!(explain(r#"{"code": "QuotaExceeded", "message": "no cores"}"#), expected);
        assert_eq!(explain("<html>"), None);
    }

    #[test]
    fn secrets_are_sent_to_safe_addresses_only() {
        assert_eq!(
            address("base-url", "https://a.example/x").unwrap().as_str(),
            "https://a.example/x/"
        );
        assert!(address("base-url", "http://a.example").is_err());
        assert!(address("base-url", "a.example").is_err());
    }
}
