//! The provider at which the tests log in: a light one, which starts at once, or Keycloak.

use anyhow::{Context, Result};
use e2e::Client;
use e2e::browser::Page;
use e2e::http::body;
use http::{Method, Request};
use serde_json::{Value, json};
use testbed::{IdentityProvider, Keycloak};

/// In a long run the test logs in at Keycloak, whose start takes a minute.
const SOAK_ENV: &str = "DROVER_SOAK_SECONDS";

pub enum Provider {
    Light(IdentityProvider),
    Keycloak(Keycloak),
}

/// What the server calls it.
pub struct Names {
    /// Of its configuration, and the prefix of its principals.
    pub provider: &'static str,
    /// The path of its configuration.
    pub config: &'static str,
}

impl Provider {
    /// Keycloak in a long run, otherwise the light one.
    ///
    /// # Errors
    /// It does not start.
    pub fn of_this_run(redirect: &str) -> Result<Self> {
        if std::env::var_os(SOAK_ENV).is_some() {
            return Ok(Self::Keycloak(Keycloak::start(redirect)?));
        }
        Self::light(redirect)
    }

    /// # Errors
    /// It does not start.
    pub fn light(redirect: &str) -> Result<Self> {
        Ok(Self::Light(IdentityProvider::open_id_connect(redirect)?))
    }

    pub fn names(&self) -> Names {
        match self {
            Self::Light(_) => Names { provider: "oidc", config: "/v3/oidcConfigs/oidc" },
            Self::Keycloak(_) => {
                Names { provider: "keycloakoidc", config: "/v3/keyCloakOIDCConfigs/keycloakoidc" }
            }
        }
    }

    pub fn url(&self) -> &str {
        match self {
            Self::Light(provider) => provider.url(),
            Self::Keycloak(keycloak) => keycloak.url(),
        }
    }

    pub fn issuer(&self) -> String {
        match self {
            Self::Light(provider) => provider.url().to_owned(),
            Self::Keycloak(keycloak) => keycloak.issuer(),
        }
    }

    pub fn authority_pem(&self) -> &str {
        match self {
            Self::Light(provider) => provider.authority_pem(),
            Self::Keycloak(keycloak) => keycloak.authority_pem(),
        }
    }

    /// The forms that a person fills in, one after the other.
    pub fn forms(&self, name: &str) -> Vec<String> {
        match self {
            Self::Light(_) => {
                vec![format!("prompt=login&login={name}&password=x"), "prompt=consent".to_owned()]
            }
            Self::Keycloak(_) => vec![format!("username={name}&password={}", Keycloak::PASSWORD)],
        }
    }

    /// The address to which the form of a page is sent.
    ///
    /// # Errors
    /// The page has no form.
    pub fn form_url(&self, page: &Page) -> Result<String> {
        match self {
            Self::Light(_) => Ok(page.url.clone()),
            Self::Keycloak(_) => {
                let text = page.response.text();
                let action =
                    text.split_once("action=\"").and_then(|(_, rest)| rest.split_once('"'));
                let (url, _) =
                    action.with_context(|| format!("no form at {}: {text}", page.url))?;
                Ok(url.replace("&amp;", "&"))
            }
        }
    }

    pub fn user(&self, name: &str) -> String {
        let id = match self {
            Self::Light(_) => name.to_owned(),
            Self::Keycloak(_) => Keycloak::id(name),
        };
        format!("{}_user://{id}", self.names().provider)
    }

    pub fn group(&self, name: &str) -> String {
        format!("{}_group://{name}", self.names().provider)
    }

    /// Somebody who gets no tokens that outlast a session, if there is one.
    pub fn without_offline_tokens(&self) -> Option<&'static str> {
        matches!(self, Self::Keycloak(_)).then_some("bob")
    }

    /// Ada leaves the group `ops`.
    ///
    /// # Errors
    /// The provider refuses it.
    pub fn take_ada_out_of_ops(&mut self) -> Result<()> {
        match self {
            Self::Light(provider) => {
                let left = json!({"name": "Ada Lovelace", "preferred_username": "ada",
                    "groups": ["dev"]});
                Ok(provider.change("ada", Some(left))?)
            }
            Self::Keycloak(keycloak) => delete(
                keycloak,
                &keycloak.user_path("ada", &format!("/groups/{}", Keycloak::id("ops"))),
            ),
        }
    }

    /// # Errors
    /// The provider refuses it.
    pub fn delete_ada(&mut self) -> Result<()> {
        match self {
            Self::Light(provider) => Ok(provider.change("ada", None)?),
            Self::Keycloak(keycloak) => delete(keycloak, &keycloak.user_path("ada", "")),
        }
    }
}

/// As its administrator.
fn delete(keycloak: &Keycloak, path: &str) -> Result<()> {
    let client = Client::new(keycloak.url(), keycloak.authority_pem())?;
    let (name, password) = Keycloak::ADMIN;
    let form =
        format!("grant_type=password&client_id=admin-cli&username={name}&password={password}");
    let request = Request::builder()
        .method(Method::POST)
        .uri("/realms/master/protocol/openid-connect/token")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body(form))?;
    let token: Value = client.send(request)?.success()?;
    let token = token["access_token"].as_str().context("no token")?;
    client.bearer(token).delete(path)?.success().map(drop)
}
