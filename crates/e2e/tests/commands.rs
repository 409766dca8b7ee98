//! The commands beyond importing: contexts, projects, files, and kubectl with short-lived
//! credentials.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use e2e::server::ADMIN_PASSWORD;
use e2e::{
    Cli, Guarantee, Kubectl, ProgramOutput, Server, SharedWorld, Sim, eventually, journey,
    no_second_try,
};
use serde_json::{Value, json};

#[path = "commands/global_roles.rs"]
mod global_roles;
#[path = "commands/login.rs"]
mod login;
#[path = "commands/output.rs"]
mod output;

const PROJECT: &str = "field.cattle.io/projectId";
/// Exit codes, as in the reference.
const USAGE: i32 = 2;
const UNAUTHENTICATED: i32 = 3;
const FORBIDDEN: i32 = 4;
const NOT_FOUND: i32 = 5;
const CONFLICT: i32 = 6;
const INVALID: i32 = 7;
const UNREACHABLE: i32 = 8;
const TIMEOUT: i32 = 9;

struct World {
    server: Server,
    admin: Cli,
    sim: Sim,
    /// Id of the simulated cluster `north`.
    north: String,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let server = Server::start()?;
        let admin = Cli::admin(&server)?;
        let sim = Sim::start(&["--nodes", "1"])?;
        let file = sim.kubeconfig();
        let file = file.to_str().context("the path is no text")?;
        let id = admin.succeed(&["cluster", "import", "north", "--kubeconfig", file])?;
        Ok(World { server, admin, sim, north: id.trim().to_owned() })
    })
}

/// Runs a command with `text` on stdin.
fn with_input(cli: &Cli, arguments: &[&str], text: &str) -> ProgramOutput {
    let mut command = cli.command(arguments).unwrap();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    ProgramOutput {
        command: format!("drover {}", arguments.join(" ")),
        success: output.status.success(),
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Checks that it failed with this code and names the next step.
fn fails(outcome: &ProgramOutput, code: i32) {
    assert_eq!(outcome.code, code, "{outcome:?}");
    assert!(outcome.stderr.contains("hint: "), "{outcome:?}");
}

/// The command at a terminal: the program `script` gives it a pseudo-terminal.
fn at_terminal(cli: &Cli, arguments: &[&str]) -> Command {
    let drover = cli.command(&[]).unwrap();
    let words =
        [drover.get_program().to_str().unwrap()].into_iter().chain(arguments.iter().copied());
    let line = words.map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let mut command = cli.beside("script").unwrap();
    // Prints the terminal's output, returns the command's exit code, writes no typescript.
    command.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]);
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    command
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_context_says_what_commands_are_about() {
    let world = world();
    let cli = Cli::admin(&world.server).unwrap();
    let url = world.server.url();
    let again = ["login", url, "--username", "admin", "--password-stdin", "--name", "second"];
    let password = format!("{ADMIN_PASSWORD}\n");
    with_input(&cli, &again, &password).succeeded().unwrap();
    let contexts = cli.json(&["context", "ls"]).unwrap();
    let names: Vec<&str> =
        contexts.as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 2, "{contexts}");
    assert_eq!(cli.json(&["context", "current"]).unwrap()["name"], "second");
    assert!(!contexts.to_string().contains("token"), "{contexts}");

    fails(&cli.run(&["kubectl", "get", "namespaces"]).unwrap(), 2);
    fails(&cli.run(&["context", "use", "--cluster", "nowhere"]).unwrap(), NOT_FOUND);
    cli.succeed(&["context", "use", "--cluster", "north", "--project", "Default"]).unwrap();
    let namespaces = cli.succeed(&["kubectl", "get", "namespaces"]).unwrap();
    assert!(namespaces.contains("cattle-system"), "{namespaces}");
    let project = &cli.json(&["context", "current"]).unwrap()["project"]["id"];
    cli.succeed(&["namespace", "create", "chosen"]).unwrap();
    let seen = world.sim.kubectl().unwrap().json(&["get", "namespace", "chosen"]).unwrap();
    assert_eq!(&seen["metadata"]["annotations"][PROJECT], project, "{seen}");

    // The environment overrides the context, and the flag overrides both.
    let mut other = cli.command(&["context", "current", "-o", "json"]).unwrap();
    let first = names.iter().find(|name| **name != "second").unwrap();
    let said = other.env("DROVER_SERVER", first).output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).contains(first), "{said:?}");
    fails(&cli.run(&["ps", "--cluster", "nowhere"]).unwrap(), NOT_FOUND);

    // A token in the environment needs no login.
    let nobody = Cli::new().unwrap();
    let token = cli.succeed(&["token", "create", "--ttl", "10m"]).unwrap();
    let mut listing = nobody.command(&["cluster", "ls", "-o", "json"]).unwrap();
    listing.env("DROVER_SERVER", url).env("DROVER_TOKEN", token.trim());
    let listed = listing.env("DROVER_CA_FILE", world.server.ca_file()).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains(&world.north), "{listed:?}");
    assert!(!nobody.home().join(".drover").exists());

    cli.succeed(&["logout"]).unwrap();
    fails(&cli.run(&["cluster", "ls"]).unwrap(), UNAUTHENTICATED);
    cli.succeed(&["context", "rm", "second"]).unwrap();
    cli.succeed(&["context", "use", first]).unwrap();
    cli.succeed(&["cluster", "ls"]).unwrap();
}

