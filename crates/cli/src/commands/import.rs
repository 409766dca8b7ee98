//! `drover cluster import`: from a kubeconfig to an active cluster, with a live checklist.
//!
//! Everything that can be checked beforehand is checked before the cluster object is created, so
//! that a wrong file leaves nothing behind.

mod agent_watch;
mod diagnosis;
mod occupancy;
mod server_url;
mod target;

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::api::{self, Api, path_of, text};
use crate::args::ImportArgs;
use crate::checklist::Checklist;
use crate::error::{CliError, Failure};
use crate::{apply, output};
use agent_watch::AgentWatch;
use diagnosis::{AgentStep, Progress, Trouble};
use occupancy::Intent;

/// Poll interval of the cluster object.
const POLL_EVERY: Duration = Duration::from_millis(100);
/// The server creates a registration token by itself. After this time, one is requested.
const TOKEN_BY_ITSELF_WITHIN: Duration = Duration::from_secs(2);

/// Path of access reviews: what the user may do.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// Annotation of an entry for a clone.
const AS_NEW: &str = api_management::keys::IMPORT_AS_NEW;

type Steps = Checklist<std::io::Stderr>;

/// Imports a cluster, and waits until it is active.
///
/// # Errors
/// A check of the kubeconfig fails, or a step is not done before the timeout.
pub async fn import(args: ImportArgs) -> Result<(), CliError> {
    let api = Api::open(args.output.server.name())?;
    let import = Import { api: &api, args: &args, deadline: Instant::now() + args.timeout };
    let mut steps = Checklist::on_stderr();
    match import.run(&mut steps).await {
        Ok(cluster) => output::print_created(args.output.output, &cluster),
        Err(error) => {
            let step = steps.current().to_owned();
            steps.fail();
            Err(error.during(&step))
        }
    }
}

struct Import<'a> {
    api: &'a Api,
    args: &'a ImportArgs,
    deadline: Instant,
}

