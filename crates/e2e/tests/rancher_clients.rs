//! The management API with its existing clients and a simulated cluster: the published Python
//! client, which builds itself from the schemas; the rancher CLI, whose recorded requests are
//! replayed; and the requests of the Terraform provider, in their order.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[path = "rancher_clients/session.rs"]
mod session;
#[path = "rancher_clients/terraform.rs"]
mod terraform;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use e2e::journey::{self, ImportTarget, Imported};
use e2e::server::ADMIN_PASSWORD;
use e2e::{Cli, Client, Server, SharedWorld, Sim, eventually};
use session::Session;
use testbed::{Binaries, Program};

const SESSION: &str = include_str!("fixtures/rancher-cli-2.6.11.txt");
/// Every step that `rancher-client` reports.
const STEPS: [&str; 3] = ["schemas", "resources", "lists"];
/// Least number of types of which `rancher-client` creates resources.
const LIVED_MIN: usize = 50;

struct World {
    server: Server,
    sim: Sim,
    /// Id of the simulated cluster, which is called demo.
    cluster: Imported,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let server = Server::start()?;
        let cli = Cli::admin(&server)?;
        let sim = Sim::start(&["--nodes", "2"])?;
        let target = ImportTarget::reached_by(&sim.kubeconfig(), server.folder())?;
        let cluster = journey::import(&server, &cli, "demo", &target)?;
        Ok(World { server, sim, cluster })
    })
}

impl World {
    /// A client with a token for the API, and the token's id. A login would end with the password
    /// that one of the tests sets.
    fn admin(&self) -> (Client, String) {
        let login = self.server.login("admin", ADMIN_PASSWORD).unwrap();
        let anyone = self.server.anyone().unwrap();
        let body = serde_json::json!({"type": "token", "description": "client"});
        let made = anyone.bearer(&login).post("/v3/tokens", &body).unwrap().success().unwrap();
        let id = made["id"].as_str().unwrap().to_owned();
        (anyone.bearer(made["token"].as_str().unwrap()), id)
    }

    /// The context of a failed step.
    fn logs(&self) -> String {
        format!("server:\n{}\nsimulator:\n{}", self.server.log_tail(), self.sim.log_tail())
    }
}

#[test]
fn the_python_client_of_the_management_api_walks_every_type() {
    // A server of its own, because it checks all objects.
    let server = Server::start().unwrap();
    let token = server.login("admin", ADMIN_PASSWORD).unwrap();
    let program = Binaries::locate().path(Program::RancherClient).unwrap();
    let mut command = Command::new(program);
    command.arg(server.url()).arg(server.ca_file()).env("TOKEN", token);
    // They would be trusted instead of the server's authority.
    command.env_remove("REQUESTS_CA_BUNDLE").env_remove("CURL_CA_BUNDLE");
    let output = command.output().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}\n{}", server.log_tail());
    let done: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert_eq!(done, STEPS, "{complained}");
    let lived = said.lines().find_map(|line| line.split_once(" types lived"));
    let lived: usize = lived.unwrap().0.parse().unwrap();
    assert!(lived >= LIVED_MIN, "{said}");
}

#[test]
fn a_recorded_session_of_the_rancher_cli_goes_through() {
    let world = world();
    let (client, token) = world.admin();
    let cluster = world.cluster.id.clone();
    let projects = client.get(&format!("/v3/projects?clusterId={cluster}&name=Default")).unwrap();
    let project = projects.success().unwrap()["data"][0]["id"].as_str().unwrap().to_owned();
    let project = project.split_once(':').unwrap().1.to_owned();
    eventually("the nodes of the cluster are known", || {
        let nodes = client.get(&format!("/v3/nodes?clusterId={cluster}&name=node-1"))?;
        let nodes = nodes.success()?;
        anyhow::ensure!(nodes["data"][0]["state"] == "active", "{nodes}");
        Ok(())
    });
    let known = [("cluster", cluster), ("project", project), ("token", token)];
    let known: BTreeMap<_, _> = known.map(|(name, id)| (name.to_owned(), id)).into();
    let mut session = Session::new(client, known);
    let commands = session.play(SESSION).unwrap_or_else(|error| {
        panic!("{error:#}\n{}", world.logs());
    });
    assert!(commands > 20, "{commands}");
}

#[test]
fn requests_of_the_terraform_provider_get_the_responses_that_it_waits_for() {
    let world = world();
    let (client, _) = world.admin();
    terraform::run(&world.server, &client, &world.cluster.id).unwrap_or_else(|error| {
        panic!("{error:#}\n{}", world.logs());
    });
}
