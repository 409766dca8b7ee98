//! What is remembered between commands: `$HOME/.drover/config.json`, readable by its owner only.
//! A context is a login with the cluster and project that commands use when they are given none.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{CliError, Failure};

/// Logins by name, one of them the current one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Name of the context that is used when none is named.
    pub current: String,
    pub contexts: BTreeMap<String, Context>,
}

/// A login on a server, and what commands are about when they are not told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Context {
    /// URL as [`normal_url`] makes it.
    pub server: String,
    #[serde(flatten)]
    pub login: Login,
    #[serde(skip_serializing_if = "Chosen::is_none")]
    pub cluster: Chosen,
    #[serde(skip_serializing_if = "Chosen::is_none")]
    pub project: Chosen,
}

/// An object that was chosen, or none: names are for people, ids are what stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Chosen {
    /// Empty when none was chosen.
    pub id: String,
    pub name: String,
}

impl Chosen {
    pub fn is_none(&self) -> bool {
        self.id.is_empty()
    }
}

/// What proves who one is, and whom to believe.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Login {
    /// `name:key`; empty once logged out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// User id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// What the user logs in with; empty in files of earlier versions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// PEM of the authority to trust; empty: those of the system.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ca_cert: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Config {
    /// The context with a login to use: `server` by its name or the URL of its server, else the
    /// current one.
    pub fn select(&self, server: Option<&str>) -> Result<(&str, &Context), CliError> {
        let Some(server) = server else {
            if self.current.is_empty() {
                return Err(CliError::new(Failure::Unauthenticated, "not logged in to any server")
                    .hint(
                        "run \"drover login URL\", or choose a login by \"drover context use\"",
                    ));
            }
            return logged_in(&self.current, self.contexts.get_key_value(&self.current));
        };
        if let Some(named) = self.contexts.get_key_value(server) {
            return logged_in(server, Some(named));
        }
        let url = normal_url(server)?;
        let on_it: Vec<_> = self
            .contexts
            .iter()
            .filter(|(_, context)| context.server == url && !context.login.token.is_empty())
            .collect();
        let current = on_it.iter().find(|(name, _)| **name == self.current);
        match (current, on_it.as_slice()) {
            (Some(one), _) | (None, [one]) => Ok((one.0, one.1)),
            (None, []) => logged_in(&url, None),
            (None, several) => {
                let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
                let text = format!("you have {} logins on {url}", names.len());
                Err(CliError::new(Failure::Conflict, text)
                    .hint(format!("name one with --server: {}", names.join(", "))))
            }
        }
    }

    /// Name for a login on `url` that was given none: the one it has already, else host and port.
    pub fn name_for(&self, url: &str) -> String {
        let known = |name: &&String| self.contexts[*name].server == url;
        let current = Some(&self.current).filter(|name| self.contexts.contains_key(*name));
        let found = current.filter(known).or_else(|| self.contexts.keys().find(known));
        found.cloned().unwrap_or_else(|| url.trim_start_matches("https://").to_owned())
    }

    /// PEM of the authority that is trusted for `url`.
    pub fn authority(&self, url: &str) -> Option<String> {
        let mut of_server = self.contexts.values().filter(|context| context.server == url);
        of_server.find(|c| !c.login.ca_cert.is_empty()).map(|c| c.login.ca_cert.clone())
    }

    /// Forgets the login `name`. The authority of its server stays trusted.
    pub fn forget(&mut self, name: &str) {
        if let Some(context) = self.contexts.get_mut(name) {
            context.login.token.clear();
            context.login.user.clear();
            context.login.username.clear();
            if context.login.ca_cert.is_empty() {
                self.contexts.remove(name);
            }
        }
        if self.current == name {
            self.current.clear();
        }
    }
}

fn logged_in<'a>(
    name: &str,
    found: Option<(&'a String, &'a Context)>,
) -> Result<(&'a str, &'a Context), CliError> {
    match found {
        Some((name, context)) if !context.login.token.is_empty() => Ok((name, context)),
        found => {
            let url = found.map_or(name, |(_, context)| &context.server);
            let text = format!("not logged in to \"{name}\"");
            Err(CliError::new(Failure::Unauthenticated, text).hint(format!(
                "run \"drover login {url}\"; \"drover context ls\" shows your logins"
            )))
        }
    }
}

/// Scheme and authority, https by default, without a slash at the end.
pub fn normal_url(text: &str) -> Result<String, CliError> {
    let wrong = |why: &str| {
        CliError::usage(format!("\"{text}\" is not the URL of a server: {why}"))
            .hint("give it as https://HOST or https://HOST:PORT")
    };
    let full = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let uri: http::Uri = full.parse().map_err(|error| wrong(&format!("{error}")))?;
    if uri.scheme_str() != Some("https") {
        return Err(wrong("it must begin with https://"));
    }
    let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
    if authority.as_str().contains('@') || authority.host().is_empty() {
        return Err(wrong("it must have a host and no user name"));
    }
    Ok(format!("https://{}", authority.as_str().to_ascii_lowercase()))
}

/// The folder of everything that is remembered.
pub fn folder() -> Result<PathBuf, CliError> {
    match std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        Some(home) => Ok(Path::new(&home).join(".drover")),
        None => Err(CliError::new(Failure::Other, "the environment variable HOME is not set")
            .hint("set it to your home folder")),
    }
}

/// Where the configuration lives.
pub fn path() -> Result<PathBuf, CliError> {
    Ok(folder()?.join("config.json"))
}

/// An absent file is an empty configuration.
pub fn load(path: &Path) -> Result<Config, CliError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(error) => {
            let text = format!("reading \"{}\": {error}", path.display());
            return Err(CliError::new(Failure::Other, text));
        }
    };
    serde_json::from_str(&text).map_err(|error| {
        CliError::new(Failure::Other, format!("reading \"{}\": {error}", path.display()))
            .hint("delete the file and log in again")
    })
}

/// Replaces the configuration.
pub fn save(path: &Path, config: &Config) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(config).expect("plain maps of text serialise");
    replace(path, &text)
}

/// Replaces a file as a whole, so that a reader never sees half of it. Mode 0600, folder 0700.
pub fn replace(path: &Path, text: &str) -> Result<(), CliError> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let failed = |error: std::io::Error| {
        CliError::new(Failure::Other, format!("writing \"{}\": {error}", path.display()))
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    // Temporary files are made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests;
