//! `/v1` on clusters of real Kubernetes components: kinds as the cluster serves them, lists that
//! are filtered, sorted and cut into pages, writes, and who sees what.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[path = "kind_view/following.rs"]
mod following;
#[path = "kind_view/index.rs"]
mod index;
#[path = "kind_view/random_rights.rs"]
mod random_rights;
#[path = "kind_view/rights.rs"]
mod rights;
#[path = "kind_view/wire.rs"]
mod wire;

use std::sync::Arc;

use anyhow::Result;
use e2e::journey::{self, ImportTarget, Imported};
use e2e::{Cli, Client, HttpResponse, Server, SharedWorld};
use serde_json::{Value, json};
use testbed::RealCluster;

/// The clusters, by the names that they have here.
const NORTH: &str = "north";
const SOUTH: &str = "south";

struct World {
    server: Server,
    admin: Client,
    cli: Cli,
    north: Cluster,
    south: Cluster,
}

struct Cluster {
    imported: Imported,
    target: ImportTarget,
    _cluster: RealCluster,
}

impl Cluster {
    fn start(server: &Server, cli: &Cli, name: &str) -> Result<Self> {
        let cluster = RealCluster::start()?;
        let target = ImportTarget::of(&cluster)?;
        let imported = journey::import(server, cli, name, &target)?;
        Ok(Self { imported, target, _cluster: cluster })
    }

    /// A path below `/v1` of the cluster.
    fn path(&self, rest: &str) -> String {
        format!("/k8s/clusters/{}/v1/{rest}", self.imported.id)
    }
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let server = Server::start()?;
        let cli = Cli::admin(&server)?;
        let north = Cluster::start(&server, &cli, NORTH)?;
        let south = Cluster::start(&server, &cli, SOUTH)?;
        north.target.kubectl.apply(&[definition("widgets", "Widget")])?;
        let wait = ["wait", "--for=condition=Established", "crd/widgets.example.io"];
        north.target.kubectl.succeed(&wait)?;
        Ok(World { admin: server.admin()?, cli, north, south, server })
    })
}

impl World {
    /// A logged-in user with a password and no role.
    fn user(&self, name: &str) -> Client {
        journey::user_with_role(&self.server, &self.cli, name, None).unwrap();
        let token = self.server.login(name, &format!("password-of-{name}")).unwrap();
        self.server.anyone().unwrap().bearer(&token)
    }
}

/// A kind of its own, which only the cluster `north` has.
fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.io")},
        "spec": {
            "group": "example.io", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            }],
        },
    })
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn config_map(namespace: &str, name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": name}}})
}

/// The ids of a collection, in its order.
fn ids(collection: &Value) -> Vec<&str> {
    let data = collection["data"].as_array().unwrap();
    data.iter().map(|object| object["id"].as_str().unwrap()).collect()
}

/// Status and code of an error.
#[track_caller]
fn refusal(response: &HttpResponse) -> (u16, String) {
    let body = response.json();
    assert_eq!(body["type"], "error", "{}", response.text());
    (response.status.as_u16(), body["code"].as_str().unwrap_or_default().to_owned())
}
