//! What is needed of Google's Directory API: users of the organisation, and groups.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use http::StatusCode;
use openidconnect::HttpResponse;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use super::super::http::decode;
use super::super::oauth::OwnReader;
use super::super::{Person, Principal, PrincipalKind, ProviderError};
use super::GoogleConfig;

pub(super) const USER_PREFIX: &str = "googleoauth_user://";
const GROUP_PREFIX: &str = "googleoauth_group://";
pub(super) const SERVICE: &str = "Google's directory";
/// Groups of a page: the most that Google returns.
const PER_PAGE: usize = 200;
/// Requests for the groups of one user, pages and groups of groups included.
const REQUESTS_MAX: usize = 500;
/// Longest text that is searched for, in bytes.
const TEXT_BYTES_MAX: usize = 256;
/// Results of one search for users, and of one for groups.
const FOUND_MAX: usize = 50;

/// The directory, read by the service account.
pub(super) struct GoogleDirectory<'a> {
    pub reader: OwnReader<'a>,
    pub config: &'a GoogleConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoogleUser {
    id: String,
    primary_email: String,
    #[serde(default)]
    name: UserName,
    #[serde(default)]
    suspended: bool,
    #[serde(default)]
    archived: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UserName {
    full_name: String,
}

#[derive(Deserialize)]
struct GoogleGroup {
    id: String,
    email: String,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct FoundUsers {
    #[serde(default)]
    users: Vec<GoogleUser>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupPage {
    #[serde(default)]
    groups: Vec<GoogleGroup>,
    next_page_token: Option<String>,
}

impl GoogleUser {
    fn principal(self) -> Principal {
        let full_name = Some(self.name.full_name).filter(|name| !name.is_empty());
        Principal {
            id: format!("{USER_PREFIX}{}", self.id),
            kind: PrincipalKind::User,
            display_name: full_name.unwrap_or_else(|| self.primary_email.clone()),
            login_name: self.primary_email,
        }
    }
}

impl GoogleGroup {
    fn principal(self) -> Principal {
        let name = Some(self.name).filter(|name| !name.is_empty());
        Principal {
            id: format!("{GROUP_PREFIX}{}", self.id),
            kind: PrincipalKind::Group,
            display_name: name.unwrap_or_else(|| self.email.clone()),
            login_name: self.email,
        }
    }
}

/// An id is nothing but letters and digits: it goes into a path.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric())
}

fn query(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

impl GoogleDirectory<'_> {
    /// A user with all groups; none if the organisation has no such user.
    pub async fn person(&self, id: &str) -> Result<Option<Person>, ProviderError> {
        if !is_id(id) {
            return Ok(None);
        }
        let user: Option<GoogleUser> = self.one(&format!("users/{id}")).await?;
        let Some(user) = user else { return Ok(None) };
        if user.suspended || user.archived {
            return Err(ProviderError::Disabled);
        }
        let groups = self.groups_of(&user.primary_email).await?;
        Ok(Some(Person { user: user.principal(), groups }))
    }

    /// The groups of a member, and if they count those of its groups. What is not read to its end
    /// is an error: groups that are missing would take rights away.
    async fn groups_of(&self, member: &str) -> Result<Vec<Principal>, ProviderError> {
        let mut found: BTreeMap<String, Principal> = BTreeMap::new();
        let mut members = VecDeque::from([(member.to_owned(), None::<String>)]);
        let mut seen = BTreeSet::from([member.to_owned()]);
        for _ in 0..REQUESTS_MAX {
            let Some((member, page)) = members.pop_front() else {
                return Ok(found.into_values().collect());
            };
            let size = PER_PAGE.to_string();
            let mut pairs = vec![("userKey", member.as_str()), ("maxResults", &size)];
            pairs.extend(page.as_deref().map(|page| ("pageToken", page)));
            let page: Option<GroupPage> = self.one(&format!("groups?{}", query(&pairs))).await?;
            let Some(page) = page else { continue };
            for group in page.groups {
                if self.config.nested_group_membership_enabled && seen.insert(group.email.clone()) {
                    members.push_back((group.email.clone(), None));
                }
                found.insert(group.id.clone(), group.principal());
            }
            if let Some(next) = page.next_page_token.filter(|next| !next.is_empty()) {
                members.push_back((member, Some(next)));
            }
        }
        let text = format!("a user's groups need more than {REQUESTS_MAX} requests");
        Err(ProviderError::Unavailable(text))
    }

    /// Users and groups whose name or address begins with `text`.
    pub async fn search(
        &self,
        text: &str,
        kind: Option<PrincipalKind>,
    ) -> Result<Vec<Principal>, ProviderError> {
        // What could end the text in the language of the search is left out.
        let text: String =
            text.trim().chars().filter(|c| !matches!(c, '\'' | '"' | '\\' | '*' | ':')).collect();
        let mut found = Vec::new();
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Ok(found);
        }
        let (domain, size) = (self.config.hostname.as_str(), FOUND_MAX.to_string());
        let mut by_id: BTreeMap<String, Principal> = BTreeMap::new();
        if kind != Some(PrincipalKind::Group) {
            for field in ["email", "givenName", "familyName"] {
                let term = format!("{field}:'{text}*'");
                let pairs = [("domain", domain), ("query", &term), ("maxResults", &size)];
                let users: Option<FoundUsers> =
                    self.one(&format!("users?{}", query(&pairs))).await?;
                let users = users.into_iter().flat_map(|found| found.users);
                by_id.extend(users.map(GoogleUser::principal).map(|one| (one.id.clone(), one)));
            }
        }
        found.extend(std::mem::take(&mut by_id).into_values());
        if kind != Some(PrincipalKind::User) {
            for field in ["email", "name"] {
                let term = format!("{field}:'{text}*'");
                let pairs = [("domain", domain), ("query", &term), ("maxResults", &size)];
                let groups: Option<GroupPage> =
                    self.one(&format!("groups?{}", query(&pairs))).await?;
                let groups = groups.into_iter().flat_map(|page| page.groups);
                by_id.extend(groups.map(GoogleGroup::principal).map(|one| (one.id.clone(), one)));
            }
        }
        found.extend(by_id.into_values());
        Ok(found)
    }

