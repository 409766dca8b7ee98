//! Writes of namespaces through Drover: whoever changes the project of one may manage the
//! namespaces of both projects, which is the verb `manage-namespaces` on a project. Whoever creates
//! one in a project may have the verb `create-namespaces` instead. Who may create namespaces only
//! by roles in projects cannot create one outside of them: in the cluster itself these roles have
//! to allow every name. What a namespace requests has to fit into the quota of its project
//! ([`crate::project::quotas`]), and its Pod Security labels are not everybody's
//! ([`crate::pod_security::check`]).

use std::sync::Arc;

use api_management::namespace_assignment::PendingAssignment;
use api_management::{Cluster, NamespaceAssignment, Project, ids, keys, setting};
use api_meta::names::dns1123_label;
use api_meta::object::ObjectExt;
use api_meta::status::Status;
use controller::error::is_code;
use controller::{Reflector, Reflectors, Whole};
use feature_kit::access::{
    ROLE_GROUP_PREFIX, VERB_CREATE_NAMESPACES, VERB_MANAGE_NAMESPACES, VERB_UPDATE_POD_SECURITY,
    cluster_group, projects_group,
};
use feature_kit::rbac::{ours, rule};
use feature_kit::{CheckedWrite, ClusterConnections, ControllerIdentity, Settings, WriteCheck};
use futures::future::BoxFuture;
use http::Method;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::now;
use super::step::Claim;
use crate::pod_security::check::{Need, labels_of, need, refusal};
use crate::pod_security::policies::{Labels, LevelDecision, Policies};
use crate::project::initial::Initial;
use crate::project::quotas::check::{Annotations, check_request};
use crate::project::quotas::request::ProjectLimits;
use crate::rights::{Question, is_allowed, review_of};

/// Until a change that was let through must have been seen in the cluster.
const PENDING_SECONDS: i64 = 60;
/// Attempts to note a change while others note theirs.
const NOTE_TRIES_MAX: usize = 5;

/// The identity of the check, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        "namespace-check",
        vec![
            ours(&["projects"], &["get"]),
            ours(&["namespaceassignments"], &["get", "create", "update"]),
            rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
        ],
    )
}

/// See the module.
pub struct NamespaceCheck {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    settings: Settings,
    policies: Policies,
    connections: Arc<dyn ClusterConnections>,
}

/// How a namespace gets into a project or out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Create,
    Into,
    OutOf,
}

impl Move {
    /// The verbs on the project of which the writer needs one.
    fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::Create => &[VERB_MANAGE_NAMESPACES, VERB_CREATE_NAMESPACES],
            Self::Into | Self::OutOf => &[VERB_MANAGE_NAMESPACES],
        }
    }

    fn refusal(self, project: &str) -> String {
        let direction = if self == Self::OutOf { "out of" } else { "into" };
        let need = match self {
            Self::Create => format!(
                "that needs a role in the project that creates namespaces, or the verb \
                 \"{VERB_MANAGE_NAMESPACES}\" on the project; its owners can give the role"
            ),
            Self::Into | Self::OutOf => format!(
                "that needs the verb \"{VERB_MANAGE_NAMESPACES}\" on the project, which its owners have"
            ),
        };
        format!("you may not put it {direction} project \"{project}\": {need}")
    }
}

/// A project of the cluster.
struct Known {
    name: String,
    uid: String,
    project: Project,
}

impl NamespaceCheck {
    /// `client` acts as [`identity`].
    pub fn new(
        client: Client,
        reflectors: &Reflectors,
        connections: Arc<dyn ClusterConnections>,
    ) -> Self {
        let (clusters, settings) = (reflectors.get(), Settings::new(reflectors));
        let policies = Policies::new(reflectors);
        Self { client, clusters, settings, policies, connections }
    }

