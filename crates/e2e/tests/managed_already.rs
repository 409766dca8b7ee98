//! A cluster that an entry manages is not taken over by a second import.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::path::Path;

use anyhow::{Result, ensure};
use e2e::{Cli, ProgramOutput, Server, Sim, eventually, journey};
use serde_json::json;

struct World {
    admin: Cli,
    server: Server,
    sim: Sim,
    id: String,
}

/// Two simulated clusters, of which the first is imported as `edge`.
fn world() -> World {
    let sim = Sim::start(&["--clusters", "2"]).unwrap();
    let server = Server::start().unwrap();
    let admin = Cli::admin(&server).unwrap();
    let file = sim.kubeconfig();
    let import = ["cluster", "import", "edge", "--kubeconfig", file.to_str().unwrap()];
    admin.succeed(&import).unwrap();
    let id = journey::cluster_id(&server, "edge").unwrap();
    World { admin, server, sim, id }
}

impl World {
    /// Imports the cluster of `edge`.
    fn import(&self, user: &Cli, name: &str, flags: &[&str]) -> ProgramOutput {
        self.import_by(&self.sim.kubeconfig(), user, name, flags)
    }

    fn import_by(&self, file: &Path, user: &Cli, name: &str, flags: &[&str]) -> ProgramOutput {
        let file = file.to_str().unwrap().to_owned();
        let mut arguments = vec!["cluster", "import", name, "--kubeconfig", &file];
        arguments.extend(flags);
        user.run(&arguments).unwrap()
    }

    fn stays(&self) {
        journey::is_active(&self.server, &self.id).unwrap();
        journey::cluster_id(&self.server, "other").unwrap_err();
    }
}

fn refused(outcome: &ProgramOutput, code: i32, parts: &[&str]) {
    assert_eq!(outcome.code, code, "{outcome:?}");
    for part in parts {
        assert!(outcome.stderr.contains(part), "'{part}' is not in: {}", outcome.stderr);
    }
}

#[test]
fn a_second_import_is_refused_before_anything_is_made() {
    let world = world();
    let before = world.sim.kubectl().unwrap().json(&["get", "all", "-n", "cattle-system"]).unwrap();
    let outcome = world.import(&world.admin, "other", &[]);
    let named = format!("this cluster is managed already, as edge ({})", world.id);
    refused(&outcome, 6, &["✗ cluster is free to be imported", &named, "--adopt", "--as-new"]);
    assert!(outcome.stderr.contains("drover cluster import edge --kubeconfig"), "{outcome:?}");
    world.stays();

    // Users who may not read the entry do not learn its name or id.
    let guest = journey::user_with_role(&world.server, &world.admin, "guest", None).unwrap();
    let outcome = world.import(&guest, "other", &[]);
    refused(&outcome, 6, &["an entry that you may not see", "ask an administrator"]);
    assert!(!outcome.stderr.contains(&world.id), "{outcome:?}");
    assert!(!outcome.stderr.contains("edge"), "{outcome:?}");
    world.stays();
    let after = world.sim.kubectl().unwrap().json(&["get", "all", "-n", "cattle-system"]).unwrap();
    let names = |list: &serde_json::Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["uid"].to_string()).collect()
    };
    assert_eq!(names(&after), names(&before));
}

#[test]
fn a_lost_agent_is_replaced_under_the_same_entry_by_who_may_update_it() {
    let world = world();
    // The other cluster's kubeconfig proves nothing.
    let files = world.sim.kubeconfigs().unwrap();
    let other = files.iter().find(|file| **file != world.sim.kubeconfig()).unwrap();
    let outcome = world.import_by(other, &world.admin, "edge", &["--adopt"]);
    refused(&outcome, 6, &["does not reach the cluster that \"edge\" is the entry of"]);
    let role = Some(("cluster-member", "edge"));
    let member = journey::user_with_role(&world.server, &world.admin, "member", role).unwrap();
    let outcome = world.import(&member, "edge", &["--adopt"]);
    refused(&outcome, 4, &["needs the right to update it"]);
    world.stays();

    let kubectl = world.sim.kubectl().unwrap();
    kubectl.succeed(&["delete", "namespace", "cattle-system"]).unwrap();
    eventually("the agent is lost", || -> Result<()> {
        let (state, message) = journey::state(&world.server, &world.id)?;
        ensure!(state == "unavailable", "{state}: {message}");
        Ok(())
    });
    let outcome = world.import(&world.admin, "edge", &["--adopt"]);
    assert!(outcome.success, "{outcome:?}");
    assert_eq!(outcome.stdout.trim(), world.id);
    world.stays();
}

#[test]
fn a_cluster_with_the_agent_of_another_server_is_refused_by_that_servers_url() {
    let world = world();
    let other = Server::start().unwrap();
    let user = Cli::admin(&other).unwrap();
    let outcome = world.import(&user, "other", &[]);
    refused(&outcome, 6, &["the agent of another server", world.server.url(), "--as-new"]);
    world.stays();
    journey::cluster_id(&other, "other").unwrap_err();
}

#[test]
fn a_clone_is_imported_as_an_entry_of_its_own() {
    let world = world();
    let outcome = world.import(&world.admin, "clone", &["--as-new"]);
    assert!(outcome.success, "{outcome:?}");
    let clone = journey::cluster_id(&world.server, "clone").unwrap();
    assert_ne!(clone, world.id);
    journey::is_active(&world.server, &clone).unwrap();
}

#[test]
fn a_refused_entry_names_the_first_one_only_to_who_may_see_both() {
    let world = world();
    let second = journey::create_cluster(&world.server, "second").unwrap();
    let manifest = eventually("the manifest", || journey::manifest_of(&world.server, &second));
    world.sim.kubectl().unwrap().apply(&manifest.objects).unwrap();
    eventually("the second entry says why", || -> Result<()> {
        let conditions =
            journey::cluster(&world.server, &second)?["status"]["conditions"].to_string();
        ensure!(conditions.contains("AlreadyManaged"), "{conditions}");
        ensure!(!conditions.contains(&world.id), "{conditions}");
        Ok(())
    });
    let path = format!("/v3/import-check?clusterId={second}");
    let check = world.server.admin().unwrap().get(&path).unwrap().success().unwrap();
    assert_eq!(check["clusters"], json!([{"id": world.id, "name": "edge"}]));
    assert_eq!(check["hiddenClusters"], 0);

    // Its owner may not read the first one.
    let role = Some(("cluster-owner", "second"));
    journey::user_with_role(&world.server, &world.admin, "owner", role).unwrap();
    journey::user_with_role(&world.server, &world.admin, "guest", None).unwrap();
    let client = |user: &str| {
        let token = world.server.login(user, &format!("password-of-{user}")).unwrap();
        world.server.anyone().unwrap().bearer(&token)
    };
    let owner = client("owner");
    let response = eventually("the owner may see the entry", || owner.get(&path)?.success());
    assert_eq!(response["clusters"], json!([]));
    assert_eq!(response["hiddenClusters"], 1);
    assert!(!response.to_string().contains(&world.id), "{response}");
    assert!(!response.to_string().contains("edge"), "{response}");

    // Users who may read neither learn nothing, not even that an entry exists.
    let guest = client("guest");
    let refused = guest.get(&path).unwrap();
    assert_eq!(refused.status, 404, "{}", refused.text());
    let refused = guest.get("/v3/import-check?clusterId=c-none").unwrap();
    assert_eq!(refused.status, 404, "{}", refused.text());
    let refused = guest.get("/v3/import-check?clusterId=../x").unwrap();
    assert_eq!(refused.status, 400, "{}", refused.text());
}
