//! The conditions of a namespace that is ending, and what it holds.

use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

use super::*;
use crate::admission::AdmissionChain;
use crate::kind::Kind;

#[tokio::test]
async fn a_kind_that_is_removed_meanwhile_holds_up_no_namespace() {
    let folder = tempfile::tempdir().expect("a folder");
    let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default());
    let admission = Arc::new(AdmissionChain::default());
    let registry = Registry::start(storage.expect("a new storage"), admission).await;
    let registry = registry.expect("a registry");
    // Its definition was deleted after the catalog was read.
    let removed = Arc::new(Kind::new("", "secrets", "secret", "Secret").into_resource());
    let mut remains = Remains::default();
    let swept = sweep_resource(&registry, &removed, "default", true, &mut remains).await;
    assert!(swept.is_ok(), "{:?}", swept.err());
    assert!(remains.is_nothing());
}

#[test]
fn conditions_count_what_remains_in_upstreams_words() {
    let mut remains = Remains::default();
    remains.instances.insert("configmaps.".to_owned(), 1);
    remains.finalizers.insert("ex.com/h".to_owned(), 1);
    let conditions = desired_conditions(&remains, &Value::Null, "now");
    let told: Vec<String> = conditions
        .iter()
        .map(|c| format!("{}={} {}", c["type"], c["status"], c["message"]).replace('"', ""))
        .collect();
    assert_eq!(
        told[3],
        "NamespaceContentRemaining=True Some resources are remaining: configmaps. has 1 resource \
         instances"
    );
    assert_eq!(
        told[4],
        "NamespaceFinalizersRemaining=True Some content in the namespace has finalizers \
         remaining: ex.com/h in 1 resource instances"
    );
    assert_eq!(conditions[0]["reason"], "ResourcesDiscovered");
}

#[test]
fn transition_times_move_only_with_the_status() {
    let remains = Remains::default();
    let before = desired_conditions(&remains, &Value::Null, "then");
    let mut later = Remains::default();
    later.instances.insert("pods.".to_owned(), 2);
    let after = desired_conditions(&later, &Value::from(before), "now");
    let times: Vec<&str> =
        after.iter().map(|c| c["lastTransitionTime"].as_str().unwrap_or_default()).collect();
    assert_eq!(times, ["then", "then", "then", "now", "then"]);
}
