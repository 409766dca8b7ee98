//! An identity provider on loopback with pages of its own, and with some people: a real one of
//! OpenID Connect, or a stand-in for GitHub. It ends when it is dropped.

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
pub struct IdentityProvider {
    url: String,
    authority_pem: String,
    settings: Value,
    folder: TempDir,
    /// Ends with it.
    _process: Process,
}

impl IdentityProvider {
    /// Starts a provider of OpenID Connect that sends browsers back to `redirect`. It knows Ada,
    /// who is in the groups `dev` and `ops`, and Bob and Carol, who are in none. Every password is
    /// right.
    ///
    /// # Errors
    /// It is missing or does not listen in time.
    pub fn open_id_connect(redirect: &str) -> Result<Self, Error> {
        let people = json!({
            "ada": {"name": "Ada Lovelace", "preferred_username": "ada",
                "email": "ada@example.org", "groups": ["dev", "ops"]},
            "bob": {"name": "Bob", "preferred_username": "bob"},
            "carol": {"name": "Carol", "preferred_username": "carol"},
        });
        Self::start(Program::OidcProvider, redirect, &people)
    }

    /// Starts a stand-in for GitHub Enterprise like [`Self::open_id_connect`]. Ada is in three
    /// organisations and a team.
    ///
    /// # Errors
    /// Like [`Self::open_id_connect`].
    pub fn github(redirect: &str) -> Result<Self, Error> {
        let organisation = |id: u64, login: &str| json!({"id": id, "login": login});
        let people = json!({
            "ada": {"id": 1001, "name": "Ada Lovelace",
                "orgs": [organisation(1, "acme"), organisation(2, "beta"), organisation(3, "gamma")],
                "teams": [{"id": 77, "name": "Ops", "organization": organisation(1, "acme")}]},
            "bob": {"id": 1002, "name": "Bob"},
            "carol": {"id": 1003, "name": null},
        });
        Self::start(Program::GithubStandIn, redirect, &people)
    }

    fn start(program: Program, redirect: &str, people: &Value) -> Result<Self, Error> {
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
            "people": people,
        });
        let file = folder.path().join("provider.json");
        fs::write(&file, settings.to_string()).map_err(|source| file_error(&file, source))?;
        let mut command = Command::new(Binaries::locate().path(program)?);
        command.arg(&file);
        let log = folder.path().join("provider.log");
        let process = Process::start(program.name(), &command, &log)?;
        let listening = || TcpStream::connect(("127.0.0.1", port)).map(drop);
        poll_until(START_TIME_MAX, LOOK_INTERVAL, listening).map_err(|last| Error::NotReady {
            component: program.name().to_owned(),
            waited: START_TIME_MAX,
            last: last.to_string(),
            log: process.log_tail(),
        })?;
        let url = format!("https://127.0.0.1:{port}");
        let authority_pem = authority.certificate_pem().to_owned();
        Ok(Self { url, authority_pem, settings, folder, _process: process })
    }

    /// The URL below which everything of it is; the name of one of OpenID Connect.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The authority of its certificate.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// Changes what it says about a person, or with `None` forgets the person.
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
        self.write()
    }

    /// Makes the stand-in for GitHub refuse all requests for now, as after too many of them.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn limit(&mut self, is_limited: bool) -> Result<(), Error> {
        self.settings["isLimited"] = is_limited.into();
        self.write()
    }

    fn write(&self) -> Result<(), Error> {
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
