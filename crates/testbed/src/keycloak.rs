//! Keycloak on loopback, with a realm of some people. It ends when it is dropped.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Error;
use crate::binaries::Binaries;
use crate::certificates::Authority;
use crate::identity_provider::{CLIENT_ID, CLIENT_SECRET};
use crate::process::Process;
use crate::wait::poll_until;

/// It starts in a minute on two busy cores.
const START_TIME_MAX: Duration = Duration::from_secs(300);
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const REALM: &str = "drover";
/// What of the distribution it reads and never writes.
const READ_ONLY: [&str; 4] = ["lib", "providers", "conf", "themes"];

/// See the module.
#[derive(Debug)]
pub struct Keycloak {
    url: String,
    authority_pem: String,
    _folder: TempDir,
    /// Ends with it.
    _process: Process,
}

impl Keycloak {
    /// Name and password of its administrator, in the realm `master`.
    pub const ADMIN: (&str, &str) = ("root", "password-of-root");
    /// The password of everybody in the realm.
    pub const PASSWORD: &str = "password-of-all";

    /// Starts it with the realm `drover`, which sends browsers back to `redirect`. It has Ada, who
    /// is in the groups `dev` and `ops`, and Bob and Carol, who are in none. Bob lacks the usual
    /// roles, and with them the right to tokens that outlast his session.
    ///
    /// # Errors
    /// It is missing or does not listen in time.
    pub fn start(redirect: &str) -> Result<Self, Error> {
        let distribution = Binaries::locate().keycloak()?;
        let folder = TempDir::new().map_err(file_error("create", &std::env::temp_dir()))?;
        let home = folder.path();
        for name in READ_ONLY {
            let link = home.join(name);
            symlink(distribution.join(name), &link).map_err(file_error("create", &link))?;
        }
        let authority = Authority::new("Keycloak")?;
        let serving = authority.server("127.0.0.1", &["127.0.0.1"])?;
        write(&home.join("certificate.pem"), &serving.certificate_pem)?;
        write(&home.join("key.pem"), &serving.key_pem)?;
        let import = home.join("data/import");
        fs::create_dir_all(&import).map_err(file_error("create", &import))?;
        write(&import.join("realm.json"), &realm(redirect).to_string())?;

        let free = TcpListener::bind(("127.0.0.1", 0)).map_err(Error::Port)?;
        let port = free.local_addr().map_err(Error::Port)?.port();
        drop(free);
        let command = command(home, port);
        let process = Process::start("keycloak", &command, &home.join("keycloak.log"))?;
        let listening = || TcpStream::connect(("127.0.0.1", port)).map(drop);
        poll_until(START_TIME_MAX, LOOK_INTERVAL, listening).map_err(|last| Error::NotReady {
            component: "keycloak".to_owned(),
            waited: START_TIME_MAX,
            last: last.to_string(),
            log: process.log_tail(),
        })?;
        let url = format!("https://127.0.0.1:{port}");
        let authority_pem = authority.certificate_pem().to_owned();
        Ok(Self { url, authority_pem, _folder: folder, _process: process })
    }

    /// The URL of the whole server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The name of the realm as an issuer of tokens.
    #[must_use]
    pub fn issuer(&self) -> String {
        format!("{}/realms/{REALM}", self.url)
    }

    /// Path of a user of the realm, or of a part of it, in the administrators' API.
    #[must_use]
    pub fn user_path(&self, name: &str, rest: &str) -> String {
        format!("/admin/realms/{REALM}/users/{}{rest}", Self::id(name))
    }

    /// The id of a user or a group of the realm.
    #[must_use]
    pub fn id(name: &str) -> String {
        let hex: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("00000000-0000-4000-8000-{hex:0>12}")
    }

    /// The authority of its certificate.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }
}

/// Its own script would leave the server behind: it starts it as a child.
fn command(home: &Path, port: u16) -> Command {
    let mut command = Command::new("java");
    let file = |name: &str| home.join(name).display().to_string();
    command
        .current_dir(home)
        .env("KC_BOOTSTRAP_ADMIN_USERNAME", Keycloak::ADMIN.0)
        .env("KC_BOOTSTRAP_ADMIN_PASSWORD", Keycloak::ADMIN.1)
        .args(["-Xmx512m", "-Djava.util.logging.manager=org.jboss.logmanager.LogManager"])
        .arg(format!("-Dkc.home.dir={}", home.display()))
        .args(["-cp", &file("lib/quarkus-run.jar")])
        .arg("io.quarkus.bootstrap.runner.QuarkusEntryPoint")
        .args(["start", "--optimized", "--import-realm", "--http-enabled=false"])
        .args(["--http-host=127.0.0.1", &format!("--https-port={port}")])
        .arg(format!("--https-certificate-file={}", file("certificate.pem")))
        .arg(format!("--https-certificate-key-file={}", file("key.pem")))
        .arg(format!("--hostname=https://127.0.0.1:{port}"));
    command
}

fn realm(redirect: &str) -> Value {
    let user = |name: &str, first: &str, last: &str, groups: &[&str], roles: &[&str]| {
        json!({
            "id": Keycloak::id(name), "username": name, "enabled": true, "firstName": first,
            "lastName": last, "email": format!("{name}@example.org"), "emailVerified": true,
            "groups": groups, "realmRoles": roles,
            "credentials": [{"type": "password", "value": Keycloak::PASSWORD, "temporary": false}],
        })
    };
    let usual = ["default-roles-drover"];
    let group = |name: &str| json!({"id": Keycloak::id(name), "name": name});
    let groups = json!({
        "name": "groups", "protocol": "openid-connect",
        "protocolMapper": "oidc-group-membership-mapper",
        "config": {"claim.name": "groups", "full.path": "false", "id.token.claim": "true",
            "access.token.claim": "true", "userinfo.token.claim": "true"},
    });
    json!({
        "realm": REALM, "enabled": true,
        "groups": [group("dev"), group("ops")],
        "clients": [{
            "clientId": CLIENT_ID, "secret": CLIENT_SECRET, "enabled": true,
            "protocol": "openid-connect", "publicClient": false, "standardFlowEnabled": true,
            "redirectUris": [redirect], "protocolMappers": [groups],
        }],
        "users": [
            user("ada", "Ada", "Lovelace", &["dev", "ops"], &usual),
            user("bob", "Bob", "Kahn", &[], &[]),
            user("carol", "Carol", "Shaw", &[], &usual),
        ],
    })
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(file_error("write", path))
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { action, path, source }
}
