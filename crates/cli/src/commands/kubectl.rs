//! `drover kubectl`, `logs`, `exec`, `events`, `cluster shell`: programs that run with a kubeconfig
//! for a cluster.
//!
//! The kubeconfig contains the login's own token, is a file that only its owner can read, and is
//! deleted when the program ends.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::api::{self, Api, text};
use crate::args::KubectlArgs;
use crate::commands::scope;
use crate::error::{CliError, Failure};

/// Names the program to run in place of `kubectl`.
const PROGRAM_VARIABLE: &str = "DROVER_KUBECTL";
/// Exit code of shells for a program that a signal ended: this plus the signal's number.
const SIGNAL_EXIT_BASE: i32 = 128;

/// Commands of Drover that run kubectl: `kubectl` itself, then those that are also commands of
/// kubectl.
pub const COMMANDS: [&str; 4] = ["kubectl", "logs", "exec", "events"];

/// Runs kubectl. `command`: a command of kubectl before the arguments.
pub async fn run(command: Option<&str>, args: KubectlArgs) -> Result<ExitCode, CliError> {
    let (file, _) = kubeconfig_file(args.cluster.name(), args.server.name()).await?;
    let given: Vec<OsString> = command.map(OsString::from).into_iter().chain(args.args).collect();
    run_program(&program(), &given, &file).await.map_err(|error| {
        error.hint(format!("install kubectl, or name it in the variable {PROGRAM_VARIABLE}"))
    })
}

fn program() -> OsString {
    let named = std::env::var_os(PROGRAM_VARIABLE).filter(|name| !name.is_empty());
    named.unwrap_or_else(|| OsString::from("kubectl"))
}

/// kubectl's completions for the last of `words`, each with its description.
pub async fn completions(
    cluster: Option<&str>,
    server: Option<&str>,
    words: &[String],
) -> Result<Vec<(String, String)>, CliError> {
    let (file, _) = kubeconfig_file(cluster, server).await?;
    let mut command = Command::new(program());
    command.arg("__complete").args(words).env("KUBECONFIG", file.path());
    let output = command.kill_on_drop(true).output().await?;
    let printed = String::from_utf8_lossy(&output.stdout);
    // The line that begins with a colon is a directive for the shell.
    let offers = printed.lines().filter(|line| !line.starts_with(':'));
    let pair = |line: &str| {
        let (name, help) = line.split_once('\t').unwrap_or((line, ""));
        (name.to_owned(), help.to_owned())
    };
    Ok(offers.map(pair).collect())
}

/// Runs the user's shell with a kubeconfig for the cluster, and returns the shell's exit code.
///
/// # Errors
/// The cluster does not exist, or no shell can be started.
pub async fn shell(cluster: &str, server: Option<&str>) -> Result<ExitCode, CliError> {
    let (file, name) = kubeconfig_file(Some(cluster), server).await?;
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| OsString::from("/bin/sh"));
    notify!("KUBECONFIG names a kubeconfig of cluster \"{}\" until you leave this shell", name);
    run_program(&shell, &[], &file).await
}

/// Writes the kubeconfig. Returns the file, and the name of the cluster.
async fn kubeconfig_file(
    cluster: Option<&str>,
    server: Option<&str>,
) -> Result<(NamedTempFile, String), CliError> {
    let api = Api::open(server)?;
    let cluster = scope::cluster(&api, cluster).await?;
    let user = json!({"token": api.login().token});
    let config = kubeconfig(api.url(), &api.login().ca_cert, &cluster, &user);
    // Created with mode 0600.
    let mut file = tempfile::Builder::new().prefix("drover-").suffix(".kubeconfig").tempfile()?;
    file.write_all(config.to_string().as_bytes())?;
    file.flush()?;
    Ok((file, api::name(&cluster).to_owned()))
}

/// A kubeconfig as JSON, which is also YAML. `user`: its credentials.
pub fn kubeconfig(url: &str, ca_cert: &str, cluster: &Value, user: &Value) -> Value {
    let name = api::name(cluster);
    let mut server = json!({"server": format!("{url}/k8s/clusters/{}", text(cluster, "id"))});
    if !ca_cert.is_empty() {
        let data = BASE64_STANDARD.encode(ca_cert);
        server["certificate-authority-data"] = data.into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": server}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    })
}

/// Runs a program to its end. Signals from the terminal reach it directly; this process ignores
/// them and waits, so that the file is removed.
async fn run_program(
    program: &OsStr,
    args: &[OsString],
    kubeconfig: &NamedTempFile,
) -> Result<ExitCode, CliError> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut quits = signal(SignalKind::quit())?;
    let failed = |error: std::io::Error| {
        let failure = match error.kind() {
            std::io::ErrorKind::NotFound => Failure::NotFound,
            _ => Failure::Other,
        };
        CliError::new(failure, format!("running \"{}\": {error}", program.to_string_lossy()))
    };
    let mut command = Command::new(program);
    command.args(args).env("KUBECONFIG", kubeconfig.path());
    let mut child = command.spawn().map_err(failed)?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.map_err(failed)?,
            _ = interrupts.recv() => {}
            _ = quits.recv() => {}
        }
    };
    let code = status.code().or_else(|| status.signal().map(|signal| SIGNAL_EXIT_BASE + signal));
    Ok(ExitCode::from(u8::try_from(code.unwrap_or(1)).unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_leads_through_the_server_with_the_logins_token() {
        let cluster = json!({"id": "c-1", "name": "north"});
        let user = json!({"token": "token-x:key"});
        let config = kubeconfig("https://host:8443", "PEM", &cluster, &user);
        insta::assert_snapshot!(serde_saphyr::to_string(&config).unwrap());
    }

    #[tokio::test]
    async fn the_programs_exit_code_is_passed_on() {
        let file = NamedTempFile::new().unwrap();
        for (script, code) in [("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 143)] {
            let args = ["-c".into(), script.into()];
            let ended = run_program(OsStr::new("sh"), &args, &file).await.unwrap();
            assert_eq!(format!("{ended:?}"), format!("{:?}", ExitCode::from(code)), "{script}");
        }
        let missing = run_program(OsStr::new("no-such-program"), &[], &file).await.unwrap_err();
        assert_eq!(missing.failure, Failure::NotFound);
    }
}