impl Import<'_> {
    /// Runs the import. A failed step stays the current one of the checklist.
    async fn run(&self, steps: &mut Steps) -> Result<Value, CliError> {
        steps.begin("cluster reached with the kubeconfig");
        let (target, url) =
            target::client(&self.args.kubeconfig, self.args.context.as_deref()).await?;
        let version = target::reach(&target, &url).await?;
        target::may_bind_roles(&target).await?;
        steps.done(&version);
        server_url::warn(self.api, &url, &version).await;

        steps.begin(&format!("cluster is free to be imported as {}", self.args.name));
        let occupancy = occupancy::find(self.api, &target).await?;
        let file = self.args.kubeconfig.display().to_string();
        occupancy.permit(self.intent(), &self.args.name, &file)?;
        steps.done("");

        steps.begin("cluster object created");
        let cluster = self.cluster_object().await?;
        let id = text(&cluster, "id").to_owned();
        steps.done(&id);

        steps.begin("agent manifest applied");
        let applied = self.apply_manifest(&id, &target, steps).await;
        applied.map_err(|error| self.with_resume_hint(error))?;
        let followed = self.follow(&id, &target, steps).await;
        followed.map_err(|error| self.with_resume_hint(error))
    }

    fn intent(&self) -> Intent {
        match (self.args.adopt, self.args.as_new) {
            (true, _) => Intent::Adopt,
            (_, true) => Intent::AsNew,
            _ if self.args.resume => Intent::Resume,
            _ => Intent::Join,
        }
    }

    /// Adds to the hint how to resume the import or undo it: the cluster object stays.
    fn with_resume_hint(&self, error: CliError) -> CliError {
        let (name, file) = (&self.args.name, self.args.kubeconfig.display());
        let resume_hint = format!(
            "to continue: drover cluster import {name} --kubeconfig {file} --resume; to undo: drover \
             cluster rm {name}"
        );
        let hint = match &error.hint {
            Some(hint) => format!("{hint}\n{resume_hint}"),
            None => resume_hint,
        };
        error.hint(hint)
    }

    /// A new cluster object, or with `--resume` and `--adopt` the one of that name.
    async fn cluster_object(&self) -> Result<Value, CliError> {
        let name = self.args.name.as_str();
        if self.args.adopt {
            return self.cluster_to_adopt().await;
        }
        let known = self.api.list("clusters", &[("name", name)]).await?;
        if let Some(cluster) = known.into_iter().next() {
            if self.args.resume {
                return self.resume_entry(cluster).await;
            }
            let text = format!("the name \"{name}\" is taken by cluster {}", text(&cluster, "id"));
            return Err(CliError::new(Failure::Conflict, text).hint(
                "choose another name; if its import did not finish, continue it with --resume",
            ));
        }
        let labels = self.args.labels.iter().map(|(k, v)| (k.clone(), v.clone().into()));
        let mut body = json!({"name": name, "labels": labels.collect::<Map<_, _>>()});
        if self.args.as_new {
            body["annotations"] = json!({AS_NEW: "true"});
        }
        if let Some(description) = &self.args.description {
            body["description"] = description.clone().into();
        }
        let what = format!("creating cluster \"{name}\"");
        self.api.create("clusters", &body, &what).await.map_err(|error| match error.failure {
            Failure::Invalid => {
                error.hint("names have at most 63 lower-case letters, digits and '-'")
            }
            Failure::Forbidden => error.hint("ask an administrator for the right to add clusters"),
            Failure::Conflict => error.hint("choose another name"),
            _ => error,
        })
    }

    /// The entry that gets a new agent. It has been checked that it is of this cluster.
    async fn cluster_to_adopt(&self) -> Result<Value, CliError> {
        let cluster = self.api.resolve(&api::CLUSTER, &self.args.name).await?;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "group": api_management::GROUP,
                "resource": "clusters",
                "name": text(&cluster, "id"),
                "verb": "update",
            }},
        });
        let what = "checking whether you may update the cluster";
        let answer = self.api.call(http::Method::POST, REVIEWS, Some(&review), what).await?;
        if answer["status"]["allowed"] == true {
            return Ok(cluster);
        }
        let text = format!(
            "giving cluster \"{}\" a new agent needs the right to update it",
            self.args.name
        );
        Err(CliError::new(Failure::Forbidden, text).hint("ask its owner or an administrator"))
    }

    /// Resumes the import of an entry, with `--as-new` as a clone.
    async fn resume_entry(&self, cluster: Value) -> Result<Value, CliError> {
        let mut annotations = cluster["annotations"].as_object().cloned().unwrap_or_default();
        if !self.args.as_new || annotations.get(AS_NEW).is_some_and(|value| value == "true") {
            return Ok(cluster);
        }
        annotations.insert(AS_NEW.to_owned(), "true".into());
        let what = format!("changing cluster \"{}\"", self.args.name);
        let body = json!({"annotations": annotations});
        self.api.update("clusters", text(&cluster, "id"), &body, &what).await
    }

    async fn apply_manifest(
        &self,
        id: &str,
        target: &kube::Client,
        steps: &mut Steps,
    ) -> Result<(), CliError> {
        let path = self.manifest_path(id, steps).await?;
        let manifest = self.api.text(&path, "fetching the agent manifest").await?;
        let documents = apply::documents(&manifest)?;
        for document in &documents {
            steps.detail(&apply::title(document));
            apply::apply(target, document).await?;
        }
        steps.done(&format!("{} objects", documents.len()));
        Ok(())
    }

    /// Waits for a registration token with a manifest; requests one if the server creates none.
    async fn manifest_path(&self, id: &str, steps: &mut Steps) -> Result<String, CliError> {
        let plural = "clusterregistrationtokens";
        let started = Instant::now();
        let mut requested = false;
        loop {
            let tokens = self.api.list(plural, &[("clusterId", id)]).await?;
            let usable = tokens.iter().find(|token| is_usable(token));
            if let Some(token) = usable {
                return Ok(path_of(text(token, "manifestUrl")));
            }
            if !requested && started.elapsed() > TOKEN_BY_ITSELF_WITHIN {
                requested = true;
                let body = json!({"clusterId": id});
                self.api.create(plural, &body, "creating a registration token").await?;
            }
            steps.detail("waiting for a registration token");
            self.pause("the server created no registration token").await?;
        }
    }

    /// Waits until the agent is connected, the nodes are seen and the cluster is active.
    async fn follow(
        &self,
        id: &str,
        target: &kube::Client,
        steps: &mut Steps,
    ) -> Result<Value, CliError> {
        let mut cluster = self.wait_for_agent(id, target, steps).await?;
        let has_nodes = target::has_nodes(target).await;
        for phase in [Phase::NodesSeen, Phase::Active] {
            steps.begin(phase.title());
            loop {
                if let Some(result) = phase.completion(&cluster, has_nodes) {
                    steps.done(&result);
                    break;
                }
                steps.detail(text(&cluster, "transitioningMessage"));
                self.pause(text(&cluster, "transitioningMessage")).await?;
                cluster = self.poll_cluster(id, steps).await?.unwrap_or(cluster);
            }
        }
        Ok(cluster)
    }

    /// Waits until the agent is connected. Until then, only the cluster itself has the status of
    /// its pod.
    async fn wait_for_agent(
        &self,
        id: &str,
        target: &kube::Client,
        steps: &mut Steps,
    ) -> Result<Value, CliError> {
        let watch = AgentWatch::begin(target.clone());
        let mut current = AgentStep::default();
        steps.begin(current.title());
        loop {
            let cluster = self.poll_cluster(id, steps).await?.unwrap_or_default();
            if Phase::Connected.completion(&cluster, None).is_some() {
                advance(&mut current, AgentStep::Connected, steps);
                steps.done("");
                return Ok(cluster);
            }
            let Progress { step, trouble } = watch.progress();
            advance(&mut current, step, steps);
            let trouble = trouble.unwrap_or_else(|| Trouble {
                what: awaited_text(&cluster).to_owned(),
                next: String::new(),
            });
            steps.detail(&trouble.to_string());
            self.pause(&trouble.what).await.map_err(|error| {
                let has_next = !trouble.next.is_empty();
                error.hint(if has_next { trouble.next } else { self.agent_hint() })
            })?;
        }
    }

    /// Reads the cluster object; none while the server does not respond.
    async fn poll_cluster(&self, id: &str, steps: &mut Steps) -> Result<Option<Value>, CliError> {
        match self.api.get("clusters", id, "watching the cluster").await {
            Ok(cluster) => Ok(Some(cluster)),
            Err(error) if error.failure == Failure::Unreachable => {
                steps.detail(&error.message);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn agent_hint(&self) -> String {
        format!(
            "check the agent: kubectl --kubeconfig {} -n {} describe pods, and its logs; it \
             must reach {}",
            self.args.kubeconfig.display(),
            target::AGENT_NAMESPACE,
            self.api.url()
        )
    }

    /// Sleeps for the poll interval. A timeout after the deadline; `why`: the last known reason.
    async fn pause(&self, why: &str) -> Result<(), CliError> {
        if Instant::now() >= self.deadline {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let text = format!("not within {} s{why}", self.args.timeout.as_secs());
            return Err(CliError::new(Failure::Timeout, text));
        }
        sleep(POLL_EVERY).await;
        Ok(())
    }
}

/// Completes the steps before `to`. Completed steps stay so, even if a pod is replaced.
fn advance(current: &mut AgentStep, to: AgentStep, steps: &mut Steps) {
    while *current < to {
        steps.done("");
        *current = current.next();
        steps.begin(current.title());
    }
}

/// Whether a token has a manifest, and no agent has used it yet.
fn is_usable(token: &Value) -> bool {
    !text(token, "manifestUrl").is_empty() && text(token, "usedAt").is_empty()
}

/// The phases that an import waits for, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connected,
    NodesSeen,
    Active,
}

impl Phase {
    fn title(self) -> &'static str {
        match self {
            Self::Connected => "agent connected",
            Self::NodesSeen => "nodes seen",
            Self::Active => "cluster active",
        }
    }
    /// The text of a completed phase; none while it is not complete. An active cluster has
    /// completed all phases, unless it has nodes (`has_nodes`, if known) that are not counted yet.
    fn completion(self, cluster: &Value, has_nodes: Option<bool>) -> Option<String> {
        let nodes = cluster["nodeCount"].as_i64().unwrap_or_default();
        let active = text(cluster, "state") == api_management::state::ACTIVE;
        let is_reached = match self {
            Self::Connected => is_true(cluster, api_management::cluster::CONNECTED),
            Self::NodesSeen if nodes > 0 => return Some(nodes.to_string()),
            Self::NodesSeen if has_nodes == Some(true) => return None,
            Self::NodesSeen if active => return Some("the cluster has none".to_owned()),
            Self::NodesSeen => false,
            Self::Active => active,
        };
        (is_reached || active).then(String::new)
    }
}

