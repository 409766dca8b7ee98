//! The binary as users and kubelets see it: exit codes and messages.

use std::process::{Command, Output};

fn agent(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drover-agent"));
    command.args(arguments).env_clear().envs(environment.iter().copied());
    command.env("DROVER_CREDENTIALS_DIR", "/nonexistent").output().expect("the agent starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_node_agent_reports_that_it_is_not_implemented_yet() {
    for (arguments, environment) in
        [(&["node"][..], &[][..]), (&[][..], &[("CATTLE_CLUSTER", "false")][..])]
    {
        let output = agent(arguments, environment);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("not implemented yet"), "{}", stderr(&output));
    }
}

#[test]
fn wrong_settings_are_reported_together_with_their_own_exit_code() {
    let output = agent(&["cluster", "--ca-checksum", "12"], &[("CATTLE_TOKEN", "geheim")]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("give --server or CATTLE_SERVER"), "{text}");
    assert!(text.contains("must be a SHA-256"), "{text}");
    assert!(!text.contains("geheim"), "{text}");
}

#[test]
fn outside_a_cluster_a_kubeconfig_is_required() {
    let output = agent(&[], &[("CATTLE_SERVER", "https://drover.example.com")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("give --kubeconfig"), "{}", stderr(&output));
}
