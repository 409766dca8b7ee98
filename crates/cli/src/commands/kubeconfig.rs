//! `drover cluster kubeconfig`: prints a kubeconfig of a cluster, or merges it into the user's own
//! file.

mod merge;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{self, Api, id, text};
use crate::args::KubeconfigArgs;
use crate::commands::{credential, kubectl};
use crate::config;
use crate::error::{CliError, Failure};
use crate::output;
use merge::{ContextEntry, Merged};

/// Maximum number of backups in one second.
const BACKUPS_MAX: u32 = 100;

/// Prints the kubeconfig of a cluster, or merges it into the user's own.
pub async fn run(args: KubeconfigArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.name())?;
    let cluster = api.resolve(&api::CLUSTER, &args.cluster).await?;
    let made = match args.exec {
        true => {
            let user = credential::plugin(api.name(), id(&cluster))?;
            let config = kubectl::kubeconfig(api.url(), &api.login().ca_cert, &cluster, &user);
            yaml(&config)?
        }
        false => {
            let what = format!("making a kubeconfig of cluster \"{}\"", args.cluster);
            let action = "generateKubeconfig";
            let made = api.action("clusters", id(&cluster), action, &json!({}), &what).await?;
            text(&made, "config").to_owned()
        }
    };
    if !args.merge {
        return output::print(&made);
    }
    let made: Value = serde_saphyr::from_str(&made).unwrap_or_default();
    let entry = ContextEntry::current_of(&made).ok_or_else(|| {
        let text =
            format!("the server's kubeconfig of cluster \"{}\" has no context", args.cluster);
        CliError::new(Failure::Other, text)
            .hint("check that the URL of the login is that of a Drover server")
    })?;
    let name = args.context_name.as_deref().unwrap_or(api::name(&cluster));
    merge_into(&own_file()?, name, &entry, args.set_current)
}

fn yaml(value: &Value) -> Result<String, CliError> {
    serde_saphyr::to_string(value)
        .map_err(|error| CliError::new(Failure::Other, format!("formatting a kubeconfig: {error}")))
}

/// The file that kubectl writes to: the first of `KUBECONFIG`, else `~/.kube/config`.
fn own_file() -> Result<PathBuf, CliError> {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let first = std::env::split_paths(&listed).find(|path| !path.as_os_str().is_empty());
    if let Some(first) = first {
        return Ok(first);
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    home.map(|home| Path::new(&home).join(".kube/config")).ok_or_else(|| {
        CliError::new(Failure::Other, "neither KUBECONFIG nor HOME is set")
            .hint("name your kubeconfig in the variable KUBECONFIG")
    })
}

/// Adds the entry to the file: writes a backup, then replaces the whole file. Reports what it did,
/// and how to undo it.
fn merge_into(
    path: &Path,
    name: &str,
    entry: &ContextEntry,
    set_current: bool,
) -> Result<(), CliError> {
    // The target of a link is replaced, not the link.
    let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let shown = file.display().to_string();
    let failed = |why: String| {
        CliError::new(
            Failure::Other,
            format!("merging into \"{shown}\": {why}; nothing was changed"),
        )
    };
    let _lock = Lock::take(&file)?;
    let before = match std::fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error.to_string())),
    };
    let parsed: Result<Value, _> = match before.as_deref().map(str::trim) {
        None | Some("") => Ok(Value::Null),
        Some(text) => serde_saphyr::from_str(text),
    };
    let mut whole = parsed.map_err(|error| {
        failed(format!("it is not a kubeconfig: {error}"))
            .hint("correct the file, or name another in KUBECONFIG")
    })?;
    let merged = merge::merge(&mut whole, name, entry, set_current).map_err(|why| {
        let mut error = failed(why.to_string()).hint(why.hint());
        error.failure = if why.is_conflict() { Failure::Conflict } else { Failure::Other };
        error
    })?;
    let text = yaml(&whole)?;
    let backup = before.as_ref().map(|before| back_up(&file, before)).transpose()?;
    config::replace(&file, &text)?;
    report(&shown, name, &merged, backup.as_deref());
    Ok(())
}

fn report(file: &str, name: &str, merged: &Merged, backup: Option<&Path>) {
    let action = if merged.was_known { "renewed" } else { "added" };
    notify!("{action} context {name} in {file}");
    match &merged.current {
        Some(current) if current == name => notify!("kubectl now uses it"),
        Some(current) => {
            notify!("kubectl still uses {current}; use it by: kubectl --context {name}")
        }
        None => notify!("use it by: kubectl --context {name}"),
    }
    match backup {
        Some(backup) => {
            let backup = backup.display();
            notify!("the previous file: {backup}; to undo: cp {backup} {file}");
        }
        None => notify!("the file is new; to undo: rm {file}"),
    }
}

/// Writes the previous content to a file beside it, readable by its owner only.
fn back_up(file: &Path, before: &str) -> Result<PathBuf, CliError> {
    let now = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let base = format!("{}.drover-backup-{now}", file.display());
    let mut number = 0;
    loop {
        let path =
            PathBuf::from(if number == 0 { base.clone() } else { format!("{base}-{number}") });
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match made.and_then(|mut file| file.write_all(before.as_bytes())) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < BACKUPS_MAX => {
                number += 1;
            }
            Err(error) => {
                let text = format!("writing the backup \"{}\": {error}", path.display());
                return Err(CliError::new(Failure::Other, text + "; nothing was changed"));
            }
        }
    }
}

/// The lock that kubectl takes while it changes a kubeconfig; released when dropped.
struct Lock(PathBuf);

impl Lock {
    fn take(file: &Path) -> Result<Self, CliError> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let path = PathBuf::from(format!("{}.lock", file.display()));
        match File::create_new(&path) {
            Ok(_) => Ok(Self(path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let path = path.display();
                let text = format!(
                    "\"{}\" is being changed by another program: {path} exists",
                    file.display()
                );
                Err(CliError::new(Failure::Conflict, text)
                    .hint(format!("try again; if no kubectl runs, delete {path}")))
            }
            Err(error) => Err(CliError::new(
                Failure::Other,
                format!("locking \"{}\": {error}", file.display()),
            )),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::warn!(%error, lock = %self.0.display(), "removing the lock of a kubeconfig");
        }
    }
}

#[cfg(test)]
mod tests;
