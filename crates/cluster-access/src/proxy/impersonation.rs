//! A client's own wish to be somebody else (`kubectl --as`), read as Kubernetes reads it.

use std::collections::BTreeMap;

use api_meta::status::Status;
use http::{HeaderMap, HeaderValue};

use super::identity::{Caller, EXTRA_PREFIX, GROUPS_PER_REQUEST_MAX};
use super::path::percent_decode;

const PREFIX: &str = "impersonate-";
const AUTHENTICATION_GROUP: &str = "authentication.k8s.io";
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// Values of extras in one request; each is authorised on its own.
const EXTRAS_MAX: usize = 256;

/// Whom the client asks to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonation {
    /// Never empty.
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
    /// Keys are lower case.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// One thing that must be allowed, in the terms of RBAC. The verb is `impersonate`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    pub group: &'static str,
    /// `users`, `groups`, `serviceaccounts`, `uids` or `userextras`.
    pub resource: &'static str,
    /// The key of an extra, else empty.
    pub subresource: String,
    /// Of a service account, else empty.
    pub namespace: String,
    pub name: String,
}

impl Attributes {
    /// The refusal in Kubernetes' words.
    pub(super) fn denied(&self, user: &str) -> Status {
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
    /// Reads the client's headers. None when there is no wish at all.
    ///
    /// A header that is also named in `Connection` counts: dropping it would run the request with
    /// more rights than asked for.
    ///
    /// # Errors
    /// 400 for a wish without a user, with two, or with a value that is not text.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Option<Self>, Status> {
        let mut wanted = Self::default();
        let (mut users, mut uids, mut is_wish) = (0, 0, false);
        for (name, value) in headers {
            let Some(what) = name.as_str().strip_prefix(PREFIX) else { continue };
            is_wish = true;
            let text = text(name.as_str(), value)?;
            match (what, name.as_str().strip_prefix(EXTRA_PREFIX)) {
                ("user", _) => (wanted.user, users) = (text, users + 1),
                ("uid", _) => (wanted.uid, uids) = (text, uids + 1),
                ("group", _) => wanted.groups.push(text),
                (_, Some(key)) => {
                    let key = percent_decode(key.as_bytes());
                    let key = String::from_utf8_lossy(&key).to_lowercase();
                    wanted.extra.entry(key).or_default().push(text);
                }
                _ => {
                    let text = format!("header \"{name}\" is not a known way to impersonate");
                    return Err(Status::bad_request(text));
                }
            }
        }
        if !is_wish {
            return Ok(None);
        }
        if users > 1 || uids > 1 {
            return Err(Status::bad_request("only one user can be impersonated at a time"));
        }
        if wanted.user.is_empty() {
            let text =
                format!("requested {} without impersonating a user name", wanted.as_go_prints());
            return Err(Status::bad_request(text));
        }
        let extras: usize = wanted.extra.values().map(Vec::len).sum();
        if wanted.groups.len() > GROUPS_PER_REQUEST_MAX || extras > EXTRAS_MAX {
            let text = format!(
                "at most {GROUPS_PER_REQUEST_MAX} groups and {EXTRAS_MAX} extras can be \
                 impersonated"
            );
            return Err(Status::bad_request(text));
        }
        Ok(Some(wanted))
    }

    /// Groups that only we give are nobody's to ask for.
    pub(super) fn check_groups(&self, caller: &Caller, reserved: &str) -> Result<(), Status> {
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

    /// Everything that has to be allowed.
    pub fn attributes(&self) -> Vec<Attributes> {
        let mut list = vec![match self.service_account() {
            Some((namespace, name)) => Attributes {
                resource: "serviceaccounts",
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                ..Attributes::default()
            },
            None => named("", "users", &self.user),
        }];
        list.extend(self.groups.iter().map(|group| named("", "groups", group)));
        if !self.uid.is_empty() {
            list.push(named(AUTHENTICATION_GROUP, "uids", &self.uid));
        }
        for (key, values) in &self.extra {
            list.extend(values.iter().map(|value| Attributes {
                subresource: key.clone(),
                ..named(AUTHENTICATION_GROUP, "userextras", value)
            }));
        }
        list
    }

    /// Namespace and name, if the user is a service account.
    pub fn service_account(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
        (!namespace.is_empty() && !name.is_empty() && !name.contains(':'))
            .then_some((namespace, name))
    }

    /// A service account that comes without groups gets those that its kind always has.
    pub(super) fn add_implied_groups(&mut self) {
        if self.groups.is_empty()
            && let Some((namespace, _)) = self.service_account()
        {
            let of_namespace = format!("{SERVICE_ACCOUNTS}:{namespace}");
            self.groups = vec![SERVICE_ACCOUNTS.to_owned(), of_namespace];
        }
    }

    /// As upstream's own message shows the request.
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

fn named(group: &'static str, resource: &'static str, name: &str) -> Attributes {
    Attributes { group, resource, name: name.to_owned(), ..Attributes::default() }
}

fn text(name: &str, value: &HeaderValue) -> Result<String, Status> {
    let text = std::str::from_utf8(value.as_bytes());
    let text = text.map_err(|_| Status::bad_request(format!("header \"{name}\" is not text")))?;
    Ok(text.to_owned())
}
