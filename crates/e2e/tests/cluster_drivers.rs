//! Cluster drivers as objects of a server: fetched from a URL, run in a sandbox, and their options
//! as types of the API.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::path::PathBuf;

use anyhow::{Result, ensure};
use e2e::server::Options;
use e2e::{Cli, Client, Server, WebSite, eventually};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testbed::{Binaries, Program};

const CANARY: &str = "canary-of-a-cloud";
const FILE: &str = "/kontainer-engine-driver-go";

fn server(site: &WebSite) -> (Server, Cli) {
    let flags = vec![format!("--driver-may-reach=127.0.0.1:{}", site.port)];
    let server = Server::start_with(Options { flags, ..Options::default() }).unwrap();
    let admin = Cli::admin(&server).unwrap();
    (server, admin)
}

fn program(program: Program) -> Vec<u8> {
    std::fs::read(Binaries::locate().path(program).unwrap()).unwrap()
}

fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn schema(admin: &Client, id: &str) -> Result<Option<Value>> {
    let response = admin.get(&format!("/v3/schemas/{id}"))?;
    Ok((response.status == 200).then(|| response.json()))
}

/// The driver with this name, as `/v3` shows it.
fn driver(admin: &Client, name: &str) -> Result<Value> {
    let found = admin.get("/v3/kontainerdrivers")?.success()?;
    let mut drivers = found["data"].as_array().cloned().unwrap_or_default().into_iter();
    let found = drivers.find(|driver| driver["name"] == name || driver["id"] == name);
    found.ok_or_else(|| anyhow::anyhow!("no driver {name}"))
}

fn has_state(driver: &Value, state: &str, transitioning: &str, message: &str) -> Result<()> {
    let said = driver["transitioningMessage"].as_str().unwrap_or_default();
    ensure!(
        driver["state"] == state
            && driver["transitioning"] == transitioning
            && said.contains(message),
        "it is {}, {}: {said}",
        driver["state"],
        driver["transitioning"]
    );
    Ok(())
}

fn counter_of(api: &Client, name: &str) -> Option<u64> {
    let metrics = api.get("/metrics").unwrap().text();
    let line = metrics.lines().find(|line| line.starts_with(&format!("{name} ")))?;
    line.split(' ').nth(1)?.parse().ok()
}

fn programs(server: &Server) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(server.data_dir().join("drivers")).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

#[test]
fn the_options_of_a_driver_from_a_url_are_types_while_it_is_active() {
    let site = WebSite::start().unwrap();
    let content = program(Program::GoDriver);
    let url = site.put(FILE, content.clone());
    let (mut server, cli) = server(&site);
    let api = server.admin().unwrap();

    cli.succeed(&["driver", "add", &url, "--checksum", &sha256(&content), "--wait"]).unwrap();
    let shown = driver(&api, "go").unwrap();
    has_state(&shown, "active", "no", "").unwrap();
    assert_eq!(shown["actualUrl"], url);
    assert!(shown["actions"]["deactivate"].is_string(), "{shown}");
    assert!(shown["actions"]["activate"].is_null(), "{shown}");
    let listed = cli.succeed(&["driver", "ls"]).unwrap();
    assert!(listed.contains("go ") && listed.contains(&url), "{listed}");

    // The field of the document that asked for drivers, in each of its parts.
    let config = schema(&api, "goEngineConfig").unwrap().unwrap();
    assert_eq!(
        config["resourceFields"]["diskSizeGb"],
        json!({
            "create": true, "update": true, "type": "int", "default": 100, "dynamicField": true,
            "description": "Size of the disk attached to each node",
        })
    );
    let fields = &config["resourceFields"];
    assert_eq!(fields["accessToken"]["type"], "password");
    assert_eq!(fields["labels"]["type"], "array[string]");
    assert_eq!(fields["driverName"]["default"], shown["id"]);
    let cluster = schema(&api, "cluster").unwrap().unwrap();
    assert_eq!(cluster["resourceFields"]["goEngineConfig"]["type"], "goEngineConfig");
    let openapi = api.get("/v3/openapi.json").unwrap().text();
    assert!(openapi.contains("\"goEngineConfig\""));

    // A restart fetches nothing.
    let fetched = site.requests();
    server.restart().unwrap();
    let api = server.admin().unwrap();
    eventually("the type is there again", || {
        ensure!(schema(&api, "goEngineConfig")?.is_some(), "no goEngineConfig");
        Ok(())
    });
    assert_eq!(site.requests(), fetched);

    cli.succeed(&["driver", "deactivate", "go"]).unwrap();
    eventually("the types are gone", || {
        has_state(&driver(&api, "go")?, "inactive", "no", "")?;
        ensure!(schema(&api, "goEngineConfig")?.is_none(), "goEngineConfig is there");
        let cluster = schema(&api, "cluster")?.unwrap_or_default();
        ensure!(cluster["resourceFields"]["goEngineConfig"].is_null(), "clusters have the field");
        Ok(())
    });
    cli.succeed(&["driver", "activate", "go", "--wait"]).unwrap();
    assert!(schema(&api, "goEngineConfig").unwrap().is_some());
    assert_eq!(site.requests(), fetched);

    assert_eq!(programs(&server).len(), 1);
    cli.succeed(&["driver", "rm", "go"]).unwrap();
    eventually("the driver, its types and its program are gone", || {
        ensure!(schema(&api, "goEngineConfig")?.is_none(), "goEngineConfig is there");
        ensure!(programs(&server).is_empty(), "{:?}", programs(&server));
        Ok(())
    });
}

