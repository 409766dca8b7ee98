//! Keeps true: the annotation and the label of every namespace of a cluster say the project that it
//! was assigned to, `default` and the system's namespaces begin in the projects Default and System,
//! and an assignment goes with its namespace.
//!
//! Runs once per connected cluster. Watches namespaces there, assignments, projects and the setting
//! `system-namespaces` here. What holds is read anew before anything is put back, since watches may
//! be behind. Acts downstream by impersonation of its own identity, with a role that it keeps
//! there. In the cluster `local` only administrators can write namespaces, so there the annotation
//! itself says the project: nothing is put back, and the only assignments are of namespaces that
//! began in a project.

use std::sync::Arc;

use api_management::namespace_assignment::Assignment;
use api_management::{Cluster, NamespaceAssignment, Project, ids, keys, setting};
use controller::error::is_code;
use controller::{
    Attempt, DownstreamController, DownstreamScope, Key, Limits, Outcome, OwnedCondition,
    Projection, Reconcile, ReconcileError, Reflector, Runner, Whole,
};
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, ManagementContext, Settings};
use futures::future::BoxFuture;
use http::HeaderValue;
use k8s_openapi::api::core::v1::{Event, Namespace, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use serde_json::json;

use super::step::{Claim, Step, step};
use super::{migration, now};
use crate::own_role::{AppliedRole, OwnRole};
use crate::pod_security::controller::SeenLevels;
use crate::project::initial::Initial;

const CONTROLLER: &str = keys::OWNED_NAMESPACE_PROJECTS;
const ROLE_CONTROLLER: &str = "namespace-projects-role";
const ROLE_APPLIED: OwnedCondition = OwnedCondition::of("Cluster", "NamespaceProjectsRoleApplied");
/// Namespaces of one cluster that are written at once.
const NAMESPACES_AT_ONCE: usize = 4;
/// Where events about cluster-scoped objects are.
const EVENTS_NAMESPACE: &str = "default";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        CONTROLLER,
        vec![
            ours(&["clusters", "projects"], &["get"]),
            ours(&["clusters/status"], &["patch"]),
            ours(&["namespaceassignments"], &["get", "create", "update", "delete"]),
            // Of the cluster `local`.
            rule("", &["namespaces"], &["patch"]),
        ],
    )
}

/// Must be called inside a tokio runtime.
pub fn build(context: &ManagementContext, client: Client) -> Arc<dyn DownstreamController> {
    let reflectors = &context.scope.reflectors;
    Arc::new(NamespaceProjects {
        client,
        clusters: reflectors.get(),
        projects: reflectors.get(),
        assignments: reflectors.get(),
        settings: Settings::new(reflectors),
    })
}

/// What is here.
#[derive(Clone)]
pub(super) struct NamespaceProjects {
    pub(super) client: Client,
    pub(super) clusters: Arc<Reflector<Whole<Cluster>>>,
    pub(super) projects: Arc<Reflector<Whole<Project>>>,
    pub(super) assignments: Arc<Reflector<Whole<NamespaceAssignment>>>,
    settings: Settings,
}

impl DownstreamController for NamespaceProjects {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        Box::pin(run(scope, self.clone()))
    }
}

/// A downstream namespace, as far as it matters here.
#[derive(Debug)]
pub struct Seen {
    pub uid: String,
    pub version: String,
    /// The annotation.
    pub project: Option<String>,
    pub label: Option<String>,
    pub terminating: bool,
    /// Seconds since 1970.
    pub created: i64,
    /// The annotation [`keys::RESOURCE_QUOTA`].
    pub quota: Option<String>,
    /// The annotation [`keys::CONTAINER_LIMITS`].
    pub container_limits: Option<String>,
    /// The annotation [`keys::STATUS`].
    pub status: Option<String>,
    pub pod_security: SeenLevels,
}