/// The message of the server on what it waits for, without its advice to apply the manifest, which
/// this command has done.
fn awaited_text(cluster: &Value) -> &str {
    let message = text(cluster, "transitioningMessage");
    let mut conditions = cluster["conditions"].as_array().into_iter().flatten();
    let is_advice = conditions.any(|condition| {
        text(condition, "type") == api_management::cluster::PENDING
            && text(condition, "message") == message
    });
    if is_advice { "waiting for the cluster's agent" } else { message }
}

fn is_true(cluster: &Value, kind: &str) -> bool {
    let mut conditions = cluster["conditions"].as_array().into_iter().flatten();
    conditions.any(|c| text(c, "type") == kind && text(c, "status") == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_reached_in_order_and_an_active_cluster_has_passed_them() {
        let phases = [Phase::Connected, Phase::NodesSeen, Phase::Active];
        let reached =
            |cluster: &Value| phases.map(|phase| phase.completion(cluster, None).is_some());
        let pending = json!({"state": "waiting", "nodeCount": 0});
        assert_eq!(reached(&pending), [false, false, false]);
        let connected = json!({
            "state": "waiting", "conditions": [{"type": "Connected", "status": "True"}],
        });
        assert_eq!(reached(&connected), [true, false, false]);
        assert_eq!(reached(&json!({"state": "active", "nodeCount": 0})), [true, true, true]);
    }

    #[test]
    fn existing_nodes_are_waited_for_even_in_an_active_cluster() {
        let cluster = |nodes: u32| json!({"state": "active", "nodeCount": nodes});
        let completion = |nodes, has_nodes| Phase::NodesSeen.completion(&cluster(nodes), has_nodes);
        assert_eq!(completion(0, Some(true)), None);
        assert_eq!(completion(2, Some(true)), Some("2".to_owned()));
        assert_eq!(completion(0, Some(false)), Some("the cluster has none".to_owned()));
    }

    #[test]
    fn the_advice_to_apply_the_manifest_is_not_shown() {
        let cluster = |message: &str| {
            json!({
                "transitioningMessage": message,
                "conditions": [{"type": "Pending", "status": "Unknown", "message": "apply it"}],
            })
        };
        assert_eq!(awaited_text(&cluster("apply it")), "waiting for the cluster's agent");
        assert_eq!(awaited_text(&cluster("the disk is full")), "the disk is full");
    }

    #[test]
    fn a_used_registration_token_is_not_used_again() {
        let token = json!({"manifestUrl": "https://h/v3/import/t_c.yaml"});
        assert!(is_usable(&token));
        assert!(!is_usable(&json!({"manifestUrl": ""})));
        assert!(!is_usable(&json!({"manifestUrl": "https://h", "usedAt": "2024-01-01T00:00:00Z"})));
    }
}
