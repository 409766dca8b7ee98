//! The role graph: from a person to the role groups that stand for their roles.
//!
//! Kept in memory by watches on bindings of all levels, role templates and the cluster-admin
//! bindings of the management API. Answers never wait, and a change holds as soon as its watch
//! event is in. [`state`] is what it knows, [`subject`] who a binding is for.

mod proposed;
mod state;
mod subject;

use std::collections::BTreeSet;
use std::sync::Arc;

use api_management::{
    ClusterRoleTemplateBinding, GlobalRoleBinding, ProjectRoleTemplateBinding, RoleTemplate,
};
use controller::{Change, Projection, Reflector, Reflectors, Whole};
use feature_kit::access::GLOBAL_BINDING_LABEL;
use feature_kit::{Membership, RoleResolver};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use parking_lot::RwLock;
use tokio::sync::watch;

pub use self::proposed::{Holding, ProposedChange};
pub use self::state::RoleSource;
use self::state::State;

/// See the module.
pub struct RoleGraph {
    state: Arc<RwLock<State>>,
    changes: watch::Sender<u64>,
    global: Arc<Reflector<Whole<GlobalRoleBinding>>>,
    clusters: Arc<Reflector<Whole<ClusterRoleTemplateBinding>>>,
    projects: Arc<Reflector<Whole<ProjectRoleTemplateBinding>>>,
    templates: Arc<Reflector<Whole<RoleTemplate>>>,
    admins: Arc<Reflector<Whole<ClusterRoleBinding>>>,
}

impl RoleGraph {
    /// Must be called inside a tokio runtime.
    pub fn new(reflectors: &Reflectors) -> Arc<Self> {
        let admins = format!("{GLOBAL_BINDING_LABEL}=true");
        let graph = Self {
            state: Arc::default(),
            changes: watch::Sender::new(0),
            global: reflectors.get(),
            clusters: reflectors.get(),
            projects: reflectors.get(),
            templates: reflectors.get(),
            admins: reflectors.selected(&admins),
        };
        graph.follow(&graph.global, State::note_global);
        graph.follow(&graph.clusters, State::note_cluster);
        graph.follow(&graph.projects, State::note_project);
        graph.follow(&graph.templates, State::note_template);
        graph.follow(&graph.admins, State::note_admin);
        Arc::new(graph)
    }

    fn follow<P: Projection>(
        &self,
        reflector: &Reflector<P>,
        note: impl Fn(&mut State, &Change<'_, P::Projected>) + Send + Sync + 'static,
    ) {
        let (state, changes) = (self.state.clone(), self.changes.clone());
        reflector.subscribe(move |change| {
            note(&mut state.write(), change);
            changes.send_modify(|count| *count += 1);
            true
        });
    }

    /// Waits until all that decides has been read once. Until then people have fewer roles, never
    /// more.
    pub async fn synced(&self) {
        tokio::join!(
            self.global.synced(),
            self.clusters.synced(),
            self.projects.synced(),
            self.templates.synced(),
            self.admins.synced()
        );
    }

    /// A role template, as far as its watch has come.
    pub fn template(&self, name: &str) -> Option<Arc<RoleTemplate>> {
        self.state.read().template(name)
    }

    /// The role and all it inherits.
    pub fn closure(&self, role: &str) -> BTreeSet<String> {
        self.state.read().closure(role)
    }

    /// Where the role groups of a person come from: in one cluster, or in the management API.
    pub fn sources(&self, cluster: Option<&str>, person: Membership<'_>) -> Vec<RoleSource> {
        self.state.read().sources(cluster, person)
    }

    /// Bindings and templates that use the role template, as far as their watches have come.
    pub fn users_of(&self, role: &str) -> Vec<String> {
        let state = self.state.read();
        let mut users: Vec<String> =
            state.inheriting(role).map(|name| format!("roletemplate \"{name}\"")).collect();
        drop(state);
        // Also those whose user has never come here.
        self.clusters.for_each(|key, binding| {
            if binding.role_template_name == role {
                users.push(format!("clusterroletemplatebinding \"{key}\""));
            }
        });
        self.projects.for_each(|key, binding| {
            if binding.role_template_name == role {
                users.push(format!("projectroletemplatebinding \"{key}\""));
            }
        });
        users
    }
}

impl RoleResolver for RoleGraph {
    fn cluster_groups(&self, cluster: &str, person: Membership<'_>) -> Vec<String> {
        self.state.read().cluster_groups(cluster, person).into_iter().collect()
    }

    fn management_groups(&self, person: Membership<'_>) -> Vec<String> {
        self.state.read().management_groups(person).into_iter().collect()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn is_global_admin(&self, person: Membership<'_>) -> bool {
        self.state.read().is_admin(person)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! A graph that is given its objects instead of watching them.

    use controller::Key;

    use super::*;

    #[derive(Default)]
    pub struct FakeGraph(State);

    impl FakeGraph {
        pub fn template(&mut self, name: &str, inherits: &[&str]) {
            let template = RoleTemplate {
                role_template_names: inherits.iter().map(|&name| name.to_owned()).collect(),
                ..Default::default()
            };
            let (key, new) = (Key::cluster_scoped(name), Arc::new(template));
            self.0.note_template(&Change::Applied { key: &key, new: &new, old: None });
        }
        pub fn bind(&mut self, name: &str, binding: &Arc<ClusterRoleTemplateBinding>) {
            let key = Key::namespaced(&binding.cluster_name, name);
            self.0.note_cluster(&Change::Applied { key: &key, new: binding, old: None });
        }
        pub fn unbind(&mut self, name: &str, binding: &Arc<ClusterRoleTemplateBinding>) {
            let key = Key::namespaced(&binding.cluster_name, name);
            self.0.note_cluster(&Change::Deleted { key: &key, old: binding });
        }
        pub fn bind_in_project(&mut self, ns: &str, binding: &Arc<ProjectRoleTemplateBinding>) {
            let key = Key::namespaced(ns, "b");
            self.0.note_project(&Change::Applied { key: &key, new: binding, old: None });
        }
        pub fn unbind_in_project(&mut self, ns: &str, binding: &Arc<ProjectRoleTemplateBinding>) {
            let key = Key::namespaced(ns, "b");
            self.0.note_project(&Change::Deleted { key: &key, old: binding });
        }
        pub fn admin(&mut self, binding: ClusterRoleBinding) {
            let key = Key::cluster_scoped(binding.metadata.name.as_deref().unwrap_or_default());
            let new = Arc::new(binding);
            self.0.note_admin(&Change::Applied { key: &key, new: &new, old: None });
        }
        pub fn groups(&self, person: Membership<'_>, cluster: &str) -> Vec<String> {
            self.0.cluster_groups(cluster, person).into_iter().collect()
        }
        pub fn is_admin(&self, person: Membership<'_>) -> bool {
            self.0.is_admin(person)
        }
        pub fn is_empty(&self) -> bool {
            self.0.is_empty()
        }
    }
}