    async fn change(&self, write: CheckedWrite<'_>) -> Result<(), Status> {
        let (cluster, namespace) = (write.cluster, write.object);
        let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
        let is_new = is_new(&write);
        let uid = namespace["metadata"]["uid"].as_str().filter(|_| !is_new).unwrap_or_default();
        let claim = Claim::of(namespace.annotation(keys::PROJECT_ID), cluster);

        let assignments: Api<NamespaceAssignment> = Api::namespaced(self.client.clone(), cluster);
        let kept = read(&assignments, name).await?;
        let current = match kept.as_ref().and_then(|kept| kept.assigned_to(uid)) {
            // A project that has gone holds nothing, nor does a later one of its name.
            Some(assigned) => {
                let known = self.project(cluster, &assigned.project).await?;
                known.filter(|known| known.uid == assigned.project_uid)
            }
            None => None,
        };
        let assigned = current.as_ref().map(|known| known.name.as_str());
        self.check_label(&write, claim, assigned).await?;
        self.check_pod_security(&write, name, claim.project()).await?;
        if assigned == claim.project() {
            match (is_new, &current) {
                (true, _) => return self.check_new_outside(&write, name, claim).await,
                (false, Some(known)) => {
                    self.check_changed_quota(&write, name, &known.project).await?;
                }
                (false, None) => {}
            }
            let project = assigned.unwrap_or_default();
            return match kept {
                Some(kept) if self.is_way_back(&write, &kept, project, uid).await? => {
                    note(&assignments, name, uid, current).await
                }
                _ => Ok(()),
            };
        }
        if let Some(project) = assigned {
            self.require(&write, name, project, Move::OutOf).await?;
        }
        let project = match claim.project() {
            None => None,
            Some(project) => {
                let how = if is_new { Move::Create } else { Move::Into };
                self.require(&write, name, project, how).await?;
                let Some(known) = self.project(cluster, project).await? else {
                    let text = format!("there is no project \"{cluster}:{project}\"");
                    return Err(refused(name, &text));
                };
                check_quota(&known.project, name, namespace, None)?;
                Some(known)
            }
        };
        if is_generated(namespace, is_new) {
            let text = "a namespace whose name is generated cannot be created in a project: give it a name, or move it \
                        into the project afterwards";
            return Err(refused(name, text));
        }
        if write.is_dry_run {
            return Ok(());
        }
        note(&assignments, name, uid, project).await
    }

