//! `drover node ls|label|annotate|taint|cordon|uncordon|drain|stop-drain|rm`: through the cluster's
//! own API, with the syntax of kubectl.

mod change;
mod drain;

use http::Method;
use serde_json::{Value, json};

use self::change::{Map, Taints};
use crate::api::{Api, encode, id, text};
use crate::args::{NodeChangeArgs, NodeCommand, NodesArgs};
use crate::commands::{listing, scope};
use crate::error::{CliError, Failure};
use crate::output::{TableColumn, age};
use crate::prompt;

/// Maximum number of attempts to change taints despite concurrent writes.
const ATTEMPTS_MAX: usize = 5;
/// Labels with this prefix name the roles of a node.
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "NAME", cell: |node, _| text(&node["metadata"], "name").to_owned() },
    TableColumn { heading: "STATE", cell: |node, _| state(node) },
    TableColumn { heading: "ROLES", cell: |node, _| roles(node) },
    TableColumn {
        heading: "VERSION",
        cell: |node, _| text(&node["status"]["nodeInfo"], "kubeletVersion").to_owned(),
    },
    TableColumn {
        heading: "AGE",
        cell: |node, now| age(text(&node["metadata"], "creationTimestamp"), now),
    },
];

fn state(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    let is_ready = ready.any(|condition| condition["status"] == "True");
    let ready = if is_ready { "Ready" } else { "NotReady" };
    match node["spec"]["unschedulable"] == true {
        true => format!("{ready},cordoned"),
        false => ready.to_owned(),
    }
}

fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object();
    let keys = labels.into_iter().flat_map(|labels| labels.keys());
    let roles: Vec<&str> = keys.filter_map(|key| key.strip_prefix(ROLE_PREFIX)).collect();
    roles.join(",")
}

/// Path of the nodes of a cluster.
pub fn path(cluster: &Value) -> String {
    format!("/k8s/clusters/{}/api/v1/nodes", encode(id(cluster)))
}

/// Runs a command with the login that it names.
pub async fn run(command: NodeCommand) -> Result<(), CliError> {
    match command {
        NodeCommand::Ls { cluster, list } => {
            let api = Api::open(list.output.server.name())?;
            let cluster = scope::cluster(&api, cluster.name()).await?;
            let read = async || api.list_kube(&path(&cluster), "listing nodes").await;
            listing::show(&list, COLUMNS, read).await
        }
        NodeCommand::Label(args) => set(&args, "labels").await,
        NodeCommand::Annotate(args) => set(&args, "annotations").await,
        NodeCommand::Taint(args) => taint(&args).await,
        NodeCommand::Cordon(args) => cordon(&args, true).await,
        NodeCommand::Uncordon(args) => cordon(&args, false).await,
        NodeCommand::Drain(args) => drain::drain(&args).await,
        NodeCommand::StopDrain(args) => drain::stop(&args).await,
        NodeCommand::Rm { nodes, yes } => remove(&nodes, yes).await,
    }
}

/// A client for one node, through the cluster's own API.
struct NodeClient {
    api: Api,
    path: String,
    name: String,
}

impl NodeClient {
    async fn open(args: &NodeChangeArgs) -> Result<Self, CliError> {
        let api = Api::open(args.server.name())?;
        let cluster = scope::cluster(&api, args.cluster.name()).await?;
        Ok(Self::of(api, &cluster, &args.node))
    }
    fn of(api: Api, cluster: &Value, name: &str) -> Self {
        Self { api, path: format!("{}/{}", path(cluster), encode(name)), name: name.to_owned() }
    }
    async fn send(
        &self,
        method: Method,
        body: Option<&Value>,
        doing: &str,
    ) -> Result<Value, CliError> {
        let what = format!("{doing} node \"{}\"", self.name);
        let response = self.api.call(method, &self.path, body, &what).await;
        response.map_err(|error| match error.failure {
            Failure::NotFound => error.hint("\"drover node ls\" shows the nodes of a cluster"),
            _ => error,
        })
    }
}

/// Changes labels or annotations. `field`: `labels` or `annotations`.
async fn set(args: &NodeChangeArgs, field: &str) -> Result<(), CliError> {
    let map = Map::parse(&args.changes)?;
    let node = NodeClient::open(args).await?;
    let stored = node.send(Method::GET, None, "reading").await?;
    if !args.overwrite {
        map.check(&stored["metadata"][field], field)?;
    }
    let patch = json!({"metadata": {field: map.0}});
    node.send(Method::PATCH, Some(&patch), "changing").await?;
    notify!("changed {field} of node {}", node.name);
    Ok(())
}

/// Changes taints. They are one list, which is written as a whole, with the resource version that
/// was read.
async fn taint(args: &NodeChangeArgs) -> Result<(), CliError> {
    let taints = Taints::parse(&args.changes)?;
    let node = NodeClient::open(args).await?;
    let mut attempt = 1;
    loop {
        let stored = node.send(Method::GET, None, "reading").await?;
        let list = taints.apply_to(&stored["spec"]["taints"], args.overwrite)?;
        let version = &stored["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": list}});
        match node.send(Method::PATCH, Some(&patch), "changing").await {
            Err(error) if error.failure == Failure::Conflict && attempt < ATTEMPTS_MAX => {
                attempt += 1;
            }
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    notify!("changed taints of node {}", node.name);
    Ok(())
}

async fn cordon(args: &NodesArgs, unschedulable: bool) -> Result<(), CliError> {
    let api = Api::open(args.server.name())?;
    let cluster = scope::cluster(&api, args.cluster.name()).await?;
    let (doing, done) = match unschedulable {
        true => ("cordoning", "cordoned"),
        false => ("uncordoning", "uncordoned"),
    };
    let patch = json!({"spec": {"unschedulable": unschedulable}});
    for name in &args.names {
        let node = NodeClient::of(api.another(), &cluster, name);
        node.send(Method::PATCH, Some(&patch), doing).await?;
        notify!("{done} node {name}");
    }
    Ok(())
}

async fn remove(args: &NodesArgs, yes: bool) -> Result<(), CliError> {
    let api = Api::open(args.server.name())?;
    let cluster = scope::cluster(&api, args.cluster.name()).await?;
    let (names, of) = (args.names.join(", "), text(&cluster, "name"));
    let question = format!("Delete {names} of cluster {of}? Pods there are lost; machines stay.");
    if !yes && !prompt::confirm(&question, "--yes")? {
        return Err(CliError::new(Failure::Other, "nothing was deleted"));
    }
    for name in &args.names {
        let node = NodeClient::of(api.another(), &cluster, name);
        node.send(Method::DELETE, None, "deleting").await?;
        notify!("deleted node {name}");
    }
    Ok(())
}
