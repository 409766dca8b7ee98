//! Keeps true: who made a project was made its owner, once.
//!
//! The roles are the role templates that say so (`projectCreatorDefault`), or `project-owner`. Owns
//! the project's condition CreatorMadeOwner; once it is true the bindings are the administrators'
//! to take away. Projects that the server itself made have no creator. Watches projects (own key),
//! their namespaces, and role templates (to all projects without the condition).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_management::role_template::{CONTEXT_PROJECT, PROJECT_OWNER};
use api_management::{Project, ProjectRoleTemplateBinding, RoleTemplate, condition, keys};
use controller::{
    Attempt, ConditionState, Key, Metadata, Outcome, OwnedCondition, Reconcile, ReconcileError,
    Reflector, Runner, StatusPatch, StatusTarget, Whole, ensure,
};
use feature_kit::ownership::is_namespace_of_project;
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};

use crate::role_template::by_name;

const MADE_OWNER: OwnedCondition = OwnedCondition::of("Project", "CreatorMadeOwner");
/// Prefix of the names of the bindings in the project's namespace; the role follows.
const PREFIX: &str = "creator-";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        "project-creator",
        vec![
            ours(&["projects"], &["get"]),
            ours(&["projects/status"], &["patch"]),
            ours(&["projectroletemplatebindings"], &["create"]),
        ],
    )
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let creator = Creator {
        client,
        projects: scope.reflectors.get(),
        namespaces: scope.reflectors.get(),
        templates: scope.reflectors.get(),
    };
    let (projects, namespaces) = (creator.projects.clone(), creator.namespaces.clone());
    let templates = creator.templates.clone();
    // Before that, a default role that was not heard of yet would be left out.
    templates.synced().await;
    let runner = Runner::new(Arc::new(creator));
    runner.watch_own(&projects);
    runner.watch(&namespaces, |change| {
        let project = keys::project_of(change.object());
        project.map(|(cluster, project)| Key::namespaced(cluster, project))
    });
    runner.watch(&templates, move |_| {
        let mut open = Vec::new();
        projects.for_each(|key, project| {
            if !is_done(project) {
                open.push(key.clone());
            }
        });
        open
    });
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

struct Creator {
    client: Client,
    projects: Arc<Reflector<Whole<Project>>>,
    namespaces: Arc<Reflector<Metadata<Namespace>>>,
    templates: Arc<Reflector<Whole<RoleTemplate>>>,
}

fn is_done(project: &Project) -> bool {
    condition::is_true(&project.status.conditions, MADE_OWNER.condition())
}

/// The user who made a project; none when the server itself did.
fn creator_of(project: &Project) -> Option<&str> {
    let creator = project.annotations().get(keys::CREATOR_ID)?;
    (!creator.is_empty()).then_some(creator)
}

/// The roles that the creator of a project gets; none when there is no such role template. Pure.
pub(crate) fn roles(known: &BTreeMap<String, Arc<RoleTemplate>>) -> BTreeSet<&str> {
    let is_free = |template: &RoleTemplate| !template.locked && template.context == CONTEXT_PROJECT;
    let free = || known.iter().filter(|(_, template)| is_free(template));
    let defaults: BTreeSet<&str> = free()
        .filter(|(_, template)| template.project_creator_default)
        .map(|(name, _)| name.as_str())
        .collect();
    if !defaults.is_empty() {
        return defaults;
    }
    free().map(|(name, _)| name.as_str()).filter(|name| *name == PROJECT_OWNER).collect()
}

/// The binding of a project's creator to a role. Pure.
pub(crate) fn desired(project: &Project, creator: &str, role: &str) -> ProjectRoleTemplateBinding {
    let Key { namespace: cluster, name } = Key::of(project);
    let mut binding = ProjectRoleTemplateBinding {
        project_name: format!("{cluster}:{name}"),
        role_template_name: role.to_owned(),
        user_name: creator.to_owned(),
        ..ProjectRoleTemplateBinding::default()
    };
    binding.metadata.name = Some(format!("{PREFIX}{role}"));
    binding.metadata.namespace = Some(name);
    binding
}

impl Creator {
    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(project) = self.projects.get(key) else { return Ok(Outcome::Done) };
        if is_done(&project) || project.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        // Read anew: the watch may not have brought yet that this was done, and the binding may
        // have been taken away since.
        let projects: Api<Project> = Api::namespaced(self.client.clone(), &key.namespace);
        let read = projects.get_opt(&key.name).await;
        let now = read.attempt(|| format!("read project \"{key}\""))?;
        let is_open = |now: &Project| now.uid() == project.uid() && !is_done(now);
        if !now.as_ref().is_some_and(is_open) {
            return Ok(Outcome::Done);
        }
        if let Some(creator) = creator_of(&project) {
            let namespace = self.namespaces.named(&key.name);
            if !namespace.is_some_and(|namespace| is_namespace_of_project(&namespace, &project)) {
                return Ok(Outcome::WaitingFor(format!("namespace \"{}\"", key.name)));
            }
            let known = by_name(&self.templates);
            let roles = roles(&known);
            if roles.is_empty() {
                return Ok(Outcome::WaitingFor(format!("role template \"{PROJECT_OWNER}\"")));
            }
            let api = Api::namespaced(self.client.clone(), &key.name);
            for role in roles {
                ensure::created(&api, &desired(&project, creator, role)).await?;
            }
        }
        let target = StatusTarget::of::<Project>(&key.namespace, &key.name);
        let patch = StatusPatch::new().condition(MADE_OWNER, ConditionState::yes());
        patch.write(&self.client, &target).await?;
        Ok(Outcome::Done)
    }
}

impl Reconcile for Creator {
    fn name(&self) -> &'static str {
        "project-creator"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