    /// Whether a write that names the project which holds takes a namespace back to it, by somebody
    /// who may: another project may hold before this write is seen.
    async fn is_way_back(
        &self,
        write: &CheckedWrite<'_>,
        kept: &NamespaceAssignment,
        project: &str,
        uid: &str,
    ) -> Result<bool, Status> {
        let others: Vec<&str> = kept.on_the_way_to(project, uid, now()).collect();
        if others.is_empty() || write.is_dry_run {
            return Ok(false);
        }
        for project in others.into_iter().chain([project]).filter(|project| !project.is_empty()) {
            if !self.may(write, Some(project), VERB_MANAGE_NAMESPACES).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A new namespace that names no project of this cluster.
    async fn check_new_outside(
        &self,
        write: &CheckedWrite<'_>,
        name: &str,
        claim: Claim<'_>,
    ) -> Result<(), Status> {
        self.check_outside(write, name).await?;
        match claim {
            Claim::None => self.check_beginning(write, name).await,
            Claim::Own(_) | Claim::Foreign => Ok(()),
        }
    }

    /// Whether what a namespace requests fits into the quota of the project that it is in.
    async fn check_changed_quota(
        &self,
        write: &CheckedWrite<'_>,
        name: &str,
        project: &Project,
    ) -> Result<(), Status> {
        let has_limits = !ProjectLimits::of(project).is_empty();
        if !has_limits && annotations_of(write.object) == Annotations::default() {
            return Ok(());
        }
        let before = self.before(write, name).await?;
        check_quota(project, name, write.object, before.as_ref())
    }

    /// The metadata of the namespace as it is now.
    async fn before(&self, write: &CheckedWrite<'_>, name: &str) -> Result<Option<Value>, Status> {
        let Some(client) = self.connections.client(write.cluster) else {
            return Err(Status::unavailable("the cluster is not connected"));
        };
        let namespaces: Api<Namespace> = Api::all(client);
        let before = namespaces.get_metadata_opt(name).await.map_err(unavailable)?;
        Ok(before.map(|before| json!({"metadata": before.metadata})))
    }

    /// Whether the writer may change the Pod Security labels, if they change. `project`: where the
    /// namespace will be.
    async fn check_pod_security(
        &self,
        write: &CheckedWrite<'_>,
        name: &str,
        project: Option<&str>,
    ) -> Result<(), Status> {
        // There only administrators can write namespaces.
        if write.cluster == ids::LOCAL_CLUSTER {
            return Ok(());
        }
        let after = labels_of(write.object);
        let before = match is_new(write) {
            true => Labels::new(),
            false => self.before(write, name).await?.map(|it| labels_of(&it)).unwrap_or_default(),
        };
        if before == after {
            return Ok(());
        }
        self.policies.synced().await;
        let policies = self.policies.of_cluster(write.cluster);
        let decision = policies.map_or(LevelDecision::Free, |it| it.of(project, name));
        match need(&before, &after, &decision) {
            Need::Nothing => Ok(()),
            Need::Refused(text) => Err(refused(name, &text)),
            Need::Right if self.may(write, project, VERB_UPDATE_POD_SECURITY).await? => Ok(()),
            Need::Right => Err(refused(name, &refusal())),
        }
    }

    /// Whether the writer may create namespaces without the roles that hold in projects only.
    async fn check_outside(&self, write: &CheckedWrite<'_>, name: &str) -> Result<(), Status> {
        let (cluster, identity) = (write.cluster, write.identity);
        let in_projects = projects_group(cluster, "");
        let owner = cluster_group(cluster, api_management::role_template::CLUSTER_OWNER);
        let is_member = identity.groups.iter().any(|group| group.starts_with(&in_projects));
        if !is_member || identity.groups.contains(&owner) {
            return Ok(());
        }
        let of_project = format!("{ROLE_GROUP_PREFIX}project:");
        let others = identity
            .groups
            .iter()
            .filter(|group| !group.starts_with(&in_projects) && !group.starts_with(&of_project));
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(identity.user.clone()),
                uid: Some(identity.uid.clone()).filter(|uid| !uid.is_empty()),
                groups: Some(others.cloned().collect()),
                extra: Some(identity.extra.clone()),
                resource_attributes: Some(ResourceAttributes {
                    verb: Some("create".to_owned()),
                    version: Some("v1".to_owned()),
                    resource: Some("namespaces".to_owned()),
                    name: Some(name.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let Some(client) = self.connections.client(cluster) else {
            return Err(Status::unavailable("the cluster is not connected"));
        };
        if review_of(&client, &review).await.map_err(unavailable)? {
            return Ok(());
        }
        let text = format!(
            "your roles are in projects of this cluster, so you may create it only in one of these: set its \
             annotation \"{key}\" to \"{cluster}:<project>\", or create it in the project under /v3 or in the \
             web interface",
            key = keys::PROJECT_ID,
        );
        Err(refused(name, &text))
    }

    /// A new namespace that begins in a project by its name gets the project's Secrets, as one that
    /// is put there does.
    async fn check_beginning(&self, write: &CheckedWrite<'_>, name: &str) -> Result<(), Status> {
        tokio::join!(self.settings.synced(), self.clusters.synced());
        let names = self.settings.get(setting::SYSTEM_NAMESPACES);
        let Some(initial) = Initial::of_namespace(name, &names) else { return Ok(()) };
        let Some(cluster) = self.clusters.named(write.cluster) else { return Ok(()) };
        let project = initial.project_name(&cluster);
        match self.project(write.cluster, &project).await? {
            Some(_) => self.require(write, name, &project, Move::Into).await,
            None => Ok(()),
        }
    }

    /// The label follows the annotation, a moment later. One that names a third project of the
    /// cluster would deceive selectors.
    async fn check_label(
        &self,
        write: &CheckedWrite<'_>,
        claim: Claim<'_>,
        assigned: Option<&str>,
    ) -> Result<(), Status> {
        let label = write.object["metadata"]["labels"][keys::PROJECT_ID].as_str();
        let expected = [claim.project(), assigned];
        let Some(label) = label.filter(|label| !expected.contains(&Some(*label))) else {
            return Ok(());
        };
        if self.project(write.cluster, label).await?.is_none() {
            return Ok(());
        }
        let name = write.object["metadata"]["name"].as_str().unwrap_or_default();
        let text = format!(
            "the label \"{key}\" names project \"{label}\", the annotation does not: set the annotation \"{key}\" to \
             \"{cluster}:{label}\", or leave the label out, which follows by itself",
            key = keys::PROJECT_ID,
            cluster = write.cluster,
        );
        Err(refused(name, &text))
    }

    /// Whether the writer may do this with a namespace and the project.
    async fn require(
        &self,
        write: &CheckedWrite<'_>,
        namespace: &str,
        project: &str,
        how: Move,
    ) -> Result<(), Status> {
        for verb in how.verbs() {
            if self.may(write, Some(project), verb).await? {
                return Ok(());
            }
        }
        Err(refused(namespace, &how.refusal(&format!("{}:{project}", write.cluster))))
    }

    /// Whether the writer has the verb on a project, or without one on all of the cluster.
    async fn may(
        &self,
        write: &CheckedWrite<'_>,
        project: Option<&str>,
        verb: &str,
    ) -> Result<bool, Status> {
        let (cluster, identity) = (write.cluster, write.identity);
        let owner = cluster_group(cluster, api_management::role_template::CLUSTER_OWNER);
        if identity.groups.contains(&owner) {
            return Ok(true);
        }
        let question = Question {
            user: &identity.user,
            groups: &identity.groups,
            verb,
            resource: "projects",
            namespace: cluster,
            name: project,
        };
        is_allowed(&self.client, &question).await.map_err(unavailable)
    }

    async fn project(&self, cluster: &str, name: &str) -> Result<Option<Known>, Status> {
        if !dns1123_label(name).is_empty() {
            return Ok(None);
        }
        let projects: Api<Project> = Api::namespaced(self.client.clone(), cluster);
        let found = projects.get_opt(name).await.map_err(unavailable)?;
        Ok(found.map(|found| Known {
            name: name.to_owned(),
            uid: found.metadata.uid.clone().unwrap_or_default(),
            project: found,
        }))
    }
}

fn annotations_of(namespace: &Value) -> Annotations<'_> {
    Annotations {
        quota: namespace.annotation(keys::RESOURCE_QUOTA),
        containers: namespace.annotation(keys::CONTAINER_LIMITS),
    }
}

/// `before`: the namespace as it is in the project already.
fn check_quota(
    project: &Project,
    name: &str,
    namespace: &Value,
    before: Option<&Value>,
) -> Result<(), Status> {
    let causes = check_request(project, annotations_of(namespace), before.map(annotations_of));
    if causes.is_empty() {
        return Ok(());
    }
    Err(Status::invalid("", "Namespace", name, causes))
}

/// Whether the write creates the namespace: server-side apply does so by a patch. What exists has a
/// version, also in the result of a dry run.
fn is_new(write: &CheckedWrite<'_>) -> bool {
    let version = write.object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    *write.method == Method::POST || version.is_empty()
}

/// Notes a change that may come, so that the controller takes it for one that may be.
async fn note(
    assignments: &Api<NamespaceAssignment>,
    name: &str,
    uid: &str,
    project: Option<Known>,
) -> Result<(), Status> {
    let (project, project_uid) = project.map(|known| (known.name, known.uid)).unwrap_or_default();
    let now = now();
    let change = PendingAssignment {
        project,
        project_uid,
        namespace_uid: uid.to_owned(),
        until: now + PENDING_SECONDS,
    };
    for _ in 0..NOTE_TRIES_MAX {
        let written = match read(assignments, name).await? {
            Some(mut kept) => {
                kept.expect(change.clone(), now);
                assignments.replace(name, &PostParams::default(), &kept).await
            }
            None => {
                let mut new = NamespaceAssignment::default();
                new.metadata.name = Some(name.to_owned());
                new.expect(change.clone(), now);
                assignments.create(&PostParams::default(), &new).await
            }
        };
        match written {
            Ok(_) => return Ok(()),
            // Somebody else wrote it, or it has just been deleted.
            Err(error) if is_code(&error, 409) || is_code(&error, 404) => {}
            Err(error) => return Err(unavailable(error)),
        }
    }
    Err(Status::unavailable("others kept changing the project of this namespace; try again"))
}

async fn read(
    assignments: &Api<NamespaceAssignment>,
    name: &str,
) -> Result<Option<NamespaceAssignment>, Status> {
    assignments.get_opt(name).await.map_err(unavailable)
}

/// Whether the name is one that the API server made up, which is another one when the write is
/// sent.
fn is_generated(namespace: &Value, is_new: bool) -> bool {
    let metadata = &namespace["metadata"];
    let prefix = metadata["generateName"].as_str().filter(|prefix| !prefix.is_empty());
    let name = metadata["name"].as_str().unwrap_or_default();
    is_new && prefix.is_some_and(|prefix| name.starts_with(prefix))
}

fn refused(namespace: &str, text: &str) -> Status {
    Status::forbidden("", "namespaces", namespace, text)
}

fn unavailable(error: kube::Error) -> Status {
    Status::unavailable(format!("cannot check which project the namespace may be in: {error}"))
}

/// Whether requests of this kind can change a namespace's metadata.
fn changes_namespace(method: &Method, path: &str) -> bool {
    let mut parts = path.trim_matches('/').split('/');
    let is_kind = parts.by_ref().take(3).eq(["api", "v1", "namespaces"]);
    let rest: Vec<&str> = parts.collect();
    is_kind
        && match rest.as_slice() {
            [] => *method == Method::POST,
            [_] | [_, "status" | "finalize"] => [Method::PUT, Method::PATCH].contains(method),
            _ => false,
        }
}

impl WriteCheck for NamespaceCheck {
    fn concerns(&self, method: &Method, path: &str) -> bool {
        changes_namespace(method, path)
    }

    fn check<'a>(&'a self, write: CheckedWrite<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.change(write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_that_can_change_the_project_of_a_namespace_is_checked() {
        let concerned = [
            (Method::POST, "/api/v1/namespaces"),
            (Method::POST, "/api/v1/namespaces/"),
            (Method::PUT, "/api/v1/namespaces/a"),
            (Method::PATCH, "/api/v1/namespaces/a"),
            (Method::PATCH, "/api/v1/namespaces/a/status"),
            (Method::PUT, "/api/v1/namespaces/a/finalize"),
        ];
        for (method, path) in concerned {
            assert!(changes_namespace(&method, path), "{method} {path}");
        }
        let others = [
            (Method::GET, "/api/v1/namespaces"),
            (Method::DELETE, "/api/v1/namespaces/a"),
            (Method::POST, "/api/v1/namespaces/a/pods"),
            (Method::PUT, "/api/v1/namespaces/a/pods/b"),
            (Method::POST, "/apis/v1/namespaces"),
        ];
        for (method, path) in others {
            assert!(!changes_namespace(&method, path), "{method} {path}");
        }
    }

    #[test]
    fn a_namespace_without_a_version_is_new_however_it_is_written() {
        use feature_kit::DownstreamIdentity;
        let identity = DownstreamIdentity {
            user: "u-1".to_owned(),
            uid: String::new(),
            groups: Vec::new(),
            extra: Default::default(),
        };
        let is_new = |method: &Method, version: Option<&str>| {
            let object = serde_json::json!({"metadata": {"uid": "x", "resourceVersion": version}});
            let (cluster, identity) = ("c-1", &identity);
            let write =
                CheckedWrite { cluster, identity, method, object: &object, is_dry_run: false };
            super::is_new(&write)
        };
        assert!(is_new(&Method::POST, Some("7")) && is_new(&Method::PATCH, None));
        assert!(!is_new(&Method::PATCH, Some("7")) && !is_new(&Method::PUT, Some("7")));
    }
}
