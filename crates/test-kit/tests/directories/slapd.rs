//! A real OpenLDAP server on loopback, with some people and groups. It ends when it is dropped.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use testbed::{Binaries, Process, Program, poll_until};

pub const BASE: &str = "dc=example,dc=org";
/// The account that may search.
pub const READER: &str = "cn=reader,dc=example,dc=org";
pub const READER_PASSWORD: &str = "reader-secret-canary";
pub const ADA_PASSWORD: &str = "ada's (secret*)";
/// Time for a server to listen.
const START_TIME_MAX: Duration = Duration::from_secs(20);

/// See the module.
pub struct Slapd {
    pub port: u16,
    pub tls_port: u16,
    /// The authority of its certificate, which is for `localhost` and `127.0.0.1`.
    pub authority: String,
    configuration: String,
    folder: TempDir,
    process: Option<Process>,
}

impl Slapd {
    pub fn start() -> Self {
        Self::with("", &people())
    }

    /// With the object classes and the tree of FreeIPA, whose server fills in `memberOf` itself.
    pub fn start_like_freeipa() -> Self {
        Self::with(FREEIPA_SCHEMA, &ipa_people())
    }

    /// With more lines of its configuration, and these entries.
    fn with(more: &str, entries: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let authority =
            pki::CertificateAuthority::generate("directory", SystemTime::now()).unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let serving = authority.issue_serving("localhost", &names, SystemTime::now()).unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let certificate = write("cert.pem", &serving.certificate_pem);
        let key = write("key.pem", &serving.key_pem);
        fs::create_dir(folder.path().join("db")).unwrap();
        let root = Binaries::locate().packages().display().to_string();
        let here = folder.path().display();
        let configuration = write(
            "slapd.conf",
            &format!(
                "include {root}/etc/ldap/schema/core.schema\n\
                 include {root}/etc/ldap/schema/cosine.schema\n\
                 include {root}/etc/ldap/schema/inetorgperson.schema\n\
                 modulepath {root}/usr/lib/ldap\n\
                 moduleload back_mdb\n\
                 {more}\
                 TLSCertificateFile {certificate}\n\
                 TLSCertificateKeyFile {key}\n\
                 database mdb\n\
                 directory {here}/db\n\
                 suffix \"{BASE}\"\n\
                 rootdn \"cn=root,{BASE}\"\n\
                 rootpw root-secret\n\
                 access to attrs=userPassword by anonymous auth by * none\n\
                 access to * by dn.exact=\"{READER}\" read by * none\n"
            ),
        );
        let (port, tls_port) = (free_port(), free_port());
        let authority = authority.certificate_pem().to_owned();
        let mut slapd = Self { port, tls_port, authority, configuration, folder, process: None };
        slapd.add(entries);
        slapd.listen();
        slapd
    }

    fn command(&self) -> Command {
        let binaries = Binaries::locate();
        let mut command = Command::new(binaries.path(Program::Slapd).unwrap());
        let libraries = binaries.packages().join("usr/lib").join("x86_64-linux-gnu");
        let libraries = if libraries.is_dir() {
            libraries
        } else {
            binaries.packages().join("usr/lib").join("aarch64-linux-gnu")
        };
        command.env("LD_LIBRARY_PATH", libraries);
        command
    }

    /// Adds entries while the server does not run.
    fn add(&self, ldif: &str) {
        let path = self.folder.path().join("entries.ldif");
        fs::write(&path, ldif).unwrap();
        self.run_tool(&path);
    }

    fn run_tool(&self, entries: &Path) {
        let mut command = self.command();
        command.args(["-T", "a", "-f", &self.configuration, "-l"]).arg(entries);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "slapadd: {text}");
    }

    fn listen(&mut self) {
        let mut command = self.command();
        let urls = format!("ldap://127.0.0.1:{}/ ldaps://127.0.0.1:{}/", self.port, self.tls_port);
        command.args(["-d", "0", "-f", &self.configuration, "-h", &urls]);
        let log = self.folder.path().join("slapd.log");
        self.process = Some(Process::start("slapd", &command, &log).unwrap());
        let port = self.port;
        let listening = || TcpStream::connect(("127.0.0.1", port)).map(drop);
        poll_until(START_TIME_MAX, Duration::from_millis(20), listening).unwrap();
    }

    /// Ends the server and forgets all people but Bob, who is in no group. It listens again on
    /// [`Slapd::start_again`].
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Restarts the server so that nobody may read `people` or `groups`, nor that there are some.
    pub fn conceal(&mut self, unit: &str) {
        self.stop();
        let text = fs::read_to_string(&self.configuration).unwrap();
        let rule =
            format!("access to dn.subtree=\"ou={unit},{BASE}\" by * none\naccess to * by dn");
        fs::write(&self.configuration, text.replace("access to * by dn", &rule)).unwrap();
        self.listen();
    }

    /// Listens again, with these entries instead of all others.
    pub fn start_again(&mut self, ldif: &str) {
        self.stop();
        fs::remove_dir_all(self.folder.path().join("db")).unwrap();
        fs::create_dir(self.folder.path().join("db")).unwrap();
        self.add(ldif);
        self.listen();
    }
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// The base and the account that searches.
pub fn base() -> String {
    format!(
        "dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\no: Example\ndc: example\n\n\
         dn: {READER}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\n\
         cn: reader\nuserPassword: {READER_PASSWORD}\n\n\
         dn: ou=people,{BASE}\nobjectClass: organizationalUnit\nou: people\n\n\
         dn: ou=groups,{BASE}\nobjectClass: organizationalUnit\nou: groups\n\n"
    )
}

