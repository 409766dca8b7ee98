//! What the role graph would say after changes that nobody has made yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_management::{
    ClusterRoleTemplateBinding, GlobalRoleBinding, ProjectRoleTemplateBinding, RoleTemplate,
};
use controller::{Change, Key, Projection, Reflector};
use serde::Serialize;

use super::RoleGraph;
use super::state::State;

/// A change of one object: its new state, or `None` when it is deleted.
#[derive(Clone, Debug)]
pub enum ProposedChange {
    Global(Key, Option<Arc<GlobalRoleBinding>>),
    Cluster(Key, Option<Arc<ClusterRoleTemplateBinding>>),
    Project(Key, Option<Arc<ProjectRoleTemplateBinding>>),
    Template(Key, Option<Arc<RoleTemplate>>),
}

/// A role that a user or group has somewhere, by a binding or by inheritance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holding {
    pub role: String,
    /// `User` or `Group`.
    pub kind: &'static str,
    /// User id, or the group as an identity provider knows it.
    pub name: String,
    /// Empty for a global role.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Empty for a role of a whole cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
}

impl RoleGraph {
    /// Who has which role now, and who would have which after the changes.
    pub fn compare(&self, changes: &[ProposedChange]) -> (BTreeSet<Holding>, BTreeSet<Holding>) {
        let mut state = self.state.read().clone();
        let before = state.holdings();
        for change in changes {
            match change {
                ProposedChange::Global(key, new) => {
                    propose(&mut state, &self.global, key, new.as_ref(), State::note_global);
                }
                ProposedChange::Cluster(key, new) => {
                    propose(&mut state, &self.clusters, key, new.as_ref(), State::note_cluster);
                }
                ProposedChange::Project(key, new) => {
                    propose(&mut state, &self.projects, key, new.as_ref(), State::note_project);
                }
                ProposedChange::Template(key, new) => {
                    propose(&mut state, &self.templates, key, new.as_ref(), State::note_template);
                }
            }
        }
        (before, state.holdings())
    }
}

fn propose<P: Projection>(
    state: &mut State,
    stored: &Reflector<P>,
    key: &Key,
    new: Option<&Arc<P::Projected>>,
    note: impl Fn(&mut State, &Change<'_, P::Projected>),
) {
    let old = stored.get(key);
    match (new, &old) {
        (Some(new), old) => note(state, &Change::Applied { key, new, old: old.as_ref() }),
        (None, Some(old)) => note(state, &Change::Deleted { key, old }),
        (None, None) => {}
    }
}