#[test]
fn a_driver_that_cannot_be_used_says_why_and_a_change_mends_it() {
    let site = WebSite::start().unwrap();
    let content = program(Program::GoDriver);
    let (server, cli) = server(&site);
    let api = server.admin().unwrap();
    let url = format!("http://127.0.0.1:{}{FILE}", site.port);

    let refused = cli.refuse(&["driver", "add", &url, "--name", "mine", "--wait"]).unwrap();
    assert!(refused.contains("answered 404 Not Found"), "{refused}");
    has_state(&driver(&api, "mine").unwrap(), "downloading", "error", "404 Not Found").unwrap();

    // Each change is tried at once.
    site.put(FILE, content.clone());
    let change = |fields: Value| -> Result<()> {
        let mut found = driver(&api, "mine")?;
        for (field, value) in fields.as_object().into_iter().flatten() {
            found[field] = value.clone();
        }
        let path = format!("/v3/kontainerdrivers/{}", found["id"].as_str().unwrap_or_default());
        api.put(&path, &found)?.success().map(drop)
    };
    let other = "0".repeat(64);
    change(json!({ "checksum": other })).unwrap();
    eventually("the wrong checksum is reported", || {
        has_state(&driver(&api, "mine")?, "downloading", "error", &sha256(&content))
    });
    change(json!({ "checksum": sha256(&content) })).unwrap();
    eventually("the driver is used", || has_state(&driver(&api, "mine")?, "active", "no", ""));

    // Another file: its types take the place of the former.
    let page = site.put("/kontainer-engine-driver-page", b"<!doctype html>".to_vec());
    change(json!({ "url": page, "checksum": "" })).unwrap();
    eventually("the page is reported", || {
        has_state(&driver(&api, "mine")?, "installing", "error", "gives a web page")
    });
    let crash = site.put("/kontainer-engine-driver-crash", b"\x7fELF".to_vec());
    change(json!({ "url": crash })).unwrap();
    eventually("the broken program is reported", || {
        has_state(&driver(&api, "mine")?, "installing", "error", "the program is for")
    });
    let second = site.put("/v2/kontainer-engine-driver-second-v2", content.clone());
    let update = ["driver", "update", "mine", "--wait"];
    let wrong = cli.refuse(&[&update[..], &["--url", &second, "--checksum", &other]].concat());
    assert!(wrong.as_ref().unwrap().contains(&sha256(&content)), "{wrong:?}");
    // The wrong checksum does not stay with the URL.
    cli.succeed(&[&update[..], &["--url", &second]].concat()).unwrap();
    eventually("the types of the second driver take the place of the first", || {
        has_state(&driver(&api, "mine")?, "active", "no", &sha256(&content))?;
        ensure!(schema(&api, "secondEngineConfig")?.is_some(), "no secondEngineConfig");
        ensure!(schema(&api, "goEngineConfig")?.is_none(), "goEngineConfig is there");
        Ok(())
    });

    let wrong = cli.refuse(&[&update[..], &["--checksum", &other]].concat());
    assert!(wrong.as_ref().unwrap().contains(&sha256(&content)), "{wrong:?}");
    cli.succeed(&[&update[..], &["--checksum", &sha256(&content), "--name", "ours"]].concat())
        .unwrap();
    has_state(&driver(&api, "ours").unwrap(), "active", "no", "").unwrap();
    let nothing = cli.refuse(&["driver", "update", "ours"]).unwrap();
    assert!(nothing.contains("--url"), "{nothing}");

    // What fetches from the machine itself is refused, whatever it is called.
    for url in ["http://localhost:1/kontainer-engine-driver-x", "http://169.254.169.254/x"] {
        let refused = cli.refuse(&["driver", "add", url, "--wait"]).unwrap();
        assert!(refused.contains("drivers do not reach"), "{refused}");
    }
    for counter in ["drover_driver_starts_total", "drover_driver_connections_refused_total"] {
        let count = counter_of(&api, counter).unwrap();
        assert!(count >= 2, "{counter} is {count}");
    }
    let same = cli.refuse(&["driver", "add", &second]).unwrap();
    assert!(same.contains("spec.url") || same.contains("already"), "{same}");
    let weak = cli.refuse(&["driver", "add", &url, "--checksum", &"a".repeat(32)]).unwrap();
    assert!(weak.contains("MD5 and SHA-1 can be forged"), "{weak}");
    let file = cli.refuse(&["driver", "add", "file:///etc/shadow"]).unwrap();
    assert!(file.contains("must begin with https:// or http://"), "{file}");
}

