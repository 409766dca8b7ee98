//! The settings of the server at its start: flags, then environment, then a file, then defaults;
//! resolved once, with all problems reported together.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use api_meta::image::ImageReference;
use apiserver::audit::AuditFlags;
use apiserver::audit::policy::AuditPolicy;
use clap::Args;
use driver_host::EgressException;
use serde::{Deserialize, Serialize};

use crate::certificate::TlsSettings;
use crate::peer::TrustedProxies;
use crate::store::{EMBEDDED, StorageAddress};

/// Default of `--listen`.
const LISTEN: &str = "0.0.0.0:8443";
/// Default of `--data-dir`.
pub const DATA_DIR: &str = "/var/lib/drover";
/// Default of `--agent-image`.
pub const AGENT_IMAGE: &str = concat!("drover-agent:", env!("CARGO_PKG_VERSION"));
/// Shortest bootstrap password.
const PASSWORD_LENGTH_MIN: usize = 12;
/// Clouds take up to an hour for a cluster.
const DRIVER_CALL_TIME_MAX: Duration = Duration::from_secs(90 * 60);
/// Longer than that, a driver is taken for hung whatever is configured.
const DRIVER_CALL_TIME_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// `drover server …`. Every flag is also a variable and a key of the settings file.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerArgs {
    /// Folder of everything the server keeps [default: /var/lib/drover]
    #[arg(long, env = "DROVER_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Address and port of HTTPS; port 0 takes a free one [default: 0.0.0.0:8443]
    #[arg(long, env = "DROVER_LISTEN", value_name = "ADDR:PORT")]
    pub listen: Option<String>,
    /// `embedded`, or `etcd://host:port,…[/prefix]` [default: embedded]
    #[arg(long, env = "DROVER_STORAGE", value_name = "STORAGE")]
    pub storage: Option<String>,
    /// Authorities of etcd's members; without it nothing is encrypted
    #[arg(long, env = "DROVER_STORAGE_CA", value_name = "FILE")]
    pub storage_ca: Option<PathBuf>,
    /// Certificate that etcd is shown
    #[arg(long, env = "DROVER_STORAGE_CERT", value_name = "FILE")]
    pub storage_cert: Option<PathBuf>,
    /// Private key of that certificate
    #[arg(long, env = "DROVER_STORAGE_KEY", value_name = "FILE")]
    pub storage_key: Option<PathBuf>,
    /// Keys that the storage is encrypted with, a line each: the first writes, all read
    /// [default: encryption.keys in the data folder, made at the first start]
    #[arg(long, env = "DROVER_ENCRYPTION_KEY_FILE", value_name = "FILE")]
    pub encryption_key_file: Option<PathBuf>,
    /// Keep the management API on this existing cluster instead of the embedded one
    #[arg(long, env = "DROVER_KUBECONFIG", value_name = "FILE", hide = true)]
    pub kubeconfig: Option<PathBuf>,
    /// URL under which agents and people reach the server [default: from the listen address]
    #[arg(long, env = "DROVER_SERVER_URL", value_name = "URL")]
    pub server_url: Option<String>,
    /// Certificate that the server presents, PEM, with those of its intermediate authorities behind
    /// it; renewed files are taken without a restart [default: one of the server's own authority]
    #[arg(long, env = "DROVER_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of that certificate, PEM
    #[arg(long, env = "DROVER_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Authority by which agents and commands verify the server's URL, PEM, or `system` for one
    /// that every system trusts [default: the root at the end of --tls-cert; `system` when there is
    /// none in it]
    #[arg(long, env = "DROVER_TLS_CA", value_name = "FILE")]
    pub tls_ca: Option<String>,
    /// Password of the user `admin` when it is made [default: a random one, printed once]
    #[arg(long, env = "DROVER_BOOTSTRAP_PASSWORD", value_name = "PW", hide_env_values = true)]
    pub bootstrap_password: Option<String>,
    /// File with that password: arguments are in the list of processes, which everybody on the
    /// machine reads
    #[arg(long, env = "DROVER_BOOTSTRAP_PASSWORD_FILE", value_name = "FILE")]
    pub bootstrap_password_file: Option<PathBuf>,
    /// Addresses and networks of proxies in front of the server, with commas between them: their
    /// X-Forwarded-For says where a login comes from [default: none]
    #[arg(long, env = "DROVER_TRUSTED_PROXIES", value_name = "CIDR,…")]
    pub trusted_proxies: Option<String>,
    /// Image of the agents
    #[arg(long, env = "DROVER_AGENT_IMAGE", value_name = "REF")]
    pub agent_image: Option<String>,
    /// Where the machine does not let the server confine cluster drivers, run them with the rights
    /// of the server [default: false]
    #[arg(
        long,
        env = "DROVER_ALLOW_UNCONFINED_DRIVERS",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub allow_unconfined_drivers: Option<bool>,
    /// Hosts and ports that cluster drivers and their downloads reach although they are of this
    /// machine or its link, such as 127.0.0.1:9000, with commas between them. After a "=" the
    /// address where a host is reached, such as a private endpoint of a cloud [default: none]
    #[arg(long, env = "DROVER_DRIVER_MAY_REACH", value_name = "HOST:PORT[=ADDRESS:PORT],…")]
    pub driver_may_reach: Option<String>,
    /// Longest call of a cluster driver that makes, changes or removes a cluster [default: 90m]
    #[arg(long, env = "DROVER_DRIVER_CALL_TIME_MAX", value_name = "DURATION")]
    pub driver_call_time_max: Option<String>,
    /// Audit log; `none` records nothing [default: audit/audit.log in the data folder]
    #[arg(long, env = "DROVER_AUDIT_LOG_PATH", value_name = "FILE")]
    pub audit_log_path: Option<String>,
    /// What the audit log records [default: metadata of all but health checks and routine of
    /// controllers]
    #[arg(long, env = "DROVER_AUDIT_POLICY_FILE", value_name = "FILE")]
    pub audit_policy_file: Option<PathBuf>,
    /// Size at which a new audit log is begun [default: 100]
    #[arg(long, env = "DROVER_AUDIT_LOG_MAXSIZE", value_name = "MEGABYTES")]
    pub audit_log_maxsize: Option<u32>,
    /// Earlier audit logs that are kept; 0 is all [default: 9]
    #[arg(long, env = "DROVER_AUDIT_LOG_MAXBACKUP", value_name = "N")]
    pub audit_log_maxbackup: Option<u32>,
    /// Age at which earlier audit logs go; 0 is never [default: 30]
    #[arg(long, env = "DROVER_AUDIT_LOG_MAXAGE", value_name = "DAYS")]
    pub audit_log_maxage: Option<u32>,
    /// Time between the request to stop, when /readyz fails, and new connections being refused,
    /// such as `15s` [default: 0s]
    #[arg(long, env = "DROVER_SHUTDOWN_DELAY_DURATION", value_name = "DURATION")]
    pub shutdown_delay_duration: Option<String>,
    /// YAML file with any of these settings, by flag name
    #[arg(long, env = "DROVER_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Print the resolved settings without secrets, and end
    #[arg(long)]
    #[serde(skip)]
    pub show_settings: bool,
}

