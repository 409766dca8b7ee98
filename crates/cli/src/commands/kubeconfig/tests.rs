//! Files as kubectl and users write them.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const OTHERS: &str = "# mine\napiVersion: v1\nkind: Config\ncurrent-context: work\nclusters:\n\
                      - name: work\n  cluster: {server: https://work}\n";

fn entry() -> ContextEntry {
    let config = json!({
        "current-context": "n",
        "contexts": [{"name": "n", "context": {"cluster": "n", "user": "n"}}],
        "clusters": [{"name": "n", "cluster": {"server": "https://drover/k8s/clusters/c-1"}}],
        "users": [{"name": "n", "user": {"token": "t:k"}}],
    });
    ContextEntry::current_of(&config).unwrap()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_merge_writes_a_backup_and_preserves_the_link_and_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    std::fs::write(&real, OTHERS).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o644)).unwrap();
    let link = folder.path().join("config");
    symlink(&real, &link).unwrap();

    merge_into(&link, "north", &entry(), false).unwrap();
    merge_into(&link, "north", &entry(), false).unwrap();
    assert!(link.is_symlink());
    assert_eq!(mode(&real), 0o600);
    let written: Value = serde_saphyr::from_str(&std::fs::read_to_string(&real).unwrap()).unwrap();
    assert_eq!(written["current-context"], "work");
    assert_eq!(written["contexts"].as_array().unwrap().len(), 1);
    let found = names(folder.path());
    let backups: Vec<_> = found.iter().filter(|name| name.contains(".drover-backup-")).collect();
    assert_eq!(backups.len(), 2, "{found:?}");
    let oldest = folder.path().join(backups[0]);
    assert_eq!(std::fs::read_to_string(&oldest).unwrap(), OTHERS);
    assert_eq!(mode(&oldest), 0o600);
    assert!(!found.iter().any(|name| name.ends_with(".lock")), "{found:?}");
}

#[test]
fn a_file_that_cannot_be_merged_is_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    for text in ["clusters: [", "- a\n- b\n", "clusters: {a: 1}\n"] {
        std::fs::write(&file, text).unwrap();
        let error = merge_into(&file, "north", &entry(), false).unwrap_err();
        assert!(error.message.contains("nothing was changed") && error.hint.is_some(), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    assert_eq!(names(folder.path()), ["config"]);

    // kubectl holds the lock.
    std::fs::write(folder.path().join("config.lock"), "").unwrap();
    let error = merge_into(&file, "north", &entry(), false).unwrap_err();
    assert_eq!(error.failure, Failure::Conflict);
    assert_eq!(names(folder.path()), ["config", "config.lock"]);
}