impl Seen {
    /// Whether nothing that its Pod Security levels depend on differs.
    pub(crate) fn is_same_for_levels(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.terminating == other.terminating
            && self.pod_security == other.pod_security
    }
}

impl Projection for Seen {
    type Object = PartialObjectMeta<Namespace>;
    type Projected = Self;
    fn project(namespace: PartialObjectMeta<Namespace>) -> Self {
        let pod_security = SeenLevels::of(&namespace.metadata);
        let ObjectMeta { uid, resource_version, annotations, labels, .. } = namespace.metadata;
        let ObjectMeta { creation_timestamp, deletion_timestamp, .. } = namespace.metadata;
        let mut annotations = annotations.unwrap_or_default();
        Self {
            uid: uid.unwrap_or_default(),
            version: resource_version.unwrap_or_default(),
            project: annotations.remove(keys::PROJECT_ID),
            label: labels.and_then(|mut all| all.remove(keys::PROJECT_ID)),
            terminating: deletion_timestamp.is_some(),
            created: creation_timestamp.map(|time| time.0.as_second()).unwrap_or_default(),
            quota: annotations.remove(keys::RESOURCE_QUOTA),
            container_limits: annotations.remove(keys::CONTAINER_LIMITS),
            status: annotations.remove(keys::STATUS),
            pod_security,
        }
    }
}

/// One connected cluster.
struct Keeper {
    here: NamespaceProjects,
    role: Arc<AppliedRole>,
    cluster: String,
    /// Acts in the cluster as this controller.
    client: Client,
    namespaces: Arc<Reflector<Seen>>,
}

async fn run(scope: DownstreamScope, here: NamespaceProjects) {
    let is_local = scope.cluster == ids::LOCAL_CLUSTER;
    let user = HeaderValue::from_str(&identity().user()).expect("a name without line ends");
    let rules =
        vec![rule("", &["namespaces"], &["get", "patch"]), rule("", &["events"], &["create"])];
    let role = OwnRole::new(ROLE_CONTROLLER, &identity(), keys::OWNED_NAMESPACE_PROJECTS, rules);
    let role = AppliedRole::new(&scope, here.clusters.clone(), role);
    let keeper = Arc::new(Keeper {
        cluster: scope.cluster.clone(),
        client: if is_local { here.client.clone() } else { scope.client_as(&user) },
        namespaces: scope.reflectors.get(),
        role: role.clone(),
        here,
    });
    let namespaces = async {
        let here = &keeper.here;
        // Before that, a namespace that was not heard of yet would look like a deleted one.
        tokio::join!(
            here.clusters.synced(),
            here.projects.synced(),
            here.assignments.synced(),
            here.settings.synced(),
            keeper.namespaces.synced()
        );
        if !is_local {
            migration::run(here, &keeper.cluster, &keeper.namespaces).await;
        }
        let limits = Limits { running_per_lane_max: NAMESPACES_AT_ONCE, ..Limits::default() };
        let runner = Runner::with_limits(keeper.clone(), limits);
        watch(&runner, &keeper);
        runner.run(&scope.cluster, &scope.controllers, scope.stop.clone()).await;
    };
    tokio::join!(namespaces, role.run(&keeper.here.client, ROLE_APPLIED, &scope));
}

/// Keys are the names of downstream namespaces.
fn watch(runner: &Runner, keeper: &Arc<Keeper>) {
    runner.watch(&keeper.namespaces, |change| [change.key().clone()]);
    let cluster = keeper.cluster.clone();
    runner.watch(&keeper.here.assignments, move |change| {
        let key = change.key();
        (key.namespace == cluster).then(|| Key::cluster_scoped(&key.name))
    });
    let concerned = keeper.clone();
    runner.watch(&keeper.here.projects, move |change| {
        concerned.concerned_by(change.key(), change.object())
    });
    // The settings themselves cannot be read while they report a change.
    let concerned = keeper.clone();
    runner.watch(keeper.here.settings.reflector(), move |change| {
        let is_list = change.key().name == setting::SYSTEM_NAMESPACES;
        if is_list { concerned.beginning(change.object().effective()) } else { Vec::new() }
    });
}

