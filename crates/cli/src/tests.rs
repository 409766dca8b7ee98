//! Command lines, tables, exit codes, stored logins.

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use crate::args::{CliArgs, ClusterCommand};
use crate::commands;
use crate::config::{Login, LoginContext, Selection};
use crate::error::Failure;
use crate::output::{age, details, table};

#[derive(Debug, Parser)]
#[command(name = "drover")]
struct Program {
    #[command(subcommand)]
    args: CliArgs,
}

fn parse(line: &str) -> Result<CliArgs, clap::Error> {
    Program::try_parse_from(line.split(' ')).map(|program| program.args)
}

fn now() -> Timestamp {
    "2024-01-03T00:00:00Z".parse().unwrap()
}

#[test]
fn the_command_line_is_consistent() {
    Program::command().debug_assert();
}

#[test]
fn wrong_command_lines_are_usage_errors_that_name_the_argument() {
    for (line, said) in [
        ("drover login", "<URL>"),
        ("drover login https://a --token t --username u", "--token"),
        ("drover cluster import x", "--kubeconfig"),
        ("drover cluster import x --kubeconfig f --label nokey", "KEY=VALUE"),
        ("drover cluster import x --kubeconfig f --timeout soon", "--timeout"),
        ("drover cluster ls -o xml", "--output"),
        ("drover namespace move web", "--no-project"),
        ("drover namespace move web --project p --no-project", "--no-project"),
        ("drover wait cluster north --for active", "FIELD=VALUE"),
        ("drover apply", "--file"),
        ("drover user create u --password p --password-stdin", "--password-stdin"),
        ("drover context use --clear --cluster c", "--cluster"),
        ("drover token rm", "<TOKENS>"),
        ("drover completion tcsh", "tcsh"),
        ("drover cluster ls -o jsonpath={.name", "no '}'"),
        ("drover cluster ls -q -o name", "--output"),
        ("drover cluster kubeconfig c --set-current", "--merge"),
        ("drover role grant cluster-member maria --cluster c", "--user maria"),
        ("drover project add-member shop maria", "--user maria"),
        ("drover user set-password u --current-password-stdin", "[USER]"),
    ] {
        let error = parse(line).expect_err(line);
        assert_eq!(error.exit_code(), i32::from(Failure::Usage.exit_code()), "{line}");
        assert!(error.to_string().contains(said), "{line}: {error}");
    }
}

