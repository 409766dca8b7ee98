//! NamespaceAssignment: the project of one namespace of a cluster. In the namespace of the cluster,
//! named like the downstream namespace. Written by the server alone.
//!
//! The annotation of the downstream namespace follows this object; a change of the annotation has
//! no effect on it.

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::{ApiVersion, KindName, ObjectRules, kind};

/// Pending changes of one namespace.
pub const PENDING_MAX: usize = 8;

/// Which project one namespace of a cluster is in.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceAssignment {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    pub spec: NamespaceAssignmentSpec,
}

kind!(NamespaceAssignment, "namespaceassignments", "namespaceassignment", Namespaced,
    NamespaceResourceScope, status: false, short: [], columns: [
    ("Project", "string", ".spec.assigned.project", false),
    ("Pending", "string", ".spec.pending[*].project", true),
]);

/// The project of a namespace, and its pending changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceAssignmentSpec {
    /// What holds now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned: Option<Assignment>,
    /// What was allowed, each holds once the namespace says so. The newest last, [`PENDING_MAX`] at
    /// most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingAssignment>,
}

/// A project for a namespace. Uids make sure that neither passes to another object of the same
/// name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Assignment {
    /// Name of the project in the same cluster.
    pub project: String,
    pub project_uid: String,
    pub namespace_uid: String,
}

/// A change that the server let through, until it is seen or expires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PendingAssignment {
    /// Name of the project in the same cluster; empty: out of its project.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project_uid: String,
    /// Empty: of the namespace that is being created.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace_uid: String,
    /// Seconds since 1970. After that the change counts as one that did not happen.
    pub until: i64,
}

impl NamespaceAssignment {
    /// The project of the namespace with this uid.
    pub fn assigned_to(&self, namespace_uid: &str) -> Option<&Assignment> {
        self.spec.assigned.as_ref().filter(|assigned| assigned.namespace_uid == namespace_uid)
    }

    /// Whether the project of the namespace with this uid is decided, including that it has none.
    pub fn is_decided(&self, namespace_uid: &str) -> bool {
        match &self.spec.assigned {
            Some(assigned) => assigned.namespace_uid == namespace_uid,
            None => true,
        }
    }

    /// A pending change of the namespace with this uid to `project` (empty: to no project) that can
    /// still happen. `now` in seconds since 1970.
    pub fn pending_to(
        &self,
        project: &str,
        namespace_uid: &str,
        now: i64,
    ) -> Option<&PendingAssignment> {
        let of_uid = ["", namespace_uid];
        self.spec.pending.iter().find(|pending| {
            pending.until > now
                && pending.project == project
                && of_uid.contains(&pending.namespace_uid.as_str())
        })
    }

    /// The other projects than `project` (empty: out of its project) that the namespace with this
    /// uid may be in before long, by changes that are pending. `now` in seconds since 1970.
    pub fn on_the_way_to(
        &self,
        project: &str,
        namespace_uid: &str,
        now: i64,
    ) -> impl Iterator<Item = &str> {
        let others = self.spec.pending.iter().map(|pending| pending.project.as_str());
        others.filter(move |&other| {
            other != project && self.pending_to(other, namespace_uid, now).is_some()
        })
    }

    /// Adds a pending change, and removes an equal one and those that have expired. `now` in
    /// seconds since 1970.
    pub fn expect(&mut self, change: PendingAssignment, now: i64) {
        let pending = &mut self.spec.pending;
        pending.retain(|old| {
            old.until > now && PendingAssignment { until: change.until, ..old.clone() } != change
        });
        if pending.len() >= PENDING_MAX {
            pending.remove(0);
        }
        pending.push(change);
    }

    /// Replaces the current assignment, and removes the pending changes to the same project.
    pub fn assign(&mut self, assigned: Option<Assignment>) {
        let project = assigned.as_ref().map_or("", |assigned| &assigned.project);
        self.spec.pending.retain(|pending| pending.project != project);
        self.spec.assigned = assigned;
    }
}

impl ObjectRules for NamespaceAssignment {
    fn validate(&self, _: Option<&Self>) -> Vec<Cause> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_on_the_way_to_other_projects_while_changes_are_pending() {
        let mut assignment = NamespaceAssignment::default();
        let pending = |project: &str, uid: &str, until| PendingAssignment {
            project: project.to_owned(),
            namespace_uid: uid.to_owned(),
            until,
            ..PendingAssignment::default()
        };
        for (project, uid, until) in [("a", "1", 9), ("b", "1", 9), ("c", "2", 9), ("d", "1", 5)] {
            assignment.expect(pending(project, uid, until), 0);
        }
        let on_the_way = |to| assignment.on_the_way_to(to, "1", 5).collect::<Vec<_>>();
        assert_eq!(on_the_way("a"), ["b"]);
        assert_eq!(on_the_way(""), ["a", "b"]);
    }
}