impl Keeper {
    /// The namespaces for which a change of a project matters: a deleted project holds none,
    /// and an initial one that has come gets its own.
    fn concerned_by(&self, key: &Key, project: &Project) -> Vec<Key> {
        if key.namespace != self.cluster {
            return Vec::new();
        }
        let mut held = self.here.assignments.in_namespace(&self.cluster);
        held.retain(|(_, it)| it.spec.assigned.as_ref().is_some_and(|it| it.project == key.name));
        let held = held.into_iter().map(|(key, _)| Key::cluster_scoped(&key.name));
        let is_initial = project.is_default() || project.is_system();
        let names = self.here.settings.get(setting::SYSTEM_NAMESPACES);
        let beginning = if is_initial { self.beginning(&names) } else { Vec::new() };
        held.chain(beginning).collect()
    }

    /// Namespaces that are to begin in an initial project, or did. `system`: those of System, as
    /// the setting has them.
    fn beginning(&self, system: &str) -> Vec<Key> {
        let mut all: Vec<Key> = self.namespaces.all().into_iter().map(|(key, _)| key).collect();
        all.retain(|key| Initial::of_namespace(&key.name, system).is_some());
        all
    }

    /// The project in which a namespace begins of which nobody has decided yet.
    fn initial(
        &self,
        name: &str,
        namespace: &Seen,
        kept: Option<&NamespaceAssignment>,
    ) -> Option<String> {
        if kept.is_some_and(|kept| kept.is_decided(&namespace.uid)) {
            return None;
        }
        let names = self.here.settings.get(setting::SYSTEM_NAMESPACES);
        let initial = Initial::of_namespace(name, &names)?;
        let cluster = self.here.clusters.named(&self.cluster)?;
        let project = initial.project_name(&cluster);
        let stored = self.here.projects.get(&Key::namespaced(&self.cluster, &project))?;
        initial.is(&stored, &cluster).then_some(project)
    }

    async fn reconcile(&self, name: &str) -> Result<Outcome, ReconcileError> {
        if !self.role.is_staying() {
            return Ok(Outcome::Done);
        }
        let Some(namespace) = self.namespaces.named(name) else {
            return self.let_go(name).await;
        };
        if namespace.terminating {
            return Ok(Outcome::Done);
        }
        let known = self.here.assignments.get(&Key::namespaced(&self.cluster, name));
        let initial = self.initial(name, &namespace, known.as_deref());
        let step = self.step(&namespace, known.as_deref(), initial.as_deref(), |project| {
            self.here.projects.get(&Key::namespaced(&self.cluster, project)).map(|it| uid_of(&it))
        });
        if step == Step::Nothing {
            return Ok(Outcome::Done);
        }
        self.act(name, &namespace, initial.as_deref()).await.map(|()| Outcome::Done)
    }

    /// `uid_of_project`: of a project of this cluster, if there is one of the name.
    fn step(
        &self,
        namespace: &Seen,
        kept: Option<&NamespaceAssignment>,
        initial: Option<&str>,
        uid_of_project: impl Fn(&str) -> Option<String>,
    ) -> Step {
        if self.cluster == ids::LOCAL_CLUSTER {
            let begins = initial.filter(|_| namespace.project.is_none());
            return begins.map_or(Step::Nothing, |project| Step::Begin(project.to_owned()));
        }
        let assigned = kept.and_then(|kept| kept.assigned_to(&namespace.uid));
        let assigned = assigned
            .filter(|it| uid_of_project(&it.project).as_ref() == Some(&it.project_uid))
            .map(|it| it.project.as_str());
        let claim = Claim::of(namespace.project.as_deref(), &self.cluster);
        let is_pending = |project: Option<&str>| {
            let project = project.unwrap_or_default();
            kept.is_some_and(|kept| kept.pending_to(project, &namespace.uid, now()).is_some())
        };
        let is_project = |name: &str| uid_of_project(name).is_some();
        step(assigned, initial, claim, namespace.label.as_deref(), is_pending, is_project)
    }

