//! A conversation with one directory server, bound as the service account.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ldap3::adapters::{Adapter, EntriesOnly, PagedResults};
use ldap3::{Ldap, LdapConnAsync, LdapConnSettings, LdapError, Scope, SearchEntry};
use rustls::ClientConfig;

use super::config::LdapConfig;
use super::flavour::Flavour;
use crate::provider::ProviderError;

/// Entries that the server puts into one page.
const PAGE: i32 = 500;
/// LDAP result: name or password is wrong.
const INVALID_CREDENTIALS: u32 = 49;
/// LDAP result: there is no such entry.
const NO_SUCH_OBJECT: u32 = 32;
/// LDAP result: the text is no distinguished name.
const INVALID_NAME: u32 = 34;
/// LDAP results of an entry that nobody can bind as: it has no password, or may not log in now.
const NOT_TO_BE_BOUND: [u32; 4] = [19, 48, 50, 53];
/// LDAP results of a server that requires TLS.
const TLS_REQUIRED: [u32; 2] = [8, 13];

/// An entry with its text attributes, whose names are in lower case.
#[derive(Clone, Debug)]
pub struct Entry {
    pub dn: String,
    attributes: HashMap<String, Vec<String>>,
}

impl Entry {
    fn of(found: SearchEntry) -> Self {
        let attributes = found.attrs.into_iter();
        let attributes = attributes.map(|(name, values)| (name.to_ascii_lowercase(), values));
        Self { dn: found.dn, attributes: attributes.collect() }
    }
    /// The values of an attribute.
    pub fn all(&self, name: &str) -> &[String] {
        self.attributes.get(&name.to_ascii_lowercase()).map_or(&[], Vec::as_slice)
    }
    /// The first value of an attribute.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.all(name).first().map(String::as_str)
    }
}

/// See the module. It ends when this is dropped.
pub struct Connection {
    ldap: Ldap,
    timeout: Duration,
}

impl Connection {
    /// Connects to the first server that responds.
    ///
    /// # Errors
    /// None does.
    pub async fn open(config: &LdapConfig, tls: &Arc<ClientConfig>) -> Result<Self, ProviderError> {
        let mut causes = Vec::new();
        for server in config.servers.iter().map(|server| server.trim()) {
            match connect(config, tls, server).await {
                Ok(ldap) => return Ok(Self { ldap, timeout: config.timeout() }),
                Err(cause) => causes.push(format!("{server}:{}: {cause}", config.port)),
            }
        }
        let text = format!("no directory server can be reached: {}", causes.join("; "));
        Err(ProviderError::Unavailable(text))
    }

    /// Binds as the service account.
    ///
    /// # Errors
    /// The server refused it.
    pub async fn bind_service(
        &mut self,
        flavour: &Flavour,
        config: &LdapConfig,
    ) -> Result<(), ProviderError> {
        let name = config.service_account(flavour);
        let name = match flavour.has_domains {
            true => with_domain(name, &config.default_login_domain),
            false => name.to_owned(),
        };
        let misconfigured = |field, text: String| ProviderError::Misconfigured { field, text };
        match self.bind(&name, &config.service_account_password).await? {
            0 => Ok(()),
            INVALID_CREDENTIALS => Err(misconfigured(
                flavour.service_account_field,
                "the directory refused the service account; check its name and \
                 serviceAccountPassword"
                    .to_owned(),
            )),
            code if TLS_REQUIRED.contains(&code) => Err(misconfigured(
                "tls",
                "the directory accepts passwords over TLS only; set tls or starttls".to_owned(),
            )),
            code => Err(misconfigured(
                flavour.service_account_field,
                format!("the directory refused the service account with LDAP result {code}"),
            )),
        }
    }

    /// Whether the password is that of the entry. The connection is then bound as the entry, or as
    /// nobody: bind as the service account before the next search.
    ///
    /// # Errors
    /// The server does not respond.
    pub async fn is_password(&mut self, dn: &str, password: &str) -> Result<bool, ProviderError> {
        // A bind without a password succeeds, as nobody.
        if password.is_empty() || dn.is_empty() {
            return Ok(false);
        }
        match self.bind(dn, password).await? {
            0 => Ok(true),
            INVALID_CREDENTIALS | NO_SUCH_OBJECT | INVALID_NAME => Ok(false),
            code if NOT_TO_BE_BOUND.contains(&code) => Ok(false),
            code => Err(ProviderError::Unavailable(format!(
                "the directory answered a bind with LDAP result {code}"
            ))),
        }
    }

