//! `host:port`, resolved by the side that dials it.

use std::fmt;

/// A host and a port. Its text is `host:port`, with brackets around an IPv6 address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    host: String,
    port: u16,
}

/// A text or host that is no [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" must be host:port")]
pub struct AddressError {
    text: String,
}

/// The limit of RFC 1035 for a name, which also covers any literal address.
const HOST_MAX_BYTES: usize = 253;

impl Address {
    /// An address of `host` (a name, an IPv4 address, or an IPv6 address with or without brackets)
    /// and `port`. Names are not resolved.
    ///
    /// # Errors
    /// The host is empty, longer than 253 bytes, or has characters that no host has; or the port is
    /// 0. Reject the input.
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

    /// The host, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, 1 to 65535.
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
