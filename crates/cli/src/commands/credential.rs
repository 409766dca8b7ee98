//! `drover credential`: the credential plugin of kubectl for kubeconfigs made with `--exec`.
//!
//! A credential is a token for one cluster that is valid for an hour. It is stored in
//! `$HOME/.drover/credentials` and renewed with the login shortly before it expires. So a
//! kubeconfig works as long as the login, and contains no secret.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::api::{Api, encode, text};
use crate::args::CredentialArgs;
use crate::config;
use crate::error::{CliError, Failure};
use crate::output;

/// The version of the plugin API that this command implements and its kubeconfigs name.
const API_VERSION: &str = "client.authentication.k8s.io/v1";
/// The variable in which kubectl passes its version of the plugin API.
const EXEC_INFO_VARIABLE: &str = "KUBERNETES_EXEC_INFO";
/// A credential is renewed this long before it expires; a short one after four fifths of its
/// lifetime.
const RENEW_BEFORE: Duration = Duration::from_secs(300);
/// The shortest lifetime that may be requested.
const TTL_MIN: Duration = Duration::from_secs(60);

/// A stored credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credential {
    /// Name of the context that it was created with.
    context: String,
    server: String,
    /// Id of the user.
    user: String,
    cluster: String,
    token: String,
    /// From then on it is renewed and not used any more.
    renew_at: Timestamp,
}

impl Credential {
    fn is_of(&self, api: &Api, cluster: &str) -> bool {
        let login = api.login();
        self.context == api.name()
            && self.server == api.url()
            && self.user == login.user
            && self.cluster == cluster
    }

    /// Name of the token object.
    fn token_name(&self) -> &str {
        self.token.split(':').next().unwrap_or_default()
    }
}

/// The user entry of a kubeconfig that runs this command.
pub fn plugin(context: &str, cluster: &str) -> Result<Value, CliError> {
    Ok(json!({"exec": {
        "apiVersion": API_VERSION,
        "command": own_command()?,
        "args": ["credential", "--server", context, "--cluster", cluster],
        "interactiveMode": "Never",
        "provideClusterInfo": false,
        "installHint": "install drover, log in by \"drover login URL\", make this kubeconfig again",
    }}))
}

/// The bare name if `PATH` leads to this program, else its absolute path.
fn own_command() -> Result<String, CliError> {
    let own = std::env::current_exe()?;
    let name = own.file_name().unwrap_or_default().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|p| p.is_file());
    let same = found.and_then(|found| found.canonicalize().ok()) == own.canonicalize().ok();
    let command = if same { PathBuf::from(name) } else { own };
    command.into_os_string().into_string().map_err(|path| {
        let text = format!("the path of this program, {}, is not UTF-8", path.display());
        CliError::new(Failure::Other, text).hint("install it under another name")
    })
}

/// Prints a credential for kubectl: the stored one while it is valid, otherwise a new one.
///
/// # Errors
/// kubectl expects another version, or no token can be created.
pub async fn run(args: CredentialArgs) -> Result<(), CliError> {
    check_api_version(std::env::var(EXEC_INFO_VARIABLE).ok().as_deref())?;
    if args.ttl < TTL_MIN {
        let text = format!("--ttl must be at least {} s", TTL_MIN.as_secs());
        return Err(CliError::usage(text).hint("leave it out for an hour"));
    }
    let api = Api::open(args.server.name())?;
    let path = path_of(&folder()?, api.name(), api.url(), &args.cluster);
    // Programs that start at the same time share one credential.
    let _lock = lock(&path)?;
    let stored = read(&path).filter(|stored| stored.is_of(&api, &args.cluster));
    let credential = match stored.filter(|stored| stored.renew_at > Timestamp::now()) {
        Some(stored) => stored,
        None => {
            let made = make(&api, &args.cluster, args.ttl).await?;
            let text = serde_json::to_string(&made).expect("plain text serialises");
            config::replace(&path, &text)?;
            made
        }
    };
    let ends = credential.renew_at;
    let ends = ends.round(jiff::Unit::Second).unwrap_or(ends);
    let response = json!({
        "apiVersion": API_VERSION,
        "kind": "ExecCredential",
        "status": {
            "token": credential.token,
            "expirationTimestamp": ends.to_string(),
        },
    });
    output::write(&response.to_string())
}

/// Refuses another version of the plugin API. Without the variable, a user runs the command.
fn check_api_version(exec_info: Option<&str>) -> Result<(), CliError> {
    let Some(info) = exec_info.filter(|info| !info.is_empty()) else { return Ok(()) };
    let info: Value = serde_json::from_str(info).unwrap_or_default();
    match text(&info, "apiVersion") {
        API_VERSION => Ok(()),
        other => {
            let text = format!(
                "kubectl requests \"{other}\", and this command implements \"{API_VERSION}\""
            );
            Err(CliError::new(Failure::Other, text)
                .hint("make the kubeconfig again: drover cluster kubeconfig CLUSTER --exec"))
        }
    }
}

