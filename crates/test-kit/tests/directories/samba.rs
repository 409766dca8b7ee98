//! A real domain controller of Active Directory, Samba's, on a loopback address of its own: the
//! ports of a domain are fixed. It ends when it is dropped.
//!
//! Its tools look for their files below `/usr`, so each program runs in a mount namespace of its
//! own, in which the unpacked packages are mounted over that.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use testbed::{Binaries, Process, poll_until};

/// The name by which old clients know the domain, and its base.
pub const DOMAIN: &str = "AD";
pub const BASE: &str = "DC=ad,DC=example,DC=org";
/// The account that may search.
pub const READER: &str = "reader";
pub const READER_PASSWORD: &str = "Reader-secret-canary-1";
pub const ADA_PASSWORD: &str = "Ada's (secret*) 1";
pub const BOB_PASSWORD: &str = "Bob-secret-1";
pub const PORT: u16 = 389;
pub const TLS_PORT: u16 = 636;
/// Time for a server to listen.
const START_TIME_MAX: Duration = Duration::from_secs(60);
/// Mounts the packages, the first parameter, over `/usr`, and runs the other ones.
const WITHIN: &str =
    "mount -t overlay overlay -o \"lowerdir=$1/usr:/usr\" /usr && shift && exec \"$@\"";

/// See the module.
pub struct Samba {
    pub address: String,
    /// The authority of its certificate, which is for the address.
    pub authority: String,
    folder: TempDir,
    _process: Process,
}

impl Samba {
    /// Makes a domain with some people and groups, and serves it.
    pub fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let [high, low, ..] = std::process::id().to_be_bytes().map(u32::from)[2..] else {
            unreachable!("a process id has four bytes")
        };
        let address = format!("127.89.{high}.{low}");
        provision(folder.path());
        let authority = configure(folder.path(), &address);
        people(folder.path());
        let mut command = within("samba");
        command.args(["--interactive", "--model=single", "-s"]).arg(file(folder.path()));
        let log = folder.path().join("samba.log");
        let process = Process::start("samba", &command, &log).unwrap();
        let listening = || TcpStream::connect((address.as_str(), TLS_PORT)).map(drop);
        poll_until(START_TIME_MAX, Duration::from_millis(50), listening).unwrap();
        Self { address, authority, folder, _process: process }
    }

    /// Changes the domain, with the arguments of `samba-tool`.
    pub fn tool(&self, arguments: &[&str]) {
        tool(self.folder.path(), arguments);
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("smb.conf")
}

fn within(program: &str) -> Command {
    let mut command = Command::new("unshare");
    let root = Binaries::locate().samba().unwrap();
    command.args(["--mount", "sh", "-c", WITHIN, "sh"]).arg(root).arg(program);
    command
}

fn run(mut command: Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}

fn tool(folder: &Path, arguments: &[&str]) {
    let mut command = within("samba-tool");
    command.args(arguments).arg("-s").arg(file(folder));
    run(command);
}

fn provision(folder: &Path) {
    let mut command = within("samba-tool");
    command.args(["domain", "provision", "--realm=AD.EXAMPLE.ORG", "--server-role=dc"]);
    command.args(["--adminpass=Admin-secret-1", "--dns-backend=NONE", "--host-name=dc1"]);
    command.args(["--host-ip=127.0.0.1".to_owned(), format!("--domain={DOMAIN}")]);
    command.arg(format!("--targetdir={}", folder.display()));
    run(command);
}

/// Writes what the domain is served with: LDAP alone, with and without TLS. Returns the authority.
fn configure(folder: &Path, address: &str) -> String {
    let authority = pki::CertificateAuthority::generate("directory", SystemTime::now()).unwrap();
    let names = [address.to_owned()];
    let serving = authority.issue_serving("dc1", &names, SystemTime::now()).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        // It refuses keys that others may read.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.display().to_string()
    };
    let certificate = write("cert.pem", &serving.certificate_pem);
    let key = write("key.pem", &serving.key_pem);
    let ca = write("ca.pem", authority.certificate_pem());
    let here = folder.display();
    let text = format!(
        "[global]\n\
         workgroup = {DOMAIN}\n\
         realm = AD.EXAMPLE.ORG\n\
         netbios name = DC1\n\
         server role = active directory domain controller\n\
         server services = ldap\n\
         bind interfaces only = yes\n\
         interfaces = {address}/8\n\
         private dir = {here}/private\n\
         state directory = {here}/state\n\
         cache directory = {here}/cache\n\
         lock directory = {here}\n\
         pid directory = {here}\n\
         binddns dir = {here}/bind-dns\n\
         ncalrpc dir = {here}/ncalrpc\n\
         log file = {here}/log\n\
         tls certfile = {certificate}\n\
         tls keyfile = {key}\n\
         tls cafile = {ca}\n"
    );
    write("smb.conf", &text);
    authority.certificate_pem().to_owned()
}

/// Ada is in `team`, which is in `staff`. Eve's password has expired.
fn people(folder: &Path) {
    let user = |name: &str, password: &str, more: &[&str]| {
        tool(folder, &[&["user", "create", name, password], more].concat());
    };
    user(READER, READER_PASSWORD, &[]);
    user("ada", ADA_PASSWORD, &["--given-name=Ada", "--surname=Lovelace"]);
    user("bob", BOB_PASSWORD, &[]);
    user("eve", "Eve-secret-1", &["--must-change-at-next-login"]);
    for (group, member) in [("team", "ada"), ("staff", "team"), ("other", "bob")] {
        tool(folder, &["group", "add", group]);
        tool(folder, &["group", "addmembers", group, member]);
    }
}
