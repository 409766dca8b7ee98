//! Searches for credentials of objects in everything that the server writes besides its API
//! responses: logs, metrics, files, manifests, kubeconfigs. `test-kit/tests/credentials` searches
//! the API responses.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::journey::{self, ImportTarget, Imported, MANAGEMENT};
use e2e::server::Options;
use e2e::{
    Cli, Client, Guarantee, Kubeconfig, Manifest, Server, SharedWorld, Sim, eventually,
    no_second_try,
};
use http::StatusCode;
use serde_json::{Value, json};

/// Every field for credentials of every kind; a test beside it compares it with the tables.
const FIELDS: &str = include_str!("../../api-management/src/credentials/fields.txt");
/// Prefix of every marked value. Twelve characters, so that its base64 does not depend on the rest.
const MARK: &str = "canary-e2e--";
const POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n";

struct World {
    server: Server,
    admin: Cli,
    imported: Imported,
    sim: Sim,
    /// The folder of the audit log.
    audit: tempfile::TempDir,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let audit = tempfile::tempdir()?;
        let policy = audit.path().join("policy.yaml");
        std::fs::write(&policy, POLICY)?;
        let log = audit.path().join("audit.log");
        let flags = [("--audit-log-path", &log), ("--audit-policy-file", &policy)];
        let flags = flags.into_iter().map(|(flag, path)| format!("{flag}={}", path.display()));
        let server = Server::start_with(Options { flags: flags.collect(), ..Options::default() })?;
        let admin = Cli::admin(&server)?;
        let sim = Sim::start(&[])?;
        let target = ImportTarget::reached_by(&sim.kubeconfig(), admin.home())?;
        let imported = journey::import(&server, &admin, "marked", &target)?;
        Ok(World { server, admin, imported, sim, audit })
    })
}

/// Puts `value` at a path like `spec.nodes[].sshKey` or `spec.answers{}`.
fn put(object: &mut Value, path: &str, value: Value) {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let end = first.find(['[', '{']).unwrap_or(first.len());
    let mut at = &mut object[&first[..end]];
    for inside in first.as_bytes()[end..].chunks(2) {
        if inside == b"[]" && at.is_null() {
            *at = json!([{}]);
        }
        at = if inside == b"[]" { &mut at[0] } else { &mut at["key"] };
    }
    if rest.is_empty() {
        *at = value;
    } else {
        if !at.is_object() {
            *at = json!({});
        }
        put(at, rest, value);
    }
}

/// For each kind, an object with a marked value in each of its credential fields.
fn marked() -> BTreeMap<&'static str, Value> {
    let mut objects: BTreeMap<&str, Value> = BTreeMap::new();
    let mut kind = "";
    for (number, line) in FIELDS.lines().enumerate() {
        let Some(field) = line.strip_prefix("  ") else {
            kind = line;
            continue;
        };
        let (path, mark) = field.split_once(' ').unwrap();
        let value = format!("{MARK}{number}");
        let value =
            if mark == "Url" { format!("https://user:{value}@host.example") } else { value };
        put(objects.entry(kind).or_insert_with(|| json!({})), path, value.into());
    }
    objects
}

