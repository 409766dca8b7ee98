//! How suites are found.

use super::*;

#[test]
fn a_crate_is_a_suite_when_its_sources_read_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("storage/src/tests/churn.rs", format!("var(\"{SECONDS_ENV}\")")),
        ("storage/src/lib.rs", String::new()),
        ("tunnel/src/lib.rs", String::new()),
        ("e2e/tests/kill.rs", format!("var(\"{SECONDS_ENV}\")")),
    ] {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    assert_eq!(suites(folder.path()).unwrap(), ["e2e", "storage"]);
}