pub fn person(uid: &str, name: &str, password: &str) -> String {
    format!(
        "dn: uid={uid},ou=people,{BASE}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: {name}\n\
         sn: {name}\nuserPassword: {password}\n\n"
    )
}

pub fn group(cn: &str, member: &str) -> String {
    format!(
        "dn: cn={cn},ou=groups,{BASE}\nobjectClass: groupOfNames\ncn: {cn}\n\
         member: {member},{BASE}\n\n"
    )
}

/// What FreeIPA's schema has beyond that of OpenLDAP, as far as logins see it.
const FREEIPA_SCHEMA: &str = "\
    attributetype ( 1.2.840.113556.1.2.102 NAME 'memberOf' EQUALITY distinguishedNameMatch \
        SYNTAX 1.3.6.1.4.1.1466.115.121.1.12 )\n\
    attributetype ( 2.16.840.1.113730.3.8.3.1 NAME 'ipaUniqueID' EQUALITY caseExactMatch \
        SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )\n\
    objectclass ( 2.16.840.1.113730.3.8.4.1 NAME 'ipaObject' SUP top AUXILIARY \
        MUST ipaUniqueID MAY memberOf )\n\
    objectclass ( 2.16.840.1.113730.3.8.4.2 NAME 'ipaUserGroup' SUP top AUXILIARY )\n";
pub const IPA_USERS: &str = "cn=users,cn=accounts,dc=example,dc=org";
pub const IPA_GROUPS: &str = "cn=groups,cn=accounts,dc=example,dc=org";

/// Ada is in `team`, which is in `staff`: her entry names both.
fn ipa_people() -> String {
    let container =
        |dn: &str, cn: &str| format!("dn: {dn}\nobjectClass: applicationProcess\ncn: {cn}\n\n");
    let group = |cn: &str, member: &str, of: &str| {
        format!(
            "dn: cn={cn},{IPA_GROUPS}\nobjectClass: groupOfNames\nobjectClass: ipaUserGroup\n\
             objectClass: ipaObject\nipaUniqueID: {cn}-1\ncn: {cn}\nmember: {member}\n{of}\n"
        )
    };
    let ada = format!("uid=ada,{IPA_USERS}");
    [
        base(),
        container(&format!("cn=accounts,{BASE}"), "accounts"),
        container(IPA_USERS, "users"),
        container(IPA_GROUPS, "groups"),
        format!(
            "dn: {ada}\nobjectClass: inetOrgPerson\nobjectClass: ipaObject\nipaUniqueID: ada-1\n\
             uid: ada\ngivenName: Ada\nsn: Lovelace\ncn: Ada Lovelace\n\
             memberOf: cn=team,{IPA_GROUPS}\nmemberOf: cn=staff,{IPA_GROUPS}\n\
             userPassword: {ADA_PASSWORD}\n\n"
        ),
        group("team", &ada, &format!("memberOf: cn=staff,{IPA_GROUPS}\n")),
        group("staff", &format!("cn=team,{IPA_GROUPS}"), ""),
    ]
    .concat()
}

/// Ada is in `team`, which is in `staff`, which is in `team` again. Bob is in no group.
fn people() -> String {
    [
        base(),
        person("ada", "Ada Lovelace", ADA_PASSWORD),
        person("bob", "Bob", "bob-secret"),
        group("team", "uid=ada,ou=people"),
        group("staff", "cn=team,ou=groups"),
        group("ring", "cn=staff,ou=groups"),
        group("other", "uid=nobody,ou=people"),
    ]
    .concat()
}