    /// The principal with this id, if the organisation has it.
    pub async fn principal(&self, id: &str) -> Result<Option<Principal>, ProviderError> {
        if let Some(id) = id.strip_prefix(USER_PREFIX).filter(|id| is_id(id)) {
            return Ok(self.one(&format!("users/{id}")).await?.map(GoogleUser::principal));
        }
        if let Some(id) = id.strip_prefix(GROUP_PREFIX).filter(|id| is_id(id)) {
            return Ok(self.one(&format!("groups/{id}")).await?.map(GoogleGroup::principal));
        }
        Ok(None)
    }

    /// An object or a page; none if there is no such one.
    async fn one<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ProviderError> {
        let url = format!("{}/admin/directory/v1/{path}", self.config.directory_url());
        let response = self.reader.get(&url, &[]).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        refused(&response).map_or(Ok(()), Err)?;
        decode(SERVICE, &response).map(Some)
    }
}

/// Why Google did not do what was requested, if it did not.
fn refused(response: &HttpResponse) -> Option<ProviderError> {
    let status = response.status();
    let text = String::from_utf8_lossy(response.body());
    let is_busy = text.contains("ateLimitExceeded") || text.contains("quotaExceeded");
    match status {
        _ if status.is_success() => None,
        StatusCode::FORBIDDEN if !is_busy => Some(ProviderError::Misconfigured {
            field: "adminEmail",
            text: "this administrator may not read users and groups of the organisation, or the \
                   Admin SDK API is not enabled in the project of the service account"
                .to_owned(),
        }),
        _ => Some(ProviderError::Unavailable(format!("{SERVICE} responds with status {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_directory_says_nothing_about_users_or_the_configuration() {
        let of = |status: u16, body: &str| {
            let response = http::Response::builder().status(status);
            refused(&response.body(body.as_bytes().to_vec()).unwrap())
        };
        assert_eq!(of(200, ""), None);
        for (status, body) in [(403, "userRateLimitExceeded"), (429, ""), (503, "")] {
            assert!(matches!(of(status, body), Some(ProviderError::Unavailable(_))), "{status}");
        }
        let forbidden = of(403, "Not Authorized to access this resource/api");
        assert!(matches!(forbidden, Some(ProviderError::Misconfigured { .. })));
    }

    #[test]
    fn only_ids_go_into_paths() {
        assert!(is_id("103745"));
        for id in ["", "a/b", "a@example.org", "..", "a?b"] {
            assert!(!is_id(id), "{id}");
        }
    }
}
