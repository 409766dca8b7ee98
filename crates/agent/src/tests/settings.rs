//! The input of users and manifests, right and wrong.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use tunnel::CredentialReport;

use crate::args::ServerArgs;
use crate::home::Home;
use crate::kubeconfig::{KubeconfigContext, KubeconfigError};
use crate::proxy::Proxies;
use crate::server_url::ServerUrl;
use crate::settings::Settings;

fn args(server: &str, token: &str, checksum: &str) -> ServerArgs {
    let given = |text: &str| Some(text.to_owned());
    ServerArgs { server: given(server), token: given(token), ca_checksum: given(checksum) }
}

#[test]
fn missing_flags_come_from_the_mounted_credentials() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("url"), "https://mounted:8443\n").unwrap();
    std::fs::write(directory.path().join("token"), "mounted-token\n").unwrap();
    let settings =
        Settings::resolve(&args("", "", ""), directory.path(), Ok(Proxies::default())).unwrap();
    assert_eq!(settings.server.to_string(), "https://mounted:8443");
    assert_eq!(settings.token.unwrap().reveal(), "mounted-token");
    assert_eq!(settings.ca_checksum, None);
    let checksum = "AB".repeat(32);
    let given = args("https://given/ignored?x", "given-token", &checksum);
    let settings = Settings::resolve(&given, directory.path(), Ok(Proxies::default())).unwrap();
    assert_eq!(settings.server.to_string(), "https://given");
    assert_eq!(settings.token.unwrap().reveal(), "given-token");
    assert_eq!(settings.ca_checksum, Some(checksum.to_lowercase()));
}

#[test]
fn all_problems_are_reported_at_once() {
    let nowhere = Path::new("/nonexistent");
    let error =
        Settings::resolve(&args("http://x", "two words", "12"), nowhere, Ok(Proxies::default()))
            .unwrap_err();
    assert_eq!(error.problems.len(), 3, "{error}");
    let error = Settings::resolve(&args("", "", ""), nowhere, Ok(Proxies::default())).unwrap_err();
    assert!(error.to_string().contains("give --server or CATTLE_SERVER"), "{error}");
    assert!(!format!("{:?}", args("x", "geheim", "")).contains("geheim"));
}

#[test]
fn server_addresses_are_read_strictly() {
    for (text, authority) in [
        ("https://drover.example.com", "drover.example.com"),
        ("https://drover.example.com:8443/dashboard", "drover.example.com:8443"),
        ("https://[fd00::1]:8443", "[fd00::1]:8443"),
        ("https://10.0.0.1:443", "10.0.0.1"),
    ] {
        assert_eq!(ServerUrl::parse(text).unwrap().authority(), authority);
    }
    for bad in ["", "drover", "http://drover", "https://", "https://u:p@drover", "https://a b"] {
        assert!(ServerUrl::parse(bad).is_err(), "{bad}");
    }
}

fn kubeconfig(user: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let ca = STANDARD.encode("the ca");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: main\n\
         clusters:\n- name: one\n  cluster: {{server: 'https://127.0.0.1:6443', \
         certificate-authority-data: {ca}}}\n\
         contexts:\n- name: other\n  context: {{cluster: none, user: none}}\n\
         - name: main\n  context: {{cluster: one, user: me}}\n\
         users:\n- name: me\n  user: {user}\n"
    );
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn a_kubeconfig_gives_its_current_context() {
    let context = KubeconfigContext::read(kubeconfig("{token: abc}").path()).unwrap();
    assert_eq!(context.server, "https://127.0.0.1:6443");
    assert_eq!((context.ca_pem.as_str(), context.token.as_deref()), ("the ca", Some("abc")));
    let pem = STANDARD.encode("pem");
    let user = format!("{{client-certificate-data: {pem}, client-key-data: {pem}}}");
    let context = KubeconfigContext::read(kubeconfig(&user).path()).unwrap();
    assert_eq!(context.certificate, Some(("pem".to_owned(), "pem".to_owned())));
    let error = KubeconfigContext::read(kubeconfig("{exec: {command: aws}}").path()).err().unwrap();
    assert!(matches!(error, KubeconfigError::Unsupported), "{error}");
    let error = KubeconfigContext::read(Path::new("/nonexistent")).err().unwrap();
    assert!(error.to_string().contains("/nonexistent"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_renewed_mounted_token_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("ca.crt", "ca");
    write("token", "first\n");
    let home = Home::mounted("fd00::1", "443", directory.path().to_owned()).unwrap();
    let (sender, mut credential) = tokio::sync::watch::channel(None);
    let following = tokio::spawn(async move { home.follow_credential(sender).await });
    let first = credential.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    let CredentialReport::Credential(first) = first else { panic!("{first:?}") };
    assert_eq!((first.address.as_str(), first.token.as_str()), ("[fd00::1]:443", "first"));
    write("token", "second\n");
    let is_second = |known: &Option<CredentialReport>| matches!(known, Some(CredentialReport::Credential(one)) if one.token == "second");
    let waiting =
        tokio::time::timeout(std::time::Duration::from_secs(60), credential.wait_for(is_second));
    waiting.await.unwrap().unwrap();
    following.abort();
}

#[tokio::test(start_paused = true)]
async fn a_missing_credential_is_reported_with_the_cause() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("ca.crt"), "ca").unwrap();
    let home = Home::mounted("10.43.0.1", "443", directory.path().to_owned()).unwrap();
    let (sender, mut report) = tokio::sync::watch::channel(None);
    let following = tokio::spawn(async move { home.follow_credential(sender).await });
    let first = report.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    let CredentialReport::Trouble { trouble } = first else { panic!("{first:?}") };
    assert!(trouble.contains("token") && trouble.contains("service account"), "{trouble}");
    following.abort();
}
