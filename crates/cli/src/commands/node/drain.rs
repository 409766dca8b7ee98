//! `drover node drain` and `stop-drain`: the server evicts the pods with the rights of the caller.
//! The commands start the drain, follow it, and stop it when they are interrupted.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::api::{Api, id, text};
use crate::args::{DrainArgs, NodesArgs};
use crate::checklist::Checklist;
use crate::commands::scope;
use crate::error::{CliError, Failure};

/// Poll interval.
const POLL_EVERY: Duration = Duration::from_millis(300);

/// Drains the nodes one after the other.
pub async fn drain(args: &DrainArgs) -> Result<(), CliError> {
    let api = Api::open(args.nodes.server.name())?;
    let nodes = find_all(&api, &args.nodes).await?;
    for node in &nodes {
        let name = text(node, "nodeName");
        start(&api, node, &options(args)).await?;
        if args.no_wait {
            notify!("node {name} is being drained");
            continue;
        }
        tokio::select! {
            ended = follow(&api, node) => ended?,
            _ = tokio::signal::ctrl_c() => {
                stop_one(&api, node).await?;
                return Err(CliError::new(Failure::Other, "interrupted").hint(AFTERWARDS));
            }
        }
    }
    Ok(())
}

async fn start(api: &Api, node: &Value, options: &Value) -> Result<(), CliError> {
    let name = text(node, "nodeName");
    let what = format!("draining node \"{name}\"");
    let started = api.action("nodes", id(node), "drain", options, &what).await;
    started.map(drop).map_err(|error| match error.failure {
        // The action exists only while the node is not being drained.
        Failure::NotFound => {
            let text = format!("node \"{name}\" is being drained already");
            CliError::new(Failure::Conflict, text).hint("\"drover node stop-drain\" stops that")
        }
        _ => error,
    })
}

/// Stops drains; the nodes stay cordoned.
pub async fn stop(args: &NodesArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.name())?;
    for node in find_all(&api, args).await? {
        stop_one(&api, &node).await?;
    }
    Ok(())
}

const AFTERWARDS: &str =
    "evicted pods are not restored; \"drover node uncordon\" makes the node schedulable again";

async fn stop_one(api: &Api, node: &Value) -> Result<(), CliError> {
    let name = text(node, "nodeName");
    let what = format!("stopping the drain of node \"{name}\"");
    match api.action("nodes", id(node), "stopDrain", &json!({}), &what).await {
        // The action exists only while the node is being drained.
        Err(error) if error.failure == Failure::NotFound => {
            notify!("node {name} is not being drained");
            Ok(())
        }
        Err(error) => Err(error),
        Ok(_) => {
            notify!("stopped the drain of node {name}; it stays cordoned");
            Ok(())
        }
    }
}

fn options(args: &DrainArgs) -> Value {
    let mut options = Map::from_iter([
        ("force".to_owned(), args.force.into()),
        ("ignoreDaemonSets".to_owned(), args.ignore_daemonsets.into()),
        ("deleteLocalData".to_owned(), args.delete_emptydir_data.into()),
        ("timeout".to_owned(), args.timeout.as_secs().into()),
    ]);
    if let Some(seconds) = args.grace_period {
        options.insert("gracePeriod".to_owned(), seconds.into());
    }
    options.into()
}

/// Finds the nodes by name on the server: all of them, or an error that names the first missing
/// one.
async fn find_all(api: &Api, args: &NodesArgs) -> Result<Vec<Value>, CliError> {
    let cluster = scope::cluster(api, args.cluster.name()).await?;
    let all = api.list("nodes", &[("clusterId", id(&cluster))]).await?;
    let find = |name: &String| {
        let node = all.iter().find(|node| text(node, "nodeName") == name);
        node.cloned().ok_or_else(|| {
            let text = format!("cluster \"{}\" has no node \"{name}\"", text(&cluster, "name"));
            CliError::new(Failure::NotFound, text)
                .hint("\"drover node ls\" shows the nodes of a cluster")
        })
    };
    args.names.iter().map(find).collect()
}

/// Shows the progress until the drain has ended.
async fn follow(api: &Api, node: &Value) -> Result<(), CliError> {
    let name = text(node, "nodeName");
    let mut list = Checklist::on_stderr();
    list.begin(&format!("draining node {name}"));
    let ended = loop {
        match api.get("nodes", id(node), "watching the node").await {
            Ok(node) => match drain_result(&node) {
                Some(ended) => break ended,
                None => list.detail(text(&node, "transitioningMessage")),
            },
            Err(error) if error.failure == Failure::Unreachable => list.detail(&error.message),
            Err(error) => break Err(error),
        }
        sleep(POLL_EVERY).await;
    };
    match ended {
        Ok(summary) => {
            list.done(&summary);
            Ok(())
        }
        Err(error) => {
            list.fail();
            Err(error)
        }
    }
}

/// The result of the drain of this node; `None` while it is in progress.
fn drain_result(node: &Value) -> Option<Result<String, CliError>> {
    let name = text(node, "nodeName");
    let failed = |why: &str| {
        let text = format!("node \"{name}\" was not drained: {why}");
        Some(Err(CliError::new(Failure::Other, text)))
    };
    let mut conditions = node["conditions"].as_array().into_iter().flatten();
    let Some(drained) = conditions.find(|condition| condition["type"] == "Drained") else {
        return failed("it was uncordoned meanwhile");
    };
    let message = text(drained, "message");
    match text(drained, "status") {
        "Unknown" => None,
        "True" => Some(Ok(message.trim_end_matches('.').to_lowercase())),
        _ => failed(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(conditions: &Value) -> Value {
        json!({"nodeName": "n1", "conditions": conditions})
    }

    #[test]
    fn a_drain_has_ended_when_its_condition_says_so() {
        let drained = |status: &str| {
            let message = "Pods evicted: 2.";
            node(&json!([{"type": "Drained", "status": status, "message": message}]))
        };
        assert!(drain_result(&drained("Unknown")).is_none());
        assert_eq!(drain_result(&drained("True")).unwrap().unwrap(), "pods evicted: 2");
        let error = drain_result(&drained("False")).unwrap().unwrap_err();
        assert_eq!(error.message, "node \"n1\" was not drained: Pods evicted: 2.");
        let error = drain_result(&node(&json!([]))).unwrap().unwrap_err();
        assert!(error.message.contains("uncordoned meanwhile"));
    }
}
