//! Which inputs change the hash of a build.

use super::*;

#[test]
fn a_change_of_any_file_or_flag_changes_the_hash() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("cmd/a")).unwrap();
    fs::write(folder.path().join("go.sum"), "one").unwrap();
    fs::write(folder.path().join("cmd/a/main.go"), "package main").unwrap();
    let before = of(folder.path(), &[], "-s").unwrap();
    assert_eq!(before, of(folder.path(), &[], "-s").unwrap());
    assert_ne!(before, of(folder.path(), &[], "-w").unwrap());
    fs::write(folder.path().join("go.sum"), "two").unwrap();
    assert_ne!(before, of(folder.path(), &[], "-s").unwrap());
}

#[test]
fn outputs_of_a_build_do_not_change_the_hash() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("src/dist")).unwrap();
    fs::write(folder.path().join("src/dist/source.ts"), "one").unwrap();
    let before = of(folder.path(), &["dist"], "").unwrap();
    fs::create_dir_all(folder.path().join("dist")).unwrap();
    fs::write(folder.path().join("dist/made.js"), "made").unwrap();
    assert_eq!(before, of(folder.path(), &["dist"], "").unwrap());
    fs::write(folder.path().join("src/dist/source.ts"), "two").unwrap();
    assert_ne!(before, of(folder.path(), &["dist"], "").unwrap());
}
