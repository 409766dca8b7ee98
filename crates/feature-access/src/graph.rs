//! The role graph: from a person to the role groups that stand for their roles.
//!
//! Kept in memory by watches on bindings, role templates and the cluster-admin bindings of the
//! management API. Answers never wait, and a change holds as soon as its watch event is in.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use api_management::role_template::CLUSTER_OWNER;
use api_management::{ClusterRoleTemplateBinding, RoleTemplate, user};
use controller::{Change, Key, Reflector, Reflectors, Whole};
use feature_kit::access::{CLUSTER_ADMIN, GLOBAL_BINDING_LABEL, GROUP_GLOBAL_ADMIN, cluster_group};
use feature_kit::{Membership, RoleResolver};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::role_template::closure;

/// Group that every person is in; bindings to it do not make everybody an administrator.
const EVERYBODY: &str = "system:authenticated";

/// Who a role is given to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Subject {
    User(Box<str>),
    Group(Box<str>),
}

/// One role in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    cluster: Arc<str>,
    role: Arc<str>,
}

#[derive(Default)]
struct State {
    grants: HashMap<Subject, Vec<(Key, Grant)>>,
    /// Role template to those it inherits, direct ones only.
    inherits: HashMap<String, Vec<String>>,
    templates: HashMap<String, Arc<RoleTemplate>>,
    admins: HashMap<Subject, BTreeSet<Key>>,
}

/// See the module.
pub struct RoleGraph {
    state: Arc<RwLock<State>>,
    changes: watch::Sender<u64>,
    bindings: Arc<Reflector<Whole<ClusterRoleTemplateBinding>>>,
    templates: Arc<Reflector<Whole<RoleTemplate>>>,
    admins: Arc<Reflector<Whole<ClusterRoleBinding>>>,
}

impl RoleGraph {
    /// Must be called inside a tokio runtime.
    pub fn new(reflectors: &Reflectors) -> Arc<Self> {
        let bindings = reflectors.get::<Whole<ClusterRoleTemplateBinding>>();
        let templates = reflectors.get::<Whole<RoleTemplate>>();
        let global = format!("{GLOBAL_BINDING_LABEL}=true");
        let admins = reflectors.selected::<Whole<ClusterRoleBinding>>(&global);
        let changes = watch::Sender::new(0);
        let graph = Self { state: Arc::default(), changes, bindings, templates, admins };
        let (state, changes) = (graph.state.clone(), graph.changes.clone());
        graph.bindings.subscribe(move |change| {
            state.write().note_binding(change);
            changes.send_modify(|count| *count += 1);
            true
        });
        let (state, changes) = (graph.state.clone(), graph.changes.clone());
        graph.templates.subscribe(move |change| {
            state.write().note_template(change);
            changes.send_modify(|count| *count += 1);
            true
        });
        let (state, changes) = (graph.state.clone(), graph.changes.clone());
        graph.admins.subscribe(move |change| {
            state.write().note_admin(change);
            changes.send_modify(|count| *count += 1);
            true
        });
        Arc::new(graph)
    }

    /// Waits until all that decides has been read once. Until then people have fewer roles, never
    /// more.
    pub async fn synced(&self) {
        tokio::join!(self.bindings.synced(), self.templates.synced(), self.admins.synced());
    }

    /// A role template, as far as its watch has come.
    pub fn template(&self, name: &str) -> Option<Arc<RoleTemplate>> {
        self.state.read().templates.get(name).cloned()
    }

    /// The role and all it inherits.
    pub fn closure(&self, role: &str) -> BTreeSet<String> {
        self.state.read().closure(role)
    }

    /// Bindings and templates that use the role template, as far as their watches have come.
    pub fn users_of(&self, role: &str) -> Vec<String> {
        let state = self.state.read();
        let inheriting = state.inherits.iter().filter(|(_, roles)| roles.iter().any(|r| r == role));
        let mut users: Vec<String> =
            inheriting.map(|(name, _)| format!("roletemplate \"{name}\"")).collect();
        drop(state);
        // Also those whose user has never come here.
        self.bindings.for_each(|key, binding| {
            if binding.role_template_name == role {
                users.push(format!("clusterroletemplatebinding \"{key}\""));
            }
        });
        users
    }
}

impl State {
    fn note_binding(&mut self, change: &Change<'_, ClusterRoleTemplateBinding>) {
        let (key, old, new) = match change {
            Change::Applied { key, new, old } => (*key, *old, Some(*new)),
            Change::Deleted { key, old } => (*key, Some(*old), None),
        };
        if let Some(old) = old {
            for subject in subjects(old) {
                if let Some(grants) = self.grants.get_mut(&subject) {
                    grants.retain(|(granted, _)| granted != key);
                    if grants.is_empty() {
                        self.grants.remove(&subject);
                    }
                }
            }
        }
        // A binding counts in the cluster whose namespace it is in and in no other.
        let valid = new.filter(|new| new.cluster_name == key.namespace);
        for (subject, new) in valid.iter().flat_map(|new| subjects(new).map(move |s| (s, new))) {
            let grant = Grant {
                cluster: new.cluster_name.as_str().into(),
                role: new.role_template_name.as_str().into(),
            };
            self.grants.entry(subject).or_default().push((key.clone(), grant));
        }
    }

