//! The conditions of a terminating namespace, and its remaining contents.

use apiserver::admission::AdmissionChain;
use apiserver::kind::Kind;
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

use super::*;

#[tokio::test]
async fn a_kind_that_is_removed_meanwhile_blocks_no_namespace() {
    let folder = tempfile::tempdir().expect("a folder");
    let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default());
    let admission = Arc::new(AdmissionChain::default());
    let registry = Registry::start(storage.expect("a new storage"), admission).await;
    let registry = registry.expect("a registry");
    // Its definition was deleted after the catalog was read.
    let removed = Arc::new(Kind::new("", "secrets", "secret", "Secret").into_resource());
    let mut remaining = RemainingContents::default();
    let result =
        delete_resource_contents(&registry, &removed, "default", true, &mut remaining).await;
    assert!(result.is_ok(), "{:?}", result.err());
    assert!(remaining.is_empty());
}

#[test]
fn conditions_count_the_remaining_contents_like_kubernetes() {
    let mut remaining = RemainingContents::default();
    remaining.instances.insert("configmaps.".to_owned(), 1);
    remaining.finalizers.insert("ex.com/h".to_owned(), 1);
    let conditions = desired_conditions(&remaining, &Value::Null, "now");
    let messages: Vec<String> = conditions
        .iter()
        .map(|c| format!("{}={} {}", c["type"], c["status"], c["message"]).replace('"', ""))
        .collect();
    assert_eq!(
        messages[3],
        "NamespaceContentRemaining=True Some resources are remaining: configmaps. has 1 resource \
         instances"
    );
    assert_eq!(
        messages[4],
        "NamespaceFinalizersRemaining=True Some content in the namespace has finalizers \
         remaining: ex.com/h in 1 resource instances"
    );
    assert_eq!(conditions[0]["reason"], "ResourcesDiscovered");
}

#[test]
fn transition_times_change_only_with_the_status() {
    let remaining = RemainingContents::default();
    let before = desired_conditions(&remaining, &Value::Null, "then");
    let mut later = RemainingContents::default();
    later.instances.insert("pods.".to_owned(), 2);
    let after = desired_conditions(&later, &Value::from(before), "now");
    let times: Vec<&str> =
        after.iter().map(|c| c["lastTransitionTime"].as_str().unwrap_or_default()).collect();
    assert_eq!(times, ["then", "then", "then", "now", "then"]);
}