/// The resolved settings.
#[derive(Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ServerSettings {
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    #[serde(flatten)]
    pub storage: StorageAddress,
    pub encryption_key_file: Option<PathBuf>,
    /// Empty: derived from the address in use.
    pub server_url: String,
    #[serde(flatten)]
    pub tls: TlsSettings,
    #[serde(serialize_with = "redacted")]
    pub bootstrap_password: Option<String>,
    pub agent_image: String,
    pub trusted_proxies: String,
    #[serde(flatten)]
    pub drivers: DriverConfinement,
    #[serde(flatten)]
    pub audit: AuditSettings,
    #[serde(serialize_with = "in_seconds")]
    pub shutdown_delay_duration: Duration,
}

fn in_seconds<S: serde::Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{}s", value.as_secs_f64()))
}

/// What cluster drivers may do.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DriverConfinement {
    pub allow_unconfined_drivers: bool,
    #[serde(rename = "driver-may-reach", serialize_with = "with_commas")]
    pub exceptions: Vec<EgressException>,
    #[serde(serialize_with = "in_seconds")]
    pub driver_call_time_max: Duration,
}

impl Default for DriverConfinement {
    fn default() -> Self {
        let driver_call_time_max = DRIVER_CALL_TIME_MAX;
        Self { allow_unconfined_drivers: false, exceptions: Vec::new(), driver_call_time_max }
    }
}

