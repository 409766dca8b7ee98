//! Arguments, variables and files of the process of a pod.

use serde_json::json;

use super::container::{expand, mount_variable, pod_field};
use super::files::write_file;

#[test]
fn arguments_take_earlier_variables() {
    let environment = [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())];
    for (given, expanded) in [
        ("$(A)-$(B)", "1-2"),
        ("$$(A)", "$(A)"),
        ("$(C)", "$(C)"),
        ("$A $", "$A $"),
        ("$(A", "$(A"),
    ] {
        assert_eq!(expand(given, &environment), expanded);
    }
}

#[test]
fn variables_contain_the_directories_of_mounts() {
    assert_eq!(mount_variable("/cattle-credentials"), "DROVER_MOUNT_CATTLE_CREDENTIALS");
    assert_eq!(mount_variable("/etc/a.b/"), "DROVER_MOUNT_ETC_A_B");
}

#[test]
fn fields_of_the_pod_are_found_by_path() {
    let pod = json!({"metadata": {"name": "p", "labels": {"a/b": "c"}},
                     "spec": {"nodeName": "n"}});
    assert_eq!(pod_field(&pod, "metadata.name"), "p");
    assert_eq!(pod_field(&pod, "metadata.labels['a/b']"), "c");
    assert_eq!(pod_field(&pod, "spec.nodeName"), "n");
    assert_eq!(pod_field(&pod, "status.podIP"), "");
}

#[test]
fn files_stay_inside_their_volume() {
    let folder = tempfile::tempdir().unwrap();
    write_file(folder.path(), "a/b", b"x").unwrap();
    assert_eq!(std::fs::read(folder.path().join("a/b")).unwrap(), b"x");
    for bad in ["../x", "/etc/x", "", "a/../../x"] {
        assert!(write_file(folder.path(), bad, b"x").is_err(), "{bad}");
    }
}
