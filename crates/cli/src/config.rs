//! The configuration that is stored between commands: `$HOME/.drover/config.json`, readable by its
//! owner only. A context is a login with the cluster and project that commands use by default.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{CliError, Failure};

/// Logins by name, one of them the current one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Name of the context that commands use by default.
    pub current: String,
    pub contexts: BTreeMap<String, LoginContext>,
}

/// A login on a server, and the default cluster and project of commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoginContext {
    /// URL, normalised by [`normal_url`].
    pub server: String,
    #[serde(flatten)]
    pub login: Login,
    #[serde(skip_serializing_if = "Selection::is_none")]
    pub cluster: Selection,
    #[serde(skip_serializing_if = "Selection::is_none")]
    pub project: Selection,
}

/// A selected object, or none. The name is for display; the id is stable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selection {
    /// Empty if none is selected.
    pub id: String,
    pub name: String,
}

impl Selection {
    /// Whether nothing is selected.
    pub fn is_none(&self) -> bool {
        self.id.is_empty()
    }
}

/// The credentials of a user, and the certificate authority to trust.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Login {
    /// `name:key`; empty once logged out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// User id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The login name; empty in files of earlier versions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// PEM of the authority to trust; empty: the system's authorities.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ca_cert: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Config {
    /// Selects the context: by `server`, the name of a login or the URL of its server, else the
    /// current one. Only contexts with a token count.
    pub fn select(&self, server: Option<&str>) -> Result<(&str, &LoginContext), CliError> {
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

    /// Default name for a login on `url`: that of the existing login there, else host and port.
    pub fn name_for(&self, url: &str) -> String {
        let known = |name: &&String| self.contexts[*name].server == url;
        let current = Some(&self.current).filter(|name| self.contexts.contains_key(*name));
        let found = current.filter(known).or_else(|| self.contexts.keys().find(known));
        found.cloned().unwrap_or_else(|| url.trim_start_matches("https://").to_owned())
    }

    /// PEM of the trusted authority for `url`.
    pub fn authority(&self, url: &str) -> Option<String> {
        let mut of_server = self.contexts.values().filter(|context| context.server == url);
        of_server.find(|c| !c.login.ca_cert.is_empty()).map(|c| c.login.ca_cert.clone())
    }

    /// Deletes the login `name`. The authority of its server stays trusted.
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
    found: Option<(&'a String, &'a LoginContext)>,
) -> Result<(&'a str, &'a LoginContext), CliError> {
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

/// Normalises a server URL: scheme and authority, https by default, without a trailing slash.
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

/// The folder of the stored configuration and credentials.
pub fn folder() -> Result<PathBuf, CliError> {
    match std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        Some(home) => Ok(Path::new(&home).join(".drover")),
        None => Err(CliError::new(Failure::Other, "the environment variable HOME is not set")
            .hint("set it to your home folder")),
    }
}

/// The path of the configuration file.
pub fn path() -> Result<PathBuf, CliError> {
    Ok(folder()?.join("config.json"))
}

/// Loads the configuration. An absent file is an empty configuration.
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

/// Replaces a file atomically, so that a reader never sees a part of it. Mode 0600, folder 0700.
pub fn replace(path: &Path, text: &str) -> Result<(), CliError> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let failed = |error: std::io::Error| {
        CliError::new(Failure::Other, format!("writing \"{}\": {error}", path.display()))
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    // Temporary files are created with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests;
