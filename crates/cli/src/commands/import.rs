//! `drover cluster import`: from a kubeconfig to an active cluster, with a live checklist.
//!
//! Everything that can be refused beforehand is tried before the cluster object exists, so that a
//! wrong file leaves nothing behind.

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
use diagnosis::{Progress, Step, Trouble};
use occupancy::Intent;

/// Between two looks at the cluster object.
const POLL_EVERY: Duration = Duration::from_millis(100);
/// The server makes a registration token by itself; after this one is asked for.
const TOKEN_BY_ITSELF_WITHIN: Duration = Duration::from_secs(2);

/// Where the server says what the user may do.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// Annotation of an entry that takes a clone.
const AS_NEW: &str = api_management::keys::IMPORT_AS_NEW;

type Steps = Checklist<std::io::Stderr>;

pub async fn import(args: ImportArgs) -> Result<(), CliError> {
    let api = Api::open(args.output.server.name())?;
    let import = Import { api: &api, args: &args, deadline: Instant::now() + args.timeout };
    let mut steps = Checklist::on_stderr();
    match import.run(&mut steps).await {
        Ok(cluster) => output::made(args.output.output, &cluster),
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
    /// The step that fails stays the current one of the checklist.
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
        applied.map_err(|error| self.with_way_on(error))?;
        let followed = self.follow(&id, &target, steps).await;
        followed.map_err(|error| self.with_way_on(error))
    }

    fn intent(&self) -> Intent {
        match (self.args.adopt, self.args.as_new) {
            (true, _) => Intent::Adopt,
            (_, true) => Intent::AsNew,
            _ if self.args.resume => Intent::Resume,
            _ => Intent::Join,
        }
    }

    /// The cluster object stays: says how to go on from there.
    fn with_way_on(&self, error: CliError) -> CliError {
        let (name, file) = (&self.args.name, self.args.kubeconfig.display());
        let way_on = format!(
            "to go on: drover cluster import {name} --kubeconfig {file} --resume; to undo: drover \
             cluster rm {name}"
        );
        let hint = match &error.hint {
            Some(hint) => format!("{hint}\n{way_on}"),
            None => way_on,
        };
        error.hint(hint)
    }

    /// A new cluster object, or with `--resume` and `--adopt` the one of that name.
    async fn cluster_object(&self) -> Result<Value, CliError> {
        let name = self.args.name.as_str();
        if self.args.adopt {
            return self.adopted().await;
        }
        let known = self.api.list("clusters", &[("name", name)]).await?;
        if let Some(cluster) = known.into_iter().next() {
            if self.args.resume {
                return self.resumed(cluster).await;
            }
            let text = format!("the name \"{name}\" is taken by cluster {}", text(&cluster, "id"));
            return Err(CliError::new(Failure::Conflict, text).hint(
                "choose another name; if its import did not finish, go on with it by --resume",
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

    /// The entry that gets a new agent. That it is of this cluster has been checked.
    async fn adopted(&self) -> Result<Value, CliError> {
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
        let what = "asking whether you may update the cluster";
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

    /// An entry whose import goes on, with `--as-new` as that of a clone.
    async fn resumed(&self, cluster: Value) -> Result<Value, CliError> {
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

    /// Waits for a registration token that knows its manifest; asks for one when none comes.
    async fn manifest_path(&self, id: &str, steps: &mut Steps) -> Result<String, CliError> {
        let plural = "clusterregistrationtokens";
        let started = Instant::now();
        let mut asked = false;
        loop {
            let tokens = self.api.list(plural, &[("clusterId", id)]).await?;
            let usable = tokens.iter().find(|token| is_usable(token));
            if let Some(token) = usable {
                return Ok(path_of(text(token, "manifestUrl")));
            }
            if !asked && started.elapsed() > TOKEN_BY_ITSELF_WITHIN {
                asked = true;
                let body = json!({"clusterId": id});
                self.api.create(plural, &body, "creating a registration token").await?;
            }
            steps.detail("waiting for a registration token");
            self.pause("the server made no registration token").await?;
        }
    }

    /// The rest happens by itself: watch it come true.
    async fn follow(
        &self,
        id: &str,
        target: &kube::Client,
        steps: &mut Steps,
    ) -> Result<Value, CliError> {
        let mut cluster = self.connected(id, target, steps).await?;
        let has_nodes = target::has_nodes(target).await;
        for phase in [Phase::NodesSeen, Phase::Active] {
            steps.begin(phase.title());
            loop {
                if let Some(result) = phase.reached(&cluster, has_nodes) {
                    steps.done(&result);
                    break;
                }
                steps.detail(text(&cluster, "transitioningMessage"));
                self.pause(text(&cluster, "transitioningMessage")).await?;
                cluster = self.look(id, steps).await?.unwrap_or(cluster);
            }
        }
        Ok(cluster)
    }

    /// Until the server has the agent. Until then only the cluster itself knows how its pod is.
    async fn connected(
        &self,
        id: &str,
        target: &kube::Client,
        steps: &mut Steps,
    ) -> Result<Value, CliError> {
        let watch = AgentWatch::begin(target.clone());
        let mut current = Step::default();
        steps.begin(current.title());
        loop {
            let cluster = self.look(id, steps).await?.unwrap_or_default();
            if Phase::Connected.reached(&cluster, None).is_some() {
                advance(&mut current, Step::Connected, steps);
                steps.done("");
                return Ok(cluster);
            }
            let Progress { step, trouble } = watch.progress();
            advance(&mut current, step, steps);
            let trouble = trouble.unwrap_or_else(|| Trouble {
                what: what_is_awaited(&cluster).to_owned(),
                next: String::new(),
            });
            steps.detail(&trouble.to_string());
            self.pause(&trouble.what).await.map_err(|error| {
                let said = !trouble.next.is_empty();
                error.hint(if said { trouble.next } else { self.agent_hint() })
            })?;
        }
    }

    /// The cluster object as it is now; none while the server does not answer.
    async fn look(&self, id: &str, steps: &mut Steps) -> Result<Option<Value>, CliError> {
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
            "look at the agent: kubectl --kubeconfig {} -n {} describe pods, and its logs; it \
             must reach {}",
            self.args.kubeconfig.display(),
            target::AGENT_NAMESPACE,
            self.api.url()
        )
    }

    /// Rests, or says that time is up. `why`: what was last known.
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

/// Ends the steps before `to`. Those that came true stay so, also when a pod is made anew.
fn advance(current: &mut Step, to: Step, steps: &mut Steps) {
    while *current < to {
        steps.done("");
        *current = current.next();
        steps.begin(current.title());
    }
}

/// Not used by an agent yet, as far as the server says, and with a manifest.
fn is_usable(token: &Value) -> bool {
    !text(token, "manifestUrl").is_empty() && text(token, "usedAt").is_empty()
}

/// What an import waits for, in order.
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
    /// What to say once it came true. An active cluster has passed all phases but for nodes that are
    /// there (`has_nodes`, where that is known) and not counted yet.
    fn reached(self, cluster: &Value, has_nodes: Option<bool>) -> Option<String> {
        let nodes = cluster["nodeCount"].as_i64().unwrap_or_default();
        let active = text(cluster, "state") == api_management::state::ACTIVE;
        let reached = match self {
            Self::Connected => is_true(cluster, api_management::cluster::CONNECTED),
            Self::NodesSeen if nodes > 0 => return Some(nodes.to_string()),
            Self::NodesSeen if has_nodes == Some(true) => return None,
            Self::NodesSeen if active => return Some("the cluster has none".to_owned()),
            Self::NodesSeen => false,
            Self::Active => active,
        };
        (reached || active).then(String::new)
    }
}

/// What the server says it waits for, without its advice to apply the manifest: that was done.
fn what_is_awaited(cluster: &Value) -> &str {
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
        let reached = |cluster: &Value| phases.map(|phase| phase.reached(cluster, None).is_some());
        let pending = json!({"state": "waiting", "nodeCount": 0});
        assert_eq!(reached(&pending), [false, false, false]);
        let connected = json!({
            "state": "waiting", "conditions": [{"type": "Connected", "status": "True"}],
        });
        assert_eq!(reached(&connected), [true, false, false]);
        assert_eq!(reached(&json!({"state": "active", "nodeCount": 0})), [true, true, true]);
    }

    #[test]
    fn nodes_that_are_there_are_waited_for_even_in_an_active_cluster() {
        let cluster = |nodes: u32| json!({"state": "active", "nodeCount": nodes});
        let reached = |nodes, has_nodes| Phase::NodesSeen.reached(&cluster(nodes), has_nodes);
        assert_eq!(reached(0, Some(true)), None);
        assert_eq!(reached(2, Some(true)), Some("2".to_owned()));
        assert_eq!(reached(0, Some(false)), Some("the cluster has none".to_owned()));
    }

    #[test]
    fn applying_the_manifest_is_not_advised_while_the_command_does_it() {
        let cluster = |message: &str| {
            json!({
                "transitioningMessage": message,
                "conditions": [{"type": "Pending", "status": "Unknown", "message": "apply it"}],
            })
        };
        assert_eq!(what_is_awaited(&cluster("apply it")), "waiting for the cluster's agent");
        assert_eq!(what_is_awaited(&cluster("the disk is full")), "the disk is full");
    }

    #[test]
    fn a_used_registration_token_is_not_taken_again() {
        let token = json!({"manifestUrl": "https://h/v3/import/t_c.yaml"});
        assert!(is_usable(&token));
        assert!(!is_usable(&json!({"manifestUrl": ""})));
        assert!(!is_usable(&json!({"manifestUrl": "https://h", "usedAt": "2024-01-01T00:00:00Z"})));
    }
}
