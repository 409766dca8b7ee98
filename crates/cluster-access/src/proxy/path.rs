//! `/k8s/clusters/<id>/<rest>`: the cluster, and the request target in it.

use api_meta::status::Status;
use http::Uri;

pub(super) const PREFIX: &str = "/k8s/clusters/";
/// The limit of a DNS label; cluster names are DNS labels.
const CLUSTER_MAX_BYTES: usize = 63;
/// Size of path and query. API servers accept about as much.
const TARGET_MAX_BYTES: usize = 64 * 1024;
/// `%252e` is `%2e` is `.`: chained servers decode more than once.
const DECODINGS: usize = 3;

/// The parts of a request's path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClusterPath<'a> {
    pub(super) cluster: &'a str,
    /// The rest of the path and the query, byte for byte.
    pub(super) target: String,
}

impl<'a> ClusterPath<'a> {
    /// Splits a URI.
    ///
    /// # Errors
    /// 404 for a path that is not below the prefix, 400 for a path with `.` or `..` segments.
    pub(super) fn parse(uri: &'a Uri) -> Result<Self, Status> {
        let unknown = || Status::unknown_resource();
        let below = uri.path().strip_prefix(PREFIX).ok_or_else(unknown)?;
        let (cluster, rest) = match below.find('/') {
            Some(slash) => below.split_at(slash),
            None => (below, "/"),
        };
        let is_name = !cluster.is_empty()
            && cluster.len() <= CLUSTER_MAX_BYTES
            && cluster.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !is_name {
            return Err(unknown());
        }
        if climbs(rest) {
            return Err(Status::bad_request("the path may not contain \".\" or \"..\" segments"));
        }
        let target = match uri.query() {
            Some(query) => format!("{rest}?{query}"),
            None => rest.to_owned(),
        };
        if target.len() > TARGET_MAX_BYTES {
            let text =
                format!("the request target may not be longer than {TARGET_MAX_BYTES} bytes");
            return Err(Status::new(414, "RequestURITooLong", text));
        }
        Ok(Self { cluster, target })
    }
}

/// Whether the request is discovery of a cluster's APIs, which kubectl sends first.
pub(super) fn is_discovery(uri: &Uri) -> bool {
    let below = uri.path().strip_prefix(PREFIX).and_then(|below| below.split_once('/'));
    below.is_some_and(|(_, rest)| matches!(rest.trim_end_matches('/'), "api" | "apis"))
}

/// Whether any reader of this path could see a `.` or `..` segment in it.
fn climbs(path: &str) -> bool {
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..=DECODINGS {
        let mut segments = bytes.split(|&byte| byte == b'/' || byte == b'\\');
        // A parameter after `;` hides the segment from some readers only.
        let is_dots = |segment: &[u8]| {
            let bare = segment.split(|&byte| byte == b';').next().unwrap_or_default();
            bare == b"." || bare == b".."
        };
        if segments.any(is_dots) {
            return true;
        }
        let decoded = percent_decode(&bytes);
        if decoded == bytes {
            return false;
        }
        bytes = decoded;
    }
    false
}

/// Decodes well-formed escapes and leaves all other bytes.
pub(super) fn percent_decode(bytes: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if let (b'%', [high, low, tail @ ..]) = (byte, after)
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            decoded.push(high * 16 + low);
            rest = tail;
        } else {
            decoded.push(byte);
        }
    }
    decoded
}

/// Whether the response comes from a service, pod or node behind the API server (`…/proxy`).
pub(super) fn is_proxied(path: &str) -> bool {
    path.split('/').any(|segment| segment == "proxy")
}