fn with_commas<S: serde::Serializer>(
    exceptions: &[EgressException],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let texts: Vec<String> = exceptions.iter().map(ToString::to_string).collect();
    serializer.serialize_str(&texts.join(","))
}

/// The audit log, as configured; what is absent has a default.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AuditSettings {
    /// Absent: nothing is recorded.
    pub audit_log_path: Option<PathBuf>,
    pub audit_policy_file: Option<PathBuf>,
    pub audit_log_maxsize: Option<u32>,
    pub audit_log_maxbackup: Option<u32>,
    pub audit_log_maxage: Option<u32>,
}

/// What is recorded without a policy: metadata of what people, agents and service accounts do, and
/// of what controllers change, without what is so often that it would push out the rest: their
/// reads, reports of status, leases and events.
const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, nonResourceURLs: ['/healthz*', '/livez*', '/readyz*', '/metrics']}
- {level: None, userGroups: ['drover:controllers'], verbs: [get, list, watch]}
- {level: None, users: ['system:drover:server'], verbs: [get, list, watch]}
- level: None
  userGroups: ['drover:controllers']
  resources:
  - {group: management.cattle.io, resources: ['*/status']}
  - {group: project.cattle.io, resources: ['*/status']}
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: '', resources: [events]}
  - {group: events.k8s.io, resources: [events]}
- {level: Metadata}
";
/// Value of `audit-log-path` with which nothing is recorded; nothing at all means the same.
const NO_AUDIT_LOG: &str = "none";

/// Kinds of ours whose objects hold what opens doors.
const SENSITIVE: [(&str, &str); 3] = [
    ("management.cattle.io", "clusterregistrationtokens"),
    ("management.cattle.io", "tokens"),
    ("management.cattle.io", "users"),
];

impl AuditSettings {
    /// What they come to; `None` when nothing is to be recorded.
    ///
    /// # Errors
    /// The policy cannot be read or used; the text says what to do.
    pub fn resolve(&self) -> Result<Option<apiserver::audit::AuditSettings>, String> {
        let flags = AuditFlags {
            log_path: self.audit_log_path.clone(),
            policy_file: self.audit_policy_file.clone(),
            log_maxsize: self.audit_log_maxsize,
            log_maxbackup: self.audit_log_maxbackup,
            log_maxage: self.audit_log_maxage,
        };
        let mut settings = flags.resolve()?;
        if let Some(settings) = &mut settings {
            settings.sensitive.extend(SENSITIVE);
            // In what is sent credentials are still there.
            let plurals = api_management::credentials::plurals();
            settings.sensitive.extend(plurals.map(|plural| (api_management::GROUP, plural)));
            if self.audit_policy_file.is_none() {
                settings.policy = AuditPolicy::parse(POLICY)?;
            }
        }
        Ok(settings)
    }
}

impl std::fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| std::fmt::Error)?)
    }
}

fn redacted<S: serde::Serializer>(
    value: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(_) => serializer.serialize_str("[redacted]"),
        None => serializer.serialize_none(),
    }
}

/// Settings that cannot be used. Names every problem.
#[derive(Debug, thiserror::Error)]
#[error("settings cannot be used:\n{}", .0.iter().map(|p| format!("  - {p}")).collect::<Vec<_>>().join("\n"))]
pub struct SettingsError(pub Vec<String>);

