//! Impersonation: the `Impersonate-*` headers.
//!
//! The headers are never ignored: either the caller may impersonate every part of the requested
//! identity, or the request is rejected. They are removed from the request in any case, however
//! they are spelt and whether or not `Connection` names them.

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

/// The identity of a request after impersonation, which all later steps use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// For authorization, admission and audit.
    pub user: UserInfo,
    /// The identity that authenticated; `None` without impersonation.
    pub original: Option<ImpersonatedBy>,
}

/// In the extensions of an impersonated request: the identity that authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImpersonatedBy {
    pub user: UserInfo,
    /// The permissions that the impersonation required.
    pub required: Vec<Attributes>,
}

/// Resolves the impersonation headers of a request by `user`, and removes them, also on errors.
///
/// # Errors
/// 403 when the user may not impersonate a part of the identity, 400 when the headers do not name
/// exactly one user. Both texts are those of kube-apiserver.
pub fn impersonate(
    headers: &mut HeaderMap,
    user: UserInfo,
    authorizer: &dyn Authorizer,
) -> Result<Effective, Status> {
    let requested = RequestedIdentity::read(headers);
    remove_named(headers, |name| name.starts_with(PREFIX));
    let Some(requested) = requested? else { return Ok(Effective { user, original: None }) };
    let required = requested.required_attributes(&user);
    for attributes in &required {
        match authorizer.authorize(attributes) {
            Decision::Allow { .. } => {}
            Decision::Deny { reason } | Decision::NoOpinion { reason } => {
                return Err(forbidden(attributes, &reason));
            }
        }
    }
    Ok(Effective { user: requested.into_user(), original: Some(ImpersonatedBy { user, required }) })
}

/// The identity that the headers name.
#[derive(Debug, Default)]
struct RequestedIdentity {
    name: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl RequestedIdentity {
    fn read(headers: &HeaderMap) -> Result<Option<Self>, Status> {
        let mut requested = Self {
            name: single_value(headers, USER)?,
            uid: single_value(headers, UID)?,
            groups: headers.get_all(GROUP).iter().map(text).collect::<Result<_, _>>()?,
            extra: BTreeMap::new(),
        };
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix(EXTRA) {
                requested.extra.entry(decode(key)).or_default().push(text(value)?);
            }
        }
        if !requested.name.is_empty() {
            return Ok(Some(requested));
        }
        let named = [USER, UID, GROUP].iter().any(|name| headers.contains_key(*name));
        if named || !requested.extra.is_empty() {
            return Err(Status::bad_request(format!(
                "requested {} without impersonating a user name",
                requested.go_syntax()
            )));
        }
        Ok(None)
    }

    /// The attributes to authorize, one for each part of the identity, in the order of
    /// kube-apiserver.
    fn required_attributes(&self, user: &UserInfo) -> Vec<Attributes> {
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

    fn into_user(self) -> UserInfo {
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

    /// The identity as Go prints it: clients and tests know the text.
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

/// Namespace and name of the service account that the user name denotes.
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

/// The value of a header that may occur once; empty when it is absent.
fn single_value(headers: &HeaderMap, name: &str) -> Result<String, Status> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(text).transpose()?.unwrap_or_default();
    match values.next() {
        None => Ok(first),
        Some(_) => Err(Status::bad_request(format!("the header {name} occurs more than once"))),
    }
}

#[cfg(test)]
mod tests;
