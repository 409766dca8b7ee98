//! Clients that authenticate by a certificate, and a serving certificate from a file.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use pki::CertificateFiles;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::SimArgs;
use crate::tests::wait::until_some;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_client_certificate_of_the_given_authority_is_a_user_on_the_given_serving_certificate() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    let files = CertificateFiles::in_directory(folder.path(), "own-ca");
    let authority = pki::files::ensure_authority(&files, "own", now).unwrap();
    let serving = CertificateFiles::in_directory(folder.path(), "own-serving");
    let names = ["127.0.0.1".to_owned()];
    pki::files::ensure_serving(&serving, &authority, "own", &names, now).unwrap();
    let data = folder.path().join("data");
    let line = [
        "--listen",
        "127.0.0.1:0",
        "--nodes",
        "0",
        "--data-dir",
        data.to_str().unwrap(),
        "--client-ca-file",
        files.certificate.to_str().unwrap(),
        "--tls-cert-file",
        serving.certificate.to_str().unwrap(),
        "--tls-private-key-file",
        serving.key.to_str().unwrap(),
    ];
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(crate::run(parse(&line), shutdown.clone()));
    let server = data.join("server.json");
    let url = until_some("the cluster is ready", || async {
        let text = std::fs::read_to_string(&server).ok()?;
        let value: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(value["url"].as_str()?.to_owned())
    })
    .await;

    let who = async |signer: &pki::CertificateAuthority| {
        let issued = signer.issue_client("jane", Some("painters"), HOUR, now).unwrap();
        let config: Kubeconfig = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {
                "server": url,
                "certificate-authority-data": STANDARD.encode(authority.certificate_pem()),
            }}],
            "users": [{"name": "c", "user": {
                "client-certificate-data": STANDARD.encode(&issued.certificate_pem),
                "client-key-data": STANDARD.encode(&issued.key_pem),
            }}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }))
        .unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(config, &options).await.unwrap();
        let reviews = Api::<SelfSubjectReview>::all(kube::Client::try_from(config).unwrap());
        reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await
    };
    let review = who(&authority).await.unwrap();
    let user = review.status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("jane"));
    assert_eq!(user.groups.unwrap(), ["painters", "system:authenticated"]);
    // Other clients are anonymous, and have no rights.
    let other = CertificateFiles::in_directory(folder.path(), "other-ca");
    let other = pki::files::ensure_authority(&other, "other", now).unwrap();
    let kube::Error::Api(status) = who(&other).await.unwrap_err() else { panic!("no status") };
    assert_eq!(status.code, 401);
    shutdown.cancel();
    running.await.unwrap().unwrap();
}

#[test]
fn a_serving_certificate_needs_its_key() {
    let error = try_parse(&["--tls-cert", "file"]).unwrap_err().to_string();
    assert!(error.contains("--tls-key"), "{error}");
}

#[tokio::test]
async fn files_that_cannot_be_read_are_named_with_their_flag() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    for (line, said) in [
        (&["--client-ca-file", "/nonexistent/ca"][..], "client-ca-file: cannot read"),
        (&["--tls-cert", "/nonexistent/c", "--tls-key", "/nonexistent/k"], "tls-cert: cannot read"),
    ] {
        let args = parse(&[&["--data-dir", data], line].concat());
        let error = crate::run(args, CancellationToken::new()).await.unwrap_err();
        assert!(error.to_string().starts_with(said), "{error:#}");
    }
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    sim: SimArgs,
}

fn try_parse(flags: &[&str]) -> Result<SimArgs, clap::Error> {
    let line = [&["sim"], flags].concat();
    <Line as clap::Parser>::try_parse_from(line).map(|line| line.sim)
}

fn parse(flags: &[&str]) -> SimArgs {
    try_parse(flags).unwrap()
}
