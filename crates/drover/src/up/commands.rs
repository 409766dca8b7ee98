//! The commands of the user of `drover up`: a login of their own, and the next commands.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use super::{DEMO, drover};

/// Name of the login, which is created again when it is not valid any more.
const LOGIN: &str = "up";

/// Logs the commands in. If another login is the current one, it stays so.
///
/// Returns whether commands use the login by default.
///
/// # Errors
/// The login failed; the error has the message of the command.
pub async fn log_in(url: &str, ca: &str, password: &str) -> anyhow::Result<bool> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let home = PathBuf::from(home.context("the environment variable HOME is not set")?);
    let existing = find(&home).await?;
    if let Some(existing) = &existing
        && existing["server"] != url
    {
        // The login is for the address of an earlier run.
        drover(&home, &["logout", "--server", LOGIN], None).await.ok();
        drover(&home, &["context", "rm", LOGIN], None).await?;
    }
    let still_holds = existing.is_some_and(|existing| existing["server"] == url)
        && drover(&home, &["cluster", "ls", "--server", LOGIN], None).await.is_ok();
    if !still_holds {
        let login = ["login", url, "--username", "admin", "--ca-file", ca, "--name", LOGIN];
        let login = [&login[..], &["--keep-current"]].concat();
        drover(&home, &login, Some(password)).await?;
    }
    Ok(find(&home).await?.is_some_and(|login| login["current"] == true))
}

async fn find(home: &Path) -> anyhow::Result<Option<Value>> {
    let text = drover(home, &["context", "ls", "-o", "json"], None).await?;
    let logins: Vec<Value> = serde_json::from_str(&text).context("the logins cannot be read")?;
    Ok(logins.into_iter().find(|login| login["name"] == LOGIN))
}

/// The three commands to start with.
pub fn next_commands(is_current: bool) -> String {
    let program = program();
    let server = if is_current { String::new() } else { format!(" --server {LOGIN}") };
    let kubectl = format!("kubectl{server} --cluster {DEMO}");
    let lines = [
        (format!("cluster ls{server}"), "the clusters and their states"),
        (format!("{kubectl} get nodes"), "kubectl in one of them"),
        (format!("{kubectl} logs -n cattle-system deploy/cattle-cluster-agent"), "its agent's log"),
    ];
    let width = lines.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    let shown = |(command, what)| format!("  {program} {command:<width$}  # {what}\n");
    lines.into_iter().map(shown).collect()
}

/// How the user calls this program: by its name if `PATH` leads to it, else by its file.
fn program() -> String {
    let Ok(file) = std::env::current_exe() else { return "drover".to_owned() };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directory = std::env::current_dir().unwrap_or_default();
    shown_program(&file, &path, &directory)
}

fn shown_program(file: &Path, path: &OsStr, directory: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    let found = std::env::split_paths(path).map(|folder| folder.join(name));
    let found = found.filter_map(|found| found.canonicalize().ok()).next();
    if found.is_some() && found == file.canonicalize().ok() {
        return name.to_string_lossy().into_owned();
    }
    let shown = file.strip_prefix(directory).unwrap_or(file);
    shown.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_named_as_the_shell_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("target/drover");
        std::fs::create_dir(folder.path().join("target")).unwrap();
        std::fs::write(&file, "").unwrap();
        let shown = |path: &Path| shown_program(&file, path.as_os_str(), folder.path());
        assert_eq!(shown(&folder.path().join("target")), "drover");
        assert_eq!(shown(Path::new("/nonexistent")), "target/drover");
        // Another program of this name precedes it in the path.
        std::fs::write(folder.path().join("drover"), "").unwrap();
        assert_eq!(shown(folder.path()), "target/drover");
    }

    #[test]
    fn three_commands_follow_and_name_the_login_unless_it_is_the_current_one() {
        assert_eq!(next_commands(true).lines().count(), 3);
        assert!(!next_commands(true).contains("--server"));
        assert!(next_commands(false).lines().all(|line| line.contains(" --server up")));
    }
}
