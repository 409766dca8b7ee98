//! A server with an identity provider on whose pages people log in, and browsers that do.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::IdentityProvider;
use url::form_urlencoded;

use crate::browser::Browser;
use crate::http::{Client, HttpResponse};
use crate::server::{self, Server};

/// The server trusts the provider's authority.
pub struct ProviderWorld {
    pub server: Server,
    pub provider: IdentityProvider,
    pub admin: Client,
    names: Names,
    _trusted: TempDir,
}

/// What a provider is called in the API.
pub struct Names {
    pub provider: &'static str,
    /// The path of its configuration.
    pub config: &'static str,
    /// The field of `testAndApply` with the configuration.
    pub field: &'static str,
}

impl ProviderWorld {
    /// Starts both. `start` gets the address to which browsers are sent back.
    ///
    /// # Errors
    /// One of them does not start.
    pub fn start(
        names: Names,
        start: impl FnOnce(&str) -> Result<IdentityProvider, testbed::Error>,
    ) -> Result<Self> {
        let trusted = tempfile::tempdir()?;
        let file = trusted.path().join("authority.pem");
        let path = file.to_str().context("the path is no text")?.to_owned();
        let environment = vec![("SSL_CERT_FILE".to_owned(), path)];
        let server = Server::start_with(server::Options { environment, ..Default::default() })?;
        let provider = start(&format!("{}/verify-auth", server.url()))?;
        std::fs::write(&file, provider.authority_pem())?;
        let admin = server.admin()?;
        let url = json!({"value": server.url()});
        admin.put("/v3/settings/server-url", &url)?.success()?;
        Ok(Self { server, provider, admin, names, _trusted: trusted })
    }

    /// A browser without cookies.
    ///
    /// # Errors
    /// A certificate cannot be read.
    pub fn browser(&self) -> Result<Browser> {
        let servers = [
            (self.server.url(), self.server.ca_pem()),
            (self.provider.url(), self.provider.authority_pem()),
        ];
        Browser::new(&servers)
    }

    /// Logs in at the provider. The address to which it sends the browser back, which is not
    /// opened.
    ///
    /// # Errors
    /// The provider does not send the browser back.
    pub fn come_back(&self, browser: &mut Browser, url: &str, name: &str) -> Result<String> {
        let back = format!("{}/verify-auth", self.server.url());
        let page = browser.follow(url, |_| false)?;
        let form = format!("login={name}&password=x");
        let page = browser.submit(&page, &form, |next| next.starts_with(&back))?;
        ensure!(page.url.starts_with(&back), "at {}: {}", page.url, page.response.text());
        Ok(page.url)
    }

    /// Where a login begins.
    #[must_use]
    pub fn start_url(&self) -> String {
        format!("{}/v1-login/{}", self.server.url(), self.names.provider)
    }

    /// The client of who logs in.
    ///
    /// # Errors
    /// The login failed; the text has where the browser was sent.
    pub fn log_in(&self, name: &str) -> Result<Client> {
        let mut browser = self.browser()?;
        let back = self.come_back(&mut browser, &self.start_url(), name)?;
        let page = browser.open(&back)?;
        let token = browser.cookie("R_SESS");
        let token = token.with_context(|| format!("sent to {:?}", page.redirect()))?;
        Ok(self.server.anyone()?.bearer(token))
    }

    /// Tests a configuration with a login, and stores it.
    ///
    /// # Errors
    /// The login at the provider failed.
    pub fn apply(&self, config: &Value, name: &str) -> Result<HttpResponse> {
        let path = self.names.config;
        let begun = self.admin.post(&format!("{path}?action=configureTest"), config)?.success()?;
        let url = begun["redirectUrl"].as_str().context("no address")?;
        let back = self.come_back(&mut self.browser()?, url, name)?;
        let query = back.split_once('?').context("no parameters")?.1.as_bytes();
        let code = form_urlencoded::parse(query).find(|(name, _)| name == "code");
        let code = code.context("no code")?.1;
        let body = json!({self.names.field: config, "code": code, "enabled": true});
        self.admin.post(&format!("{path}?action=testAndApply"), &body)
    }

    /// The stored configuration.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn stored(&self) -> Result<Value> {
        self.admin.get(self.names.config)?.success()
    }

    /// Has the groups of a user read anew.
    ///
    /// # Errors
    /// The server refuses.
    pub fn refresh(&self, user: &str) -> Result<()> {
        let path = format!("/v3/users/{user}?action=refreshauthprovideraccess");
        self.admin.post(&path, &json!({}))?.success().map(drop)
    }

    /// The ids of the principals that match, sorted.
    ///
    /// # Errors
    /// The server refuses.
    pub fn search(&self, client: &Client, name: &str, kind: &str) -> Result<Vec<String>> {
        let body = json!({"name": name, "principalType": kind});
        principals(&client.post("/v3/principals?action=search", &body)?)
    }
}

/// The ids in a list of principals, sorted.
///
/// # Errors
/// It is none.
pub fn principals(response: &HttpResponse) -> Result<Vec<String>> {
    let list = response.success()?;
    let all = list["data"].as_array().context("no list")?;
    let ids = all.iter().filter_map(|one| one["id"].as_str());
    let mut ids: Vec<String> = ids.map(str::to_owned).collect();
    ids.sort_unstable();
    Ok(ids)
}