    /// Decides once more by what is stored now, and does it.
    async fn act(
        &self,
        name: &str,
        namespace: &Seen,
        initial: Option<&str>,
    ) -> Result<(), ReconcileError> {
        let assignments = self.assignments();
        let reading = || format!("read the assignment of namespace \"{name}\"");
        let kept = assignments.get_opt(name).await.attempt(reading)?;
        let projects: Api<Project> = Api::namespaced(self.here.client.clone(), &self.cluster);
        let mut uids = std::collections::BTreeMap::new();
        let assigned = kept.iter().filter_map(|kept| kept.spec.assigned.as_ref());
        let claim = Claim::of(namespace.project.as_deref(), &self.cluster);
        let initial =
            initial.filter(|_| !kept.as_ref().is_some_and(|kept| kept.is_decided(&namespace.uid)));
        let named = assigned.map(|it| it.project.as_str()).chain(claim.project()).chain(initial);
        for project in named.chain(namespace.label.as_deref().filter(|label| is_name(label))) {
            let found = projects.get_opt(project).await;
            let found = found.attempt(|| format!("read project \"{project}\""))?;
            uids.extend(found.map(|found| (project.to_owned(), uid_of(&found))));
        }
        let initial = initial.filter(|project| uids.contains_key(*project));
        match self.step(namespace, kept.as_ref(), initial, |project| uids.get(project).cloned()) {
            Step::Nothing => Ok(()),
            Step::Begin(project) => {
                let mut assignment = kept.unwrap_or_default();
                assignment.metadata.name = Some(name.to_owned());
                assignment.assign(Some(Assignment {
                    project_uid: uids.get(&project).cloned().unwrap_or_default(),
                    namespace_uid: namespace.uid.clone(),
                    project: project.clone(),
                }));
                let options = PostParams::default();
                let written = match assignment.metadata.resource_version {
                    Some(_) => assignments.replace(name, &options, &assignment).await,
                    None => assignments.create(&options, &assignment).await,
                };
                written.attempt(|| format!("assign namespace \"{name}\""))?;
                self.write_project(name, namespace, Some(&project)).await.map(drop)
            }
            Step::Adopt(project) => {
                let Some(mut kept) = kept else { return Ok(()) };
                let pending =
                    kept.pending_to(project.as_deref().unwrap_or_default(), &namespace.uid, now());
                let assigned = pending.filter(|it| !it.project.is_empty()).map(|it| Assignment {
                    project: it.project.clone(),
                    project_uid: it.project_uid.clone(),
                    namespace_uid: namespace.uid.clone(),
                });
                kept.assign(assigned);
                let written = assignments.replace(name, &PostParams::default(), &kept).await;
                written.attempt(|| format!("assign namespace \"{name}\"")).map(drop)
            }
            Step::PutBack(project) => self.put_back(name, namespace, project.as_deref()).await,
        }
    }

    fn assignments(&self) -> Api<NamespaceAssignment> {
        Api::namespaced(self.here.client.clone(), &self.cluster)
    }

