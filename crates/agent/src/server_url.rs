//! The server's address. Only scheme, host and port are used.

use std::fmt;

use http::Uri;
use rustls_pki_types::ServerName;

const DEFAULT_PORT: u16 = 443;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    host: String,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server's address must be https://host[:port], not \"{text}\"")]
pub(crate) struct ServerUrlError {
    text: String,
}

impl ServerUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, ServerUrlError> {
        let wrong = || ServerUrlError { text: text.to_owned() };
        let uri: Uri = text.trim().parse().map_err(|_| wrong())?;
        if uri.scheme_str() != Some("https") {
            return Err(wrong());
        }
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(wrong());
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let this = Self { host, port: authority.port_u16().unwrap_or(DEFAULT_PORT) };
        this.tls_name().ok_or_else(wrong)?;
        Ok(this)
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn tls_name(&self) -> Option<ServerName<'static>> {
        ServerName::try_from(self.host.clone()).ok()
    }

    /// For the `Host` header.
    pub(crate) fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == DEFAULT_PORT { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}", self.authority())
    }
}
