//! What is needed of Microsoft Graph: users, and the groups that they are in, directly or not.

use std::collections::BTreeMap;

use http::StatusCode;
use openidconnect::HttpResponse;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use super::super::http::{HttpClient, decode};
use super::super::oauth::OwnReader;
use super::super::{Person, Principal, PrincipalKind, ProviderError};
use crate::secret::Secret;

pub(super) const USER_PREFIX: &str = "azuread_user://";
const GROUP_PREFIX: &str = "azuread_group://";
pub(super) const SERVICE: &str = "Microsoft Graph";
/// Objects of a page: the most that Graph returns.
const PER_PAGE: usize = 999;
/// Pages of one list.
const PAGES_MAX: usize = 50;
/// Longest text that is searched for, in bytes.
const TEXT_BYTES_MAX: usize = 256;
/// Results of one search for users, and of one for groups.
const FOUND_MAX: usize = 50;
/// Fields of a user and of a group.
const USER_FIELDS: &str = "id,displayName,userPrincipalName,accountEnabled";
const GROUP_FIELDS: &str = "id,displayName";

/// Graph, read as the application.
pub(super) struct Graph<'a> {
    pub reader: OwnReader<'a>,
    /// Without a slash at the end.
    pub base: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GraphUser {
    id: String,
    display_name: Option<String>,
    user_principal_name: Option<String>,
    account_enabled: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GraphGroup {
    id: String,
    display_name: Option<String>,
}

#[derive(Deserialize)]
struct GraphId {
    id: String,
}

#[derive(Deserialize)]
struct Page<T> {
    value: Vec<T>,
    #[serde(rename = "@odata.nextLink")]
    next: Option<String>,
}

impl GraphUser {
    fn principal(self) -> Principal {
        let login_name = self.user_principal_name.unwrap_or_else(|| self.id.clone());
        Principal {
            id: format!("{USER_PREFIX}{}", self.id),
            kind: PrincipalKind::User,
            display_name: self.display_name.unwrap_or_else(|| login_name.clone()),
            login_name,
        }
    }
}

impl GraphGroup {
    fn principal(self) -> Principal {
        let name = self.display_name.unwrap_or_else(|| self.id.clone());
        Principal {
            id: format!("{GROUP_PREFIX}{}", self.id),
            kind: PrincipalKind::Group,
            display_name: name.clone(),
            login_name: name,
        }
    }
}

/// An id is nothing but letters, digits and dashes: it goes into a path.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// The query that finds what begins with `text` in one of the fields. Quotes are doubled, as the
/// language of the filter wants it.
fn beginning_with(text: &str, fields: &[&str], select: &str) -> String {
    let text = text.replace('\'', "''");
    let terms = fields.iter().map(|field| format!("startswith({field},'{text}')"));
    form_urlencoded::Serializer::new(String::new())
        .append_pair("$filter", &terms.collect::<Vec<_>>().join(" or "))
        .append_pair("$select", select)
        .append_pair("$top", &FOUND_MAX.to_string())
        .finish()
}

/// The id of the user with this token.
///
/// # Errors
/// Graph does not respond, or does not accept the token.
pub(super) async fn id_of(
    http: &HttpClient,
    base: &str,
    token: &Secret,
) -> Result<String, ProviderError> {
    let url = format!("{base}/v1.0/me?$select=id");
    let response = http.get(SERVICE, &url, Some(token), &[]).await?;
    match response.status() {
        StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND => return Err(ProviderError::Wrong),
        status => refused(status).map_or(Ok(()), Err)?,
    }
    decode::<GraphId>(SERVICE, &response).map(|user| user.id)
}

impl Graph<'_> {
    /// A user with all groups; none if there is no such user.
    pub async fn person(&self, id: &str) -> Result<Option<Person>, ProviderError> {
        if !is_id(id) {
            return Ok(None);
        }
        let user: Option<GraphUser> =
            self.one(&format!("/v1.0/users/{id}?$select={USER_FIELDS}")).await?;
        let Some(user) = user else { return Ok(None) };
        if user.account_enabled == Some(false) {
            return Err(ProviderError::Disabled);
        }
        let groups = format!(
            "/v1.0/users/{id}/transitiveMemberOf/microsoft.graph.group?$select={GROUP_FIELDS}&\
             $top={PER_PAGE}&$count=true"
        );
        let groups: Vec<GraphGroup> = self.all(&groups).await?;
        let groups: BTreeMap<String, Principal> =
            groups.into_iter().map(|group| (group.id.clone(), group.principal())).collect();
        Ok(Some(Person { user: user.principal(), groups: groups.into_values().collect() }))
    }

    /// Users and groups whose name, or a user's login name, begins with `text`.
    pub async fn search(
        &self,
        text: &str,
        kind: Option<PrincipalKind>,
    ) -> Result<Vec<Principal>, ProviderError> {
        let mut found = Vec::new();
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Ok(found);
        }
        if kind != Some(PrincipalKind::Group) {
            let fields = ["displayName", "userPrincipalName", "mail"];
            let query = beginning_with(text, &fields, USER_FIELDS);
            let users: Option<Page<GraphUser>> = self.one(&format!("/v1.0/users?{query}")).await?;
            found.extend(users.into_iter().flat_map(|page| page.value).map(GraphUser::principal));
        }
        if kind != Some(PrincipalKind::User) {
            let query = beginning_with(text, &["displayName"], GROUP_FIELDS);
            let groups: Option<Page<GraphGroup>> =
                self.one(&format!("/v1.0/groups?{query}")).await?;
            found.extend(groups.into_iter().flat_map(|page| page.value).map(GraphGroup::principal));
        }
        Ok(found)
    }

    /// The principal with this id, if the tenant has it.
    pub async fn principal(&self, id: &str) -> Result<Option<Principal>, ProviderError> {
        if let Some(id) = id.strip_prefix(USER_PREFIX).filter(|id| is_id(id)) {
            let path = format!("/v1.0/users/{id}?$select={USER_FIELDS}");
            return Ok(self.one(&path).await?.map(GraphUser::principal));
        }
        if let Some(id) = id.strip_prefix(GROUP_PREFIX).filter(|id| is_id(id)) {
            let path = format!("/v1.0/groups/{id}?$select={GROUP_FIELDS}");
            return Ok(self.one(&path).await?.map(GraphGroup::principal));
        }
        Ok(None)
    }

    async fn one<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ProviderError> {
        let response = self.get(&format!("{}{path}", self.base)).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        decode(SERVICE, &response).map(Some)
    }

    /// A list with all its pages. What is not read to its end is an error: groups that are missing
    /// would take rights away.
    async fn all<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, ProviderError> {
        let mut all = Vec::new();
        let mut next = Some(format!("{}{path}", self.base));
        for _ in 0..PAGES_MAX {
            let Some(url) = next else { return Ok(all) };
            // The token goes to Graph only.
            if !url.strip_prefix(self.base).is_some_and(|rest| rest.starts_with('/')) {
                let text = format!("{SERVICE} continues a list at another address");
                return Err(ProviderError::Unavailable(text));
            }
            let page: Page<T> = decode(SERVICE, &self.get(&url).await?)?;
            all.extend(page.value);
            next = page.next;
        }
        Err(ProviderError::Unavailable(format!("a list has more than {PAGES_MAX} pages")))
    }

    async fn get(&self, url: &str) -> Result<HttpResponse, ProviderError> {
        // Counts, and with them casts of members, are of this kind only.
        let headers = [("consistencylevel", "eventual")];
        let response = self.reader.get(url, &headers).await?;
        refused(response.status()).map_or(Ok(response), Err)
    }
}

