//! `host:port`, as the side that dials it resolves it.

use std::fmt;

/// A host and a port. IPv6 addresses stand in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    host: String,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" must be host:port")]
pub struct AddressError {
    text: String,
}

/// RFC 1035's limit of a name, which also covers any literal address.
const HOST_MAX_BYTES: usize = 253;

impl Address {
    /// `host`: a name, an IPv4 address, or an IPv6 address with or without brackets.
    pub fn new(host: &str, port: u16) -> Result<Self, AddressError> {
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let is_v6 = bare.parse::<std::net::Ipv6Addr>().is_ok();
        let is_name = !bare.is_empty()
            && bare.len() <= HOST_MAX_BYTES
            && bare.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
        if !(is_v6 || is_name) || port == 0 {
            return Err(AddressError { text: format!("{host}:{port}") });
        }
        Ok(Self { host: bare.to_ascii_lowercase(), port })
    }

    /// Without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl std::str::FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError { text: text.chars().take(HOST_MAX_BYTES).collect() };
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
            return Err(wrong());
        }
        if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        Self::new(host, port.parse().map_err(|_| wrong())?).map_err(|_| wrong())
    }
}
