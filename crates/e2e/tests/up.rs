//! `drover up`: one command from an empty folder to an active demo cluster, and again with existing
//! data.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::server::ADMIN_PASSWORD;
use e2e::wait::within;
use e2e::{Client, ProgramOutput, programs};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use testbed::Process;

/// Timeout for the whole start on a busy machine.
const UP_TIMEOUT: Duration = Duration::from_secs(120);

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(programs::drover().unwrap());
    command.arg("up").args(arguments).current_dir(folder).env("HOME", folder).stdin(Stdio::null());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> ProgramOutput {
    let output = command(folder, arguments).output().unwrap();
    ProgramOutput {
        command: format!("drover up {}", arguments.join(" ")),
        success: output.status.success(),
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A port that is free now.
fn free() -> String {
    let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    held.local_addr().unwrap().to_string()
}

/// The first word of `text` that begins with `start`.
fn word<'a>(text: &'a str, start: &str) -> Result<&'a str> {
    let found = text.split_whitespace().find(|word| word.starts_with(start));
    found.with_context(|| format!("nothing that begins with '{start}' in: {text}"))
}

/// The text after `label` in its line.
fn after<'a>(text: &'a str, label: &str) -> Result<&'a str> {
    let line = text.lines().find(|line| line.to_lowercase().contains(label));
    let line = line.with_context(|| format!("no '{label}' in: {text}"))?;
    line.split_whitespace().last().context("an empty line")
}

fn login(url: &str, folder: &Path, password: &str) -> Result<Client> {
    let ca = find(folder, "ca.pem").context("no ca.pem")?;
    let client = Client::new(url, &std::fs::read_to_string(ca)?)?;
    let body = json!({"username": "admin", "password": password});
    let path = "/v3-public/localProviders/local?action=login";
    let response = client.post(path, &body)?.success()?;
    Ok(client.bearer(response["token"].as_str().context("no token")?))
}

/// A file of the server, in whichever folder of `target/up`.
fn find(folder: &Path, name: &str) -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    let mut folders = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            folders.push(path);
        } else if path.file_name().is_some_and(|found| found == name) {
            return Some(path);
        }
    }
    folders.iter().find_map(|folder| find(folder, name))
}

fn imported(client: &Client) -> Result<Vec<Value>> {
    let list = client.get("/v3/clusters")?.success()?;
    let all = list["data"].as_array().context("no data")?;
    Ok(all.iter().filter(|cluster| cluster["id"] != "local").cloned().collect())
}

#[test]
fn up_ends_active_and_a_second_start_keeps_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let listen = free();
    let first = run(folder.path(), &["--check", "--listen", &listen]);
    assert!(first.success, "{first:?}");
    assert!(folder.path().join("target/up").is_dir(), "the data is in another folder");

    let second = command(folder.path(), &["--listen", &listen]);
    let log = folder.path().join("up.log");
    let mut up = Process::start("drover up", &second, &log).unwrap();
    let words = || std::fs::read_to_string(&log).unwrap_or_default();
    let clusters = within(UP_TIMEOUT, "the demo cluster is active", || {
        ensure!(up.exit_status().is_none(), "it ended: {}", words());
        let said = words();
        let url = word(&said, "https://")?;
        let client = login(url, &folder.path().join("target/up"), after(&said, "password")?)?;
        let clusters = imported(&client)?;
        ensure!(clusters.len() == 1, "{clusters:?}");
        ensure!(clusters[0]["state"] == "active", "{clusters:?}");
        Ok(clusters)
    });
    assert!(words().contains("admin"), "{}", words());
    // The commands are logged in; there was no login before.
    let next = within(UP_TIMEOUT, "the next commands are printed", || {
        let said = words();
        let lines: Vec<String> =
            said.lines().filter(|line| line.contains("  # ")).map(str::to_owned).collect();
        ensure!(lines.len() == 3, "{said}");
        Ok(lines)
    });
    for line in &next {
        let (command, _) = line.split_once("  # ").unwrap();
        let kubectl = testbed::Binaries::locate().path(testbed::Program::Kubectl).unwrap();
        let output = Command::new("sh")
            .args(["-c", command.trim()])
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("DROVER_KUBECTL", kubectl)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && !said.is_empty(), "{command}: {output:?}");
    }
    assert!(words().contains("Only this machine reaches https://localhost:"), "{}", words());
    let created = clusters[0]["created"].as_str().unwrap_or_default();
    assert!(!created.is_empty());

    // Ctrl-C stops all of it.
    kill(Pid::from_raw(i32::try_from(up.id()).unwrap()), Signal::SIGINT).unwrap();
    within(UP_TIMEOUT, "it has ended", || up.exit_status().context("it still runs"));
    let port_is_free = || TcpListener::bind(&listen).map(drop);
    within(UP_TIMEOUT, "its port is free", port_is_free);
    let third = run(folder.path(), &["--check", "--listen", &listen]);
    assert!(third.success, "{third:?}");
}

