//! Global roles by the commands.

use e2e::Cli;

use super::{FORBIDDEN, fails, with_input, world};

const PASSWORD: &str = "password-of-uma-1";

#[test]
fn global_roles_are_given_shown_and_taken_and_no_manager_of_users_becomes_an_administrator() {
    let world = world();
    let create = ["user", "create", "uma", "--global-role", "users-manage", "--password-stdin"];
    let made = with_input(&world.admin, &create, &format!("{PASSWORD}\n"));
    assert!(made.stderr.contains("created user uma with users-manage"), "{made:?}");
    let uma = Cli::of(&world.server, "uma", PASSWORD).unwrap();
    let roles = uma.succeed(&["role", "ls"]).unwrap();
    for shown in ["project-owner", "Manage Users", "global"] {
        assert!(roles.contains(shown), "{shown}: {roles}");
    }
    let rules = uma.succeed(&["role", "get", "users-manage"]).unwrap();
    assert!(rules.contains("globalrolebindings"), "{rules}");

    let refused = uma.run(&["user", "set-password", "admin", "--password", PASSWORD]).unwrap();
    fails(&refused, FORBIDDEN);
    assert!(refused.stderr.contains("roles that you do not have"), "{refused:?}");
    let grant = |role| ["role", "grant", role, "--global", "--user", "uma"];
    let refused = uma.run(&grant("admin")).unwrap();
    fails(&refused, FORBIDDEN);
    assert!(refused.stderr.contains("only administrators make administrators"), "{refused:?}");
    let refused = uma.run(&grant("settings-manage")).unwrap();
    fails(&refused, FORBIDDEN);

    let set = ["settings", "set", "ui-pl", "uma's"];
    fails(&uma.run(&set).unwrap(), FORBIDDEN);
    world.admin.succeed(&grant("settings-manage")).unwrap();
    e2e::eventually("the right", || uma.succeed(&set));
    let bindings = world.admin.succeed(&["role", "bindings", "--global"]).unwrap();
    assert!(bindings.contains("settings-manage"), "{bindings}");
    world.admin.succeed(&["settings", "reset", "ui-pl"]).unwrap();
    let revoke = ["role", "revoke", "settings-manage", "--global", "--user", "uma"];
    world.admin.succeed(&revoke).unwrap();
    fails(&uma.run(&set).unwrap(), FORBIDDEN);

    let create = ["user", "create", "vic", "--no-global-role", "--password-stdin"];
    let made = with_input(&world.admin, &create, &format!("{PASSWORD}\n"));
    assert!(made.stderr.contains("with no global role"), "{made:?}");
    let create = ["user", "create", "wes", "--global-role", "no-such", "--password-stdin"];
    let refused = with_input(&world.admin, &create, &format!("{PASSWORD}\n"));
    assert!(!refused.success && refused.stderr.contains("no-such"), "{refused:?}");
}
