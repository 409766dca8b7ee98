//! A client's own request to impersonate (`kubectl --as`), read like kube-apiserver does.

use std::collections::BTreeMap;

use api_meta::status::Status;
use http::{HeaderMap, HeaderValue};

use super::identity::{EXTRA_PREFIX, GROUPS_PER_REQUEST_MAX, ProxyCaller};
use super::path::percent_decode;

const PREFIX: &str = "impersonate-";
const AUTHENTICATION_GROUP: &str = "authentication.k8s.io";
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// Values of extras in one request; each is authorized separately.
const EXTRAS_MAX: usize = 256;

/// The identity that the client requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonation {
    /// Never empty.
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
    /// Keys are lower case.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// One permission that the caller needs, in terms of RBAC. The verb is `impersonate`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    pub group: &'static str,
    /// `users`, `groups`, `serviceaccounts`, `uids` or `userextras`.
    pub resource: &'static str,
    /// The key of an extra, otherwise empty.
    pub subresource: String,
    /// The namespace of a service account, otherwise empty.
    pub namespace: String,
    pub name: String,
}

impl Attributes {
    /// The refusal, with the message of kube-apiserver.
    pub(super) fn to_refusal(&self, user: &str) -> Status {
        let resource = match self.subresource.as_str() {
            "" => self.resource.to_owned(),
            subresource => format!("{}/{subresource}", self.resource),
        };
        let scope = match self.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace \"{namespace}\""),
        };
        let text = format!(
            "User \"{user}\" cannot impersonate resource \"{resource}\" in API group \"{}\" \
             {scope}",
            self.group
        );
        Status::forbidden(self.group, self.resource, &self.name, &text)
    }
}

impl Impersonation {
    /// Reads the client's headers. `None` when the client requests no impersonation.
    ///
    /// A header that is also named in `Connection` counts: dropping it would run the request with
    /// more rights than requested.
    ///
    /// # Errors
    /// 400 for a request without a user, with two users, or with a value that is not text.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Option<Self>, Status> {
        let mut requested = Self::default();
        let (mut users, mut uids, mut is_requested) = (0, 0, false);
        for (name, value) in headers {
            let Some(what) = name.as_str().strip_prefix(PREFIX) else { continue };
            is_requested = true;
            let text = text(name.as_str(), value)?;
            match (what, name.as_str().strip_prefix(EXTRA_PREFIX)) {
                ("user", _) => (requested.user, users) = (text, users + 1),
                ("uid", _) => (requested.uid, uids) = (text, uids + 1),
                ("group", _) => requested.groups.push(text),
                (_, Some(key)) => {
                    let key = percent_decode(key.as_bytes());
                    let key = String::from_utf8_lossy(&key).to_lowercase();
                    requested.extra.entry(key).or_default().push(text);
                }
                _ => {
                    let text = format!("header \"{name}\" is not a known way to impersonate");
                    return Err(Status::bad_request(text));
                }
            }
        }
        if !is_requested {
            return Ok(None);
        }
        if users > 1 || uids > 1 {
            return Err(Status::bad_request("only one user can be impersonated at a time"));
        }
        if requested.user.is_empty() {
            let text =
                format!("requested {} without impersonating a user name", requested.as_go_prints());
            return Err(Status::bad_request(text));
        }
        let extras: usize = requested.extra.values().map(Vec::len).sum();
        if requested.groups.len() > GROUPS_PER_REQUEST_MAX || extras > EXTRAS_MAX {
            let text = format!(
                "at most {GROUPS_PER_REQUEST_MAX} groups and {EXTRAS_MAX} extras can be \
                 impersonated"
            );
            return Err(Status::bad_request(text));
        }
        Ok(Some(requested))
    }

    /// Refuses groups that only the resolver grants.
    pub(super) fn check_groups(&self, caller: &ProxyCaller, reserved: &str) -> Result<(), Status> {
        let is_reserved = |group: &&String| !reserved.is_empty() && group.starts_with(reserved);
        match self.groups.iter().find(is_reserved) {
            None => Ok(()),
            Some(group) => {
                let text = format!(
                    "User \"{}\" cannot impersonate resource \"groups\" in API group \"\" at the \
                     cluster scope: names that begin with \"{reserved}\" are reserved",
                    caller.user
                );
                Err(Status::forbidden("", "groups", group, &text))
            }
        }
    }

    /// All permissions that the caller needs.
    pub fn attributes(&self) -> Vec<Attributes> {
        let mut list = vec![match self.service_account() {
            Some((namespace, name)) => Attributes {
                resource: "serviceaccounts",
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                ..Attributes::default()
            },
            None => attributes_of("", "users", &self.user),
        }];
        list.extend(self.groups.iter().map(|group| attributes_of("", "groups", group)));
        if !self.uid.is_empty() {
            list.push(attributes_of(AUTHENTICATION_GROUP, "uids", &self.uid));
        }
        for (key, values) in &self.extra {
            list.extend(values.iter().map(|value| Attributes {
                subresource: key.clone(),
                ..attributes_of(AUTHENTICATION_GROUP, "userextras", value)
            }));
        }
        list
    }

    /// The namespace and name, if the user is a service account.
    pub fn service_account(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
        (!namespace.is_empty() && !name.is_empty() && !name.contains(':'))
            .then_some((namespace, name))
    }

    /// Adds the groups that every service account has, when one is requested without groups.
    pub(super) fn add_implied_groups(&mut self) {
        if self.groups.is_empty()
            && let Some((namespace, _)) = self.service_account()
        {
            let of_namespace = format!("{SERVICE_ACCOUNTS}:{namespace}");
            self.groups = vec![SERVICE_ACCOUNTS.to_owned(), of_namespace];
        }
    }

    /// The request as kube-apiserver's message prints it.
    fn as_go_prints(&self) -> String {
        let strings = |list: &[String]| match list {
            [] => "[]string(nil)".to_owned(),
            list => {
                let quoted: Vec<_> = list.iter().map(|text| format!("{text:?}")).collect();
                format!("[]string{{{}}}", quoted.join(", "))
            }
        };
        let extra: Vec<_> =
            self.extra.iter().map(|(key, list)| format!("{key:?}:{}", strings(list))).collect();
        format!(
            "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{}, Extra:map[string][]string{{{}}}}}",
            self.user,
            self.uid,
            strings(&self.groups),
            extra.join(", ")
        )
    }
}

fn attributes_of(group: &'static str, resource: &'static str, name: &str) -> Attributes {
    Attributes { group, resource, name: name.to_owned(), ..Attributes::default() }
}

fn text(name: &str, value: &HeaderValue) -> Result<String, Status> {
    let text = std::str::from_utf8(value.as_bytes());
    let text = text.map_err(|_| Status::bad_request(format!("header \"{name}\" is not text")))?;
    Ok(text.to_owned())
}