/// Why Graph did not do what was requested, if it did not. What does not exist is no refusal.
fn refused(status: StatusCode) -> Option<ProviderError> {
    match status {
        _ if status.is_success() || status == StatusCode::NOT_FOUND => None,
        StatusCode::FORBIDDEN => Some(ProviderError::Misconfigured {
            field: "applicationId",
            text: "the application may not read users and groups: give it Microsoft Graph's \
                   application permission Directory.Read.All, with the consent of an administrator"
                .to_owned(),
        }),
        _ => Some(ProviderError::Unavailable(format!("{SERVICE} responds with status {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_searched_for_leaves_its_quotes() {
        let query = beginning_with("o') or startswith(mail,'", &["displayName"], "id");
        let filter = form_urlencoded::parse(query.as_bytes()).next().unwrap().1.into_owned();
        assert_eq!(filter, "startswith(displayName,'o'') or startswith(mail,''')");
    }

    #[test]
    fn only_ids_go_into_paths() {
        assert!(is_id("5e8e5ffe-4a3b-4b7a-9f0e-0d8c3f1f2a11"));
        for id in ["", "me/manager", "../groups", "a?b", "%2e"] {
            assert!(!is_id(id), "{id}");
        }
    }

    #[test]
    fn a_busy_graph_says_nothing_about_users() {
        assert_eq!(refused(StatusCode::OK), None);
        assert_eq!(refused(StatusCode::NOT_FOUND), None);
        for status in [StatusCode::TOO_MANY_REQUESTS, StatusCode::BAD_GATEWAY] {
            assert!(matches!(refused(status), Some(ProviderError::Unavailable(_))), "{status}");
        }
    }
}
