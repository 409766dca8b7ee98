//! Real etcd members on free loopback ports; dropping the value ends them.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use storage::StorageError;
use storage::etcd::{EtcdConfig, EtcdStorage, EtcdTls};
use tempfile::TempDir;
use testbed::{Binaries, Process, Program, poll_until};

use super::wait;

/// Longest wait for members to respond.
const START_WAIT_MAX: Duration = Duration::from_secs(60);
/// Size for the largest value that a storage must accept.
const REQUEST_BYTES_MAX: usize = storage::VALUE_SIZE_MAX + 512 * 1024;

struct Member {
    client: u16,
    peer: u16,
    process: Process,
}

/// Members of one etcd cluster.
pub struct Cluster {
    members: Vec<Member>,
    tls: Option<EtcdTls>,
    flags: Vec<String>,
    folder: TempDir,
}

impl Cluster {
    /// One member that accepts the largest value.
    pub fn single() -> Self {
        Self::start(1, false, &[&format!("--max-request-bytes={REQUEST_BYTES_MAX}")])
    }

    /// Like [`Cluster::single`], only for clients with a certificate.
    pub fn single_with_tls() -> Self {
        Self::start(1, true, &[&format!("--max-request-bytes={REQUEST_BYTES_MAX}")])
    }

    /// `count` members with these additional flags.
    pub fn start(count: usize, tls: bool, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a test");
        let tls = tls.then(|| issue(&folder));
        let ports = free_ports(count * 2);
        let mut cluster = Self {
            members: Vec::new(),
            tls,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            folder,
        };
        let pairs: Vec<_> = ports.chunks(2).map(|pair| (pair[0], pair[1])).collect();
        for (index, &(client, peer)) in pairs.iter().enumerate() {
            let process = cluster.launch(index, &pairs);
            cluster.members.push(Member { client, peer, process });
        }
        cluster
    }

    fn launch(&self, index: usize, pairs: &[(u16, u16)]) -> Process {
        let (client, peer) = pairs[index];
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let client = format!("{scheme}://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        let all: Vec<_> = pairs
            .iter()
            .enumerate()
            .map(|(index, (_, peer))| format!("member{index}=http://127.0.0.1:{peer}"))
            .collect();
        let path = |name: &str| self.folder.path().join(name);
        let mut flags: Vec<OsString> = vec![
            format!("--name=member{index}").into(),
            format!("--listen-client-urls={client}").into(),
            format!("--advertise-client-urls={client}").into(),
            format!("--listen-peer-urls={peer}").into(),
            format!("--initial-advertise-peer-urls={peer}").into(),
            format!("--initial-cluster={}", all.join(",")).into(),
            "--data-dir".into(),
            path(&format!("member{index}")).into(),
            "--log-level=warn".into(),
            // The writes of a killed process are in the kernel.
            "--unsafe-no-fsync".into(),
        ];
        if pairs.len() == 1 {
            // A member without peers elects itself when this time is over.
            flags.extend(["--heartbeat-interval=10".into(), "--election-timeout=100".into()]);
        }
        if self.tls.is_some() {
            flags.push("--client-cert-auth".into());
            for (flag, file) in [
                ("--cert-file", "server.pem"),
                ("--key-file", "server.key"),
                ("--trusted-ca-file", "ca.pem"),
            ] {
                flags.extend([flag.into(), path(file).into()]);
            }
        }
        flags.extend(self.flags.iter().map(Into::into));
        let program = Binaries::locate().path(Program::Etcd).expect("etcd is there");
        let log = path(&format!("member{index}-{}.log", std::process::id()));
        Process::start("etcd", Command::new(program).args(flags), &log).expect("etcd starts")
    }

    /// How to connect to all members, `first` before the others; without compaction.
    pub fn config(&self, first: usize) -> EtcdConfig {
        let count = self.members.len();
        let order = (0..count).map(|index| (first + index) % count);
        let endpoints = order.map(|index| format!("127.0.0.1:{}", self.members[index].client));
        EtcdConfig {
            endpoints: endpoints.collect(),
            tls: self.tls.clone(),
            key_prefix: "/drover".to_owned(),
            compact_every: None,
        }
    }

    /// The port where a member serves clients.
    pub fn client_port(&self, index: usize) -> u16 {
        self.members[index].client
    }

    /// Connects as soon as the members respond.
    pub async fn connect(&self, config: EtcdConfig) -> Arc<EtcdStorage> {
        let look = async || match EtcdStorage::connect(config.clone()).await {
            Err(StorageError::Failed { reason }) if !reason.contains("NOSPACE") => None,
            other => Some(other.expect("etcd can be used")),
        };
        wait::until(START_WAIT_MAX, "etcd responds", look).await
    }

    /// Index of the leader, as soon as there is one.
    pub fn leader(&self) -> usize {
        let look = || {
            let leads = |member: &Member| is_leader(member.client) == Some(true);
            self.members.iter().position(leads).ok_or("no leader was elected")
        };
        poll_until(START_WAIT_MAX, Duration::from_millis(50), look).expect("there is a majority")
    }

    /// Kills a member, like a power cut.
    pub fn kill(&mut self, index: usize) {
        self.members[index].process.end();
    }

    /// Starts a killed member with its own data.
    pub fn restart(&mut self, index: usize) {
        let pairs: Vec<_> =
            self.members.iter().map(|member| (member.client, member.peer)).collect();
        self.members[index].process = self.launch(index, &pairs);
    }

    /// Stops a member at any point; its connections stay open.
    pub fn freeze(&self, index: usize) {
        self.signal(index, Signal::SIGSTOP);
    }

    pub fn thaw(&self, index: usize) {
        self.signal(index, Signal::SIGCONT);
    }

    fn signal(&self, index: usize, signal: Signal) {
        let id = i32::try_from(self.members[index].process.id()).expect("ids are small");
        kill(Pid::from_raw(id), signal).expect("the member is ours");
    }
}

/// Ports that are free now, all different.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<_> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free"))
        .collect();
    listeners.iter().map(|one| one.local_addr().expect("it is bound").port()).collect()
}

/// Whether the member reports that it leads; `None` when it does not respond.
fn is_leader(port: u16) -> Option<bool> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    let request = "POST /v3/maintenance/status HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all(request.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let body: serde_json::Value = serde_json::from_str(response.split_once("\r\n\r\n")?.1).ok()?;
    Some(body["leader"].is_string() && body["leader"] == body["header"]["member_id"])
}

/// An authority, a server's and a client's certificate. The server's are files in `folder`.
fn issue(folder: &TempDir) -> EtcdTls {
    let ca_key = KeyPair::generate().expect("keys can be made");
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_pem = ca.self_signed(&ca_key).expect("the authority is sound").pem();
    let issuer = Issuer::new(ca, ca_key);
    let sign = |name: &str| {
        let key = KeyPair::generate().expect("keys can be made");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("the name is sound");
        let certificate = params.signed_by(&key, &issuer).expect("the request is sound");
        (certificate.pem(), key.serialize_pem())
    };
    let (server, server_key) = sign("127.0.0.1");
    let write = |name: &str, text: &str| {
        let path: PathBuf = folder.path().join(name);
        std::fs::write(path, text).expect("there is room for a test");
    };
    write("ca.pem", &ca_pem);
    write("server.pem", &server);
    write("server.key", &server_key);
    EtcdTls { ca_pem, client_pem: Some(sign("drover")) }
}