#[test]
fn projects_have_namespaces_and_members() {
    let world = world();
    let cli = &world.admin;
    let north = ["--cluster", "north"];
    let create = ["project", "create", "shop", "--wait", "--cluster", "north"];
    let project = cli.succeed(&create).unwrap().trim().to_owned();
    fails(&cli.run(&create).unwrap(), CONFLICT);
    cli.succeed(&["namespace", "create", "till", "--project", &project]).unwrap();
    let kubectl = world.sim.kubectl().unwrap();
    let till = || kubectl.json(&["get", "namespace", "till"]).unwrap()["metadata"].take();
    let short = project.split_once(':').unwrap().1;
    assert_eq!(till()["annotations"][PROJECT], project.as_str());
    assert_eq!(till()["labels"][PROJECT], short);
    let of = ["namespace", "ls", "--project", &project];
    assert_eq!(cli.json(&of).unwrap().as_array().unwrap().len(), 1);

    cli.succeed(&[&["namespace", "move", "till", "--project", "Default"][..], &north].concat())
        .unwrap();
    assert_ne!(till()["annotations"][PROJECT], project.as_str());
    cli.succeed(&[&["namespace", "move", "till", "--no-project"][..], &north].concat()).unwrap();
    assert!(till()["annotations"][PROJECT].is_null() && till()["labels"][PROJECT].is_null());
    cli.succeed(&[&["namespace", "rm", "till", "--yes"][..], &north].concat()).unwrap();
    eventually("the namespace goes", || kubectl.refuse(&["get", "namespace", "till"]));

    let create = ["user", "create", "zoe", "--password-stdin"];
    with_input(cli, &create, "password-of-zoe\n").succeeded().unwrap();
    let at = ["--user", "zoe", "--cluster", "north"];
    cli.succeed(&[&["role", "grant", "cluster-member"][..], &at].concat()).unwrap();
    let bindings = cli.succeed(&["role", "bindings", "--cluster", "north"]).unwrap();
    let zoes = bindings.lines().find(|line| line.starts_with("zoe")).unwrap();
    assert!(zoes.contains("cluster-member"), "{bindings}");
    let revoke = [&["role", "revoke", "cluster-member"][..], &at].concat();
    cli.succeed(&revoke).unwrap();
    fails(&cli.run(&revoke).unwrap(), NOT_FOUND);
    cli.succeed(&["project", "rm", &project, "--yes"]).unwrap();
    cli.succeed(&["wait", "project", &project, "--for", "deleted"]).unwrap();

    with_input(cli, &["user", "set-password", "zoe", "--password-stdin"], "another-word-1\n")
        .succeeded()
        .unwrap();
    let zoe = Cli::of(&world.server, "zoe", "another-word-1").unwrap();
    cli.succeed(&["user", "disable", "zoe"]).unwrap();
    fails(&zoe.run(&["cluster", "ls"]).unwrap(), UNAUTHENTICATED);
    assert!(Cli::of(&world.server, "zoe", "another-word-1").is_err());
    cli.succeed(&["user", "enable", "zoe"]).unwrap();
    Cli::of(&world.server, "zoe", "another-word-1").unwrap();
}

