//! Namespaces of the connected cluster: moved between projects through the product, changed
//! directly in the cluster, deleted and created again. Every user may write namespaces there, so
//! that only the product decides.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use api_management::{NamespaceAssignment, keys};
use apiserver::UserInfo;
use feature_kit::access::GROUP_PEOPLE;
use feature_kit::{Membership, RoleResolver};
use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use rand::RngExt as _;
use rand::seq::IteratorRandom as _;
use serde_json::json;
use test_kit::{KubeApi, Profile, eventually, poll, proxied};

use super::plane::{CLUSTERS, CONNECTED, Plane};
use super::planted::Bug;
use super::reference::{Actor, Reference};
use super::steps::{Run, StepChange};

const NAMESPACES: [&str; 3] = ["shop", "blog", "tools"];
const MASTERS: &str = "system:masters";
const MOVED_TIME_MAX: Duration = Duration::from_secs(20);
const LOOK_INTERVAL: Duration = Duration::from_millis(4);

/// A namespace's project according to its annotation.
#[derive(Clone, Debug)]
enum Says {
    Nothing,
    /// A project of the connected cluster.
    Own(String),
    /// A project of another cluster, or an invalid value.
    Foreign(String),
}

impl Says {
    fn annotation(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Own(project) => Some(format!("{CONNECTED}:{project}")),
            Self::Foreign(text) => Some(text.clone()),
        }
    }

    /// An annotation that names no project of this cluster puts the namespace into no project.
    fn project(&self) -> Option<&str> {
        match self {
            Self::Own(project) => Some(project),
            Self::Nothing | Self::Foreign(_) => None,
        }
    }
}

impl Plane {
    /// The namespaces through the cluster's own API, as its administrator.
    fn namespaces(&self) -> Api<Namespace> {
        let downstream = self.downstream.as_ref().expect("the cluster is connected");
        Api::all(downstream.admin())
    }

    /// The cluster through the product, as the actor.
    fn client_there(&self, actor: Actor) -> Client {
        let identity = match actor {
            Actor::User(user) if self.bug != Some(Bug::AnyProjectOfNamespace) => {
                let of = Membership { user, groups: &Self::outside(user) };
                let mut groups = self.world.graph.cluster_groups(CONNECTED, of);
                groups.extend(["system:authenticated".to_owned(), GROUP_PEOPLE.to_owned()]);
                UserInfo { name: user.to_owned(), groups, ..UserInfo::default() }
            }
            _ => UserInfo::new("root", &[MASTERS]),
        };
        let downstream = self.downstream.clone().expect("the cluster is connected");
        let features = self.world.features.clone();
        let service = move |request: Request<kube::client::Body>| {
            let (features, downstream) = (features.clone(), downstream.clone());
            let identity = identity.clone();
            async move {
                let server = &downstream.server;
                let response =
                    proxied::send(&features, CONNECTED, server, &identity, request).await;
                Ok::<_, Infallible>(response)
            }
        };
        Client::new(tower::service_fn(service), "default")
    }

    /// The first namespace whose project differs from the reference, by the product's record or by
    /// the namespace's annotation.
    pub async fn namespaces_differ(&self, reference: &Reference) -> Option<String> {
        if !reference.clusters.contains(CONNECTED) {
            return None;
        }
        let records: Api<NamespaceAssignment> = Api::namespaced(self.world.admin(), CONNECTED);
        let records = records.list(&Default::default()).await;
        let there = self.namespaces().list(&Default::default()).await;
        let (Ok(records), Ok(there)) = (records, there) else {
            return Some("namespaces cannot be listed".to_owned());
        };
        let records: BTreeMap<String, NamespaceAssignment> =
            records.into_iter().map(|record| (record.name_any(), record)).collect();
        for namespace in there {
            let name = namespace.name_any();
            let Some(expected) = reference.namespaces.get(name.as_str()) else { continue };
            let record = records.get(&name);
            let uid = namespace.metadata.uid.as_deref().unwrap_or_default();
            let held = record.and_then(|record| record.assigned_to(uid));
            let is_there = |project: &str| {
                reference.projects.contains(&(CONNECTED.to_owned(), project.to_owned()))
            };
            let held = held.map(|held| held.project.clone()).filter(|project| is_there(project));
            if held != *expected {
                return Some(format!("namespace {name} is in project {held:?}, not {expected:?}"));
            }
            let says = namespace.annotations().get(keys::PROJECT_ID).map(String::as_str);
            let own = says.and_then(|says| says.strip_prefix(CONNECTED)?.strip_prefix(':'));
            if own != expected.as_deref() {
                return Some(format!("namespace {name} says {says:?}, not {expected:?}"));
            }
            let label = namespace.labels().get(keys::PROJECT_ID).map(String::as_str);
            if expected.is_some() && label != expected.as_deref() {
                return Some(format!("namespace {name} is labelled {label:?}, not {expected:?}"));
            }
        }
        None
    }
}