#[test]
fn up_leaves_another_login_the_current_one() {
    let folder = tempfile::tempdir().unwrap();
    let server = e2e::Server::start().unwrap();
    let drover = |arguments: &[&str]| {
        let mut command = Command::new(programs::drover().unwrap());
        command.args(arguments).env("HOME", folder.path()).stdin(Stdio::null());
        let output = command.env("DROVER_PASSWORD", ADMIN_PASSWORD).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let ca = server.ca_file();
    let ca = ca.to_str().unwrap();
    // One login is of work, the other of an earlier run's server at another address.
    for name in ["up", "work"] {
        let who = ["login", server.url(), "--username", "admin", "--ca-file", ca, "--name", name];
        drover(&who);
    }
    let up = command(folder.path(), &["--listen", "127.0.0.1:0"]);
    let log = folder.path().join("up.log");
    let mut up = Process::start("drover up", &up, &log).unwrap();
    let next = within(UP_TIMEOUT, "the next commands are printed", || {
        ensure!(up.exit_status().is_none(), "it ended: {}", up.log_tail());
        let said = std::fs::read_to_string(&log)?;
        let line = said.lines().find(|line| line.contains("  # ")).context("none yet")?;
        Ok(line.to_owned())
    });
    assert!(next.contains("cluster ls --server up"), "{next}");
    let contexts: Value = serde_json::from_str(&drover(&["context", "ls", "-o", "json"])).unwrap();
    let named = |name: &str| {
        contexts.as_array().unwrap().iter().find(|context| context["name"] == name).unwrap()
    };
    assert_eq!(named("work")["current"], true, "{contexts}");
    assert_eq!(named("work")["server"], server.url(), "{contexts}");
    assert_ne!(named("up")["server"], server.url(), "{contexts}");
    assert!(drover(&["cluster", "ls", "--server", "up"]).contains("demo"));
}

#[test]
fn a_taken_port_is_said_plainly() {
    let folder = tempfile::tempdir().unwrap();
    let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = held.local_addr().unwrap().to_string();
    let outcome = run(folder.path(), &["--check", "--listen", &address]);
    assert!(!outcome.success, "{outcome:?}");
    let port = address.rsplit(':').next().unwrap();
    assert!(outcome.stderr.contains(port), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("taken"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--listen"), "no way out is named: {}", outcome.stderr);
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
}

#[test]
fn the_root_page_says_how_to_log_in() {
    let server = e2e::Server::start().unwrap();
    // Like a browser; Kubernetes clients get the list of paths there.
    let request = http::Request::get("/").header("accept", "text/html,*/*;q=0.8");
    let response =
        server.anyone().unwrap().send(request.body(e2e::http::empty()).unwrap()).unwrap();
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(response.text().contains("drover login"), "{}", response.text());
    let pong = server.anyone().unwrap().get("/ping").unwrap();
    assert_eq!(pong.text(), "pong");
}