#[test]
fn a_node_is_labelled_tainted_cordoned_and_removed() {
    fn at<'a>(words: &[&'a str]) -> Vec<&'a str> {
        [&["node"][..], words, &["--cluster", "machines"]].concat()
    }

    let world = world();
    let cli = &world.admin;
    let sim = Sim::start(&["--nodes", "2"]).unwrap();
    let file = sim.kubeconfig();
    let file = file.to_str().unwrap();
    cli.succeed(&["cluster", "import", "machines", "--kubeconfig", file]).unwrap();
    let kubectl = sim.kubectl().unwrap();
    let stored = || kubectl.json(&["get", "node", "node-2"]).unwrap();
    let works = |words: &[&str]| cli.succeed(&at(words)).unwrap();
    let refused = |words: &[&str], code| fails(&cli.run(&at(words)).unwrap(), code);

    works(&["label", "node-2", "tier=a", "old=1"]);
    refused(&["label", "node-2", "tier=b"], CONFLICT);
    works(&["label", "node-2", "tier=b", "old-", "--overwrite"]);
    works(&["annotate", "node-2", "note=two words"]);
    assert_eq!(stored()["metadata"]["labels"]["tier"], "b");
    assert!(stored()["metadata"]["labels"]["old"].is_null());
    assert_eq!(stored()["metadata"]["annotations"]["note"], "two words");
    refused(&["label", "node-2", "tier"], USAGE);
    refused(&["label", "node-9", "tier=a"], NOT_FOUND);

    works(&["taint", "node-2", "gpu=yes:NoSchedule", "spot:NoExecute"]);
    refused(&["taint", "node-2", "gpu=no:NoSchedule"], CONFLICT);
    works(&["taint", "node-2", "spot-"]);
    let taints = json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]);
    assert_eq!(stored()["spec"]["taints"], taints);

    works(&["cordon", "node-1", "node-2"]);
    assert_eq!(stored()["spec"]["unschedulable"], true);
    assert!(works(&["ls"]).contains("cordoned"));
    works(&["uncordon", "node-2"]);
    assert_ne!(stored()["spec"]["unschedulable"], true);

    // A read-only user gets a refusal, and nothing changes.
    let create = ["user", "create", "yan", "--password-stdin"];
    with_input(cli, &create, "password-of-yan\n").succeeded().unwrap();
    let to = ["--user", "yan", "--cluster", "machines"];
    cli.succeed(&[&["role", "grant", "cluster-member"][..], &to].concat()).unwrap();
    let yan = Cli::of(&world.server, "yan", "password-of-yan").unwrap();
    eventually("their role", || yan.succeed(&at(&["ls"])));
    for words in [
        &["cordon", "node-2"][..],
        &["label", "node-2", "tier=c", "--overwrite"],
        &["taint", "node-2", "gpu-"],
        &["rm", "node-2", "--yes"],
    ] {
        fails(&yan.run(&at(words)).unwrap(), FORBIDDEN);
    }
    assert_eq!(stored()["metadata"]["labels"]["tier"], "b");

    works(&["rm", "node-2", "--yes"]);
    kubectl.refuse(&["get", "node", "node-2"]).unwrap();
}

#[test]
fn a_file_is_applied_once_and_then_changes_only_what_differs() {
    let world = world();
    let cli = &world.admin;
    let file = cli.home().join("objects.yaml");
    let write = |description: &str| {
        let text = format!(
            "type: project\nname: applied\nclusterId: north\ndescription: {description}\n\
             labels: {{ours: x}}\n---\n- {{type: setting, name: ui-brand, value: acme}}\n\
             - {{type: clusterRoleTemplateBinding, clusterId: north, userId: admin, \
             roleTemplateId: cluster-member}}\n"
        );
        std::fs::write(&file, text).unwrap();
    };
    let apply = |flags: &[&str]| -> Vec<String> {
        let arguments = [&["apply", "-f", file.to_str().unwrap()], flags].concat();
        let rows = cli.json(&arguments).unwrap();
        let results = rows.as_array().unwrap().iter();
        results.map(|row| row["result"].as_str().unwrap().to_owned()).collect()
    };
    write("one");
    assert_eq!(apply(&["--dry-run"]), ["would be created", "would be changed", "would be created"]);
    let inspect = ["inspect", "project", "applied"];
    fails(&cli.run(&inspect).unwrap(), NOT_FOUND);
    assert_eq!(apply(&["--wait"]), ["created", "changed", "created"]);
    assert_eq!(apply(&[]), ["unchanged"; 3]);
    write("two");
    assert_eq!(apply(&[]), ["changed", "unchanged", "unchanged"]);
    let project = cli.json(&inspect).unwrap();
    assert_eq!(project["description"], "two");
    assert_eq!(project["labels"]["ours"], "x");
    assert_eq!(project["clusterId"], world.north.as_str());

    // Printed output can be applied, also from stdin like with kubectl.
    let same = with_input(cli, &["apply", "-f", "-", "-o", "json"], &project.to_string());
    assert_eq!(same.json().unwrap()[0]["result"], "unchanged");
    for (text, code) in [
        ("{type: projct, name: x}", NOT_FOUND),
        ("{type: project, name: x, colour: red}", INVALID),
        ("{type: project}", INVALID),
        ("", INVALID),
    ] {
        fails(&with_input(cli, &["apply", "-f", "-"], text), code);
    }
    cli.succeed(&["settings", "reset", "ui-brand"]).unwrap();
    assert_eq!(cli.succeed(&["settings", "get", "ui-brand"]).unwrap().trim(), "");
    let waited = cli.run(&["wait", "cluster", "north", "--for", "state=no", "--timeout", "1s"]);
    fails(&waited.unwrap(), TIMEOUT);
}

