//! The address of an etcd, and how it is used.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The scheme of an address.
const SCHEME: &str = "etcd://";
/// Port of an endpoint that names none.
const PORT: u16 = 2379;
/// The default prefix of all keys. `/registry` is that of a Kubernetes cluster.
const KEY_PREFIX: &str = "/drover";
/// The interval of kube-apiserver.
const COMPACT_EVERY: Duration = Duration::from_secs(300);

/// The address of an etcd, and how it is used. Parsed from
/// `etcd://HOST[:PORT][,HOST[:PORT]…][/PREFIX]`; the default port is 2379, the default prefix
/// `/drover`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdConfig {
    /// `host:port` of members of one cluster.
    pub endpoints: Vec<String>,
    /// `None`: connections are not encrypted.
    pub tls: Option<EtcdTls>,
    /// Prefix of all keys, so that others can share the etcd. Empty, or begins with a slash and
    /// does not end with one.
    pub key_prefix: String,
    /// Interval of compaction; the stored history covers between one and two intervals. `None`:
    /// this process never compacts.
    pub compact_every: Option<Duration>,
}

/// How members are verified, and the certificate of this client. `Debug` leaves the key out.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdTls {
    /// Authorities that sign the members' certificates, in PEM.
    pub ca_pem: String,
    /// Certificate and private key of this client, in PEM.
    pub client_pem: Option<(String, String)>,
}

impl fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdTls")
            .field("client", &self.client_pem.is_some())
            .finish_non_exhaustive()
    }
}

/// Why an address cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no etcd address: {problem}, such as etcd://10.0.0.1:2379,10.0.0.2:2379")]
pub struct EtcdConfigError {
    text: String,
    problem: &'static str,
}

impl FromStr for EtcdConfig {
    type Err = EtcdConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |problem| EtcdConfigError { text: text.to_owned(), problem };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| wrong("it must begin with etcd://"))?;
        let (hosts, prefix) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, KEY_PREFIX),
        };
        let endpoints = hosts.split(',').map(endpoint).collect::<Result<_, _>>().map_err(wrong)?;
        Ok(Self {
            endpoints,
            tls: None,
            key_prefix: prefix.trim_end_matches('/').to_owned(),
            compact_every: Some(COMPACT_EVERY),
        })
    }
}

fn endpoint(text: &str) -> Result<String, &'static str> {
    const PROBLEM: &str = "it must name HOST[:PORT], several with commas between them";
    let authority: http::uri::Authority = text.parse().map_err(|_| PROBLEM)?;
    if authority.as_str().contains('@') {
        return Err("user names are not supported; give a client certificate");
    }
    if authority.host().is_empty() || text.ends_with(':') {
        return Err(PROBLEM);
    }
    Ok(match authority.port() {
        Some(_) => text.to_owned(),
        None => format!("{text}:{PORT}"),
    })
}

#[cfg(test)]
mod tests {
    use super::EtcdConfig;

    fn parse(text: &str) -> Option<(Vec<String>, String)> {
        let config: EtcdConfig = text.parse().ok()?;
        Some((config.endpoints, config.key_prefix))
    }

    #[test]
    fn an_address_names_members_and_a_prefix() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let cases: [(&str, Vec<String>, &str); 5] = [
            ("etcd://a:1,b", names(&["a:1", "b:2379"]), "/drover"),
            ("etcd://[::1],10.0.0.1:79", names(&["[::1]:2379", "10.0.0.1:79"]), "/drover"),
            ("etcd://a/", names(&["a:2379"]), ""),
            ("etcd://a/x/y", names(&["a:2379"]), "/x/y"),
            ("etcd://a/x/", names(&["a:2379"]), "/x"),
        ];
        for (text, endpoints, prefix) in cases {
            assert_eq!(parse(text), Some((endpoints, prefix.to_owned())), "{text}");
        }
    }

    #[test]
    fn an_invalid_address_is_refused_with_the_reason() {
        for text in [
            "",
            "etcd",
            "etcd://",
            "etcd://a,",
            "etcd://a:",
            "http://a",
            "etcd://u:p@a",
            "etcd://a b",
        ] {
            let error = text.parse::<EtcdConfig>().expect_err(text).to_string();
            assert!(error.contains("etcd://10.0.0.1:2379"), "{error}");
        }
    }
}
