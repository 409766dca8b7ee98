//! The first columns of the history.

use super::*;

#[test]
fn a_machine_is_named_with_its_cores_and_its_model() {
    let processors = "processor\t: 0\nmodel name\t: AMD EPYC\nprocessor\t: 1\n";
    assert_eq!(machine(2, processors), "2 cores, AMD EPYC");
    assert_eq!(machine(4, "processor\t: 0\n"), "4 cores");
}

#[test]
fn a_commit_is_marked_while_other_files_than_the_history_differ() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    assert_eq!(commit(root), "-");
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
        let mut command = Command::new("git");
        assert!(
            command.args(identity).args(arguments).current_dir(root).status().unwrap().success()
        );
    };
    std::fs::create_dir_all(root.join("docs/operations")).unwrap();
    std::fs::write(root.join(HISTORY), "").unwrap();
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "x"]);
    let clean = commit(root);
    assert!(clean.len() >= 4 && !clean.ends_with('+'), "{clean}");
    std::fs::write(root.join(HISTORY), "one line more").unwrap();
    assert_eq!(commit(root), clean);
    std::fs::write(root.join("lib.rs"), "").unwrap();
    assert_eq!(commit(root), format!("{clean}+"));
}

/// What a reader of the history relies on.
#[test]
fn each_line_of_the_history_has_a_day_a_commit_a_machine_a_measurement_and_figures() {
    let text = std::fs::read_to_string(workspace::root().join(HISTORY)).unwrap();
    for line in text.lines().skip(1) {
        let [day, _, machine, _, figures] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        assert!(day.parse::<jiff::civil::Date>().is_ok() && machine.contains("cores"), "{line}");
        assert!(figures.split(' ').all(|figure| figure.split('=').count() == 2), "{line}");
    }
}
