//! The first projects and the rules of projects, without a server.

use api_management::{Cluster, Condition, keys};
use controller::Key;
use feature_kit::{Admit, Operation, Review};
use serde_json::json;

use crate::project::admission::ProjectRules;
use crate::project::management::desired;
use crate::project::namespace;

fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    cluster.metadata.name = Some("c-1".to_owned());
    cluster.metadata.uid = Some("1f0a9c37-5d2e-4b61-8c3f-7a9e0d1b2c4f".to_owned());
    cluster
}

#[test]
fn a_new_cluster_gets_default_and_system_under_names_that_stay() {
    let projects = desired(&cluster());
    let names: Vec<_> = projects.iter().map(|(_, p)| p.metadata.name.clone().unwrap()).collect();
    assert_eq!(projects[0].1.spec.display_name, "Default");
    assert_eq!(projects[1].1.spec.display_name, "System");
    assert!(projects[0].1.is_default() && projects[1].1.is_system());
    assert_ne!(names[0], names[1]);
    let again: Vec<_> =
        desired(&cluster()).into_iter().map(|(_, p)| p.metadata.name.unwrap()).collect();
    assert_eq!(names, again);
}

#[test]
fn a_project_that_was_made_once_is_not_made_again() {
    let mut cluster = cluster();
    cluster.status.conditions = vec![Condition {
        kind: "DefaultProjectCreated".to_owned(),
        status: "True".to_owned(),
        ..Condition::default()
    }];
    let left = desired(&cluster);
    assert_eq!(left.len(), 1);
    assert!(left[0].1.is_system());
}

#[tokio::test]
async fn people_cannot_delete_the_system_project_but_its_clusters_removal_can() {
    let system = json!({"metadata": {"labels": {keys::SYSTEM_PROJECT: "true"}}});
    let other = json!({"metadata": {}});
    let review = |user: &'static str, old| Review {
        operation: Operation::Delete,
        user,
        groups: &[],
        namespace: "c-1",
        name: "p-1",
        dry_run: false,
        object: None,
        old: Some(old),
    };
    assert!(ProjectRules.admit(&review("u-1", &system)).await.is_err());
    assert!(ProjectRules.admit(&review("u-1", &other)).await.is_ok());
    let removal = "system:drover:controller:cluster-removal";
    assert!(ProjectRules.admit(&review(removal, &system)).await.is_ok());
}

#[test]
fn the_namespace_of_a_project_says_whose_it_is() {
    let project = Key { namespace: "c-1".to_owned(), name: "p-1".to_owned() };
    let made = namespace::desired(&project);
    assert_eq!(made.metadata.name.as_deref(), Some("p-1"));
    assert_eq!(namespace::project_of(&made.metadata), Some(project));
    assert_eq!(namespace::project_of(&Default::default()), None);
}
