//! A cluster that stays after the command, and its removal.

use std::process::Command;

use super::*;

#[test]
fn a_cluster_stays_after_up_and_is_removed_by_down() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("it");
    up(&folder, false, None).unwrap();
    let records = recorded_processes(&folder).unwrap();
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(RecordedProcess::is_running), "{records:?}");
    let second = up(&folder, false, None).unwrap_err().to_string();
    assert!(second.contains("is up"), "{second}");

    down(&folder).unwrap();
    assert!(!records.iter().any(RecordedProcess::is_running), "{records:?}");
    assert!(!folder.exists());
    down(&folder).unwrap();
}

#[test]
fn a_node_stays_after_up_and_is_removed_by_down() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("it");
    up(&folder, false, Some((&Vec::new(), false))).unwrap();
    let mut kubectl = Command::new(testbed::Binaries::locate().path(Program::Kubectl).unwrap());
    kubectl.args(["get", "nodes", "--no-headers", "--kubeconfig"]);
    let output = kubectl.arg(folder.join("admin.kubeconfig")).output().unwrap();
    let nodes = String::from_utf8_lossy(&output.stdout);
    assert!(nodes.starts_with("node-1") && nodes.contains(" Ready "), "{output:?}");
    let records = RealNode::recorded_processes(&folder).unwrap();
    assert_eq!(records.len(), 3, "{records:?}");
    assert!(records.iter().all(RecordedProcess::is_running), "{records:?}");

    down(&folder).unwrap();
    assert!(!records.iter().any(RecordedProcess::is_running), "{records:?}");
    assert!(!folder.exists());
    down(&folder).unwrap();
}

#[test]
fn a_name_that_is_a_path_is_refused() {
    for name in ["", "../x", "a/b", "-x", "A"] {
        assert!(folder(name).is_err(), "{name}");
    }
    assert!(folder("two-nodes").is_ok());
}
