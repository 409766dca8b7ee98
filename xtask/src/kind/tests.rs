//! Finding the files of a kind.

use super::*;

#[test]
fn a_kind_and_its_stem_lead_to_the_same_files() {
    assert_eq!(stem("ClusterRegistrationToken"), "cluster_registration_token");
    assert_eq!(stem("cluster_registration_token"), "cluster_registration_token");
    assert_eq!(stem("role-template"), "role_template");
}

#[test]
fn the_listing_names_existing_and_missing_files() {
    let folder = tempfile::tempdir().unwrap();
    for file in [
        "crates/api-management/src/project.rs",
        "crates/feature-projects/src/project.rs",
        "crates/feature-projects/src/project/naming.rs",
    ] {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let (lines, found) = listing(folder.path(), "project");
    assert!(found);
    let text = lines.join("\n");
    assert!(text.contains("         crates/api-management/src/project.rs "), "{text}");
    assert!(text.contains("crates/feature-projects/src/project/naming.rs"), "{text}");
    assert!(text.contains("missing  crates/feature-*/src/project/tests.rs"), "{text}");
    assert!(text.contains("-        crates/cli/src/commands/project.rs"), "{text}");
    assert!(!listing(folder.path(), "node").1);
}
