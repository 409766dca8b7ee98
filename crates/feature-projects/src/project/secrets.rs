//! Keeps true: every Secret of a project is, as a copy, in each namespace of the project in its
//! cluster, and no other copy is there.
//!
//! Originals are the Secrets in the project's namespace of the management API that `/v3` made, but
//! for tokens of service accounts. Runs once per connected cluster, so nothing is tried while one
//! is away and all of it is compared when it is back. Watches originals and namespaces here,
//! namespaces and copies there; of contents it keeps digests only. Acts downstream by impersonation
//! of its own identity, with a role that it keeps there. Copies carry our label and are owned by
//! our namespace, so removal of the cluster takes them along; a Secret without our mark stays as it
//! is.
//!
//! Owns the project's condition SecretsCopied.

pub mod copy;
pub mod status;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_management::{Cluster, NamespaceAssignment, Project, condition, ids, keys};
use controller::error::is_code;
use controller::{
    Attempt, ConditionState, DownstreamController, DownstreamScope, Key, Limits, Metadata, Outcome,
    OwnedCondition, Reconcile, ReconcileError, Reflector, Reflectors, Runner, StatusPatch,
    StatusTarget, Whole,
};
use feature_kit::ownership::our_namespace;
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use http::HeaderValue;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams, Preconditions};
use kube::{Api, Client};

use super::namespaces::members::Members;
use crate::own_role::{AppliedRole, OwnRole};
use copy::{Digests, Observed, Step};
use status::{CopyStatus, Problem};

const CONTROLLER: &str = "project-secrets";
const ROLE_CONTROLLER: &str = "project-secrets-role";
const ROLE_APPLIED: OwnedCondition = OwnedCondition::of("Cluster", "ProjectSecretsRoleApplied");
const COPIED: OwnedCondition = OwnedCondition::of("Project", "SecretsCopied");
/// A Secret that is in the way is looked at again after this time: others' Secrets are not watched.
const TAKEN_INTERVAL: Duration = Duration::from_secs(60);
/// Longest wait until assignments that were just recorded are seen; one that was deleted meanwhile
/// never is.
const RECORDED_WAIT_MAX: Duration = Duration::from_secs(10);
/// Namespaces of one cluster that are written at once.
const NAMESPACES_AT_ONCE: usize = 4;

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        CONTROLLER,
        vec![
            rule("", &["secrets"], &["get", "list", "watch"]),
            ours(&["clusters", "projects"], &["get"]),
            ours(&["clusters/status", "projects/status"], &["patch"]),
            ours(&["namespaceassignments"], &["list"]),
        ],
    )
}

/// Must be called inside a tokio runtime.
pub fn build(context: &ManagementContext, client: Client) -> Arc<dyn DownstreamController> {
    let reflectors = &context.scope.reflectors;
    let by_the_view = format!("{}={}", keys::CREATOR, keys::CREATOR_NORMAN);
    // Watches with the rights of this controller: whoever watches for all may read no Secrets.
    let secrets = Reflectors::new(client.clone(), context.scope.stop.clone());
    Arc::new(ProjectSecrets {
        client,
        clusters: reflectors.get(),
        projects: reflectors.get(),
        homes: reflectors.get(),
        assignments: reflectors.get(),
        originals: secrets.selected(&by_the_view),
    })
}

/// What is here.
#[derive(Clone)]
struct ProjectSecrets {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    projects: Arc<Reflector<Whole<Project>>>,
    homes: Arc<Reflector<Metadata<Namespace>>>,
    assignments: Arc<Reflector<Whole<NamespaceAssignment>>>,
    originals: Arc<Reflector<Digests>>,
}

impl DownstreamController for ProjectSecrets {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        Box::pin(copy_into(scope, self.clone()))
    }
}

/// One connected cluster.
struct Copier {
    here: ProjectSecrets,
    cluster: String,
    /// Acts in the cluster as this controller.
    client: Client,
    role: Arc<AppliedRole>,
    members: Members,
    copies: Arc<Reflector<Digests>>,
    status: Arc<CopyStatus>,
    /// The condition last written for each project. One at a time is computed and written, so that
    /// the last one written is the newest.
    reported: tokio::sync::Mutex<BTreeMap<String, ConditionState>>,
}

