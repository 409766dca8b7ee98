//! The roles that every server has, from the files in `builtin`, and the two roles of the
//! management API that no global role gives: that of everybody who logged in, and that of
//! administrators.
//!
//! At each start their rules are restored. What administrators choose stays: who gets a role by
//! default, and whether it may still be given.

mod parse;

use std::collections::BTreeMap;

use api_management::role_template::{CONTEXT_CLUSTER, CONTEXT_PROJECT};
use api_management::{GlobalRole, RoleTemplate, keys};
use controller::ensure::{self, Object};
use controller::status::merge_difference;
use controller::{Attempt, ReconcileError};
use feature_kit::access::{CLUSTER_ADMIN, GROUP_GLOBAL_ADMIN, GROUP_PEOPLE};
use feature_kit::rbac::{ours, role_ref, subject, to_kube};
use feature_kit::roles::READ;
use feature_kit::{Seed, SeedMode};
use futures::future::try_join_all;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};

use self::parse::RoleEntry;

const GLOBAL_ROLES: &str = include_str!("../builtin/global_roles.txt");
const ROLE_TEMPLATES: &str = include_str!("../builtin/role_templates.txt");

/// What everybody who logged in may do in the management API.
const PEOPLE_ROLE: &str = "drover:people";

/// The global roles, in the order of their file.
pub fn global_roles() -> Vec<GlobalRole> {
    entries(GLOBAL_ROLES).into_iter().map(global_role).collect()
}

/// The role templates, in the order of their file.
pub fn role_templates() -> Vec<RoleTemplate> {
    entries(ROLE_TEMPLATES).into_iter().map(role_template).collect()
}

fn entries(text: &str) -> Vec<RoleEntry> {
    parse::entries(text).unwrap_or_else(|error| panic!("a file of built-in roles: {error}"))
}

fn metadata(name: String, what: &str) -> ObjectMeta {
    let labels = BTreeMap::from([(keys::BOOTSTRAPPING.to_owned(), what.to_owned())]);
    ObjectMeta { name: Some(name), labels: Some(labels), ..ObjectMeta::default() }
}

fn global_role(entry: RoleEntry) -> GlobalRole {
    GlobalRole {
        new_user_default: entry.has("new-users"),
        metadata: metadata(entry.name, keys::BOOTSTRAP_GLOBAL_ROLE),
        display_name: entry.display_name,
        rules: entry.rules,
        builtin: true,
        ..GlobalRole::default()
    }
}

fn role_template(entry: RoleEntry) -> RoleTemplate {
    let is_cluster = entry.has(CONTEXT_CLUSTER);
    let inherited = entry.marks.iter().filter_map(|mark| mark.strip_prefix("inherits="));
    RoleTemplate {
        context: if is_cluster { CONTEXT_CLUSTER } else { CONTEXT_PROJECT }.to_owned(),
        role_template_names: inherited.map(str::to_owned).collect(),
        external: entry.has("external"),
        hidden: entry.has("hidden"),
        administrative: entry.has("administrative"),
        cluster_creator_default: entry.has("cluster-creators"),
        project_creator_default: entry.has("project-creators"),
        metadata: metadata(entry.name, keys::BOOTSTRAP_ROLE_TEMPLATE),
        display_name: entry.display_name,
        rules: entry.rules,
        builtin: true,
        ..RoleTemplate::default()
    }
}

/// A kind of role that ships with the server.
trait Shipped: Object + Sync {
    /// Whether the object ships with the server. One that users made under the name of a later
    /// built-in role stays theirs.
    fn is_builtin(&self) -> bool;

    /// This role as shipped, with what administrators have chosen in `current`.
    fn restored(&self, current: &Self) -> Self;
}

impl Shipped for GlobalRole {
    fn is_builtin(&self) -> bool {
        self.builtin
    }

    fn restored(&self, current: &Self) -> Self {
        Self {
            metadata: current.metadata.clone(),
            description: current.description.clone(),
            new_user_default: current.new_user_default,
            ..self.clone()
        }
    }
}

impl Shipped for RoleTemplate {
    fn is_builtin(&self) -> bool {
        self.builtin
    }

    fn restored(&self, current: &Self) -> Self {
        Self {
            metadata: current.metadata.clone(),
            locked: current.locked,
            cluster_creator_default: current.cluster_creator_default,
            project_creator_default: current.project_creator_default,
            ..self.clone()
        }
    }
}

