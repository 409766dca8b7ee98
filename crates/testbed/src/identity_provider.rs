//! An identity provider on loopback with pages of its own, and with some people: a real one of
//! OpenID Connect, or a stand-in for GitHub, Google or Microsoft. It ends when it is dropped.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Error;
use crate::binaries::{Binaries, Program};
use crate::certificates::{Authority, TokenKeys};
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
        Self::start(Program::OidcProvider, redirect, &json!({"people": people}))
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
        Self::start(Program::GithubStandIn, redirect, &json!({"people": people}))
    }

    /// Starts a stand-in for Microsoft's login and Graph like [`Self::open_id_connect`]. Ada is in
    /// the group `ops-group`, which is in `all-group`, and in 249 more; Carol is in none.
    ///
    /// # Errors
    /// Like [`Self::open_id_connect`].
    pub fn microsoft(redirect: &str) -> Result<Self, Error> {
        let more = (1..250).map(|number| format!("group-{number:03}"));
        let of_ada: Vec<String> = more.chain(["ops-group".to_owned()]).collect();
        let group = |id: &String| (id.clone(), json!({"displayName": format!("Group {id}")}));
        let mut groups: Value = of_ada.iter().map(group).collect::<serde_json::Map<_, _>>().into();
        groups["ops-group"] = json!({"displayName": "Ops", "memberOf": ["all-group"]});
        groups["all-group"] = json!({"displayName": "O'Hara & all"});
        let people = json!({
            "ada@example.org": {"id": "ada-1", "displayName": "Ada Lovelace", "groups": of_ada},
            "bob@example.org": {"id": "bob-2", "displayName": "Bob"},
            "carol@example.org": {"id": "carol-3"},
        });
        let settings = json!({"people": people, "groups": groups});
        Self::start(Program::MicrosoftStandIn, redirect, &settings)
    }

    /// Starts a stand-in for Google's login and the directory of the organisation `example.org`
    /// like [`Self::open_id_connect`]. Ada is in the groups `ops`, `dev` and `qa`, and `ops` is in
    /// `all`; Eve has an account outside of the organisation. Its settings have the key of the
    /// service account, see [`Self::google_files`].
    ///
    /// # Errors
    /// Like [`Self::open_id_connect`].
    pub fn google(redirect: &str) -> Result<Self, Error> {
        let keys = TokenKeys::rsa()?;
        let group = |id: &str, name: &str, members: &[&str]| {
            let members = members.iter().map(|name| format!("{name}@example.org"));
            json!({"id": id, "name": name, "members": members.collect::<Vec<_>>()})
        };
        let settings = json!({
            "domain": "example.org",
            "admin": "admin@example.org",
            "account": {"email": "drover@project.iam.gserviceaccount.com",
                "publicKey": keys.public_pem, "privateKey": keys.private_pem},
            "people": {
                "ada": {"id": "1001", "name": "Ada Lovelace"},
                "bob": {"id": "1002", "name": "Bob Kahn"},
                "carol": {"id": "1003", "name": "Carol Shaw"},
                "eve": {"id": "1004", "name": "Eve Elsewhere", "domain": "gmail.com"},
            },
            "groups": {
                "all": group("01all", "Everybody", &["ops"]),
                "dev": group("02dev", "Developers", &["ada"]),
                "ops": group("03ops", "Operations", &["ada"]),
                "qa": group("04qa", "Quality", &["ada"]),
            },
        });
        Self::start(Program::GoogleStandIn, redirect, &settings)
    }

    /// The files that Google offers for download: of the OAuth client, and of the key of the
    /// service account. Only of [`Self::google`].
    #[must_use]
    pub fn google_files(&self) -> (Value, Value) {
        let token_uri = format!("{}/token", self.url);
        let client = json!({"web": {
            "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "project_id": "project",
            "auth_uri": format!("{}/o/oauth2/v2/auth", self.url), "token_uri": token_uri,
        }});
        let account = &self.settings["account"];
        let key = json!({
            "type": "service_account", "client_email": account["email"],
            "private_key": account["privateKey"], "token_uri": token_uri,
        });
        (client, key)
    }

    fn start(program: Program, redirect: &str, own: &Value) -> Result<Self, Error> {
        let folder = TempDir::new().map_err(|source| file_error(&std::env::temp_dir(), source))?;
        let authority = Authority::new("identity provider")?;
        let serving = authority.server("127.0.0.1", &["127.0.0.1"])?;
        let free = TcpListener::bind(("127.0.0.1", 0)).map_err(Error::Port)?;
        let port = free.local_addr().map_err(Error::Port)?.port();
        drop(free);
        let mut settings = own.clone();
        settings["port"] = port.into();
        settings["certificate"] = serving.certificate_pem.into();
        settings["key"] = serving.key_pem.into();
        settings["client"] =
            json!({"id": CLIENT_ID, "secret": CLIENT_SECRET, "redirect": redirect});
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

    /// Makes the API of a stand-in refuse all requests for now, as after too many of them.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn limit(&mut self, is_limited: bool) -> Result<(), Error> {
        self.set("isLimited", is_limited.into())
    }

    /// Sets one of its settings, see the program.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn set(&mut self, name: &str, value: Value) -> Result<(), Error> {
        self.settings[name] = value;
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