async fn copy_into(scope: DownstreamScope, here: ProjectSecrets) {
    let user = HeaderValue::from_str(&identity().user()).expect("a name without line ends");
    // In the management API the server acts for itself.
    let is_local = scope.cluster == ids::LOCAL_CLUSTER;
    let client = if is_local { scope.client.clone() } else { scope.client_as(&user) };
    let label = format!("{}={}", keys::DOWNSTREAM_OWNED, keys::OWNED_PROJECT_SECRET);
    let verbs = ["get", "list", "watch", "create", "update", "delete"];
    let rules = vec![rule("", &["secrets"], &verbs)];
    let role = OwnRole::new(ROLE_CONTROLLER, &identity(), keys::OWNED_PROJECT_SECRET, rules);
    let role = AppliedRole::new(&scope, here.clusters.clone(), role);
    let copier = Arc::new(Copier {
        cluster: scope.cluster.clone(),
        role: role.clone(),
        members: Members {
            cluster: scope.cluster.clone(),
            namespaces: scope.reflectors.get(),
            assignments: here.assignments.clone(),
        },
        copies: Reflectors::new(client.clone(), scope.stop.clone())
            .in_pages_of(controller::downstream::PAGE_OBJECTS)
            .selected(&label),
        status: Arc::default(),
        reported: tokio::sync::Mutex::default(),
        client,
        here,
    });
    let here = &copier.here;
    let copy = async {
        // Before that, a Secret that was not heard of yet would look like one that is gone.
        tokio::join!(
            here.clusters.synced(),
            here.projects.synced(),
            here.homes.synced(),
            here.originals.synced(),
            here.assignments.synced(),
            copier.members.namespaces.synced(),
            copier.copies.synced()
        );
        copier.recorded().await;
        let limits = Limits { running_per_lane_max: NAMESPACES_AT_ONCE, ..Limits::default() };
        let runner = Runner::with_limits(copier.clone(), limits);
        watch(&runner, &copier);
        runner.run(&scope.cluster, &scope.controllers, scope.stop.clone()).await;
    };
    tokio::join!(copy, role.run(&copier.here.client, ROLE_APPLIED, &scope));
}

/// Keys are the names of downstream namespaces.
fn watch(runner: &Runner, copier: &Copier) {
    runner.watch(&copier.members.namespaces, |change| [Key::cluster_scoped(&change.key().name)]);
    let cluster = copier.cluster.clone();
    runner.watch(&copier.here.assignments, move |change| {
        let key = change.key();
        (key.namespace == cluster).then(|| Key::cluster_scoped(&key.name))
    });
    let in_project = |members: &Members, project: &str| -> Vec<Key> {
        members.of(project).iter().map(|name| Key::cluster_scoped(name)).collect()
    };
    let members = copier.members.clone();
    runner
        .watch(&copier.here.originals, move |change| in_project(&members, &change.key().namespace));
    let members = copier.members.clone();
    runner.watch(&copier.here.homes, move |change| in_project(&members, &change.key().name));
    runner.watch(&copier.copies, |change| [Key::cluster_scoped(&change.key().namespace)]);
}

impl Copier {
    /// Returns once the assignments of the cluster's namespaces are recorded, and known here.
    async fn recorded(&self) {
        let is_recorded = |cluster: &Cluster| cluster.status.namespaces_assigned;
        let here = &self.here;
        if self.cluster == ids::LOCAL_CLUSTER
            || here.clusters.named(&self.cluster).is_some_and(|cluster| is_recorded(&cluster))
        {
            return;
        }
        let named = |clusters: &Reflector<Whole<Cluster>>| clusters.named(&self.cluster);
        here.clusters.wait_for(|clusters| named(clusters).filter(|it| is_recorded(it))).await;
        // They were written before; whoever watches them may not know yet.
        let api: Api<NamespaceAssignment> = Api::namespaced(here.client.clone(), &self.cluster);
        let written = match api.list_metadata(&ListParams::default()).await {
            Ok(list) => list.items,
            Err(error) => {
                let cluster = &self.cluster;
                tracing::warn!(%cluster, %error, "cannot list the assignments of namespaces");
                return;
            }
        };
        let keys: Vec<Key> = written.iter().map(Key::of).collect();
        let is_known = |all: &Reflector<Whole<NamespaceAssignment>>| {
            keys.iter().all(|key| all.get(key).is_some()).then_some(())
        };
        let _ = tokio::time::timeout(RECORDED_WAIT_MAX, here.assignments.wait_for(is_known)).await;
    }