/// Creates the roles that are missing and restores the others. Returns whether anything changed.
async fn put<K: Shipped>(client: Client, roles: Vec<K>) -> Result<bool, ReconcileError> {
    let api: Api<K> = Api::all(client);
    let kind = K::kind(&()).to_lowercase();
    let stored = api.list(&ListParams::default()).await.attempt(|| format!("list {kind}s"))?;
    let stored: BTreeMap<String, K> =
        stored.items.into_iter().map(|role| (role.name_any(), role)).collect();
    let puts = roles.iter().map(|role| put_one(&api, role, stored.get(&role.name_any())));
    Ok(try_join_all(puts).await?.contains(&true))
}

async fn put_one<K: Shipped>(
    api: &Api<K>,
    role: &K,
    stored: Option<&K>,
) -> Result<bool, ReconcileError> {
    let (kind, name) = (K::kind(&()).to_lowercase(), role.name_any());
    let Some(stored) = stored else { return ensure::created(api, role).await };
    if !stored.is_builtin() {
        tracing::warn!("{kind} \"{name}\" was made by a user; the built-in one is left out");
        return Ok(false);
    }
    let value = |role: &K| {
        serde_json::to_value(role).map_err(|error| ReconcileError::other("encode a role", error))
    };
    let Some(patch) = merge_difference(&value(stored)?, &value(&role.restored(stored))?) else {
        return Ok(false);
    };
    let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    patched.attempt(|| format!("restore {kind} \"{name}\"")).map(|_| true)
}

/// A role template is refused before those that it inherits are there, which inherit nothing.
async fn put_role_templates(client: Client) -> Result<bool, ReconcileError> {
    let (first, then): (Vec<_>, Vec<_>) =
        role_templates().into_iter().partition(|role| role.role_template_names.is_empty());
    let inherited = put(client.clone(), first).await?;
    Ok(put(client, then).await? || inherited)
}

fn group_binding(name: &str, role: &str, group: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        role_ref: role_ref("ClusterRole", role),
        subjects: Some(vec![subject("Group", group)]),
    }
}

/// What must be there from the start.
pub fn seeds() -> Vec<Seed> {
    let people = ClusterRole {
        metadata: ObjectMeta { name: Some(PEOPLE_ROLE.to_owned()), ..ObjectMeta::default() },
        rules: Some(vec![to_kube(&ours(&["settings", "roletemplates"], &READ))]),
        aggregation_rule: None,
    };
    let admin = group_binding(GROUP_GLOBAL_ADMIN, CLUSTER_ADMIN, GROUP_GLOBAL_ADMIN);
    let everybody = group_binding(PEOPLE_ROLE, PEOPLE_ROLE, GROUP_PEOPLE);
    vec![
        Seed::custom("built-in global roles".to_owned(), |client| {
            Box::pin(put(client, global_roles()))
        }),
        Seed::custom("built-in role templates".to_owned(), |client| {
            Box::pin(put_role_templates(client))
        }),
        Seed::cluster_scoped(SeedMode::Keep, admin),
        Seed::cluster_scoped(SeedMode::Keep, people),
        Seed::cluster_scoped(SeedMode::Keep, everybody),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_role_has_a_name_once_and_inherits_roles_that_inherit_nothing() {
        let templates = role_templates();
        assert_eq!((global_roles().len(), templates.len()), (18, 40));
        let names: BTreeSet<String> = templates.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names.len(), templates.len());
        let first: BTreeSet<String> = templates
            .iter()
            .filter(|role| role.role_template_names.is_empty())
            .map(ResourceExt::name_any)
            .collect();
        for role in &templates {
            assert!(role.role_template_names.iter().all(|name| first.contains(name)), "{role:?}");
            assert!(role.external || !role.rules.is_empty(), "{role:?}");
        }
    }

    #[test]
    fn the_rules_are_restored_and_the_choices_of_administrators_stay() {
        let roles = role_templates();
        let owner = roles.iter().find(|role| role.name_any() == "cluster-owner").unwrap();
        let mut current = owner.clone();
        current.rules.clear();
        current.hidden = true;
        (current.cluster_creator_default, current.locked) = (false, true);
        let restored = owner.restored(&current);
        assert_eq!(restored.rules, owner.rules);
        assert!(!restored.hidden && restored.locked && !restored.cluster_creator_default);

        let roles = global_roles();
        let user = roles.iter().find(|role| role.name_any() == "user").unwrap();
        assert!(user.new_user_default);
        let current = GlobalRole { new_user_default: false, ..user.clone() };
        assert!(!user.restored(&current).new_user_default);
    }
}