impl ServerArgs {
    /// Reads the settings file, if one is named, and resolves.
    pub fn resolve(self) -> Result<ServerSettings, SettingsError> {
        let file = match &self.config {
            None => Self::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    SettingsError(vec![format!("cannot read \"{}\": {error}", path.display())])
                })?;
                serde_saphyr::from_str(&text).map_err(|error| {
                    SettingsError(vec![format!("\"{}\": {error}", path.display())])
                })?
            }
        };
        self.merged(file)
    }

    fn audit(&self, file: &Self) -> AuditSettings {
        let data_dir = self.data_dir.as_deref().or(file.data_dir.as_deref());
        let policy_file = self.audit_policy_file.as_ref().or(file.audit_policy_file.as_ref());
        let log_path = self.audit_log_path.as_ref().or(file.audit_log_path.as_ref());
        AuditSettings {
            audit_log_path: match log_path.map(String::as_str) {
                None => Some(crate::files::audit_log(data_dir.unwrap_or(Path::new(DATA_DIR)))),
                Some("" | NO_AUDIT_LOG) => None,
                Some(path) => Some(path.into()),
            },
            audit_policy_file: policy_file.cloned(),
            audit_log_maxsize: self.audit_log_maxsize.or(file.audit_log_maxsize),
            audit_log_maxbackup: self.audit_log_maxbackup.or(file.audit_log_maxbackup),
            audit_log_maxage: self.audit_log_maxage.or(file.audit_log_maxage),
        }
    }

    fn tls(&self, file: &Self) -> TlsSettings {
        TlsSettings {
            tls_cert: self.tls_cert.as_ref().or(file.tls_cert.as_ref()).cloned(),
            tls_key: self.tls_key.as_ref().or(file.tls_key.as_ref()).cloned(),
            tls_ca: self.tls_ca.as_ref().or(file.tls_ca.as_ref()).cloned(),
        }
    }

    fn drivers(&self, file: &Self, problems: &mut Vec<String>) -> DriverConfinement {
        let may_reach = self.driver_may_reach.as_ref().or(file.driver_may_reach.as_ref());
        let entries = may_reach.map(String::as_str).unwrap_or_default().split(',').map(str::trim);
        let mut exceptions = Vec::new();
        for entry in entries.filter(|entry| !entry.is_empty()) {
            match entry.parse() {
                Ok(exception) => exceptions.push(exception),
                Err(error) => problems.push(format!("driver-may-reach: \"{entry}\": {error}")),
            }
        }
        let allow_unconfined = self.allow_unconfined_drivers.or(file.allow_unconfined_drivers);
        let time = self.driver_call_time_max.as_ref().or(file.driver_call_time_max.as_ref());
        let time = time.map(|text| parse_call_time(text)).transpose();
        problems.extend(time.as_ref().err().cloned());
        DriverConfinement {
            allow_unconfined_drivers: allow_unconfined.unwrap_or_default(),
            exceptions,
            driver_call_time_max: time.ok().flatten().unwrap_or(DRIVER_CALL_TIME_MAX),
        }
    }

    fn merged(self, file: Self) -> Result<ServerSettings, SettingsError> {
        let mut problems = Vec::new();
        let (audit, tls) = (self.audit(&file), self.tls(&file));
        let drivers = self.drivers(&file, &mut problems);
        let listen = self.listen.or(file.listen).unwrap_or_else(|| LISTEN.to_owned());
        let listen = match parse_listen(&listen) {
            Ok(listen) => listen,
            Err(problem) => {
                problems.push(problem);
                SocketAddr::from(([0, 0, 0, 0], 0))
            }
        };
        let storage = StorageAddress {
            address: self.storage.or(file.storage).unwrap_or_else(|| EMBEDDED.to_owned()),
            storage_ca: self.storage_ca.or(file.storage_ca),
            storage_cert: self.storage_cert.or(file.storage_cert),
            storage_key: self.storage_key.or(file.storage_key),
        };
        problems.extend(storage.problems());
        if self.kubeconfig.or(file.kubeconfig).is_some() {
            problems.push(
                "kubeconfig: keeping the management API on an existing cluster is not there yet; \
                 leave --kubeconfig out to use the embedded one"
                    .to_owned(),
            );
        }
        let server_url = self.server_url.or(file.server_url).unwrap_or_default();
        let server_url = server_url.trim_end_matches('/').to_owned();
        if !server_url.is_empty() && !is_https_url(&server_url) {
            problems.push(format!(
                "server-url: \"{server_url}\" must be https://HOST[:PORT] without a path"
            ));
        }
        problems.extend(tls.problem());
        let given = self.bootstrap_password.or(file.bootstrap_password);
        let given_file = self.bootstrap_password_file.or(file.bootstrap_password_file);
        let password = read_password(given, given_file.as_deref());
        problems.extend(password.as_ref().err().cloned());
        let agent_image =
            self.agent_image.or(file.agent_image).unwrap_or_else(|| AGENT_IMAGE.to_owned());
        if let Err(error) = agent_image.parse::<ImageReference>() {
            problems.push(format!("agent-image: \"{agent_image}\" {error}"));
        }
        let trusted_proxies = self.trusted_proxies.or(file.trusted_proxies).unwrap_or_default();
        if let Err(entry) = TrustedProxies::parse(&trusted_proxies) {
            problems.push(format!(
                "trusted-proxies: \"{entry}\" is neither an address nor a network such as 10.0.0.0/8"
            ));
        }
        problems.extend(audit.resolve().err());
        let delay = self.shutdown_delay_duration.or(file.shutdown_delay_duration);
        let delay = parse_delay(delay.as_deref().unwrap_or("0s"));
        problems.extend(delay.as_ref().err().cloned());
        if !problems.is_empty() {
            return Err(SettingsError(problems));
        }
        Ok(ServerSettings {
            audit,
            shutdown_delay_duration: delay.unwrap_or_default(),
            data_dir: self.data_dir.or(file.data_dir).unwrap_or_else(|| DATA_DIR.into()),
            listen,
            storage,
            encryption_key_file: self.encryption_key_file.or(file.encryption_key_file),
            server_url,
            tls,
            bootstrap_password: password.unwrap_or_default(),
            agent_image,
            trusted_proxies,
            drivers,
        })
    }
}