/// Whether the text contains a marked value, also as base64 at any offset.
fn has_mark(bytes: &[u8]) -> bool {
    let contains = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    contains(MARK.as_bytes())
        || (0..3).any(|shift| {
            let encoded = STANDARD.encode(format!("{}{MARK}", "x".repeat(shift)));
            // The neighbouring bytes change the letters at both ends.
            contains(&encoded.as_bytes()[4..encoded.len() - 4])
        })
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

impl World {
    /// Stores the objects, each in a valid namespace. Returns their number.
    fn store(&self) -> usize {
        let client = self.server.admin().unwrap();
        let kinds = client.get(MANAGEMENT).unwrap().success().unwrap();
        let kinds = kinds["resources"].as_array().unwrap();
        let project = client.get(&format!("/v3/projects?clusterId={}", self.imported.id)).unwrap();
        let project = project.success().unwrap()["data"][0]["id"].as_str().unwrap().to_owned();
        let project = project.split_once(':').unwrap().1.to_owned();
        let objects = marked();
        for (kind, object) in &objects {
            let found = kinds.iter().find(|found| {
                found["kind"] == *kind && !found["name"].as_str().unwrap().contains('/')
            });
            let found = found.unwrap();
            let plural = found["name"].as_str().unwrap();
            let cluster = &self.imported.id;
            let places = match found["namespaced"].as_bool().unwrap() {
                true => [cluster.as_str(), &project, "cattle-global-data"]
                    .map(|namespace| format!("{MANAGEMENT}/namespaces/{namespace}/{plural}")),
                false => [plural, plural, plural].map(|plural| format!("{MANAGEMENT}/{plural}")),
            };
            let mut spec = object.clone();
            let status = spec.as_object_mut().unwrap().remove("status");
            let path = if *kind == "Cluster" {
                let path = format!("{}/{cluster}", places[0]);
                let patch = spec.to_string();
                self.patch(&path, &patch);
                path
            } else {
                spec["apiVersion"] = "management.cattle.io/v3".into();
                spec["kind"] = (*kind).into();
                spec["metadata"] = json!({"name": "marked"});
                let tried = places.iter().map(|place| (place, client.post(place, &spec).unwrap()));
                let tried: Vec<_> = tried.collect();
                let stored = tried.iter().find(|(_, response)| response.status == 201);
                let (place, _) =
                    stored.with_context(|| format!("{kind}: {}", tried[0].1.text())).unwrap();
                format!("{place}/marked")
            };
            if let Some(status) = status {
                self.patch(&format!("{path}/status"), &json!({ "status": status }).to_string());
            }
        }
        objects.len()
    }

    fn patch(&self, path: &str, patch: &str) {
        let request = http::Request::patch(path)
            .header("content-type", "application/merge-patch+json")
            .body(e2e::http::body(patch.to_owned()))
            .unwrap();
        let response = self.server.admin().unwrap().send(request).unwrap();
        assert!(response.status.is_success(), "{path}: {} {}", response.status, response.text());
    }

    fn manifest_path(&self, id: &str) -> String {
        let token = eventually("the cluster has a registration token", || {
            journey::registration_token(&self.server, id)
        });
        let url: http::Uri = token["status"]["manifestUrl"].as_str().unwrap().parse().unwrap();
        url.path().to_owned()
    }

    fn manifest(&self, path: &str) -> (StatusCode, String) {
        let response = self.server.anyone().unwrap().get(path).unwrap();
        (response.status, response.text())
    }
}

#[test]
fn logs_metrics_files_manifests_and_kubeconfigs_give_nobody_a_credential_of_an_object() {
    no_second_try(Guarantee::Secrecy);
    let world = world();
    assert!(world.store() > 20);
    let client = world.server.admin().unwrap();
    let mut outputs: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    // Before its agent has registered, the URL of a manifest returns the environment.
    let waiting = journey::create_cluster(&world.server, "waiting").unwrap();
    let env = json!([{"name": "HTTPS_PROXY", "value": format!("http://u:{MARK}w@proxy")}]);
    let patch = json!({"spec": {"agentEnvVars": env}}).to_string();
    world.patch(&format!("{MANAGEMENT}/clusters/{waiting}"), &patch);
    let path = world.manifest_path(&waiting);
    eventually("the manifest has the environment", || -> Result<()> {
        let (status, text) = world.manifest(&path);
        ensure!(status == 200 && has_mark(text.as_bytes()), "{status} {text}");
        Ok(())
    });
    let used = world.manifest_path(&world.imported.id);
    outputs.insert("manifest of a used token".to_owned(), world.manifest(&used).1.into_bytes());
    for (name, role) in [("an-owner", "cluster-owner"), ("a-member", "cluster-member")] {
        let user =
            journey::user_with_role(&world.server, &world.admin, name, Some((role, "marked")));
        let user = user.unwrap();
        let file = user.kubeconfig_file("marked").unwrap();
        outputs.insert(format!("kubeconfig of {name}"), std::fs::read(file).unwrap());
    }
    for path in [
        "/metrics",
        "/openapi/v2",
        "/v3/openapi.json",
        "/api/v1/events",
        "/debug/api_priority_and_fairness/dump_priority_levels",
    ] {
        outputs.insert(path.to_owned(), client.get(path).unwrap().body.to_vec());
    }
    let readable = client.get("/api/v1/namespaces/cattle-credentials/secrets").unwrap();
    assert!(has_mark(&readable.body), "administrators read the Secrets: {}", readable.text());
    outputs.insert("server's log".to_owned(), world.server.log().into_bytes());
    outputs.insert("agent's log".to_owned(), world.imported.agent.log().into_bytes());
    let folders = [world.server.data_dir(), world.audit.path().to_owned()];
    for file in folders.iter().flat_map(|folder| files_below(folder)) {
        outputs.insert(file.display().to_string(), std::fs::read(&file).unwrap());
    }
    let found: Vec<&String> =
        outputs.iter().filter(|(_, bytes)| has_mark(bytes)).map(|(name, _)| name).collect();
    assert!(found.is_empty(), "credentials are in {found:?}");
    // The searched outputs are the real ones.
    let seen = |name: &str, text: &str| {
        let output = outputs.iter().find(|(output, _)| output.ends_with(name)).unwrap().1;
        assert!(String::from_utf8_lossy(output).contains(text), "no {text} in {name}");
    };
    seen("audit.log", "\"resource\":\"notifiers\"");
    seen("audit.log", "\"requestObject\"");
    seen("/metrics", "apiserver_request_total");
    seen("admin.kubeconfig", "token");
    assert!(outputs.keys().any(|name| name.contains("/storage/")), "{:?}", outputs.keys());
}

#[test]
fn the_url_of_a_used_manifest_returns_only_the_commands_for_another_token() {
    no_second_try(Guarantee::Secrecy);
    let world = world();
    let (server, id) = (&world.server, &world.imported.id);
    let identity = || journey::cluster(server, id).unwrap()["status"]["agentIdentity"].clone();
    let before = identity();
    let path = world.manifest_path(id);
    let (status, text) = world.manifest(&path);
    assert_eq!(status, 410, "{text}");
    assert!(!text.contains("kind: Deployment"), "{text}");
    // Repeating the command, or applying a saved manifest again, changes nothing.
    let kubectl = world.sim.kubectl().unwrap();
    let again = world
        .admin
        .beside("kubectl")
        .unwrap()
        .env("KUBECONFIG", world.sim.kubeconfig())
        .args(["apply", "--insecure-skip-tls-verify", "-f", &format!("{}{path}", server.url())])
        .output();
    assert!(!again.unwrap().status.success());
    let saved: &Manifest = &world.imported.manifest;
    kubectl.apply(&saved.objects).unwrap();
    journey::is_active(server, id).unwrap();
    assert_eq!(identity(), before);
    // Values as an administrator enters them.
    let commands = text.lines().filter_map(|line| line.strip_prefix("#   "));
    let commands: Vec<&str> = commands.filter(|line| line.contains("kubectl")).collect();
    let [create, show] = commands[..] else { panic!("{text}") };
    let shell = |command: &str| {
        let mut shell = world.admin.beside("sh").unwrap();
        shell.env("KUBECONFIG", server.admin_kubeconfig()).args(["-c", command]);
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    shell(create);
    eventually("the new token's command is shown", || -> Result<()> {
        let shown = shell(show);
        let mut fresh = shown.lines().filter_map(|line| line.strip_prefix(" kubectl apply -f "));
        let url: http::Uri = fresh.next_back().with_context(|| shown.clone())?.parse()?;
        let (status, text) = world.manifest(url.path());
        ensure!(status == 200, "{status} {text}");
        Ok(())
    });
}

#[test]
fn a_copy_of_the_administrators_kubeconfig_is_refused_after_a_restart() {
    no_second_try(Guarantee::Revocation);
    let mut server = Server::start().unwrap();
    let rights = |client: &Client| client.get("/api/v1/secrets").unwrap().status;
    let first = Kubeconfig::read(&server.admin_kubeconfig()).unwrap();
    let copy = Client::of(&first).unwrap();
    assert_eq!(rights(&copy), 200);
    server.restart().unwrap();
    eventually("the file has another token", || -> Result<()> {
        let now = std::fs::read_to_string(server.admin_kubeconfig())?;
        let token = first.token.as_deref().context("no token")?;
        ensure!(!now.contains(token), "it is the same");
        Ok(())
    });
    assert_eq!(rights(&copy), 401);
    assert_eq!(rights(&server.admin().unwrap()), 200);
    let tokens = server.admin().unwrap().get(&format!("{MANAGEMENT}/tokens")).unwrap();
    let tokens = tokens.success().unwrap();
    let tokens = tokens["items"].as_array().unwrap().iter();
    let of_file =
        tokens.filter(|token| token["description"] == "admin.kubeconfig in the data folder");
    assert_eq!(of_file.count(), 1);
}
