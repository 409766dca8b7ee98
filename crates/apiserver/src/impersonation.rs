//! Acting as somebody else: the `Impersonate-*` headers.
//!
//! Never ignored: either the asker may impersonate every part of the wanted identity, or the
//! request is refused. The headers are taken out of the request in any case, however they are spelt
//! and whether or not `Connection` names them.

use std::collections::BTreeMap;

use api_meta::names;
use api_meta::status::Status;
use authz::text::quoted;
use http::{HeaderMap, HeaderValue};

use crate::attributes::{
    Attributes, Authorizer, Decision, GROUP_AUTHENTICATED, GROUP_UNAUTHENTICATED, USER_ANONYMOUS,
    UserInfo,
};
use crate::authentication::remove_named;
use crate::authorization::forbidden;
use crate::request::decode;
use crate::service_accounts;

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// Who a request is from, as all that follows sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    pub user: UserInfo,
    /// Who asked to act as `user`; absent when nobody did.
    pub original: Option<ImpersonatedBy>,
}

/// Put into a request's extensions when it is impersonated: who is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImpersonatedBy {
    pub user: UserInfo,
    /// What that user had to be allowed for it.
    pub required: Vec<Attributes>,
}

/// Resolves the impersonation headers of a request by `user`, and removes them.
///
/// # Errors
/// 403 when the user may not impersonate one of the parts, 400 when the headers do not name one
/// user.
pub fn impersonate(
    headers: &mut HeaderMap,
    user: UserInfo,
    authorizer: &dyn Authorizer,
) -> Result<Effective, Status> {
    let wanted = Wanted::read(headers);
    remove_named(headers, |name| name.starts_with(PREFIX));
    let Some(wanted) = wanted? else { return Ok(Effective { user, original: None }) };
    let required = wanted.parts(&user);
    for attributes in &required {
        match authorizer.authorize(attributes) {
            Decision::Allow { .. } => {}
            Decision::Deny { reason } | Decision::NoOpinion { reason } => {
                return Err(forbidden(attributes, &reason));
            }
        }
    }
    Ok(Effective { user: wanted.identity(), original: Some(ImpersonatedBy { user, required }) })
}

/// The identity that the headers name.
#[derive(Debug, Default)]
struct Wanted {
    name: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Wanted {
    fn read(headers: &HeaderMap) -> Result<Option<Self>, Status> {
        let mut wanted = Self {
            name: only(headers, USER)?,
            uid: only(headers, UID)?,
            groups: headers.get_all(GROUP).iter().map(text).collect::<Result<_, _>>()?,
            extra: BTreeMap::new(),
        };
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix(EXTRA) {
                wanted.extra.entry(decode(key)).or_default().push(text(value)?);
            }
        }
        if !wanted.name.is_empty() {
            return Ok(Some(wanted));
        }
        let named = [USER, UID, GROUP].iter().any(|name| headers.contains_key(*name));
        if named || !wanted.extra.is_empty() {
            return Err(Status::bad_request(format!(
                "requested {} without impersonating a user name",
                wanted.go_syntax()
            )));
        }
        Ok(None)
    }

    /// One question for each part of the identity, in the order in which they are asked.
    fn parts(&self, user: &UserInfo) -> Vec<Attributes> {
        let part = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
            Attributes {
                user: user.clone(),
                verb: "impersonate".to_owned(),
                is_resource: true,
                group: group.to_owned(),
                version: "v1".to_owned(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                path: String::new(),
            }
        };
        let mut parts = vec![match service_account(&self.name) {
            Some((namespace, name)) => part("", "serviceaccounts", "", namespace, name),
            None => part("", "users", "", "", &self.name),
        }];
        parts.extend(self.groups.iter().map(|group| part("", "groups", "", "", group)));
        for (key, values) in &self.extra {
            let of = |value: &String| part("authentication.k8s.io", "userextras", key, "", value);
            parts.extend(values.iter().map(of));
        }
        if !self.uid.is_empty() {
            parts.push(part("authentication.k8s.io", "uids", "", "", &self.uid));
        }
        parts
    }

    fn identity(self) -> UserInfo {
        let mut groups = self.groups;
        if let (true, Some((namespace, _))) = (groups.is_empty(), service_account(&self.name)) {
            groups = service_accounts::groups(namespace).to_vec();
        }
        let has = |group: &str| groups.iter().any(|g| g == group);
        let implied = if self.name == USER_ANONYMOUS {
            (!has(GROUP_UNAUTHENTICATED)).then_some(GROUP_UNAUTHENTICATED)
        } else {
            (!has(GROUP_AUTHENTICATED) && !has(GROUP_UNAUTHENTICATED))
                .then_some(GROUP_AUTHENTICATED)
        };
        groups.extend(implied.map(str::to_owned));
        UserInfo { name: self.name, uid: self.uid, groups, extra: self.extra }
    }

    /// As Go prints the identity; clients and tests know the text.
    fn go_syntax(&self) -> String {
        let strings = |list: &[String]| {
            let items: Vec<String> = list.iter().map(|item| quoted(item)).collect();
            format!("[]string{{{}}}", items.join(", "))
        };
        let groups = match self.groups.as_slice() {
            [] => "[]string(nil)".to_owned(),
            groups => strings(groups),
        };
        let extra = if self.extra.is_empty() {
            "map[string][]string(nil)".to_owned()
        } else {
            let items =
                self.extra.iter().map(|(key, list)| format!("{}:{}", quoted(key), strings(list)));
            format!("map[string][]string{{{}}}", items.collect::<Vec<_>>().join(", "))
        };
        format!(
            "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:{extra}}}",
            quoted(&self.name),
            quoted(&self.uid),
        )
    }
}

/// Namespace and name of the service account that is the user of this name.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = service_accounts::parse_user_name(user)?;
    let valid =
        names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    valid.then_some((namespace, name))
}

fn text(value: &HeaderValue) -> Result<String, Status> {
    String::from_utf8(value.as_bytes().to_vec())
        .map_err(|_| Status::bad_request("an impersonation header is not text"))
}

/// The value of a header that may stand once, or empty.
fn only(headers: &HeaderMap, name: &str) -> Result<String, Status> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(text).transpose()?.unwrap_or_default();
    match values.next() {
        None => Ok(first),
        Some(_) => Err(Status::bad_request(format!("the header {name} stands more than once"))),
    }
}

#[cfg(test)]
mod tests;
