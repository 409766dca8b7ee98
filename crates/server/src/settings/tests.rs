//! Resolving settings.

use super::{ServerArgs, ServerSettings};

fn resolve(args: ServerArgs, file: &str) -> Result<ServerSettings, String> {
    let file = serde_saphyr::from_str(file).map_err(|error| error.to_string())?;
    args.merged(file).map_err(|error| error.to_string())
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let args = ServerArgs { listen: Some("127.0.0.1:1".to_owned()), ..ServerArgs::default() };
    let settings = resolve(args, "listen: 127.0.0.1:2\nagent-image: mine:1\n").unwrap();
    assert_eq!(settings.listen.port(), 1);
    assert_eq!(settings.agent_image, "mine:1");
    assert_eq!(settings.storage.address, "embedded");
}

#[test]
fn all_problems_are_reported_at_once() {
    let args = ServerArgs {
        listen: Some("nonsense".to_owned()),
        storage: Some("mysql".to_owned()),
        server_url: Some("http://plain".to_owned()),
        bootstrap_password: Some("short".to_owned()),
        kubeconfig: Some("x".into()),
        tls_cert: Some("cert.pem".into()),
        trusted_proxies: Some("10.0.0.0/8, proxy.corp".to_owned()),
        audit_policy_file: Some("policy.yaml".into()),
        shutdown_delay_duration: Some("soon".to_owned()),
        ..ServerArgs::default()
    };
    let text = resolve(args, "{}").unwrap_err();
    let words = [
        "listen",
        "storage",
        "server-url",
        "bootstrap-password",
        "kubeconfig",
        "tls-key",
        "proxy.corp",
        "audit-policy-file",
        "shutdown-delay-duration",
    ];
    for word in words {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
}

#[test]
fn etcd_is_named_with_its_certificates() {
    let file = "storage: etcd://a,b:1/x\nstorage-ca: ca.pem\n\
                storage-cert: c.pem\nstorage-key: k.pem\n";
    let settings = resolve(ServerArgs::default(), file).unwrap();
    let shown = serde_json::to_value(&settings).unwrap();
    assert_eq!(shown["storage"], "etcd://a,b:1/x");
    assert_eq!(shown["storage-key"], "k.pem");
    let wrong = [
        ("storage: etcd://\n", "storage: "),
        ("storage-ca: ca.pem\n", "storage-ca"),
        ("storage: etcd://a\nstorage-ca: ca.pem\nstorage-key: k.pem\n", "give both"),
        ("storage: etcd://a\nstorage-cert: c\nstorage-key: k\n", "needs storage-ca"),
    ];
    for (file, word) in wrong {
        let text = resolve(ServerArgs::default(), file).unwrap_err();
        assert!(text.contains(word), "{word} is missing in {text}");
    }
}

#[test]
fn a_misspelt_key_of_the_file_is_an_error() {
    assert!(resolve(ServerArgs::default(), "lisen: x\n").unwrap_err().contains("lisen"));
}

#[test]
fn the_password_is_not_shown() {
    let password = "correct horse battery";
    let args =
        ServerArgs { bootstrap_password: Some(password.to_owned()), ..ServerArgs::default() };
    let settings = resolve(args, "{}").unwrap();
    assert!(!format!("{settings:?}").contains(password));
    assert!(!serde_json::to_string(&settings).unwrap().contains(password));
}

#[test]
fn the_bootstrap_password_can_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    std::fs::write(&path, "correct horse battery \n").unwrap();
    let args =
        || ServerArgs { bootstrap_password_file: Some(path.clone()), ..ServerArgs::default() };
    let settings = resolve(args(), "{}").unwrap();
    assert_eq!(settings.bootstrap_password.as_deref(), Some("correct horse battery "));
    let refused = resolve(args(), "bootstrap-password: another of them").unwrap_err();
    assert!(refused.contains("give one"), "{refused}");
    std::fs::remove_file(&path).unwrap();
    assert!(resolve(args(), "{}").unwrap_err().contains("cannot read"));
}

#[test]
fn what_happens_leaves_a_trace_unless_that_is_switched_off() {
    let log = |file: &str| resolve(ServerArgs::default(), file).unwrap().audit;
    let path = |file: &str| log(file).audit_log_path;
    assert_eq!(path("{}"), Some("/var/lib/drover/audit/audit.log".into()));
    assert_eq!(path("data-dir: /d\n"), Some("/d/audit/audit.log".into()));
    assert_eq!(path("audit-log-path: /var/log/audit.log\n"), Some("/var/log/audit.log".into()));
    for off in ["audit-log-path: none\n", "audit-log-path: ''\n"] {
        assert_eq!(path(off), None);
        assert!(log(off).resolve().unwrap().is_none());
    }
    let settings = log("{}").resolve().unwrap().unwrap();
    let files = settings.log.backups_max as u64 + 1;
    assert!(settings.log.size_max * files <= 1000 * 1024 * 1024, "it fits a disk");
    assert!(!settings.log.age_max.is_zero());
}
