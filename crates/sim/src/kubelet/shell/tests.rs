//! Output of the shell for single lines.

use serde_json::json;

use super::*;

fn container() -> Container {
    let pod = json!({
        "metadata": {"namespace": "shop", "name": "web-1", "uid": "u"},
        "spec": {
            "nodeName": "sim-node-0",
            "containers": [{
                "name": "web", "image": "registry.example.com/shop/nginx:1.27",
                "env": [
                    {"name": "COLOUR", "value": "blue"},
                    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
            }],
        },
        "status": {"phase": "Running", "containerStatuses": [
            {"name": "web", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}},
        ]},
    });
    Container::choose(&pod, "").unwrap()
}

/// The output and the errors of a script, with its exit code.
fn run(script: &str) -> (String, String, u8) {
    let container = container();
    let mut shell = Shell::new(&container);
    let mut all = CommandOutput::default();
    let commands = match shell.parse(script) {
        Ok(commands) => commands,
        Err(ran) => return (ran.output, ran.errors, ran.code),
    };
    for (joint, command) in commands {
        if shell.runs(joint) {
            let ran = shell.run(&command, Timestamp::UNIX_EPOCH);
            all.output += &ran.output;
            all.errors += &ran.errors;
            if ran.then == Then::Exit {
                break;
            }
        }
    }
    (all.output, all.errors, shell.last_code())
}

fn output(script: &str) -> String {
    let (output, errors, code) = run(script);
    assert_eq!((errors.as_str(), code), ("", 0), "{script}");
    output
}

#[test]
fn built_in_commands_describe_the_simulated_container() {
    assert_eq!(output("echo a  'b  c' \"$COLOUR\" ${POD} '$POD'"), "a b  c blue web-1 $POD\n");
    assert_eq!(output("echo -n x; pwd; whoami; hostname"), "x/\nroot\nweb-1\n");
    assert_eq!(output("cat /etc/hostname"), "web-1\n");
    assert_eq!(output("ls"), "etc\n");
    assert_eq!(output("ls -la /etc/"), "hostname\nhosts\nos-release\n");
    assert_eq!(output("date"), "Thu Jan  1 00:00:00 UTC 1970\n");
    assert!(output("ps").contains("    1 root     nginx (simulated)\n"));
    assert!(output("/usr/bin/env").contains("\nPOD=web-1\n"));
    assert!(output("help").contains("This container is simulated"));
}

#[test]
fn the_environment_omits_values_of_secrets() {
    assert!(!output("env").contains("KEY="));
    assert_eq!(run("printenv KEY").2, 1);
}

#[test]
fn unknown_commands_fail_with_127_and_an_explanation() {
    let (output, errors, code) = run("curl example.com");
    assert_eq!((output.as_str(), code), ("", 127));
    assert!(errors.starts_with("curl: not found: container \"web\" is simulated"), "{errors}");
    assert!(errors.contains("whoami"), "{errors}");
}

#[test]
fn commands_are_joined_by_success_and_failure() {
    assert_eq!(output("false || echo rescued"), "rescued\n");
    assert_eq!(run("false && echo never"), (String::new(), String::new(), 1));
    assert_eq!(output("true && echo one; echo $? # two"), "one\n0\n");
    assert_eq!(run("echo wrong >&2; exit 263"), (String::new(), "wrong\n".to_owned(), 7));
    assert_eq!(run("exit now").2, 2);
    assert_eq!(run("cat /etc/shadow").2, 1);
}

#[test]
fn unsupported_syntax_is_refused_by_name() {
    for (script, named) in [
        ("ps | cat", "'|' is not supported"),
        ("echo a > b", "'>' is not supported"),
        ("echo $(date)", "'$(' is not supported"),
        ("sleep 1 &", "'&' is not supported"),
        ("echo 'a", "a quote is not closed"),
    ] {
        let (output, errors, code) = run(script);
        assert_eq!((output.as_str(), code), ("", 2), "{script}");
        assert!(errors.contains(named) && errors.contains("simulated"), "{script}: {errors}");
    }
}

#[test]
fn shells_scripts_and_other_programs_are_distinguished() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(ContainerProgram::of(words("/bin/bash")), ContainerProgram::Shell);
    assert_eq!(ContainerProgram::of(words("sh -i")), ContainerProgram::Shell);
    assert_eq!(
        ContainerProgram::of(words("sh -c date")),
        ContainerProgram::Script("date".to_owned())
    );
    assert_eq!(
        ContainerProgram::of(words("sh -e -uc date")),
        ContainerProgram::Script("date".to_owned())
    );
    assert_eq!(ContainerProgram::of(words("ls -c")), ContainerProgram::Command(words("ls -c")));
}