    async fn bind(&mut self, name: &str, password: &str) -> Result<u32, ProviderError> {
        let bound = self.ldap.with_timeout(self.timeout).simple_bind(name, password).await;
        Ok(bound.map_err(|error| failed("bind", &error))?.rc)
    }

    /// The entries below `base` that match, at most `limit`.
    ///
    /// # Errors
    /// The server does not respond or refuses the search.
    pub async fn search(
        &mut self,
        base: &str,
        filter: &str,
        attributes: &[&str],
        limit: usize,
    ) -> Result<Vec<Entry>, ProviderError> {
        self.collect(base, Scope::Subtree, filter, attributes, limit).await
    }

    /// The entry of this name, if it is there and matches.
    ///
    /// # Errors
    /// The server does not respond or refuses the search.
    pub async fn entry(
        &mut self,
        dn: &str,
        filter: &str,
        attributes: &[&str],
    ) -> Result<Option<Entry>, ProviderError> {
        let found = self.collect(dn, Scope::Base, filter, attributes, 1).await?;
        Ok(found.into_iter().next())
    }

    async fn collect(
        &mut self,
        base: &str,
        scope: Scope,
        filter: &str,
        attributes: &[&str],
        limit: usize,
    ) -> Result<Vec<Entry>, ProviderError> {
        let attributes: Vec<String> = attributes.iter().map(|&name| name.to_owned()).collect();
        let adapters: Vec<Box<dyn Adapter<'_, String, Vec<String>>>> =
            vec![Box::new(EntriesOnly::new()), Box::new(PagedResults::new(PAGE))];
        let ldap = self.ldap.with_timeout(self.timeout);
        let stream = ldap.streaming_search_with(adapters, base, scope, filter, attributes).await;
        let mut stream = stream.map_err(|error| failed("search", &error))?;
        let mut found = Vec::new();
        while found.len() < limit {
            match stream.next().await {
                Ok(Some(entry)) => found.push(Entry::of(SearchEntry::construct(entry))),
                Ok(None) => break,
                Err(error) => return Err(failed("search", &error)),
            }
        }
        let is_full = found.len() >= limit;
        match stream.finish().await.rc {
            // Who stops early gets no result.
            _ if is_full => Ok(found),
            0 => Ok(found),
            NO_SUCH_OBJECT | INVALID_NAME => Ok(Vec::new()),
            code => Err(ProviderError::Unavailable(format!(
                "the directory answered a search below \"{base}\" with LDAP result {code}"
            ))),
        }
    }

    /// Sends an unbind request, so that the server frees the connection at once.
    pub async fn close(mut self) {
        // The connection ends anyway.
        let _ = self.ldap.with_timeout(self.timeout).unbind().await;
    }
}

async fn connect(
    config: &LdapConfig,
    tls: &Arc<ClientConfig>,
    server: &str,
) -> Result<Ldap, String> {
    let scheme = if config.tls { "ldaps" } else { "ldap" };
    let is_v6 = server.contains(':') && !server.starts_with('[');
    let host = if is_v6 { format!("[{server}]") } else { server.to_owned() };
    let url = format!("{scheme}://{host}:{}", config.port);
    let settings = LdapConnSettings::new()
        .set_conn_timeout(config.timeout())
        .set_starttls(config.starttls)
        .set_config(tls.clone());
    let connecting = LdapConnAsync::with_settings(settings, &url);
    let connected = tokio::time::timeout(config.timeout(), connecting).await;
    let connected = connected.map_err(|_| "no answer in time".to_owned())?;
    let (connection, ldap) = connected.map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        if let Err(error) = connection.drive().await {
            tracing::debug!(%error, "a connection to a directory ended");
        }
    });
    Ok(ldap)
}

fn failed(step: &str, error: &LdapError) -> ProviderError {
    ProviderError::Unavailable(format!("the directory did not complete a {step}: {error}"))
}

/// `DOMAIN\name`, unless the name has a domain.
pub fn with_domain(name: &str, domain: &str) -> String {
    let is_whole = name.contains(['\\', '@', '=']);
    if is_whole || domain.is_empty() { name.to_owned() } else { format!("{domain}\\{name}") }
}
