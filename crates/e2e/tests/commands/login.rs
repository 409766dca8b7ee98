//! Passwords, names and roles of the user at the command line.

use e2e::Interactive;
use serde_json::json;

use super::*;

const FIRST: &str = "password-given-to-them";
const SECOND: &str = "password-of-their-own";

/// A user whose password must be changed.
fn newcomer(world: &World, username: &str) {
    let user = json!({"username": username, "password": FIRST, "mustChangePassword": true});
    world.server.admin().unwrap().post("/v3/users", &user).unwrap().success().unwrap();
}

/// The arguments of a login, with the server's authority.
fn login<'a>(server: &'a Server, user: &'a str, ca: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["login", server.url(), "--username", user, "--ca-file", ca];
    words.extend(more);
    words
}

#[test]
fn login_with_a_password_that_must_be_changed_needs_a_new_one() {
    no_second_try(Guarantee::Rights);
    let world = world();
    newcomer(&world, "ines");
    let ca = world.server.ca_file();
    let ca = ca.to_str().unwrap();
    let login = |more: &[&'static str]| login(&world.server, "ines", ca, more);
    let ines = Cli::new().unwrap();

    let refused = with_input(&ines, &login(&["--password-stdin"]), &format!("{FIRST}\n"));
    fails(&refused, USAGE);
    for said in ["the password must be changed", "--new-password-stdin", "DROVER_NEW_PASSWORD"] {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    fails(&ines.run(&["cluster", "ls"]).unwrap(), UNAUTHENTICATED);

    // A refused password changes nothing.
    let both = login(&["--password-stdin", "--new-password-stdin"]);
    let refused = with_input(&ines, &both, &format!("{FIRST}\nshort\n"));
    fails(&refused, INVALID);
    assert!(refused.stderr.contains("at least 12 characters"), "{refused:?}");

    let changed = with_input(&ines, &both, &format!("{FIRST}\n{SECOND}\n"));
    assert!(changed.success && changed.stderr.contains("your password is changed"), "{changed:?}");
    assert!(changed.stderr.contains("as ines"), "{changed:?}");
    assert_eq!(ines.json(&["whoami"]).unwrap()["user"]["username"], "ines");
    let old = with_input(&ines, &login(&["--password-stdin"]), &format!("{FIRST}\n"));
    fails(&old, UNAUTHENTICATED);
}

#[test]
fn login_at_a_terminal_prompts_for_the_new_password_twice() {
    let world = world();
    newcomer(&world, "noor");
    let ca = world.server.ca_file();
    let noor = Cli::new().unwrap();
    let words = login(&world.server, "noor", ca.to_str().unwrap(), &[]);
    let talk = |again: &str| {
        let mut terminal = Interactive::start(&mut at_terminal(&noor, &words)).unwrap();
        for (question, response) in [
            ("\npassword: ", FIRST),
            ("new password for noor: ", SECOND),
            ("new password for noor, again: ", again),
        ] {
            let is_prompted = |said: &str| format!("\n{said}").contains(question).then_some(());
            terminal.await_said(is_prompted).unwrap();
            terminal.write_input(&format!("{response}\n")).unwrap();
        }
        terminal.finish().unwrap()
    };
    let (status, said) = talk("something else");
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("entries of the new password for noor differ"), "{said}");
    let (status, said) = talk(SECOND);
    assert!(status.success() && said.contains("your password is changed"), "{said}");
    // Typed passwords are not echoed.
    assert!(!said.contains(FIRST) && !said.contains(SECOND), "{said}");
    assert_eq!(noor.json(&["whoami"]).unwrap()["user"]["username"], "noor");
}

#[test]
fn users_change_their_own_password_and_learn_what_ends() {
    no_second_try(Guarantee::Revocation);
    let world = world();
    let create = ["user", "create", "lea", "--password-stdin"];
    with_input(&world.admin, &create, &format!("{FIRST}\n")).succeeded().unwrap();
    let [lea, elsewhere] = [(); 2].map(|()| Cli::of(&world.server, "lea", FIRST).unwrap());
    lea.succeed(&["token", "create"]).unwrap();

    let change = ["user", "set-password", "--current-password-stdin", "--password-stdin"];
    let wrong = with_input(&lea, &change, &format!("a guess\n{SECOND}\n"));
    fails(&wrong, INVALID);
    let named = with_input(
        &lea,
        &["user", "set-password", "lea", "--password-stdin"],
        &format!("{SECOND}\n"),
    );
    fails(&named, FORBIDDEN);
    assert!(named.stderr.contains("leave out the name"), "{named:?}");
    assert!(!named.stderr.contains("administrator"), "{named:?}");

    let done = with_input(&lea, &change, &format!("{FIRST}\n{SECOND}\n"));
    assert!(done.success, "{done:?}");
    assert!(done.stderr.contains("other logins and tokens ended: 1"), "{done:?}");
    assert!(done.stderr.contains("that stay valid: 1"), "{done:?}");
    lea.succeed(&["cluster", "ls"]).unwrap();
    fails(&elsewhere.run(&["cluster", "ls"]).unwrap(), UNAUTHENTICATED);
    assert!(Cli::of(&world.server, "lea", FIRST).is_err());
    Cli::of(&world.server, "lea", SECOND).unwrap();
}

#[test]
fn users_are_shown_by_name_and_a_refusal_names_the_role_and_who_gives_it() {
    let world = world();
    let create = ["user", "create", "nia", "--password-stdin"];
    with_input(&world.admin, &create, &format!("{FIRST}\n")).succeeded().unwrap();
    let grant = ["role", "grant", "cluster-member", "--user", "nia", "--cluster", "north"];
    world.admin.succeed(&grant).unwrap();
    let nia = Cli::of(&world.server, "nia", FIRST).unwrap();
    let contexts = nia.succeed(&["context", "ls"]).unwrap();
    assert!(contexts.contains(" nia ") && !contexts.contains("u-"), "{contexts}");

    let refused = nia.run(&["namespace", "ls", "--cluster", "north"]).unwrap();
    fails(&refused, FORBIDDEN);
    for said in [
        "User \"nia\" cannot list",
        "in cluster \"north\" role projects-view allows it",
        "its owners (admin) and administrators",
        "drover role grant projects-view --user nia --cluster north",
    ] {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    let refused = nia.run(&["ps", "--cluster", "north"]).unwrap();
    fails(&refused, FORBIDDEN);
    assert!(refused.stderr.contains("role cluster-owner allows it"), "{refused:?}");
    let refused = nia.run(&["settings", "set", "ui-pl", "mine"]).unwrap();
    fails(&refused, FORBIDDEN);
    assert!(refused.stderr.contains("an administrator can do it"), "{refused:?}");

    assert_eq!(nia.succeed(&["whoami", "-o", "name"]).unwrap().trim(), "nia");
    let me = nia.json(&["whoami"]).unwrap();
    assert_eq!(me["user"]["username"], "nia");
    assert_eq!(me["server"], world.server.url());
    let role = json!({
        "scope": "cluster", "id": world.north, "name": "north", "role": "cluster-member",
    });
    let first = json!({"scope": "global", "role": "user"});
    assert_eq!(me["roles"], json!([role, first]));
    assert!(me["token"]["expiresAt"].is_string(), "{me}");
    let shown = world.admin.succeed(&["whoami"]).unwrap();
    assert!(shown.contains("admin of the server") && shown.contains("(in 15 h "), "{shown}");
}

#[test]
fn version_is_that_of_the_client_and_of_the_server() {
    let world = world();
    let both = world.admin.json(&["version"]).unwrap();
    assert_eq!(both["client"], env!("CARGO_PKG_VERSION"));
    assert_eq!(both["server"]["rancher"], "v2.6.9");
    assert!(both["server"]["kubernetes"].as_str().unwrap().starts_with("v1."), "{both}");
    let nobody = Cli::new().unwrap();
    let own = nobody.succeed(&["version", "--client"]).unwrap();
    assert!(own.contains(env!("CARGO_PKG_VERSION")), "{own}");
    let without = nobody.run(&["version"]).unwrap();
    fails(&without, UNAUTHENTICATED);
    assert!(without.stdout.contains(env!("CARGO_PKG_VERSION")), "{without:?}");
}

#[test]
fn mistyped_names_suggest_what_was_meant() {
    let world = world();
    let cli = &world.admin;
    for (line, meant) in [
        (&["cluster", "get", "nroth"][..], "north"),
        (&["user", "get", "amdin"], "admin"),
        (&["role", "get", "cluster-membr"], "cluster-member"),
        (&["project", "get", "Defualt", "--cluster", "north"], "Default"),
        (&["inspect", "clster"], "cluster"),
        (&["settings", "get", "pasword-min-length"], "password-min-length"),
    ] {
        let refused = cli.run(line).unwrap();
        fails(&refused, NOT_FOUND);
        assert!(refused.stderr.contains(&format!("did you mean \"{meant}\"?")), "{refused:?}");
    }
    for line in [
        &["role", "grant", "cluster-member", "maria", "--cluster", "north"][..],
        &["project", "add-member", "Default", "maria"],
    ] {
        let refused = cli.run(line).unwrap();
        assert_eq!(refused.code, USAGE, "{refused:?}");
        assert!(refused.stderr.contains("--user maria"), "{refused:?}");
    }
}

#[test]
fn a_setting_of_the_wrong_type_is_refused_and_changes_nothing() {
    let world = world();
    let cli = &world.admin;
    let set = |name: &str, value: &str| cli.run(&["settings", "set", name, value]).unwrap();
    for (name, value, said) in [
        ("password-min-length", "abc", "must be a whole number from 1 to 256"),
        ("hide-local-cluster", "yes", "must be true or false"),
        ("kubeconfig-token-ttl-minutes", "soon", "must be a number of minutes"),
        ("agent-rollout-timeout", "5 minutes", "must be a duration"),
    ] {
        let before = cli.succeed(&["settings", "get", name]).unwrap();
        let refused = set(name, value);
        fails(&refused, INVALID);
        assert!(refused.stderr.contains(said), "{refused:?}");
        assert_eq!(cli.succeed(&["settings", "get", name]).unwrap(), before);
    }
    assert!(set("kubeconfig-token-ttl-minutes", "0.01").success);
    cli.succeed(&["settings", "reset", "kubeconfig-token-ttl-minutes"]).unwrap();
}
