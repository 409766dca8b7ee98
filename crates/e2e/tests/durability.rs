//! A server that is killed while it works: nothing acknowledged is lost, it restarts at once, and
//! the agent reconnects without any change of the downstream cluster.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::journey::{self, ImportTarget};
use e2e::server::Options;
use e2e::{Cli, Client, Guarantee, Server, eventually, no_second_try, poll_until};
use serde_json::json;
use testbed::RealCluster;

const ROUNDS: usize = 5;
const WRITERS: usize = 4;
/// Acknowledged writes in each round before the server is killed.
const WRITES_PER_ROUND: usize = 60;
const NAMESPACE: &str = "/api/v1/namespaces/durability";

/// Creates ConfigMaps until `stop`; returns the names that the server acknowledged.
fn write(
    writer: usize,
    round: usize,
    client: &Client,
    stop: &AtomicBool,
    kept: &Mutex<BTreeSet<String>>,
) {
    for number in 0.. {
        let name = format!("round-{round}-writer-{writer}-{number}");
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name}, "data": {"payload": "x".repeat(500)},
        });
        let response = client.post(&format!("{NAMESPACE}/configmaps"), &body);
        if response.is_ok_and(|response| response.status == 201) {
            kept.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn stored(server: &Server) -> Result<BTreeSet<String>> {
    let list = server.admin()?.get(&format!("{NAMESPACE}/configmaps"))?.success()?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    Ok(items
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned))
        .collect())
}

#[test]
fn a_server_killed_five_times_under_writes_loses_nothing_and_its_agent_returns() {
    no_second_try(Guarantee::Durability);
    let cluster = RealCluster::start().unwrap();
    let target = ImportTarget::of(&cluster).unwrap();
    let mut server = Server::start().unwrap();
    let cli = Cli::admin(&server).unwrap();
    let mut imported = journey::import(&server, &cli, "lasting", &target).unwrap();
    let deployed = ["get", "all,secrets,serviceaccounts", "-n", "cattle-system"];
    let before = target.kubectl.json(&deployed).unwrap();
    let namespace = json!({"metadata": {"name": "durability"}});
    let created = server.admin().unwrap().post("/api/v1/namespaces", &namespace).unwrap();
    created.success().unwrap();

    let kept = Mutex::new(BTreeSet::new());
    let mut starts = Vec::new();
    for round in 1..=ROUNDS {
        let stop = AtomicBool::new(false);
        let before = kept.lock().unwrap().len();
        let client = server.admin().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (client, stop, kept) = (&client, &stop, &kept);
                scope.spawn(move || write(writer, round, client, stop, kept));
            }
            let enough = poll_until(Duration::from_secs(60), Duration::from_millis(1), || {
                let written = kept.lock().unwrap().len() - before;
                if written >= WRITES_PER_ROUND { Ok(()) } else { Err(written) }
            });
            // Killed during their writes.
            server.kill();
            stop.store(true, Ordering::Relaxed);
            enough.expect("the server acknowledges writes");
        });
        starts.push(server.restart().unwrap());

        let kept = kept.lock().unwrap();
        let stored = stored(&server).unwrap();
        let lost: Vec<_> = kept.difference(&stored).collect();
        assert!(lost.is_empty(), "round {round}: acknowledged and lost: {lost:?}");
        eventually("the cluster is active again", || journey::is_active(&server, &imported.id));
        assert!(imported.agent.is_running(), "{}", imported.agent.log());
        let through = cli.kubectl("lasting").unwrap();
        eventually("and responds through Drover", || through.succeed(&["get", "namespaces"]));
    }
    println!("ready again after {starts:?}; {} writes kept", kept.lock().unwrap().len());
    let after = target.kubectl.json(&deployed).unwrap();
    assert_eq!(before, after, "something was written downstream");
}

#[test]
fn starting_again_keeps_users_logins_and_settings() {
    no_second_try(Guarantee::Durability);
    let mut server = Server::start().unwrap();
    let cli = Cli::admin(&server).unwrap();
    let token = server.login("admin", e2e::server::ADMIN_PASSWORD).unwrap();
    let users = |server: &Server| -> Result<usize> {
        let list = server.anyone()?.bearer(&token).get("/v3/users")?.success()?;
        let users = list["data"].as_array().cloned().unwrap_or_default();
        ensure!(!users.is_empty(), "{list}");
        Ok(users.len())
    };
    let before = users(&server).unwrap();
    server.restart().unwrap();
    assert_eq!(users(&server).unwrap(), before);
    cli.succeed(&["cluster", "ls"]).unwrap();
    server.login("admin", e2e::server::ADMIN_PASSWORD).unwrap();
}

/// Whether a file of the folder, at any depth, contains the text.
fn shows(folder: &Path, text: &str) -> Result<Option<PathBuf>> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let found = if path.is_dir() {
            shows(&path, text)?
        } else {
            let bytes = std::fs::read(&path)?;
            bytes.windows(text.len()).any(|window| window == text.as_bytes()).then_some(path)
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

#[test]
fn a_killed_server_leaves_no_secret_in_plain_and_opens_with_its_keys_alone() {
    no_second_try(Guarantee::Secrecy);
    const CANARY: &str = "canary-5f1c09d2";
    // 32 bytes in base64.
    let key = |letter: &str| format!("{}A=\n", letter.repeat(42));
    let keys = tempfile::NamedTempFile::new().unwrap();
    let write = |lines: &[&str]| {
        let lines: Vec<_> = lines.iter().map(|letter| key(letter)).collect();
        std::fs::write(keys.path(), lines.concat()).unwrap();
    };
    write(&["A"]);
    let file = keys.path().display().to_string();
    let environment = vec![("DROVER_ENCRYPTION_KEY_FILE".to_owned(), file)];
    let options = Options { environment, ..Options::default() };
    let mut server = Server::start_with(options).unwrap();
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = |name: &str, value: String| {
        let data = json!({"value": value});
        json!({"metadata": {"name": name}, "stringData": data, "kind": "Secret", "apiVersion": "v1"})
    };
    let admin = server.admin().unwrap();
    for number in 0..20 {
        let name = format!("s{number}");
        let value = format!("{CANARY}-{number}");
        admin.post(secrets, &secret(&name, value.clone())).unwrap().success().unwrap();
        let one = format!("{secrets}/{name}");
        admin.put(&one, &secret(&name, value + "-changed")).unwrap().success().unwrap();
        if number % 2 == 0 {
            admin.delete(&one).unwrap().success().unwrap();
        }
    }
    server.kill();
    // Values of Secrets are base64; three bytes of text are four of base64.
    for text in [CANARY, "Y2FuYXJ5LTVmMWMw"] {
        assert_eq!(shows(server.folder(), text).unwrap(), None);
    }

    write(&["B", "A"]);
    server.restart().unwrap();
    eventually("all values are of the new key", || {
        ensure!(server.log().contains("every value is encrypted with the first key"));
        Ok(())
    });
    let missing = |server: &mut Server, wrong: &str| {
        write(&[wrong]);
        let refused = server.restart().unwrap_err().to_string();
        assert!(refused.contains("which is not among those given"), "{refused}");
    };
    missing(&mut server, "C");
    missing(&mut server, "A");
    write(&["B"]);
    server.restart().unwrap();
    let left = server.admin().unwrap().get(secrets).unwrap().success().unwrap();
    let items = left["items"].as_array().unwrap().iter();
    let ours = items.filter(|item| item["data"]["value"].is_string()).count();
    assert_eq!(ours, 10, "{left}");
}
