//! A cluster that stays, and its end.

use super::*;

#[test]
fn a_cluster_stays_after_up_and_is_gone_after_down() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("it");
    up(&folder, false).unwrap();
    let records = recorded(&folder).unwrap();
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(RecordedProcess::is_running), "{records:?}");
    let second = up(&folder, false).unwrap_err().to_string();
    assert!(second.contains("is up"), "{second}");

    down(&folder).unwrap();
    assert!(!records.iter().any(RecordedProcess::is_running), "{records:?}");
    assert!(!folder.exists());
    let again = down(&folder).unwrap_err().to_string();
    assert!(again.contains("there is no testbed"), "{again}");
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    for name in ["", "../x", "a/b", "-x", "A"] {
        assert!(folder(name).is_err(), "{name}");
    }
    assert!(folder("two-nodes").is_ok());
}
