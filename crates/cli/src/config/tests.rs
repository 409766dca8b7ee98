//! The stored configuration, and the selection of a login.

use super::*;

fn login(token: &str) -> Login {
    Login { token: token.into(), user: "u-1".into(), username: "ann".into(), ca_cert: "PEM".into() }
}

/// Contexts by name, server and token; the first is the current one.
fn config(contexts: &[(&str, &str, &str)]) -> Config {
    let mut config = Config { current: contexts[0].0.to_owned(), ..Config::default() };
    for (name, server, token) in contexts {
        let context = LoginContext {
            server: (*server).to_owned(),
            login: login(token),
            ..LoginContext::default()
        };
        config.contexts.insert((*name).to_owned(), context);
    }
    config
}

#[test]
fn a_login_is_stored_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".drover").join("config.json");
    assert_eq!(load(&path).unwrap(), Config::default());
    let mut config = config(&[("a", "https://a", "t:k")]);
    save(&path, &config).unwrap();
    save(&path, &config).unwrap();
    assert_eq!(load(&path).unwrap(), config);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert!(!format!("{config:?}").contains("t:k"));
    config.forget("a");
    assert_eq!(config.select(Some("https://a")).unwrap_err().failure, Failure::Unauthenticated);
    assert_eq!(config.authority("https://a").as_deref(), Some("PEM"));
    std::fs::write(&path, "{").unwrap();
    let error = load(&path).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("delete the file and log in again"));
}

#[test]
fn a_login_is_found_by_its_name_and_by_its_server() {
    let config = config(&[
        ("prod", "https://a", "t:1"),
        ("test", "https://b", "t:2"),
        ("test-ann", "https://b", "t:3"),
        ("old", "https://c", ""),
    ]);
    let name = |server| config.select(server).map(|(name, _)| name.to_owned());
    assert_eq!(name(None).unwrap(), "prod");
    assert_eq!(name(Some("test-ann")).unwrap(), "test-ann");
    assert_eq!(name(Some("A/")).unwrap(), "prod");
    let error = name(Some("https://b")).unwrap_err();
    assert_eq!(error.failure, Failure::Conflict);
    assert_eq!(error.hint.as_deref(), Some("name one with --server: test, test-ann"));
    for ended in ["old", "https://c", "https://d"] {
        let error = name(Some(ended)).unwrap_err();
        assert_eq!(error.failure, Failure::Unauthenticated, "{ended}");
        assert!(error.hint.unwrap().contains("drover login https://"), "{ended}");
    }
    let current_on_b = Config { current: "test-ann".into(), ..config.clone() };
    assert_eq!(current_on_b.select(Some("b")).unwrap().0, "test-ann");
}

#[test]
fn a_login_without_a_name_replaces_the_previous_one_on_that_server() {
    let config = config(&[("prod", "https://a:8443", "t:1")]);
    assert_eq!(config.name_for("https://a:8443"), "prod");
    assert_eq!(config.name_for("https://b:8443"), "b:8443");
}

#[test]
fn selecting_without_a_login_suggests_drover_login() {
    let error = Config::default().select(None).unwrap_err();
    assert_eq!(error.failure, Failure::Unauthenticated);
    assert!(error.hint.unwrap().contains("drover login URL"));
}

#[test]
fn server_urls_are_normalised() {
    for (given, normal) in [
        ("https://Host.Example", "https://host.example"),
        ("host:8443", "https://host:8443"),
        ("https://host:8443/some/path?x", "https://host:8443"),
        ("https://[::1]:8443/", "https://[::1]:8443"),
    ] {
        assert_eq!(normal_url(given).unwrap(), normal, "{given}");
    }
    for given in ["http://host", "https://", "ftp://x", "https://user:pw@host", "https://a b"] {
        assert_eq!(normal_url(given).unwrap_err().failure, Failure::Usage, "{given}");
    }
}