async fn make(api: &Api, cluster: &str, ttl: Duration) -> Result<Credential, CliError> {
    let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    let body = json!({
        "clusterId": cluster, "ttl": millis,
        "description": format!("drover credential for {cluster}"),
    });
    let what = format!("making a credential for cluster \"{cluster}\"");
    let token = api.create("tokens", &body, &what).await?;
    let (key, life) = (text(&token, "token"), life_of(&token).unwrap_or(ttl));
    if key.is_empty() {
        let text = format!("{what}: the response has no token");
        return Err(CliError::new(Failure::Other, text)
            .hint("check that the URL of the login is that of a Drover server"));
    }
    Ok(Credential {
        context: api.name().to_owned(),
        server: api.url().to_owned(),
        user: api.login().user.clone(),
        cluster: cluster.to_owned(),
        token: key.to_owned(),
        // The server decides the lifetime, which may be unlimited.
        renew_at: Timestamp::now()
            .checked_add(life - RENEW_BEFORE.min(life / 5))
            .unwrap_or(Timestamp::MAX),
    })
}

/// The lifetime of a token, by the server's clock alone: the server may allow less than was
/// requested.
fn life_of(token: &Value) -> Option<Duration> {
    let at = |field: &str| text(token, field).parse::<Timestamp>().ok();
    let millis = token["ttl"].as_u64().filter(|millis| *millis > 0).map(Duration::from_millis);
    match (at("created"), at("expiresAt")) {
        (Some(from), Some(to)) => Duration::try_from(to.duration_since(from)).ok().or(millis),
        _ => millis,
    }
}

fn folder() -> Result<PathBuf, CliError> {
    Ok(config::folder()?.join("credentials"))
}

fn path_of(folder: &Path, context: &str, server: &str, cluster: &str) -> PathBuf {
    let digest = Sha256::digest(format!("{context}\n{server}\n{cluster}"));
    let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    folder.join(format!("{name}.json"))
}

/// Reads a stored credential. None if it cannot be read: it is created again.
fn read(path: &Path) -> Option<Credential> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

/// Takes the lock of a credential, which is held until the file is dropped.
fn lock(path: &Path) -> Result<File, CliError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let lock = path.with_extension("lock");
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&lock)?;
    file.lock()?;
    Ok(file)
}

/// The stored credentials of a context, with their paths.
fn stored_credentials(folder: &Path, context: &str) -> Vec<(PathBuf, Credential)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    files
        .filter_map(|path| read(&path).map(|credential| (path, credential)))
        .filter(|(_, credential)| credential.context == context)
        .collect()
}

/// Deletes the stored credentials of a context. Their tokens expire by themselves.
pub fn forget(context: &str) -> Result<(), CliError> {
    for (path, _) in stored_credentials(&folder()?, context) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Revokes the credentials of a login, and deletes them.
pub async fn revoke(api: &Api) -> Result<(), CliError> {
    for (path, credential) in stored_credentials(&folder()?, api.name()) {
        if credential.renew_at > Timestamp::now() && credential.server == api.url() {
            let name = credential.token_name();
            let path = format!("/v3/tokens/{}", encode(name));
            let what = format!("ending credential \"{name}\"");
            // The login may have expired; then they expire by themselves.
            if let Err(error) = api.call(http::Method::DELETE, &path, None, &what).await {
                tracing::debug!(%error, "a credential stays valid until it expires");
            }
        }
        std::fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(context: &str) -> Credential {
        Credential {
            context: context.to_owned(),
            server: "https://host".to_owned(),
            user: "u-1".to_owned(),
            cluster: "c-1".to_owned(),
            token: "token-x:key".to_owned(),
            renew_at: "2024-01-01T00:00:00Z".parse().unwrap(),
        }
    }

    #[test]
    fn the_lifetime_of_a_token_is_measured_by_the_servers_clock() {
        let token = json!({"created": "2024-01-01T00:00:00Z", "expiresAt": "2024-01-01T00:10:00Z",
                           "ttl": 3_600_000});
        assert_eq!(life_of(&token), Some(Duration::from_secs(600)));
        assert_eq!(life_of(&json!({"ttl": 60_000})), Some(Duration::from_secs(60)));
        for odd in [json!({"ttl": 0}), json!({"ttl": -1, "created": 7}), json!(null)] {
            assert_eq!(life_of(&odd), None, "{odd}");
        }
        let backwards =
            json!({"created": "2024-01-01T00:10:00Z", "expiresAt": "2024-01-01T00:00:00Z"});
        assert_eq!(life_of(&backwards), None);
    }

    #[test]
    fn credentials_are_stored_by_context_and_a_broken_file_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        for (context, cluster) in [("a", "c-1"), ("a", "c-2"), ("b", "c-1")] {
            let path = path_of(folder.path(), context, "https://host", cluster);
            let text = serde_json::to_string(&credential(context)).unwrap();
            config::replace(&path, &text).unwrap();
        }
        std::fs::write(folder.path().join("broken.json"), "{").unwrap();
        assert_eq!(stored_credentials(folder.path(), "a").len(), 2);
        assert_eq!(stored_credentials(folder.path(), "b").len(), 1);
        assert_eq!(stored_credentials(&folder.path().join("absent"), "a").len(), 0);
        assert_eq!(read(&folder.path().join("broken.json")), None);
        assert_eq!(credential("a").token_name(), "token-x");
    }

    #[test]
    fn other_versions_of_the_plugin_api_are_refused() {
        assert!(check_api_version(None).is_ok());
        assert!(
            check_api_version(Some(r#"{"apiVersion":"client.authentication.k8s.io/v1"}"#)).is_ok()
        );
        for odd in [r#"{"apiVersion":"client.authentication.k8s.io/v1beta1"}"#, "{", "7"] {
            assert!(check_api_version(Some(odd)).is_err(), "{odd}");
        }
    }
}
