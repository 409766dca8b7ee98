//! A certificate of the operator: logins, imports and agents verify the server with its authority.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::server::{ADMIN_PASSWORD, Options};
use e2e::wait::within;
use e2e::{Cli, Guarantee, ProgramOutput, Server, Sim, no_second_try};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use sha2::{Digest, Sha256};
use testbed::Process;
use tls_trust::{crypto_provider, roots_from_pem, trust_roots};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Longest wait for a reload: the server checks its files every ten seconds.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(60);

/// An authority of a company, and the files of a certificate that it signed.
struct Company {
    folder: tempfile::TempDir,
    authority_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Company {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Example Company CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let company = Self { folder: tempfile::tempdir().unwrap(), authority_pem, issuer };
        std::fs::write(company.authority(), &company.authority_pem).unwrap();
        company
    }

    fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Writes a new certificate for this machine, with the root at the end of its chain or not.
    fn issue(&self, with_root: bool) {
        let key = KeyPair::generate().unwrap();
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let params = CertificateParams::new(names).unwrap();
        let mut chain = params.signed_by(&key, &self.issuer).unwrap().pem();
        if with_root {
            chain.push_str(&self.authority_pem);
        }
        std::fs::write(self.folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        std::fs::write(self.folder.path().join("chain.pem"), chain).unwrap();
    }

    fn flags(&self) -> Vec<String> {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        ["--tls-cert".to_owned(), file("chain.pem"), "--tls-key".to_owned(), file("key.pem")].into()
    }

    /// The checksum that agents pin.
    fn checksum(&self) -> String {
        let text = format!("{}\n", self.authority_pem.trim_end());
        Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Variable with another list of authorities that the system trusts.
const SYSTEM_AUTHORITIES: &str = "SSL_CERT_FILE";

/// A command on a system that trusts the authorities of a file.
fn run(cli: &Cli, trusted: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = cli.command(arguments)?;
    command.env(SYSTEM_AUTHORITIES, trusted).env("DROVER_PASSWORD", ADMIN_PASSWORD);
    let output = command.output()?;
    let outcome = ProgramOutput {
        command: format!("drover {}", arguments.join(" ")),
        success: output.status.success(),
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    outcome.succeeded()
}

#[test]
fn agents_pin_the_private_authority_of_a_given_certificate_and_follow_its_renewal() {
    no_second_try(Guarantee::Secrecy);
    let company = Company::new();
    company.issue(true);
    let options = Options { flags: company.flags(), ..Options::default() };
    let mut server = Server::start_with(options).unwrap();
    let setting = server.anyone().unwrap().get("/v3/settings/cacerts").unwrap().success().unwrap();
    assert_eq!(setting["value"], company.authority_pem.trim_end());

    // A client that trusts only the system's authorities shows this one, before anything is sent.
    let stranger = Cli::new().unwrap();
    let login = ["login", server.url(), "--username", "admin", "--password", ADMIN_PASSWORD];
    let refusal = stranger.refuse(&login).unwrap();
    assert!(refusal.contains(&company.checksum()), "{refusal}");

    let admin = Cli::admin(&server).unwrap();
    let sim = Sim::start(&["--nodes", "1"]).unwrap();
    let kubeconfig = sim.kubeconfig().display().to_string();
    admin.succeed(&["cluster", "import", "north", "--kubeconfig", &kubeconfig]).unwrap();
    let deployment = ["get", "deployment", "-n", "cattle-system", "-o", "yaml"];
    let deployment = sim.kubectl().unwrap().succeed(&deployment).unwrap();
    assert!(deployment.contains(&company.checksum()), "{deployment}");
    let merged = admin.succeed(&["cluster", "kubeconfig", "north"]).unwrap();
    assert!(merged.contains("certificate-authority-data"), "{merged}");
    let nodes = admin.kubectl("north").unwrap().succeed(&["get", "nodes", "-o", "name"]).unwrap();
    assert_eq!(nodes.lines().count(), 1, "{nodes}");

    company.issue(true);
    within(RENEWAL_TIMEOUT, "the certificate is renewed", || {
        let log = server.log();
        ensure!(log.contains("the serving certificate was renewed"), "{log}");
        Ok(())
    });
    admin.kubectl("north").unwrap().succeed(&["get", "nodes"]).unwrap();
    // The agent reconnects with the renewed certificate.
    server.restart().unwrap();
    within(RENEWAL_TIMEOUT, "the agent is back", || {
        admin.kubectl("north")?.succeed(&["get", "nodes"])
    });
}

#[test]
fn nothing_is_pinned_for_an_authority_that_every_system_trusts() {
    let company = Company::new();
    company.issue(false);
    let trusted = company.authority();
    let file = trusted.display().to_string();
    let server = Server::start_with(Options {
        flags: company.flags(),
        environment: vec![(SYSTEM_AUTHORITIES.to_owned(), file.clone())],
        authority: Some(company.authority_pem.clone()),
        ..Options::default()
    })
    .unwrap();
    let response = server.anyone().unwrap().get("/v3/settings/cacerts").unwrap();
    assert!(response.headers.contains_key("strict-transport-security"));
    assert_eq!(response.success().unwrap()["value"], "");

    let admin = Cli::new().unwrap();
    run(&admin, &trusted, &["login", server.url(), "--username", "admin"]).unwrap();
    let cluster = admin.home().join("cluster.yaml");
    let agent = format!("agentEnvVars: [{{name: {SYSTEM_AUTHORITIES}, value: '{file}'}}]");
    std::fs::write(&cluster, format!("type: cluster\nname: north\n{agent}\n")).unwrap();
    run(&admin, &trusted, &["apply", "-f", &cluster.display().to_string()]).unwrap();
    let sim = Sim::start(&["--nodes", "1"]).unwrap();
    let kubeconfig = sim.kubeconfig().display().to_string();
    let import = ["cluster", "import", "north", "--kubeconfig", &kubeconfig, "--resume"];
    run(&admin, &trusted, &import).unwrap();
    let made = run(&admin, &trusted, &["cluster", "kubeconfig", "north"]).unwrap();
    assert!(!made.contains("certificate-authority-data"), "{made}");
}

#[test]
fn a_certificate_that_nobody_would_trust_ends_the_start_with_the_reason() {
    no_second_try(Guarantee::Secrecy);
    let company = Company::new();
    company.issue(false);
    let options = Options { flags: company.flags(), ..Options::default() };
    let refusal = format!("{:#}", Server::start_with(options).unwrap_err());
    assert!(refusal.contains("--tls-ca FILE"), "{refusal}");

    company.issue(true);
    std::fs::write(
        company.folder.path().join("key.pem"),
        KeyPair::generate().unwrap().serialize_pem(),
    )
    .unwrap();
    let options = Options { flags: company.flags(), ..Options::default() };
    let refusal = format!("{:#}", Server::start_with(options).unwrap_err());
    assert!(refusal.contains("does not belong to the certificate"), "{refusal}");
}

#[test]
fn an_import_by_another_authority_is_mended_by_adopting_the_cluster() {
    let company = Company::new();
    let server_folder = Options::default();
    let mut server = Server::start_with(server_folder).unwrap();
    let admin = Cli::admin(&server).unwrap();
    let sim = Sim::start(&["--nodes", "1"]).unwrap();
    let kubeconfig = sim.kubeconfig().display().to_string();
    admin.succeed(&["cluster", "import", "north", "--kubeconfig", &kubeconfig]).unwrap();

    company.issue(true);
    server.restart_with(Options { flags: company.flags(), ..Options::default() }).unwrap();
    let admin = Cli::admin(&server).unwrap();
    let adopt = ["cluster", "import", "north", "--kubeconfig", &kubeconfig, "--adopt"];
    admin.succeed(&adopt).unwrap();
    within(RENEWAL_TIMEOUT, "the agent is back", || {
        admin.kubectl("north")?.succeed(&["get", "nodes"])
    });
}

/// A proxy that terminates TLS with the company's certificate, and connects to the server by TLS.
struct Proxy {
    runtime: Runtime,
    listener: Option<TcpListener>,
    address: SocketAddr,
}

impl Proxy {
    fn bind() -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        Self { runtime, listener: Some(listener), address }
    }

    /// `authority`: of the server behind it, PEM.
    fn serve(&mut self, company: &Company, server: SocketAddr, authority: &str) {
        let chain = std::fs::read(company.folder.path().join("chain.pem")).unwrap();
        let chain = CertificateDer::pem_slice_iter(&chain).map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(company.folder.path().join("key.pem")).unwrap();
        let mut accepts = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let mut connects = trust_roots(roots_from_pem(authority).unwrap()).with_no_client_auth();
        accepts.alpn_protocols = vec![b"http/1.1".to_vec()];
        connects.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(accepts));
        let connector = TlsConnector::from(Arc::new(connects));
        let listener = self.listener.take().unwrap();
        self.runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, connector) = (acceptor.clone(), connector.clone());
                tokio::spawn(async move {
                    let mut outside = acceptor.accept(stream).await?;
                    let inside = TcpStream::connect(server).await?;
                    let name = ServerName::try_from("localhost").expect("it is a name");
                    let mut inside = connector.connect(name, inside).await?;
                    copy_bidirectional(&mut outside, &mut inside).await
                });
            }
        });
    }
}