    /// The Secrets that belong into a namespace of the project. `uid`: of the project, empty for
    /// any.
    fn originals(&self, project: &str, uid: &str) -> Vec<(Key, Arc<Observed>)> {
        let home = self.here.homes.named(project);
        let own = Some((self.cluster.as_str(), project));
        let is_own = |home: &ObjectMeta| {
            let of = home.annotations.as_ref().and_then(|all| all.get(keys::PROJECT_UID));
            keys::project_of(home) == own && of.is_none_or(|of| uid.is_empty() || of == uid)
        };
        // The namespace of that name may be of a project of another cluster, or of one that had the
        // name before.
        if !home.is_some_and(|home| is_own(&home)) {
            return Vec::new();
        }
        let mut found = self.here.originals.in_namespace(project);
        found.retain(|(_, secret)| secret.is_original());
        found
    }

    async fn reconcile_namespace(&self, namespace: &str) -> Result<Outcome, ReconcileError> {
        if !self.role.is_staying() {
            return Ok(Outcome::Done);
        }
        if self.members.namespaces.named(namespace).is_some_and(|seen| seen.terminating) {
            return Ok(Outcome::Done);
        }
        let assigned = self.members.assigned(namespace);
        let project = assigned.as_ref().map(|assigned| assigned.project.as_str());
        let desired = assigned.as_ref().map(|it| self.originals(&it.project, &it.project_uid));
        let desired = desired.unwrap_or_default();
        let (mut problems, mut failed) = (Vec::new(), None);
        for (original, observed) in &desired {
            match self.copy(original, observed, namespace).await {
                Ok(problem) => problems.extend(problem),
                Err(error) => {
                    let refusal = refusal(&error, &original.name, namespace);
                    if refusal.is_some() {
                        self.role.check_soon();
                    }
                    problems.extend(refusal);
                    failed = failed.or(Some(error));
                }
            }
        }
        for (key, copy) in self.copies.in_namespace(namespace) {
            if copy.is_copy
                && !desired.iter().any(|(original, _)| original.name == key.name)
                && let Err(error) = self.delete(&key, &copy).await
            {
                failed = failed.or(Some(error));
            }
        }
        let is_taken = problems.iter().any(|problem| problem.reason == TAKEN);
        self.note(namespace, project, problems).await?;
        match failed {
            Some(error) => Err(error),
            None if is_taken => Ok(Outcome::RequeueAfter(TAKEN_INTERVAL)),
            None => Ok(Outcome::Done),
        }
    }

    /// Brings one copy up to date. Answers what is in the way.
    async fn copy(
        &self,
        original: &Key,
        observed: &Observed,
        namespace: &str,
    ) -> Result<Option<Problem>, ReconcileError> {
        let key = Key::namespaced(namespace, &original.name);
        let known = self.copies.get(&key).filter(|copy| copy.is_copy);
        let step = copy::step(observed, known.as_deref());
        if step == Step::Nothing {
            return Ok(None);
        }
        let here: Api<Secret> = Api::namespaced(self.here.client.clone(), &original.namespace);
        let read = here.get_opt(&original.name).await;
        let Some(secret) = read.attempt(|| format!("read secret \"{original}\""))? else {
            return Ok(None);
        };
        let owner = match self.cluster == ids::LOCAL_CLUSTER {
            true => None,
            false => Some(our_namespace(&self.role.agent).await?),
        };
        let project = format!("{}:{}", self.cluster, original.namespace);
        let mut desired = copy::desired(&secret, &project, namespace, owner.as_ref());
        match (step, known) {
            (Step::Replace, Some(known)) => {
                // Of the version that carried our mark: who takes it off keeps the Secret.
                desired.metadata.resource_version = Some(known.version.clone());
                let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
                match api.replace(&key.name, &PostParams::default(), &desired).await {
                    Err(error) if is_code(&error, 404) => Ok(None),
                    done => done.attempt(|| format!("update secret \"{key}\"")).map(|_| None),
                }
            }
            (Step::DeleteAndCreate, Some(known)) => {
                self.delete(&key, &known).await?;
                self.create(&key, &desired).await
            }
            _ => self.create(&key, &desired).await,
        }
    }