/// The only cached credential.
fn kept(cli: &Cli) -> Result<(PathBuf, Value)> {
    let folder = cli.home().join(".drover/credentials");
    let files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|e| Ok(e?.path())).collect::<Result<_>>()?;
    let mut files = files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "json"));
    let file = files.next().context("no credential is kept")?;
    ensure!(files.next().is_none(), "several are kept");
    let text = std::fs::read_to_string(&file)?;
    Ok((file, serde_json::from_str(&text)?))
}

#[test]
fn kubectl_gets_credentials_that_are_renewed_and_end_with_the_login() {
    no_second_try(Guarantee::Revocation);
    let world = world();
    let cli = Cli::admin(&world.server).unwrap();
    let config = cli.succeed(&["cluster", "kubeconfig", "north", "--exec"]).unwrap();
    assert!(!config.contains("token"), "{config}");
    let file = cli.home().join("exec.kubeconfig");
    std::fs::write(&file, config).unwrap();
    let kubectl = Kubectl::new(&file, cli.home()).unwrap();
    let namespaces = kubectl.succeed(&["get", "namespaces"]).unwrap();
    assert!(namespaces.contains("cattle-system"), "{namespaces}");

    let (path, first) = kept(&cli).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&cli.home().join(".drover/config.json")), 0o600);
    let id = |kept: &Value| kept["token"].as_str().unwrap().split(':').next().unwrap().to_owned();
    let token = cli.json(&["inspect", "token", &id(&first)]).unwrap();
    assert_eq!(token["clusterId"], world.north.as_str());
    assert_eq!(token["ttl"], 3_600_000);
    kubectl.succeed(&["get", "namespaces"]).unwrap();
    assert_eq!(kept(&cli).unwrap().1, first);

    // Shortly before it expires it is replaced, once for all concurrent requests.
    let mut late = first.clone();
    late["renewAt"] = "2024-01-01T00:00:00Z".into();
    std::fs::write(&path, late.to_string()).unwrap();
    let get_credential =
        ["credential", "--server", first["context"].as_str().unwrap(), "--cluster", &world.north];
    let asking: Vec<_> = (0..4)
        .map(|_| cli.command(&get_credential).unwrap().stdout(Stdio::piped()).spawn().unwrap())
        .collect();
    let responses: Vec<Value> = asking
        .into_iter()
        .map(|child| serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap())
        .collect();
    assert!(responses.iter().all(|response| response == &responses[0]), "{responses:?}");
    let second = kept(&cli).unwrap().1;
    assert_ne!(id(&second), id(&first));
    kubectl.succeed(&["get", "namespaces"]).unwrap();

    cli.succeed(&["logout"]).unwrap();
    assert!(kept(&cli).is_err());
    let said = kubectl.refuse(&["get", "namespaces"]).unwrap();
    assert!(said.contains("drover login"), "{said}");
    fails(&world.admin.run(&["inspect", "token", &id(&second)]).unwrap(), NOT_FOUND);
}

