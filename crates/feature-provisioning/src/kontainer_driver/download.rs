//! What a URL gives, within limits: how much, how long, from where. Redirects are followed by hand,
//! because each may lead to the machine itself.

use std::path::Path;
use std::time::Duration;

use driver_host::{EgressError, EgressException, egress};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url, header};
use sha2::{Digest, Sha256, Sha512};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// What a download may take.
#[derive(Clone, Copy, Debug)]
pub struct DownloadLimits {
    /// Largest file.
    pub bytes_max: u64,
    /// From the first request to the last byte.
    pub time_max: Duration,
    /// Between two parts of the file.
    pub pause_max: Duration,
}

impl Default for DownloadLimits {
    /// 512 MiB, 15 min, pauses of 30 s.
    fn default() -> Self {
        Self {
            bytes_max: 512 << 20,
            time_max: Duration::from_secs(900),
            pause_max: Duration::from_secs(30),
        }
    }
}

/// Before a host is taken as one that goes in circles.
const REDIRECTS_MAX: usize = 10;
const HEX_SHA256: usize = 64;

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// It is no URL of a web server.
    #[error("\"{0}\" is no address of a web server")]
    NoUrl(String),
    /// The host is one that the server does not fetch from.
    #[error(transparent)]
    Egress(#[from] EgressError),
    /// A redirect would leave encryption.
    #[error("{0} redirects to {1}, which is not encrypted; give the address of the file itself")]
    Downgrade(String, String),
    /// Too many redirects.
    #[error("the address was redirected more than {REDIRECTS_MAX} times")]
    Circle,
    /// The server refused.
    #[error("{0} answered {1}")]
    Status(String, StatusCode),
    /// The file is too large.
    #[error("the file is larger than {} MiB", .0 >> 20)]
    TooLarge(u64),
    /// No part came for some time.
    #[error("{from} sent nothing for {} s", .limit.as_secs())]
    Pause {
        /// The server.
        from: String,
        /// For how long.
        limit: Duration,
    },
    /// It took too long as a whole.
    #[error("the file did not come within {} s", .0.as_secs())]
    TooSlow(Duration),
    /// The connection failed.
    #[error("{0}")]
    Request(String),
    /// The file cannot be stored.
    #[error("cannot store the file: {0}")]
    Store(#[from] std::io::Error),
    /// It is another file than the checksum says.
    #[error("the checksum is {actual}, and should be {expected}: the file is not the expected one")]
    Checksum {
        /// Of what came.
        actual: String,
        /// What was given.
        expected: String,
    },
}

/// A file that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downloaded {
    /// SHA-256, hexadecimal.
    pub sha256: String,
    /// The file names of the address, and of the one that it was redirected to.
    pub names: Vec<String>,
}

/// Fetches a file. `expected` is its SHA-256 or SHA-512 in hexadecimal, or empty.
///
/// # Errors
/// See [`DownloadError`]. What came of the file remains at `target`.
pub async fn fetch(
    url: &str,
    expected: &str,
    target: &Path,
    exceptions: &[EgressException],
    limits: &DownloadLimits,
) -> Result<Downloaded, DownloadError> {
    let work = fetch_unlimited(url, expected, target, exceptions, limits);
    match tokio::time::timeout(limits.time_max, work).await {
        Ok(result) => result,
        Err(_) => Err(DownloadError::TooSlow(limits.time_max)),
    }
}

async fn fetch_unlimited(
    url: &str,
    expected: &str,
    target: &Path,
    exceptions: &[EgressException],
    limits: &DownloadLimits,
) -> Result<Downloaded, DownloadError> {
    let url = Url::parse(url).map_err(|_| DownloadError::NoUrl(url.to_owned()))?;
    let first = file_name(&url);
    let (response, url) = open(url, exceptions, limits).await?;
    let mut names = vec![first, file_name(&url)];
    names.dedup();
    let mut digests = (Sha256::new(), Sha512::new());
    store(response, &mut digests, target, limits).await?;
    let sha256 = hex(&digests.0.finalize());
    let actual =
        if expected.len() > HEX_SHA256 { hex(&digests.1.finalize()) } else { sha256.clone() };
    if !expected.is_empty() && !actual.eq_ignore_ascii_case(expected) {
        return Err(DownloadError::Checksum { actual, expected: expected.to_owned() });
    }
    Ok(Downloaded { sha256, names })
}

/// The response with the file, and the address that it came from.
async fn open(
    mut url: Url,
    exceptions: &[EgressException],
    limits: &DownloadLimits,
) -> Result<(Response, Url), DownloadError> {
    for _ in 0..=REDIRECTS_MAX {
        let response = request(&url, exceptions, limits).await?;
        let status = response.status();
        if status.is_redirection()
            && let Some(location) = response.headers().get(header::LOCATION)
        {
            let next = location.to_str().ok().and_then(|text| url.join(text).ok());
            let next = next.ok_or_else(|| DownloadError::NoUrl(format!("{location:?}")))?;
            if url.scheme() == "https" && next.scheme() != "https" {
                return Err(DownloadError::Downgrade(shown(&url), shown(&next)));
            }
            url = next;
            continue;
        }
        if status != StatusCode::OK {
            return Err(DownloadError::Status(shown(&url), status));
        }
        return Ok((response, url));
    }
    Err(DownloadError::Circle)
}

async fn request(
    url: &Url,
    exceptions: &[EgressException],
    limits: &DownloadLimits,
) -> Result<Response, DownloadError> {
    let no_url = || DownloadError::NoUrl(shown(url));
    if !matches!(url.scheme(), "http" | "https") {
        return Err(no_url());
    }
    let host = url.host_str().ok_or_else(no_url)?;
    let port = url.port_or_known_default().ok_or_else(no_url)?;
    let addresses = egress::addresses(host, port, exceptions).await?;
    let failed = |error: reqwest::Error| match error.is_timeout() {
        true => DownloadError::Pause { from: shown(url), limit: limits.pause_max },
        false => DownloadError::Request(chain(&error)),
    };
    let tls = tls_trust::trust_roots(tls_trust::system_roots()).with_no_client_auth();
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .no_proxy()
        .connect_timeout(limits.pause_max)
        .read_timeout(limits.pause_max)
        .resolve_to_addrs(host, &addresses)
        .user_agent("drover")
        .build()
        .map_err(failed)?;
    client.get(url.clone()).send().await.map_err(failed)
}

async fn store(
    mut response: Response,
    digests: &mut (Sha256, Sha512),
    target: &Path,
    limits: &DownloadLimits,
) -> Result<(), DownloadError> {
    let too_large = DownloadError::TooLarge(limits.bytes_max);
    if response.content_length().is_some_and(|length| length > limits.bytes_max) {
        return Err(too_large);
    }
    let from = shown(response.url());
    let mut file = File::create(target).await?;
    let mut length = 0;
    loop {
        let part = response.chunk().await.map_err(|error| match error.is_timeout() {
            true => DownloadError::Pause { from: from.clone(), limit: limits.pause_max },
            false => DownloadError::Request(chain(&error)),
        })?;
        let Some(part) = part else { break };
        length += part.len() as u64;
        if length > limits.bytes_max {
            return Err(too_large);
        }
        digests.0.update(&part);
        digests.1.update(&part);
        file.write_all(&part).await?;
    }
    file.sync_all().await?;
    Ok(())
}

/// The last part of the path.
fn file_name(url: &Url) -> String {
    url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default().to_owned()
}

/// An address in messages: without user, password and query, which may be keys.
fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An error with its causes, without the address: it may have keys.
fn chain(error: &reqwest::Error) -> String {
    let mut text = "the connection failed".to_owned();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