    async fn create(&self, key: &Key, copy: &Secret) -> Result<Option<Problem>, ReconcileError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &key.namespace);
        let error = match api.create(&PostParams::default(), copy).await {
            Ok(_) => return Ok(None),
            Err(error) => error,
        };
        let attempt = || format!("create secret \"{key}\"");
        if !is_code(&error, 409) {
            return Err(error).attempt(attempt);
        }
        let found = api.get_opt(&key.name).await.attempt(|| format!("read secret \"{key}\""))?;
        match found {
            // It has gone meanwhile.
            None => Err(error).attempt(attempt),
            // Its watch event comes in a moment.
            Some(found) if copy::is_copy(&found.metadata) => Ok(None),
            Some(_) => Ok(Some(taken(key))),
        }
    }

    /// Deletes a copy unless it has changed since it was seen.
    async fn delete(&self, key: &Key, copy: &Observed) -> Result<(), ReconcileError> {
        if copy.terminating {
            return Ok(());
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &key.namespace);
        let seen = Preconditions {
            uid: Some(copy.uid.clone()),
            resource_version: Some(copy.version.clone()),
        };
        let options = DeleteParams { preconditions: Some(seen), ..DeleteParams::background() };
        match api.delete(&key.name, &options).await {
            Err(error) if is_code(&error, 404) => Ok(()),
            done => done.attempt(|| format!("delete secret \"{key}\"")).map(drop),
        }
    }

    /// Remembers how a namespace stands, and has its projects say so.
    async fn note(
        &self,
        namespace: &str,
        project: Option<&str>,
        problems: Vec<Problem>,
    ) -> Result<(), ReconcileError> {
        let (before, new) = self.status.note(namespace, project, problems);
        for problem in new {
            let (cluster, reason) = (&self.cluster, problem.reason);
            tracing::warn!(%cluster, reason, "{}", problem.message);
        }
        let before = before.filter(|before| Some(before.as_str()) != project);
        for project in before.as_deref().into_iter().chain(project) {
            self.report(project).await?;
        }
        Ok(())
    }

    async fn report(&self, name: &str) -> Result<(), ReconcileError> {
        let mut reported = self.reported.lock().await;
        let key = Key::namespaced(&self.cluster, name);
        let project = self.here.projects.get(&key);
        let Some(project) = project.filter(|p| p.metadata.deletion_timestamp.is_none()) else {
            reported.remove(name);
            return Ok(());
        };
        let Some(problems) = self.status.problems(name, &self.members.of(name)) else {
            return Ok(());
        };
        let state = status::condition(&problems);
        // A project without Secrets need not speak of them.
        let is_said = condition::find(&project.status.conditions, COPIED.condition()).is_some();
        let is_idle =
            !is_said && !reported.contains_key(name) && self.originals(name, "").is_empty();
        if is_idle || reported.get(name) == Some(&state) {
            return Ok(());
        }
        let target = StatusTarget::of::<Project>(&key.namespace, &key.name);
        let patch = StatusPatch::new().condition(COPIED, state.clone());
        patch.write(&self.here.client, &target).await?;
        reported.insert(name.to_owned(), state);
        Ok(())
    }
}

/// Reason of a problem: a Secret that is no copy has the name.
const TAKEN: &str = "NameTaken";
/// Reason of a problem: the cluster refuses the copy.
const REFUSED: &str = "CopyRefused";

fn taken(key: &Key) -> Problem {
    let Key { namespace, name } = key;
    let message = format!(
        "secret \"{name}\" is not copied into namespace \"{namespace}\": a Secret of that name is there, \
         which stays as it is; rename or delete one of them"
    );
    Problem { reason: TAKEN, message }
}

/// What people should know: the cluster with_cluster_timeout, and not that somebody was faster or
/// that it is unwell.
pub(crate) fn refusal(error: &ReconcileError, name: &str, namespace: &str) -> Option<Problem> {
    let ReconcileError::Api { source, .. } = error else { return None };
    let kube::Error::Api(status) = source.as_ref() else { return None };
    if status.code == 409 || status.code >= 500 {
        return None;
    }
    let message = format!(
        "secret \"{name}\" is not copied into namespace \"{namespace}\": {}",
        status.message
    );
    Some(Problem { reason: REFUSED, message })
}

impl Reconcile for Copier {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile_namespace(&key.name))
    }
    /// All of it is one cluster.
    fn lane(&self, _: &Key) -> String {
        self.cluster.clone()
    }
}