/// The bootstrap password, or that in the file, without the end of its line.
fn read_password(given: Option<String>, file: Option<&Path>) -> Result<Option<String>, String> {
    let password = match (given, file) {
        (given, None) => given,
        (Some(_), Some(_)) => {
            return Err("bootstrap-password, bootstrap-password-file: give one of them".to_owned());
        }
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                format!("bootstrap-password-file: cannot read \"{}\": {error}", file.display())
            })?;
            Some(text.trim_end_matches(['\r', '\n']).to_owned())
        }
    };
    match &password {
        Some(password) if password.chars().count() < PASSWORD_LENGTH_MIN => {
            Err(format!("bootstrap-password: must have at least {PASSWORD_LENGTH_MIN} characters"))
        }
        _ => Ok(password),
    }
}

/// Longest `--shutdown-delay-duration`: whoever ends a server waits for it.
const SHUTDOWN_DELAY_MAX: Duration = Duration::from_secs(600);

fn parse_call_time(text: &str) -> Result<Duration, String> {
    let limit = DRIVER_CALL_TIME_LIMIT.as_secs_f64();
    match api_meta::duration::seconds(text) {
        Ok(seconds) if (1.0..=limit).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!(
            "driver-call-time-max: \"{text}\" is no time such as 90m, between 1 s and a day"
        )),
    }
}

fn parse_delay(text: &str) -> Result<Duration, String> {
    let limit = SHUTDOWN_DELAY_MAX.as_secs_f64();
    match api_meta::duration::seconds(text) {
        Ok(seconds) if (0.0..=limit).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!(
            "shutdown-delay-duration: \"{text}\" is no time such as 15s, of {limit} s at most"
        )),
    }
}

/// `ADDR:PORT`, `:PORT`, or `localhost:PORT`.
fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let spelled = match text.split_once(':') {
        Some(("", port)) => format!("0.0.0.0:{port}"),
        Some(("localhost", port)) => format!("127.0.0.1:{port}"),
        _ => text.to_owned(),
    };
    spelled
        .parse()
        .map_err(|_| format!("listen: \"{text}\" is not ADDR:PORT, such as 0.0.0.0:8443"))
}

fn is_https_url(text: &str) -> bool {
    text.parse::<http::Uri>().is_ok_and(|uri| {
        uri.scheme_str() == Some("https")
            && uri.authority().is_some_and(|authority| !authority.host().is_empty())
            && matches!(uri.path(), "" | "/")
            && uri.query().is_none()
    })
}

#[cfg(test)]
mod tests;
