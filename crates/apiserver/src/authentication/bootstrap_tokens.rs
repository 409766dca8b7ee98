//! Bootstrap tokens: Secrets in `kube-system` with which a machine requests its own credential.
//!
//! The token `ID.SECRET` belongs to the Secret `bootstrap-token-ID` of the type
//! `bootstrap.kubernetes.io/token`. It is valid while the Secret exists, is not expired, and allows
//! authentication.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use serde_json::Value;
use subtle::ConstantTimeEq as _;

use super::bearer::{TokenAuthenticator, TokenUser};
use crate::attributes::{InvalidCredential, UserInfo};
use crate::authentication::CoreObjects;

const NAMESPACE: &str = "kube-system";
const NAME_PREFIX: &str = "bootstrap-token-";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const USER_PREFIX: &str = "system:bootstrap:";
/// The group of every bootstrap token. Further groups must begin with it and a colon.
const GROUP: &str = "system:bootstrappers";
const GROUP_LENGTH_MAX: usize = 256;
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;

/// Authenticates bootstrap tokens.
pub struct BootstrapTokens {
    objects: Arc<dyn CoreObjects>,
}

impl BootstrapTokens {
    /// Creates the authenticator, which reads Secrets through `objects`.
    pub fn new(objects: Arc<dyn CoreObjects>) -> Self {
        Self { objects }
    }

    /// The identity of a token at `now`, in Unix seconds.
    async fn identify(
        &self,
        token: &str,
        audiences: &[String],
        now: i64,
    ) -> Result<Option<TokenUser>, InvalidCredential> {
        let Some((id, secret)) = split(token) else { return Ok(None) };
        let name = format!("{NAME_PREFIX}{id}");
        let Some(object) = self.objects.get("secrets", NAMESPACE, &name).await else {
            return Ok(None);
        };
        // An invalid token is treated as an unknown one.
        let user = user(&object, id, secret, now);
        Ok(user.map(|user| TokenUser { user, audiences: audiences.to_vec() }))
    }
}

/// Splits a token with the format of a bootstrap token into ID and secret.
fn split(token: &str) -> Option<(&str, &str)> {
    let plain = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let (id, secret) = token.split_once('.')?;
    (plain(id, ID_LENGTH) && plain(secret, SECRET_LENGTH)).then_some((id, secret))
}

fn user(object: &Value, id: &str, secret: &str, now: i64) -> Option<UserInfo> {
    let text = |key: &str| -> Option<String> {
        let bytes = STANDARD.decode(object["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    if object["type"] != TYPE || object.is_terminating() {
        return None;
    }
    let stored = text("token-secret").filter(|stored| !stored.is_empty())?;
    let same = bool::from(stored.as_bytes().ct_eq(secret.as_bytes()));
    if !same || text("token-id")? != id {
        return None;
    }
    // An expiration that cannot be parsed counts as expired.
    let expires: Option<Option<jiff::Timestamp>> =
        text("expiration").filter(|text| !text.is_empty()).map(|text| text.parse().ok());
    if expires.is_some_and(|at| at.is_none_or(|at| at.as_second() <= now)) {
        return None;
    }
    if text("usage-bootstrap-authentication")? != "true" {
        return None;
    }
    let mut groups = vec![GROUP.to_owned()];
    let extra = text("auth-extra-groups").unwrap_or_default();
    for group in extra.split(',').filter(|group| !group.is_empty()) {
        if !is_group(group) {
            return None;
        }
        groups.push(group.to_owned());
    }
    groups.sort_unstable();
    groups.dedup();
    Some(UserInfo { name: format!("{USER_PREFIX}{id}"), groups, ..UserInfo::default() })
}

/// Whether a group is `system:bootstrappers:` followed by lower-case letters, digits, `:` and `-`,
/// with a letter or digit at the end.
fn is_group(group: &str) -> bool {
    let rest = group.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix(':'));
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    rest.is_some_and(|rest| {
        rest.len() <= GROUP_LENGTH_MAX
            && rest.bytes().all(|b| plain(b) || b == b':' || b == b'-')
            && rest.bytes().next_back().is_some_and(plain)
    })
}

impl TokenAuthenticator for BootstrapTokens {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Result<Option<TokenUser>, InvalidCredential>> {
        Box::pin(self.identify(token, audiences, jiff::Timestamp::now().as_second()))
    }
}