#[test]
fn the_options_of_a_cluster_are_stored_under_the_name_of_its_driver() {
    let site = WebSite::start().unwrap();
    let url = site.put(FILE, program(Program::GoDriver));
    let (server, cli) = server(&site);
    let api = server.admin().unwrap();
    cli.succeed(&["driver", "add", &url, "--wait"]).unwrap();
    let id = driver(&api, "go").unwrap()["id"].clone();
    eventually("clusters have the field", || {
        ensure!(schema(&api, "goEngineConfig")?.is_some(), "no goEngineConfig");
        Ok(())
    });
    let options = json!({"diskSizeGb": 50, "accessToken": CANARY, "clusterEndpoint": "https://a"});
    let body = json!({"name": "made", "goEngineConfig": options});
    let made = api.post("/v3/clusters", &body).unwrap().success().unwrap();
    let path = format!("/v3/clusters/{}", made["id"].as_str().unwrap());
    let shown = api.get(&path).unwrap().success().unwrap();
    let config = &shown["goEngineConfig"];
    assert_eq!(
        (&config["diskSizeGb"], &config["clusterEndpoint"]),
        (&50.into(), &"https://a".into())
    );
    assert!(config["accessToken"].is_null() && shown["genericEngineConfig"].is_null(), "{shown}");

    let stored = format!("/apis/management.cattle.io/v3/clusters/{}", made["id"].as_str().unwrap());
    let stored =
        || api.get(&stored).unwrap().success().unwrap()["spec"]["genericEngineConfig"].clone();
    let first = stored();
    assert_eq!(first["driverName"], id);
    assert!(first["accessToken"].as_str().unwrap().starts_with("drover-credential://"), "{first}");
    assert!(!first.to_string().contains(CANARY));

    // What is sent back without the secret that is not shown leaves it as it was.
    let mut changed = shown.clone();
    changed["goEngineConfig"]["diskSizeGb"] = 60.into();
    api.put(&path, &changed).unwrap().success().unwrap();
    let second = stored();
    assert_eq!(second["diskSizeGb"], 60);
    assert_eq!(second["accessToken"], first["accessToken"]);

    let refused = cli.refuse(&["driver", "rm", "go"]).unwrap();
    assert!(refused.contains("need it to be changed and removed: made"), "{refused}");
    let second_url = site.put("/kontainer-engine-driver-other", program(Program::GoDriver));
    cli.succeed(&["driver", "add", &second_url, "--wait"]).unwrap();
    eventually("clusters have the field of the other driver", || {
        ensure!(schema(&api, "otherEngineConfig")?.is_some(), "no otherEngineConfig");
        Ok(())
    });
    assert!(api.get(&path).unwrap().json()["otherEngineConfig"].is_null());
    let other = json!({"otherEngineConfig": {"diskSizeGb": 1}});
    let refused = api.put(&path, &other).unwrap();
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("the cluster was made with this driver"), "{}", refused.text());
    api.delete(&path).unwrap().success().unwrap();
    eventually("the cluster is gone", || {
        let found = api.get(&path)?;
        ensure!(found.status == 404, "it is there: {}", found.json()["transitioningMessage"]);
        Ok(())
    });
    cli.succeed(&["driver", "rm", "go"]).unwrap();
}