    /// Writes the annotation and the label, if nothing else was written meanwhile. Says whether it
    /// did.
    async fn write_project(
        &self,
        name: &str,
        namespace: &Seen,
        project: Option<&str>,
    ) -> Result<bool, ReconcileError> {
        let id = project.map(|project| format!("{}:{project}", self.cluster));
        let patch = json!({"metadata": {
            // Of the version that was looked at: what came since is looked at first.
            "resourceVersion": namespace.version,
            "annotations": {keys::PROJECT_ID: id},
            "labels": {keys::PROJECT_ID: project},
        }});
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let written =
            namespaces.patch_metadata(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        match written {
            Ok(_) => Ok(true),
            // A watch says so in a moment.
            Err(error) if is_code(&error, 404) || is_code(&error, 409) => Ok(false),
            Err(error) => {
                if is_code(&error, 403) {
                    self.role.check_soon();
                }
                Err(error).attempt(|| format!("write the project of namespace \"{name}\""))
            }
        }
    }

    async fn put_back(
        &self,
        name: &str,
        namespace: &Seen,
        project: Option<&str>,
    ) -> Result<(), ReconcileError> {
        if !self.write_project(name, namespace, project).await? {
            return Ok(());
        }
        let id = project.map(|project| format!("{}:{project}", self.cluster));
        let is_label_missing = namespace.label.is_none() && namespace.project == id;
        if is_label_missing {
            return Ok(());
        }
        let (cluster, found) = (&self.cluster, namespace.project.as_deref().unwrap_or("none"));
        tracing::info!(%cluster, namespace = name, found, "the project of a namespace was changed in the cluster, and put back");
        let message = format!(
            "the project was changed in the cluster (annotation: {found}; label: {label}) and put back to {kept}: a \
             namespace changes its project through Drover, by whoever may manage the namespaces of the project",
            label = namespace.label.as_deref().unwrap_or("none"),
            kept = id.as_deref().unwrap_or("none"),
        );
        let event = event(name, namespace, message);
        let events: Api<Event> = Api::namespaced(self.client.clone(), EVENTS_NAMESPACE);
        let created = events.create(&PostParams::default(), &event).await;
        created.attempt(|| format!("create an event about namespace \"{name}\"")).map(drop)
    }

    /// A deleted namespace takes its assignment along, unless one of its name is being
    /// created.
    async fn let_go(&self, name: &str) -> Result<Outcome, ReconcileError> {
        let Some(kept) = self.here.assignments.get(&Key::namespaced(&self.cluster, name)) else {
            return Ok(Outcome::Done);
        };
        let now = now();
        let last = kept.spec.pending.iter().map(|pending| pending.until).max().unwrap_or_default();
        if let Ok(wait @ 1..) = u64::try_from(last - now) {
            return Ok(Outcome::RequeueAfter(std::time::Duration::from_secs(wait)));
        }
        let seen = Preconditions {
            uid: kept.metadata.uid.clone(),
            resource_version: kept.metadata.resource_version.clone(),
        };
        let options = DeleteParams { preconditions: Some(seen), ..DeleteParams::background() };
        match self.assignments().delete(name, &options).await {
            Err(error) if is_code(&error, 404) || is_code(&error, 409) => Ok(Outcome::Done),
            done => done
                .attempt(|| format!("delete the assignment of namespace \"{name}\""))
                .map(|_| Outcome::Done),
        }
    }
}

fn uid_of(project: &Project) -> String {
    project.metadata.uid.clone().unwrap_or_default()
}

/// Whether it can be the name of an object of ours.
fn is_name(text: &str) -> bool {
    api_meta::names::dns1123_label(text).is_empty()
}

/// About a namespace.
fn event(name: &str, namespace: &Seen, message: String) -> Event {
    let at = Time(k8s_openapi::jiff::Timestamp::now());
    Event {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}.")),
            namespace: Some(EVENTS_NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Namespace".to_owned()),
            name: Some(name.to_owned()),
            uid: Some(namespace.uid.clone()),
            ..ObjectReference::default()
        },
        reason: Some("ProjectPutBack".to_owned()),
        message: Some(message),
        type_: Some("Warning".to_owned()),
        count: Some(1),
        first_timestamp: Some(at.clone()),
        last_timestamp: Some(at),
        reporting_component: Some("drover".to_owned()),
        ..Event::default()
    }
}

impl Reconcile for Keeper {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(&key.name))
    }
    /// All of it is one cluster.
    fn lane(&self, _: &Key) -> String {
        self.cluster.clone()
    }
}
