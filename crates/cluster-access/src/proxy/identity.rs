//! Who a request is made as, and how that is written.

use std::collections::BTreeMap;

use api_meta::status::Status;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;

pub const GROUP_AUTHENTICATED: &str = "system:authenticated";
pub(super) const USER_ANONYMOUS: &str = "system:anonymous";

/// Groups that one request may carry. A directory with more per person needs a filter there.
pub const GROUPS_PER_REQUEST_MAX: usize = 1024;
/// All identity headers together. API servers take 1 MiB of headers; load balancers before them
/// less.
pub const IDENTITY_MAX_BYTES: usize = 128 * 1024;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
pub(super) const EXTRA_PREFIX: &str = "impersonate-extra-";

/// An authenticated caller.
#[derive(Clone, Debug)]
pub struct Caller {
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
    /// Cancelled when the token or login that the caller came with ends.
    pub revoked: CancellationToken,
}

/// An identity in a downstream cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub user: String,
    /// Empty for none.
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Writes the identity headers. There is always a user.
///
/// # Errors
/// 403 for an identity that cannot be written so that it reads as the same one.
pub(super) fn write_identity(headers: &mut HeaderMap, identity: &Identity) -> Result<(), Status> {
    if identity.groups.len() > GROUPS_PER_REQUEST_MAX {
        return Err(forbidden(format!(
            "user \"{}\" is in {} groups, but a request to a cluster carries at most \
             {GROUPS_PER_REQUEST_MAX}; let the identity provider send fewer groups",
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

/// Counts what was just written: nothing else in `headers` has such a name.
fn check_size(headers: &HeaderMap, user: &str) -> Result<(), Status> {
    let bytes: usize = headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("impersonate-"))
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if bytes > IDENTITY_MAX_BYTES {
        return Err(forbidden(format!(
            "the groups and extras of user \"{user}\" take {bytes} bytes, but a request to a \
             cluster carries at most {IDENTITY_MAX_BYTES}; let the identity provider send fewer \
             groups"
        )));
    }
    Ok(())
}

fn forbidden(message: String) -> Status {
    Status::new(403, "Forbidden", message)
}

/// Blanks at the ends are trimmed by whoever reads the header, which would make another name of it.
fn value(what: &str, text: &str) -> Result<HeaderValue, Status> {
    let wrong =
        || forbidden(format!("{what} {text:?} cannot be sent to a cluster without changing it"));
    if text.is_empty() || text.trim_matches([' ', '\t']) != text {
        return Err(wrong());
    }
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| wrong())
}

/// Keys are header names: what may not stand in one, and `%` itself, is percent-encoded.
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