impl Run {
    /// Connects the cluster's agent, and creates namespaces that every user may write.
    pub async fn connect(&mut self) {
        let downstream = KubeApi::start(Profile::Cluster).await;
        let group = "rbac.authorization.k8s.io";
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole",
            "metadata": {"name": "everybody"},
            "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]}],
        });
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": "everybody"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "everybody"},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:authenticated"}],
        });
        for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            let request = Request::post(format!("/apis/{group}/v1/{plural}"))
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(object.to_string().into_bytes())
                .expect("a path");
            downstream.admin().request::<serde_json::Value>(request).await.expect("a new object");
        }
        self.plane.world.join(CONNECTED, &downstream).await;
        self.plane.downstream = Some(downstream);
        let clusters = self.plane.world.clusters();
        eventually("the projects of namespaces recorded", async || {
            let cluster = clusters.get(CONNECTED).await.map_err(|error| error.to_string())?;
            let recorded = cluster.status.namespaces_assigned;
            recorded.then_some(()).ok_or_else(|| "not yet".to_owned())
        })
        .await;
        for name in NAMESPACES {
            self.create_namespace(name).await;
        }
    }

    async fn create_namespace(&mut self, name: &'static str) {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let namespaces = self.plane.namespaces();
        eventually("a new namespace", async || {
            namespaces.create(&PostParams::default(), &namespace).await
        })
        .await;
        self.reference.namespaces.insert(name, None);
    }

    pub async fn write_namespace(&mut self) -> Result<Option<StepChange>, String> {
        if !self.reference.clusters.contains(CONNECTED) {
            return Ok(None);
        }
        match self.random.random_range(0..10) {
            0..6 => self.move_namespace().await,
            6..9 => self.change_namespace_behind().await,
            _ => self.recreate_namespace().await,
        }
    }

    fn says(&mut self) -> Says {
        let own = self.reference.projects.iter().filter(|(of, _)| of == CONNECTED);
        let own = own.map(|(_, project)| project.clone()).choose(&mut self.random);
        match (self.random.random_range(0..10), own) {
            (0..6, Some(own)) => Says::Own(own),
            (6, _) => Says::Own("p-nnnnn".to_owned()),
            (7, _) => {
                let other = self.reference.projects.iter().filter(|(of, _)| of != CONNECTED);
                let other = other.map(|(of, project)| format!("{of}:{project}"));
                let other = other.choose(&mut self.random);
                Says::Foreign(other.unwrap_or_else(|| format!("{}:p-x", CLUSTERS[1])))
            }
            _ => Says::Nothing,
        }
    }

    /// A write of an actor, through the product.
    async fn move_namespace(&mut self) -> Result<Option<StepChange>, String> {
        let (actor, name, says) = (self.actor(), self.one(&NAMESPACES), self.says());
        let is_allowed = self.reference.may_move(actor, CONNECTED, name, says.project());
        self.log.push(format!("{actor:?} moves namespace {name} to {says:?}: {is_allowed}"));
        let patch = json!({"metadata": {"annotations": {keys::PROJECT_ID: says.annotation()}}});
        let (plane, patch) = (&self.plane, Patch::Merge(patch));
        let moved = poll(LOOK_INTERVAL, MOVED_TIME_MAX, async || {
            let namespaces: Api<Namespace> = Api::all(plane.client_there(actor));
            match namespaces.patch(name, &PatchParams::default(), &patch).await {
                Err(kube::Error::Api(status)) if !is_allowed && status.code == 403 => Ok(false),
                Ok(_) => Ok(true),
                Err(error) => Err(error),
            }
        })
        .await;
        match moved {
            Err(error) => {
                Err(format!("{actor:?} may move namespace {name} to {says:?}, and got {error}"))
            }
            Ok(true) if !is_allowed => Err(format!(
                "{actor:?} may not put namespace {name} into project {says:?}, and did"
            )),
            Ok(false) => Ok(None),
            Ok(true) => {
                let project = says.project().map(str::to_owned);
                self.reference.namespaces.insert(name, project);
                // Waits until the product agrees.
                Ok(Some(StepChange { actor, roles: true }))
            }
        }
    }

    /// A write in the cluster itself: it does not change the project.
    async fn change_namespace_behind(&mut self) -> Result<Option<StepChange>, String> {
        let (name, says) = (self.one(&NAMESPACES), self.says());
        let key = self.one(&["annotations", "labels"]);
        let text = match key {
            "labels" => says.project().map(str::to_owned),
            _ => says.annotation(),
        };
        self.log.push(format!("the cluster itself: {key} of namespace {name} say {text:?}"));
        let patch = Patch::Merge(json!({"metadata": {key: {keys::PROJECT_ID: text}}}));
        let changed = self.plane.namespaces().patch(name, &PatchParams::default(), &patch).await;
        changed.map_err(|error| format!("namespace {name} cannot be changed: {error}"))?;
        Ok(Some(StepChange { actor: Actor::Root, roles: true }))
    }

    /// A new namespace of the same name is another namespace.
    async fn recreate_namespace(&mut self) -> Result<Option<StepChange>, String> {
        let name = self.one(&NAMESPACES);
        self.log.push(format!("namespace {name} is deleted and created anew"));
        let namespaces = self.plane.namespaces();
        let deleted = namespaces.delete(name, &DeleteParams::default()).await;
        deleted.map_err(|error| format!("namespace {name} cannot be deleted: {error}"))?;
        self.create_namespace(name).await;
        Ok(Some(StepChange { actor: Actor::Root, roles: true }))
    }
}
