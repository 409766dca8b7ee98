//! The identity of a downstream request, and its headers.

use std::collections::BTreeMap;

use api_meta::status::Status;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;

/// Kubernetes' group of all authenticated users.
pub const GROUP_AUTHENTICATED: &str = "system:authenticated";
pub(super) const USER_ANONYMOUS: &str = "system:anonymous";

/// Groups that one request may carry. A directory with more groups per user needs a filter.
pub const GROUPS_PER_REQUEST_MAX: usize = 1024;
/// Size of all identity headers together. API servers accept 1 MiB of headers, load balancers in
/// front of them less.
pub const IDENTITY_MAX_BYTES: usize = 128 * 1024;

/// What helps a user with too many groups.
const FEWER_GROUPS: &str = "let the identity provider send fewer groups, or give the user a role in the \
    cluster in place of roles in many of its projects";

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
pub(super) const EXTRA_PREFIX: &str = "impersonate-extra-";

/// A token that is good in one project only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectToken {
    /// Name of the token.
    pub token: String,
    /// Name of the project, in the cluster of the request.
    pub project: String,
}

/// An authenticated caller of the proxy.
#[derive(Clone, Debug)]
pub struct ProxyCaller {
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
    /// Set for a token of one project: it has no other rights of its user.
    pub project: Option<ProjectToken>,
    /// Cancelled when the caller's token or login ends.
    pub revoked: CancellationToken,
}

/// An identity in a downstream cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DownstreamIdentity {
    pub user: String,
    /// Empty for no uid.
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Writes the identity headers, which always include a user.
///
/// # Errors
/// 403 for an identity that a reader of the headers could not restore exactly.
pub(super) fn write_identity(
    headers: &mut HeaderMap,
    identity: &DownstreamIdentity,
) -> Result<(), Status> {
    if identity.groups.len() > GROUPS_PER_REQUEST_MAX {
        return Err(forbidden(format!(
            "user \"{}\" is in {} groups, but a request to a cluster carries at most \
             {GROUPS_PER_REQUEST_MAX}; {FEWER_GROUPS}",
            identity.user,
            identity.groups.len()
        )));
    }
    headers.insert(USER, value("user name", &identity.user)?);
    if !identity.uid.is_empty() {
        headers.insert(UID, value("uid", &identity.uid)?);
    }
    for group in &identity.groups {
        headers.append(GROUP, value("group", group)?);
    }
    for (key, values) in &identity.extra {
        let name = format!("{EXTRA_PREFIX}{}", escape_key(key));
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| forbidden(format!("extra key \"{key}\" cannot be sent to a cluster")))?;
        for text in values {
            headers.append(name.clone(), value("extra value", text)?);
        }
    }
    check_size(headers, &identity.user)
}

/// Checks the size of the identity headers. No other header in `headers` has such a name.
fn check_size(headers: &HeaderMap, user: &str) -> Result<(), Status> {
    let bytes: usize = headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("impersonate-"))
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if bytes > IDENTITY_MAX_BYTES {
        return Err(forbidden(format!(
            "the groups and extras of user \"{user}\" take {bytes} bytes, but a request to a \
             cluster carries at most {IDENTITY_MAX_BYTES}; {FEWER_GROUPS}"
        )));
    }
    Ok(())
}

fn forbidden(message: String) -> Status {
    Status::new(403, "Forbidden", message)
}

/// A reader of a header trims blanks at its ends, which would change the name.
fn value(what: &str, text: &str) -> Result<HeaderValue, Status> {
    let wrong =
        || forbidden(format!("{what} {text:?} cannot be sent to a cluster without changing it"));
    if text.is_empty() || text.trim_matches([' ', '\t']) != text {
        return Err(wrong());
    }
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| wrong())
}

/// Keys become header names: characters that a header name cannot have, and `%`, are
/// percent-encoded.
fn escape_key(key: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
    key.bytes().fold(String::new(), |mut text, byte| {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
}