    fn note_template(&mut self, change: &Change<'_, RoleTemplate>) {
        let name = &change.key().name;
        match change {
            Change::Applied { new, .. } => {
                self.inherits.insert(name.clone(), new.role_template_names.clone());
                self.templates.insert(name.clone(), (*new).clone());
            }
            Change::Deleted { .. } => {
                self.inherits.remove(name);
                self.templates.remove(name);
            }
        }
    }

    fn note_admin(&mut self, change: &Change<'_, ClusterRoleBinding>) {
        let key = change.key().clone();
        self.admins.retain(|_, bindings| {
            bindings.remove(&key);
            !bindings.is_empty()
        });
        let Change::Applied { new, .. } = change else { return };
        if new.role_ref.kind != "ClusterRole" || new.role_ref.name != CLUSTER_ADMIN {
            return;
        }
        for subject in new.subjects.iter().flatten() {
            let subject = match subject.kind.as_str() {
                "User" => Subject::User(subject.name.as_str().into()),
                "Group" if subject.name != EVERYBODY => {
                    Subject::Group(subject.name.as_str().into())
                }
                _ => continue,
            };
            self.admins.entry(subject).or_default().insert(key.clone());
        }
    }

    fn closure(&self, role: &str) -> BTreeSet<String> {
        closure([role.to_owned()], |role| self.inherits.get(role).into_iter().flatten().cloned())
    }

    fn is_admin(&self, person: Membership<'_>) -> bool {
        person_subjects(person).any(|subject| self.admins.contains_key(&subject))
    }

    fn groups(
        &self,
        person: Membership<'_>,
        is_selected: impl Fn(&str) -> bool,
    ) -> BTreeSet<String> {
        let mut groups = BTreeSet::new();
        for subject in person_subjects(person) {
            let grants = self.grants.get(&subject).into_iter().flatten();
            for (_, grant) in grants.filter(|(_, grant)| is_selected(&grant.cluster)) {
                for role in self.closure(&grant.role) {
                    groups.insert(cluster_group(&grant.cluster, &role));
                }
            }
        }
        groups
    }
}

fn person_subjects<'a>(person: Membership<'a>) -> impl Iterator<Item = Subject> + 'a {
    let user = (!person.user.is_empty()).then(|| Subject::User(person.user.into()));
    // A person's groups come from outside; ours are decided here and never taken from there.
    let outside = person
        .groups
        .iter()
        .filter(|group| !group.starts_with(feature_kit::access::ROLE_GROUP_PREFIX));
    user.into_iter().chain(outside.map(|group| Subject::Group(group.as_str().into())))
}

fn subjects(binding: &ClusterRoleTemplateBinding) -> impl Iterator<Item = Subject> + use<> {
    let user = if binding.user_name.is_empty() {
        // A local principal names the user it belongs to.
        binding.user_principal_name.strip_prefix(user::LOCAL_PRINCIPAL).unwrap_or_default()
    } else {
        &binding.user_name
    };
    let groups = [binding.group_principal_name.clone(), binding.group_name.clone()];
    let user = (!user.is_empty()).then(|| Subject::User(user.into()));
    let groups = groups.into_iter().filter(|group| !group.is_empty());
    user.into_iter().chain(groups.map(|group| Subject::Group(group.into())))
}

impl RoleResolver for RoleGraph {
    fn cluster_groups(&self, cluster: &str, person: Membership<'_>) -> Vec<String> {
        let state = self.state.read();
        let mut groups = state.groups(person, |granted| granted == cluster);
        if state.is_admin(person) {
            groups.insert(cluster_group(cluster, CLUSTER_OWNER));
        }
        groups.into_iter().collect()
    }

    fn management_groups(&self, person: Membership<'_>) -> Vec<String> {
        let state = self.state.read();
        let mut groups = state.groups(person, |_| true);
        if state.is_admin(person) {
            groups.insert(GROUP_GLOBAL_ADMIN.to_owned());
        }
        groups.into_iter().collect()
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
            self.0.note_binding(&Change::Applied { key: &key, new: binding, old: None });
        }
        pub fn unbind(&mut self, name: &str, binding: &Arc<ClusterRoleTemplateBinding>) {
            let key = Key::namespaced(&binding.cluster_name, name);
            self.0.note_binding(&Change::Deleted { key: &key, old: binding });
        }
        pub fn admin(&mut self, binding: ClusterRoleBinding) {
            let key = Key::cluster_scoped(binding.metadata.name.as_deref().unwrap_or_default());
            let new = Arc::new(binding);
            self.0.note_admin(&Change::Applied { key: &key, new: &new, old: None });
        }
        pub fn groups(&self, person: Membership<'_>, cluster: &str) -> Vec<String> {
            self.0.groups(person, |granted| granted == cluster).into_iter().collect()
        }
        pub fn is_admin(&self, person: Membership<'_>) -> bool {
            self.0.is_admin(person)
        }
        pub fn is_empty(&self) -> bool {
            self.0.grants.is_empty()
        }
    }
}
