//! Directories by the commands: enabled, used, and their groups with roles.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[allow(dead_code, reason = "the tests of the directories themselves use all of it")]
#[path = "../../test-kit/tests/directories/slapd.rs"]
mod slapd;

use std::fs;

use e2e::{Cli, Server, eventually};
// For the directory, which is shared with `test-kit`.
use pki as _;

use slapd::{ADA_PASSWORD, BASE, READER, READER_PASSWORD, Slapd};

const TEAM: &str = "openldap_group://cn=team,ou=groups,dc=example,dc=org";

#[test]
fn a_directory_is_enabled_by_a_login_and_its_groups_have_roles() {
    let slapd = Slapd::start();
    let server = Server::start().unwrap();
    let admin = Cli::admin(&server).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openldap.yaml");
    let text = format!(
        "servers: [127.0.0.1]\nport: {}\naccessMode: unrestricted\nconnectionTimeout: 5000\n\
         serviceAccountDistinguishedName: \"{READER}\"\n\
         serviceAccountPassword: \"{READER_PASSWORD}\"\n\
         userSearchBase: \"ou=people,{BASE}\"\ngroupSearchBase: \"ou=groups,{BASE}\"\n",
        slapd.port
    );
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let try_to = |verb, password| {
        let flags = ["-f", file, "--username", "ada", "--password", password];
        admin.run(&[["auth-provider", verb, "openldap"].as_slice(), &flags].concat()).unwrap()
    };
    for verb in ["test", "enable"] {
        let refused = try_to(verb, "wrong");
        assert!(!refused.success && refused.stderr.contains("password is wrong"), "{refused:?}");
    }
    let before = admin.succeed(&["auth-provider", "get", "openldap", "-o", "yaml"]).unwrap();
    let tested = try_to("test", ADA_PASSWORD).succeeded().unwrap();
    assert!(tested.contains("openldap_user://") && tested.contains(TEAM), "{tested}");
    let after = admin.succeed(&["auth-provider", "get", "openldap", "-o", "yaml"]).unwrap();
    assert_eq!(after, before, "a test changes nothing");
    try_to("enable", ADA_PASSWORD).succeeded().unwrap();
    let shown = admin.succeed(&["auth-provider", "get", "openldap"]).unwrap();
    assert!(shown.contains("127.0.0.1") && !shown.contains(READER_PASSWORD), "{shown}");
    assert!(
        !admin
            .succeed(&["auth-provider", "get", "openldap", "-o", "yaml"])
            .unwrap()
            .contains("canary")
    );

    admin.succeed(&["role", "grant", "settings-manage", "--global", "--group", TEAM]).unwrap();
    let groups = admin.succeed(&["group", "ls"]).unwrap();
    assert!(groups.contains(TEAM) && groups.contains("settings-manage"), "{groups}");
    eventually("the refresh", || admin.succeed(&["group", "refresh"]));
    admin.succeed(&["auth-provider", "disable", "openldap"]).unwrap();
    let refused =
        admin.run(&["auth-provider", "enable", "local", "-f", file, "-u", "x", "-p", "y"]);
    assert!(refused.unwrap().stderr.contains("it is for openldap"));
}
