//! What is remembered between commands: `$HOME/.drover/config.json`, readable by its owner only.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{CliError, Failure};

/// Servers with a login, by URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// URL of the last login.
    pub current: String,
    pub servers: BTreeMap<String, Login>,
}

/// A login on one server.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Login {
    /// `name:key`.
    pub token: String,
    /// User id.
    pub user: String,
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
    /// The login to use: on `server`, else on the server of the last login.
    pub fn login(&self, server: Option<&str>) -> Result<(String, &Login), CliError> {
        let url = match server {
            Some(server) => normal_url(server)?,
            None if self.current.is_empty() => {
                return Err(CliError::new(Failure::Unauthenticated, "not logged in to any server")
                    .hint("run \"drover login URL\""));
            }
            None => self.current.clone(),
        };
        let login = self.servers.get(&url).filter(|login| !login.token.is_empty());
        let login = login.ok_or_else(|| {
            CliError::new(Failure::Unauthenticated, format!("not logged in to \"{url}\""))
                .hint(format!("run \"drover login {url}\""))
        })?;
        Ok((url, login))
    }

    /// Forgets the login on `url`. Its authority stays trusted.
    pub fn forget(&mut self, url: &str) {
        if let Some(login) = self.servers.get_mut(url) {
            login.token.clear();
            login.user.clear();
        }
        self.servers.retain(|_, login| !login.token.is_empty() || !login.ca_cert.is_empty());
        if self.current == url {
            self.current.clear();
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

/// Where the configuration lives.
pub fn path() -> Result<PathBuf, CliError> {
    match std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        Some(home) => Ok(Path::new(&home).join(".drover").join("config.json")),
        None => Err(CliError::new(Failure::Other, "the environment variable HOME is not set")),
    }
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

/// Replaces the file as a whole, so that a reader never sees half of it. Mode 0600, folder 0700.
pub fn save(path: &Path, config: &Config) -> Result<(), CliError> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let failed = |error: std::io::Error| {
        CliError::new(Failure::Other, format!("writing \"{}\": {error}", path.display()))
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    // Temporary files are made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    let text = serde_json::to_string_pretty(config).expect("plain maps of text serialise");
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}
