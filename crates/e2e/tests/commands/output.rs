//! Formats, colours and watches of lists; kubeconfigs that are merged; commands that are kubectl's.

use testbed::Process;

use super::*;

const OTHERS: &str = "# of somebody else\napiVersion: v1\nkind: Config\ncurrent-context: work\n\
                      clusters:\n- name: work\n  cluster: {server: https://work.example}\nusers:\n\
                      - name: me\n  user: {username: me}\ncontexts:\n- name: work\n  \
                      context: {cluster: work, user: me}\n";

#[test]
fn lists_are_printed_in_the_requested_format() {
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
fn a_setting_without_effect_says_so_beside_its_state_and_in_its_details() {
    let world = world();
    let cli = &world.admin;
    let row = |arguments: &[&str], name: &str| {
        let table = cli.succeed(arguments).unwrap();
        let row = table.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        row.unwrap_or_else(|| panic!("no {name} in:\n{table}"))
    };
    let alert = json!({"type": "notifier", "name": "pager", "clusterId": world.north});
    let monitored = json!({
        "type": "project", "name": "measured", "clusterId": world.north,
        "enableProjectMonitoring": true,
    });
    for document in [alert, monitored] {
        let made = with_input(cli, &["apply", "-f", "-"], &document.to_string());
        assert!(made.success, "{made:?}");
        assert!(made.stderr.contains("warning: "), "{made:?}");
    }
    // A no-op type, and a no-op field.
    assert!(row(&["inspect", "notifier"], "pager").contains("active, no effect yet"));
    let partly = "active, partly no effect yet";
    eventually("the project is active", || {
        let shown = row(&["project", "ls", "--cluster", "north"], "measured");
        ensure!(shown.contains(partly), "{shown}");
        Ok(())
    });
    let wide = row(&["project", "ls", "--cluster", "north", "-o", "wide"], "measured");
    assert!(wide.contains(partly), "{wide}");
    assert!(row(&["inspect", "project"], "measured").contains(partly));
    assert!(!row(&["project", "ls", "--cluster", "north"], "Default").contains("no effect"));
    assert!(!row(&["cluster", "ls"], "north").contains("no effect"));

    for (arguments, message) in [
        (&["inspect", "notifier", "pager"][..], "this version does not act on it."),
        (&["inspect", "project", "measured"], "does not act on them: "),
        (&["project", "get", "measured", "--cluster", "north"], "does not act on them: "),
    ] {
        let shown = cli.run(arguments).unwrap();
        assert!(shown.success, "{shown:?}");
        assert!(shown.stderr.contains(message), "{shown:?}");
        assert!(shown.stderr.starts_with("warning: "), "{shown:?}");
    }
    cli.succeed(&["project", "rm", "measured", "--cluster", "north", "--yes"]).unwrap();
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
fn a_kubeconfig_is_merged_into_the_users_own_with_a_backup() {
    let world = world();
    let cli = Cli::admin(&world.server).unwrap();
    let folder = cli.home().join(".kube");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("config");
    std::fs::write(&file, OTHERS).unwrap();
    let merge = |more: &[&str]| {
        cli.run(&[&["cluster", "kubeconfig", "north", "--merge"][..], more].concat()).unwrap()
    };
    let merged = merge(&[]);
    assert!(merged.success && merged.stdout.is_empty(), "{merged:?}");
    assert!(merged.stderr.contains("added context north"), "{merged:?}");
    assert!(merged.stderr.contains("kubectl still uses work"), "{merged:?}");
    assert_eq!(mode(&file), 0o600);
    let kubectl = |arguments: &[&str]| {
        let mut command = cli.beside("kubectl").unwrap();
        let output = command.args(arguments).env_remove("KUBECONFIG").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert!(kubectl(&["--context", "north", "get", "namespaces"]).contains("cattle-system"));
    assert_eq!(kubectl(&["config", "current-context"]), "work");
    let work = "jsonpath={.clusters[?(@.name==\"work\")].cluster.server}";
    assert_eq!(kubectl(&["config", "view", "-o", work]), "https://work.example");

    // Repeating it renews the entry; another name makes another context, with a credential of the
    // login.
    let again = merge(&["--exec", "--set-current"]);
    assert!(again.stderr.contains("renewed context north"), "{again:?}");
    assert_eq!(kubectl(&["config", "current-context"]), "north");
    assert!(kubectl(&["get", "namespaces"]).contains("cattle-system"));
    fails(&merge(&["--context-name", "work"]), CONFLICT);

    let undo = merged.stderr.lines().find_map(|line| line.split_once("to undo: ")).unwrap().1;
    let undone = cli.beside("sh").unwrap().args(["-c", undo]).status().unwrap();
    assert!(undone.success(), "{undo}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), OTHERS);
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
