//! Which namespaces of one connected cluster are in which project, as those know it who act on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_management::namespace_assignment::Assignment;
use api_management::{NamespaceAssignment, Project, ids};
use controller::{Key, Reflector, Whole};

use super::controller::Seen;
use super::step::Claim;

/// Cheap to clone.
#[derive(Clone)]
pub struct Members {
    pub cluster: String,
    /// Of the cluster.
    pub namespaces: Arc<Reflector<Seen>>,
    /// Of all clusters.
    pub assignments: Arc<Reflector<Whole<NamespaceAssignment>>>,
}

impl Members {
    /// The project that a namespace is in. None for one that is being deleted.
    pub fn assigned(&self, namespace: &str) -> Option<Assignment> {
        let seen = self.namespaces.named(namespace).filter(|seen| !seen.terminating)?;
        if self.cluster == ids::LOCAL_CLUSTER {
            // Only administrators can write it.
            let project = Claim::of(seen.project.as_deref(), &self.cluster).project()?.to_owned();
            return Some(Assignment { project, ..Assignment::default() });
        }
        let key = Key::namespaced(&self.cluster, namespace);
        self.assignments.get(&key)?.assigned_to(&seen.uid).cloned()
    }

    /// The namespaces of each project, by its name. An assignment to an earlier project of the same
    /// name does not count. Not in the cluster `local`.
    pub fn by_project(
        &self,
        projects: &Reflector<Whole<Project>>,
    ) -> BTreeMap<String, BTreeSet<String>> {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (key, _) in self.assignments.in_namespace(&self.cluster) {
            let Some(assigned) = self.assigned(&key.name) else { continue };
            let project = projects.get(&Key::namespaced(&self.cluster, &assigned.project));
            let uid = project.and_then(|project| project.metadata.uid.clone());
            if uid.as_ref() == Some(&assigned.project_uid) {
                found.entry(assigned.project).or_default().insert(key.name);
            }
        }
        found
    }

    /// The namespaces of a project, by name.
    pub fn of(&self, project: &str) -> Vec<String> {
        let mut names: Vec<String> = match self.cluster == ids::LOCAL_CLUSTER {
            true => self.namespaces.all().into_iter().map(|(key, _)| key.name).collect(),
            false => {
                let all = self.assignments.in_namespace(&self.cluster);
                all.into_iter().map(|(key, _)| key.name).collect()
            }
        };
        names.retain(|name| self.assigned(name).is_some_and(|it| it.project == project));
        names
    }
}