/// An address that is free now.
fn free() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn agents_verify_a_proxy_that_ends_tls_by_the_authority_that_the_server_names() {
    let company = Company::new();
    company.issue(true);
    let mut proxy = Proxy::bind();
    let url = format!("https://localhost:{}", proxy.address.port());
    let (folder, address) = (tempfile::tempdir().unwrap(), free());
    let data = folder.path().join("data");
    let mut command = Server::command(&data, &address.to_string()).unwrap();
    let authority = company.authority().display().to_string();
    command.args(["--server-url", &url, "--tls-ca", &authority, "--trusted-proxies", "127.0.0.1"]);
    let log = folder.path().join("server.log");
    let mut server = Process::start("drover server", &command, &log).unwrap();
    within(RENEWAL_TIMEOUT, "the server is ready", || {
        ensure!(server.exit_status().is_none(), "{}", server.log_tail());
        Ok(std::fs::metadata(data.join("server.json"))?)
    });
    let own = std::fs::read_to_string(data.join("pki/ca.pem")).unwrap();
    proxy.serve(&company, address, &own);

    let admin = Cli::new().unwrap();
    let login = ["login", &url, "--username", "admin", "--password", ADMIN_PASSWORD];
    admin.succeed(&[&login[..], &["--ca-file", &authority]].concat()).unwrap();
    let sim = Sim::start(&["--nodes", "1"]).unwrap();
    let kubeconfig = sim.kubeconfig().display().to_string();
    admin.succeed(&["cluster", "import", "north", "--kubeconfig", &kubeconfig]).unwrap();
    let nodes = admin.kubectl("north").unwrap().succeed(&["get", "nodes", "-o", "name"]).unwrap();
    assert_eq!(nodes.lines().count(), 1, "{nodes}");
}