#[test]
fn a_removal_is_followed_longer_than_the_server_waits_for_the_cluster() {
    for line in ["drover cluster rm north", "drover cluster detach north"] {
        let timeout = match parse(line).unwrap() {
            CliArgs::Cluster(ClusterCommand::Rm(args)) => args.timeout,
            CliArgs::Cluster(ClusterCommand::Detach(args)) => args.timeout,
            other => panic!("{other:?}"),
        };
        let server = api_management::cluster::REMOVAL_WAIT_MAX;
        assert!(timeout >= server + std::time::Duration::from_secs(60), "{line}: {timeout:?}");
    }
    for line in ["drover cluster rm n --force --wait", "drover cluster detach n --force --wait"] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn kubectl_gets_its_arguments_unchanged() {
    let args = parse("drover kubectl --cluster c get pods -A -o json --server x").unwrap();
    let CliArgs::Kubectl(args) = args else { panic!("{args:?}") };
    assert_eq!(args.cluster.name(), Some("c"));
    assert_eq!(args.args, ["get", "pods", "-A", "-o", "json", "--server", "x"]);
}

#[test]
fn commands_of_kubectl_get_the_words_after_drovers_own_flags() {
    for word in ["logs", "exec", "events"] {
        let args = parse(&format!("drover {word} --cluster c web -n a --cluster x -- sh")).unwrap();
        let (CliArgs::Logs(args) | CliArgs::Exec(args) | CliArgs::Events(args)) = args else {
            panic!("{args:?}");
        };
        assert_eq!(args.cluster.name(), Some("c"));
        assert_eq!(args.args, ["web", "-n", "a", "--cluster", "x", "--", "sh"], "{word}");
    }
}

#[test]
fn labels_and_times_are_read() {
    let line = "drover cluster import x --kubeconfig f -l a=b --label c=d=e --timeout 2m";
    let CliArgs::Cluster(ClusterCommand::Import(args)) = parse(line).unwrap() else {
        panic!("no import");
    };
    let expected = [("a", "b"), ("c", "d=e")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(args.labels, expected);
    assert_eq!(args.timeout.as_secs(), 120);
}

#[test]
fn secrets_on_the_command_line_are_not_in_debug_output() {
    let args = parse("drover login https://a --username u --password hunter2").unwrap();
    assert!(!format!("{args:?}").contains("hunter2"));
    let args = parse("drover user create u --password hunter2").unwrap();
    assert!(!format!("{args:?}").contains("hunter2"));
}

#[test]
fn exit_codes_are_distinct_and_never_change() {
    let codes: Vec<(u8, &str)> =
        Failure::TABLE.iter().map(|(failure, text)| (failure.exit_code(), *text)).collect();
    insta::assert_debug_snapshot!(codes);
}

#[test]
fn the_reference_lists_every_exit_code() {
    let page = include_str!("../../../docs/reference/cli.md");
    for (failure, text) in Failure::TABLE {
        let row = format!("| {} | {text} |", failure.exit_code());
        assert!(page.contains(&row), "docs/reference/cli.md lacks the row {row}");
    }
}

#[test]
fn the_reference_lists_every_command() {
    let page = include_str!("../../../docs/reference/cli.md");
    let program = CliArgs::augment_subcommands(clap::Command::new("drover"));
    for command in program.get_subcommands() {
        let leaves: Vec<_> = command.get_subcommands().collect();
        let name = command.get_name();
        if leaves.is_empty() {
            assert!(page.contains(&format!("`drover {name}")), "{name}");
        }
        for leaf in leaves {
            let name = format!("`drover {name} {}", leaf.get_name());
            assert!(page.contains(&name), "docs/reference/cli.md lacks {name}");
        }
    }
}

#[test]
fn every_shell_gets_a_completion_script() {
    for shell in ["bash", "zsh", "fish"] {
        let args = parse(&format!("drover completion {shell}")).unwrap();
        assert!(matches!(args, CliArgs::Completion { .. }));
    }
    let matches = Program::command().try_get_matches_from(["drover", "cluster", "list"]).unwrap();
    assert!(Program::from_arg_matches(&matches).is_ok(), "aliases work");
}

#[test]
fn clusters_are_shown_as_a_table() {
    let clusters = [
        json!({
            "id": "c-abcde", "name": "north", "state": "active", "nodeCount": 3,
            "version": {"gitVersion": "v1.31.0"}, "provider": "k3s",
            "created": "2024-01-02T21:00:00Z",
        }),
        json!({"id": "local", "name": "local", "state": "unavailable", "nodeCount": 0,
               "driver": "local", "created": "2024-01-01T00:00:00Z"}),
    ];
    insta::assert_snapshot!(table(commands::cluster::COLUMNS, &clusters, now()));
    insta::assert_snapshot!("no_clusters", table(commands::cluster::COLUMNS, &[], now()));
}

#[test]
fn a_cluster_is_shown_with_what_does_not_hold() {
    let cluster = json!({
        "id": "c-abcde", "name": "north", "state": "unavailable",
        "transitioningMessage": "no answer", "nodeCount": 3,
        "requested": {"cpu": "500m"}, "allocatable": {"cpu": "4", "memory": "8Gi"},
        "labels": {"region": "north"}, "created": "2024-01-02T21:00:00Z",
        "conditions": [
            {"type": "Ready", "status": "False", "message": "no answer"},
            {"type": "Connected", "status": "Unknown"},
            {"type": "Waiting", "status": "True"},
        ],
    });
    insta::assert_snapshot!(details(commands::cluster::ROWS, &cluster, now()));
}

#[test]
fn other_tables_have_stable_columns() {
    let token = json!({"id": "token-x", "description": "ci", "current": true, "expired": false,
                       "expiresAt": "2024-02-01T00:00:00Z", "created": "2024-01-02T23:59:00Z"});
    insta::assert_snapshot!("tokens", table(commands::token::COLUMNS, &[token], now()));
    let user = json!({"id": "u-abcde", "username": "ann", "name": "Ann", "enabled": true});
    insta::assert_snapshot!("users", table(commands::user::COLUMNS, &[user], now()));
    let role = json!({"id": "cluster-owner", "name": "Cluster Owner", "context": "cluster",
                      "builtin": true});
    insta::assert_snapshot!("roles", table(commands::role::COLUMNS, &[role], now()));
    let project = json!({"id": "c-abcde:p-12345", "name": "Default", "clusterId": "c-abcde",
                         "state": "active", "created": "2023-01-01T00:00:00Z"});
    insta::assert_snapshot!("projects", table(commands::project::COLUMNS, &[project], now()));
}

#[test]
fn control_characters_in_names_do_not_reach_the_terminal() {
    let user = json!({"username": "a\u{1b}[2Jb", "id": "u-1"});
    let shown = table(commands::user::COLUMNS, &[user], now());
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert!(shown.contains("a\\u{1b}[2Jb"), "{shown}");
    let cluster = json!({"name": "a\nroot  u-2\u{202e}x\u{9b}2J", "id": "u-1"});
    let shown = table(commands::cluster::COLUMNS, &[cluster], now());
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.contains("a\\nroot  u-2\\u{202e}x\\u{9b}2J"), "{shown}");
}

#[test]
fn malformed_objects_are_shown_as_empty_cells() {
    for odd in [json!(null), json!(7), json!([]), json!({"name": 7, "id": {}, "conditions": "x"})] {
        for columns in [
            commands::cluster::COLUMNS,
            commands::cluster::ROWS,
            commands::context::COLUMNS,
            commands::project::COLUMNS,
            commands::role::COLUMNS,
            commands::token::COLUMNS,
            commands::user::COLUMNS,
        ] {
            assert_eq!(table(columns, std::slice::from_ref(&odd), now()).lines().count(), 2);
        }
    }
}

#[test]
fn contexts_are_shown_without_their_tokens() {
    let login = Login {
        token: "t:k".into(),
        user: "u-1".into(),
        username: "ann".into(),
        ca_cert: "PEM".into(),
    };
    let cluster = Selection { id: "c-1".into(), name: "north".into() };
    let context =
        LoginContext { server: "https://a".into(), login, cluster, project: Selection::default() };
    let shown = commands::context::context_json("prod", &context, true);
    assert!(!shown.to_string().contains("t:k"), "{shown}");
    insta::assert_snapshot!(table(commands::context::COLUMNS, &[shown], now()), @"
    CURRENT   NAME   SERVER      USER   CLUSTER   PROJECT
    *         prod   https://a   ann    north     -
    ");
}

#[test]
fn ages_have_one_unit() {
    for (created, shown) in [
        ("2024-01-02T23:59:59Z", "1s"),
        ("2024-01-02T23:58:01Z", "119s"),
        ("2024-01-02T23:00:00Z", "60m"),
        ("2024-01-02T00:00:00Z", "24h"),
        ("2023-01-03T00:00:00Z", "365d"),
        ("2025-01-01T00:00:00Z", "0s"),
        ("soon", ""),
    ] {
        assert_eq!(age(created, now()), shown, "{created}");
    }
}