#[test]
fn of_two_drivers_with_one_name_the_first_has_the_types_until_it_is_deactivated() {
    let site = WebSite::start().unwrap();
    let urls =
        ["/1", "/2"].map(|folder| site.put(&format!("{folder}{FILE}"), program(Program::GoDriver)));
    let (server, cli) = server(&site);
    let api = server.admin().unwrap();
    cli.succeed(&["driver", "add", &urls[0], "--wait"]).unwrap();
    let first = driver(&api, "go").unwrap()["id"].clone();
    let options = json!({"diskSizeGb": 50, "clusterEndpoint": "https://a"});
    let body = json!({"name": "made", "goEngineConfig": options});
    let made = api.post("/v3/clusters", &body).unwrap().success().unwrap();
    let path = format!("/v3/clusters/{}", made["id"].as_str().unwrap());
    let owner = || -> Result<Value> {
        let config = schema(&api, "goEngineConfig")?.unwrap_or_default();
        Ok(config["resourceFields"]["driverName"]["default"].clone())
    };

    let refused = cli.refuse(&["driver", "add", &urls[1], "--wait"]).unwrap();
    let said = format!("the driver {first} is active under the name \"go\", too");
    assert!(refused.contains(&said), "{refused}");
    let found = api.get("/v3/kontainerdrivers").unwrap().success().unwrap();
    let found = found["data"].as_array().unwrap().iter().find(|it| it["url"] == urls[1]);
    let second = found.unwrap()["id"].clone();
    assert_eq!(owner().unwrap(), first);
    let shown = api.get(&path).unwrap().success().unwrap();
    assert_eq!(shown["goEngineConfig"]["diskSizeGb"], 50, "{shown}");

    // An action of the second leaves the types of the first alone.
    let [first, second] = [first, second].map(|id| id.as_str().unwrap().to_owned());
    cli.succeed(&["driver", "deactivate", &second]).unwrap();
    eventually("the second is inactive", || {
        has_state(&driver(&api, &second)?, "inactive", "no", "")
    });
    assert_eq!(owner().unwrap(), first.as_str());

    cli.refuse(&["driver", "activate", &second, "--wait"]).unwrap();
    cli.succeed(&["driver", "deactivate", &first]).unwrap();
    eventually("the second has the types", || {
        has_state(&driver(&api, &second)?, "active", "no", "")?;
        ensure!(owner()? == second.as_str(), "the types are of {}", owner()?);
        Ok(())
    });
    // The cluster stays with its driver.
    let shown = api.get(&path).unwrap().success().unwrap();
    assert!(shown["goEngineConfig"].is_null(), "{shown}");
    api.delete(&path).unwrap().success().unwrap();
}

#[test]
fn the_example_is_added_as_a_file_like_any_driver() {
    let site = WebSite::start().unwrap();
    let file = std::fs::read(e2e::programs::example_driver().unwrap()).unwrap();
    let url = site.put("/kontainer-engine-driver-example-linux-amd64", file.clone());
    let (server, cli) = server(&site);
    cli.succeed(&["driver", "add", &url, "--checksum", &sha256(&file), "--wait"]).unwrap();
    let api = server.admin().unwrap();
    eventually("its options are a type", || {
        let config = schema(&api, "exampleEngineConfig")?.unwrap_or_default();
        let fields = &config["resourceFields"];
        ensure!(fields["nodeCount"]["default"] == 3, "{config}");
        ensure!(fields["accessToken"]["type"] == "password", "{config}");
        Ok(())
    });
}

#[test]
fn a_hostile_driver_is_installed_and_confined() {
    let site = WebSite::start().unwrap();
    let url = site.put("/kontainer-engine-driver-hostile", program(Program::HostileDriver));
    let (server, cli) = server(&site);
    // It names no options.
    let refused = cli.refuse(&["driver", "add", &url, "--wait"]).unwrap();
    assert!(refused.contains("the driver does not name its options"), "{refused}");
    let found = driver(&server.admin().unwrap(), "hostile").unwrap();
    has_state(&found, "activating", "error", "does not name its options").unwrap();
}

#[test]
fn who_may_not_manage_drivers_adds_none() {
    let site = WebSite::start().unwrap();
    let (server, cli) = server(&site);
    cli.succeed(&["user", "create", "mia", "--password", "correct-horse-battery"]).unwrap();
    let mia = Cli::of(&server, "mia", "correct-horse-battery").unwrap();
    let url = site.put(FILE, program(Program::GoDriver));
    let refused = mia.refuse(&["driver", "add", &url]).unwrap();
    assert!(refused.contains("kontainerdrivers"), "{refused}");
    assert_eq!(site.requests(), 0);
}
