//! A real provider of OpenID Connect on loopback, with some people. It ends when it is dropped.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Error;
use crate::binaries::{Binaries, Program};
use crate::certificates::Authority;
use crate::process::Process;
use crate::wait::poll_until;

/// Time for the provider to listen.
const START_TIME_MAX: Duration = Duration::from_secs(30);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// The client that it knows.
pub const CLIENT_ID: &str = "drover";
pub const CLIENT_SECRET: &str = "client-secret-canary";

/// See the module.
#[derive(Debug)]
pub struct OidcProvider {
    issuer: String,
    authority_pem: String,
    settings: Value,
    folder: TempDir,
    /// Ends with it.
    _process: Process,
}

impl OidcProvider {
    /// Starts a provider that sends browsers back to `redirect`. It knows Ada, who is in the groups
    /// `dev` and `ops`, and Bob and Carol, who are in none. Every password is right.
    ///
    /// # Errors
    /// It is missing or does not listen in time.
    pub fn start(redirect: &str) -> Result<Self, Error> {
        let folder = TempDir::new().map_err(|source| file_error(&std::env::temp_dir(), source))?;
        let authority = Authority::new("identity provider")?;
        let serving = authority.server("127.0.0.1", &["127.0.0.1"])?;
        let free = TcpListener::bind(("127.0.0.1", 0)).map_err(Error::Port)?;
        let port = free.local_addr().map_err(Error::Port)?.port();
        drop(free);
        let settings = json!({
            "port": port,
            "certificate": serving.certificate_pem,
            "key": serving.key_pem,
            "client": {"id": CLIENT_ID, "secret": CLIENT_SECRET, "redirect": redirect},
            "people": {
                "ada": {"name": "Ada Lovelace", "preferred_username": "ada",
                    "email": "ada@example.org", "groups": ["dev", "ops"]},
                "bob": {"name": "Bob", "preferred_username": "bob"},
                "carol": {"name": "Carol", "preferred_username": "carol"},
            },
        });
        let file = folder.path().join("provider.json");
        fs::write(&file, settings.to_string()).map_err(|source| file_error(&file, source))?;
        let mut command = Command::new(Binaries::locate().path(Program::OidcProvider)?);
        command.arg(&file);
        let log = folder.path().join("provider.log");
        let process = Process::start("oidc-provider", &command, &log)?;
        let listening = || TcpStream::connect(("127.0.0.1", port)).map(drop);
        poll_until(START_TIME_MAX, LOOK_INTERVAL, listening).map_err(|last| Error::NotReady {
            component: "oidc-provider".to_owned(),
            waited: START_TIME_MAX,
            last: last.to_string(),
            log: process.log_tail(),
        })?;
        let issuer = format!("https://127.0.0.1:{port}");
        let authority_pem = authority.certificate_pem().to_owned();
        Ok(Self { issuer, authority_pem, settings, folder, _process: process })
    }

    /// Its name, and the URL below which everything of it is.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The authority of its certificate.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// Changes what it claims about a person, or with `None` forgets the person.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn change(&mut self, name: &str, claims: Option<Value>) -> Result<(), Error> {
        match claims {
            Some(claims) => self.settings["people"][name] = claims,
            None => {
                if let Some(people) = self.settings["people"].as_object_mut() {
                    people.remove(name);
                }
            }
        }
        // Replaced at once: the provider may be reading it.
        let (fresh, file) =
            (self.folder.path().join("fresh.json"), self.folder.path().join("provider.json"));
        fs::write(&fresh, self.settings.to_string())
            .and_then(|()| fs::rename(&fresh, &file))
            .map_err(|source| file_error(&file, source))
    }
}

fn file_error(path: &Path, source: std::io::Error) -> Error {
    Error::File { action: "write", path: path.to_owned(), source }
}
