//! Each folder of `xtask/fixtures/tidy` breaks one rule; tidy must say so, and nothing else.
//!
//! A fixture is a workspace of its own. Its file `expected` holds the complaints, one a line.

use super::*;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tidy")
}

#[track_caller]
fn check_fixture(name: &str) {
    let folder = fixtures().join(name);
    let expected = std::fs::read_to_string(folder.join("expected")).unwrap();
    let seen: Vec<String> = complaints(&folder).unwrap().iter().map(ToString::to_string).collect();
    let expected: Vec<&str> = expected.lines().collect();
    assert_eq!(seen, expected, "fixture '{name}'");
}

macro_rules! fixtures {
    ($($test:ident => $folder:literal;)*) => {
        $(#[test] fn $test() { check_fixture($folder); })*

        #[test]
        fn every_fixture_has_its_test() {
            let mut named = vec![$($folder),*];
            named.sort();
            let mut found: Vec<String> = std::fs::read_dir(fixtures())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort();
            assert_eq!(named, found);
        }
    };
}

fixtures! {
    a_clean_workspace_gets_no_complaint => "clean";
    an_upward_dependency_is_refused => "upward-dependency";
    a_dependency_between_features_is_refused => "feature-on-feature";
    a_crate_without_a_floor_is_refused => "no-floor";
    an_engine_that_knows_a_kind_is_refused => "engine-knows-kind";
    tests_may_use_test_crates_and_nothing_else_above => "dev-dependencies";
    a_second_writer_of_a_condition_is_refused => "second-condition-writer";
    a_condition_that_others_can_write_is_refused => "public-condition";
    a_condition_named_by_a_variable_is_refused => "computed-condition";
    rooms_that_use_each_other_are_refused => "room-cycle";
    names_outside_the_vocabulary_are_refused => "vocabulary";
    public_items_without_a_contract_are_refused => "contracts";
    an_architecture_that_is_not_so_is_refused => "architecture";
    a_kind_without_its_places_is_refused => "kinds";
    a_dependency_that_no_source_names_is_refused => "unnamed-dependency";
    a_module_without_a_head_is_refused => "no-head";
    a_mod_file_is_refused => "mod-file";
    a_module_name_that_says_nothing_is_refused => "empty-name";
    an_open_end_without_an_issue_is_refused => "open-ends";
    an_ignored_test_is_refused => "ignored-test";
    a_sleeping_test_is_refused => "sleeping-test";
    a_command_that_does_not_exist_is_refused => "unknown-command";
    a_table_of_compatibility_that_is_not_so_is_refused => "compatibility";
    a_ledger_of_flaky_tests_with_too_many_open_rows_is_refused => "flaky-tests";
}

#[test]
fn a_flaky_test_without_a_row_in_the_ledger_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["docs", "target"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join(crate::flaky::LEDGER), "# Flaky tests\n").unwrap();
    crate::flaky::record(folder.path(), ["e2e::a::race"].into_iter()).unwrap();
    let tree = Tree::read(folder.path()).unwrap();
    let seen = flaky_tests::check(&tree).unwrap();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].text.starts_with("'e2e::a::race' was flaky on 20"), "{}", seen[0]);
}

#[test]
fn a_file_of_too_many_lines_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("longest.rs"), format!("//!\n{}", "//\n".repeat(799)))
        .unwrap();
    std::fs::write(folder.path().join("long.rs"), format!("//!\n{}", "//\n".repeat(800))).unwrap();
    let tree = Tree::read(folder.path()).unwrap();
    let seen: Vec<String> =
        manners::check(&tree).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(seen, ["long.rs: 801 lines; a file may have 800: split it by concern"]);
}

/// Not a folder of fixtures: it would bring the words into the tree.
#[test]
fn a_path_of_one_machine_and_the_host_of_a_registry_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let host = ["registry.np", "mjs.org"].concat();
    let place = ["/wor", "k/"].concat();
    std::fs::write(folder.path().join("README.md"), format!("ours\nin {place}x\n")).unwrap();
    std::fs::write(folder.path().join("a.rs"), format!("//! From {host}.\n")).unwrap();
    std::fs::write(folder.path().join("package-lock.json"), host.clone()).unwrap();
    let tree = Tree::read(folder.path()).unwrap();
    let seen: Vec<String> = words::check(&tree).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        seen,
        [
            format!("README.md:2: '{place}' is a path of one machine"),
            format!("a.rs:1: '{host}' is the host of a registry"),
        ]
    );
}