#[test]
fn workloads_are_shown_while_another_cluster_is_unreachable() {
    let world = world();
    let cli = &world.admin;
    let agent = "cattle-cluster-agent";
    let shown = cli.json(&["ps", "--cluster", "north"]).unwrap();
    let row = shown.as_array().unwrap().iter().find(|row| row["name"] == agent).unwrap();
    assert_eq!((&row["ready"], &row["kind"]), (&json!("1/1"), &json!("Deployment")), "{row}");
    let pods = cli.succeed(&["ps", "--cluster", "north", "--pods"]).unwrap();
    assert!(pods.contains("Running"), "{pods}");

    journey::create_cluster(&world.server, "absent").unwrap();
    let all = cli.run(&["ps", "--all-clusters", "--timeout", "5s"]).unwrap();
    fails(&all, UNREACHABLE);
    assert!(all.stdout.contains(agent), "{all:?}");
    assert!(all.stderr.contains("warning: cluster absent: "), "{all:?}");
    cli.succeed(&["cluster", "rm", "absent", "--yes", "--force"]).unwrap();
}

#[test]
fn names_cannot_steer_the_terminal() {
    let world = world();
    let admin = world.server.admin().unwrap();
    let name = "a\u{1b}[2J\nroot  u-0  \u{202e}x\u{9b}31m";
    let user = json!({"username": "mallory", "name": name, "password": "password-of-mallory"});
    admin.post("/v3/users", &user).unwrap().success().unwrap();
    for arguments in [&["user", "ls"][..], &["user", "get", "mallory"], &["inspect", "user"]] {
        let shown = world.admin.run(arguments).unwrap();
        let text = format!("{}{}", shown.stdout, shown.stderr);
        assert!(shown.success && text.contains("mallory"), "{shown:?}");
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{shown:?}");
    }
    let table = world.admin.succeed(&["user", "ls"]).unwrap();
    assert!(!table.lines().any(|line| line.starts_with("root")), "{table}");
}

/// Completes `line` like bash at a tab, and prints the candidates.
const TAB: &str = r#"
    source <(drover completion bash)
    read -ra COMP_WORDS <<<"$LINE"
    [[ $LINE == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _clap_complete_drover drover "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf '%s\n' "${COMPREPLY[@]}"
"#;

/// The candidates of bash for `line` and a tab.
fn offered(cli: &Cli, line: &str) -> Vec<String> {
    let mut command = cli.beside("bash").unwrap();
    let output = command.args(["--norc", "-c", TAB]).env("LINE", line).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "{line}: {complaints}");
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_offers_commands_flags_and_the_names_that_the_server_knows() {
    let world = world();
    let cli = &world.admin;
    let north = ["--cluster", "north"];
    with_input(cli, &["user", "create", "tabitha", "--password-stdin"], "password-of-tabitha\n")
        .succeeded()
        .unwrap();
    cli.succeed(&[&["project", "create", "tab;rm -rf"][..], &north].concat()).unwrap();
    cli.succeed(&[&["project", "create", "tab-one"][..], &north].concat()).unwrap();
    for (line, expected) in [
        ("drover clu", "cluster"),
        ("drover cluster kubec", "kubeconfig"),
        ("drover cluster get n", "north"),
        ("drover ps --cluster n", "north"),
        ("drover cluster ls --server local", world.server.url().trim_start_matches("https://")),
        ("drover project get --cluster north tab", "tab-one"),
        ("drover user get tab", "tabitha"),
        ("drover role get cluster-o", "cluster-owner"),
        ("drover settings get server-u", "server-url"),
        ("drover inspect roleTempl", "roleTemplate"),
        ("drover inspect user tab", "tabitha"),
        ("drover wait --timeout 5s cluster no", "north"),
        ("drover namespace rm --cluster north cattle-sys", "cattle-system"),
        ("drover kubectl --cluster north get names", "namespaces"),
        ("drover kubectl --cluster north get namespace cattle-sys", "cattle-system"),
    ] {
        assert_eq!(offered(cli, line), [expected], "{line}");
    }
    let any = offered(cli, "drover project get --cluster north ");
    assert!(any.contains(&"Default".to_owned()) && !any.concat().contains(';'), "{any:?}");
    // Without a login or a server, there are neither candidates nor messages.
    assert_eq!(offered(&Cli::new().unwrap(), "drover user get tab"), [""; 0]);
    assert_eq!(offered(cli, "drover user get --server https://127.0.0.1:1 tab"), [""; 0]);
}
