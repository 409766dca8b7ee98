//! Formats, colours and watches of lists; commands that are kubectl's.

use testbed::Process;

use super::*;

#[test]
fn lists_are_printed_in_the_format_that_is_asked_for() {
    let world = world();
    let cli = &world.admin;
    let list = |more: &[&str]| cli.succeed(&[&["cluster", "ls"][..], more].concat()).unwrap();
    let is_line = |text: &str, line: &str| text.lines().any(|one| one == line);
    assert!(is_line(&list(&["-o", "name"]), "north"));
    assert!(is_line(&list(&["-q"]), &world.north));
    let wide = list(&["-o", "wide"]);
    assert!(wide.contains("MEMORY") && !list(&[]).contains("MEMORY"), "{wide}");
    let template = "jsonpath={range [*]}{.name}={.state}{\"\\n\"}{end}";
    assert!(is_line(&list(&["-o", template]), "north=active"));
    let one = ["cluster", "get", "north", "-o", "jsonpath={.id}"];
    assert_eq!(cli.succeed(&one).unwrap().trim(), world.north);
    let refused = cli.run(&["cluster", "ls", "-o", "jsonpath={.name"]).unwrap();
    assert_eq!(refused.code, USAGE, "{refused:?}");
    // A project is in a cluster that has a name.
    let projects = cli.succeed(&["project", "ls", "--cluster", "north"]).unwrap();
    let default = projects.lines().find(|line| line.starts_with("Default")).unwrap();
    assert_eq!(default.split_whitespace().nth(2), Some("north"), "{projects}");
}

#[test]
fn states_have_colours_at_a_terminal_only() {
    let world = world();
    let cli = &world.admin;
    let green = "\u{1b}[32mactive\u{1b}[0m";
    let at = |variable: Option<(&str, &str)>| {
        let mut command = at_terminal(cli, &["cluster", "ls"]);
        command.envs(variable);
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(at(None).contains(green), "{}", at(None));
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let shown = at(Some(variable));
        assert!(shown.contains("active") && !shown.contains("\u{1b}[3"), "{shown:?}");
    }
    assert!(!cli.succeed(&["cluster", "ls"]).unwrap().contains('\u{1b}'));
}

#[test]
fn a_watched_list_prints_what_is_new_and_says_what_is_deleted() {
    let world = world();
    let cli = &world.admin;
    let log = cli.home().join("watched.log");
    let watch = ["project", "ls", "--cluster", "north", "--watch"];
    let mut watching: Process = cli.start(&watch, &log).unwrap();
    let seen = |words: &str| {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let count = text.lines().filter(|line| line.contains(words)).count();
        ensure!(count > 0, "\"{words}\" is not in:\n{text}");
        anyhow::Ok(count)
    };
    eventually("the list is printed", || seen("Default"));
    let create = ["project", "create", "watched", "--cluster", "north"];
    let project = cli.succeed(&create).unwrap().trim().to_owned();
    eventually("the new project is printed", || seen("watched"));
    cli.succeed(&["project", "rm", &project, "--yes"]).unwrap();
    eventually("the deletion is said", || seen("deleted: watched"));
    assert_eq!(seen("Default").unwrap(), 1, "what stays is printed once");
    assert_eq!(seen("CLUSTER").unwrap(), 1, "headings are printed once");
    watching.kill();
}

#[test]
fn logs_exec_and_events_are_kubectls_in_the_cluster_that_is_named() {
    let world = world();
    let cli = &world.admin;
    let events = cli.run(&["events", "--cluster", "north", "-A"]).unwrap();
    assert!(events.success, "{events:?}");
    let missing = cli.run(&["logs", "--cluster", "north", "no-such-pod"]).unwrap();
    assert_eq!(missing.code, 1, "{missing:?}");
    assert!(missing.stderr.contains("\"no-such-pod\" not found"), "{missing:?}");
    for command in ["logs", "exec"] {
        let mut line = cli.command(&[command, "--cluster", "north", "web", "-n", "a"]).unwrap();
        let output = line.env("DROVER_KUBECTL", "echo").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said.trim(), format!("{command} web -n a"));
    }
}
