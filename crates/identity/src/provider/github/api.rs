//! What is needed of GitHub's REST API: the user, organisations, teams, and searches.

use std::collections::BTreeMap;

use http::{StatusCode, header};
use openidconnect::HttpResponse;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use super::super::http::{HttpClient, decode};
use super::super::{Person, Principal, PrincipalKind, ProviderError};
use crate::secret::Secret;

const SERVICE: &str = "GitHub";
/// The version of the API that is requested.
const VERSION: &str = "2022-11-28";
/// Objects of a page: the most that GitHub returns.
const PER_PAGE: usize = 100;
/// Pages of one list.
const PAGES_MAX: usize = 50;
/// Longest text that is searched for, in bytes.
const TEXT_BYTES_MAX: usize = 256;

/// The API as one user, or as nobody.
pub struct GithubApi<'a> {
    pub http: &'a HttpClient,
    pub base: String,
    pub token: Option<&'a Secret>,
}

/// A user or an organisation.
#[derive(Deserialize)]
struct Account {
    id: u64,
    login: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct Team {
    id: u64,
    name: String,
    #[serde(default)]
    organization: Option<Account>,
}

#[derive(Deserialize)]
struct FoundAccounts {
    items: Vec<Account>,
}

impl Account {
    fn user(self) -> Principal {
        let display_name = self.name.filter(|name| !name.is_empty());
        Principal {
            id: format!("github_user://{}", self.id),
            kind: PrincipalKind::User,
            display_name: display_name.unwrap_or_else(|| self.login.clone()),
            login_name: self.login,
        }
    }
    fn organisation(self) -> Principal {
        Principal {
            id: format!("github_org://{}", self.id),
            kind: PrincipalKind::Group,
            display_name: self.login.clone(),
            login_name: self.login,
        }
    }
    fn principal(self) -> Principal {
        if self.kind == "Organization" { self.organisation() } else { self.user() }
    }
}

impl Team {
    fn principal(self) -> Principal {
        let organisation = self.organization.map(|account| account.login);
        Principal {
            id: format!("github_team://{}", self.id),
            kind: PrincipalKind::Group,
            display_name: match organisation {
                Some(organisation) => format!("{organisation}/{}", self.name),
                None => self.name.clone(),
            },
            login_name: self.name,
        }
    }
}

impl GithubApi<'_> {
    /// The user of the token, with organisations and teams.
    ///
    /// # Errors
    /// [`ProviderError::Wrong`] when the token is not good any more.
    pub async fn person(&self) -> Result<Person, ProviderError> {
        let user: Account = self.one("/user").await?.ok_or(ProviderError::Wrong)?;
        let organisations: Vec<Account> = self.all("/user/orgs").await?;
        let teams: Vec<Team> = self.all("/user/teams").await?;
        let groups = organisations.into_iter().map(Account::organisation);
        let groups = groups.chain(teams.into_iter().map(Team::principal));
        let groups: BTreeMap<String, Principal> =
            groups.map(|group| (group.id.clone(), group)).collect();
        Ok(Person { user: user.user(), groups: groups.into_values().collect() })
    }

    /// Users and organisations whose login name has `text` in it; GitHub has no search for teams.
    ///
    /// # Errors
    /// GitHub does not respond, or does not allow further searches for now.
    pub async fn search(
        &self,
        text: &str,
        kind: Option<PrincipalKind>,
    ) -> Result<Vec<Principal>, ProviderError> {
        // GitHub gives some characters a meaning of their own, which no login name has.
        let text: String =
            text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect();
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Ok(Vec::new());
        }
        let kind = match kind {
            Some(PrincipalKind::User) => " type:user",
            Some(PrincipalKind::Group) => " type:org",
            None => "",
        };
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("q", &format!("{text} in:login{kind}"))
            .append_pair("per_page", "50")
            .finish();
        let found: Option<FoundAccounts> = self.one(&format!("/search/users?{query}")).await?;
        let found = found.map(|found| found.items).unwrap_or_default();
        Ok(found.into_iter().map(Account::principal).collect())
    }

    /// The principal with this id, if GitHub shows it to this user.
    ///
    /// # Errors
    /// GitHub does not respond.
    pub async fn principal(&self, id: &str) -> Result<Option<Principal>, ProviderError> {
        let Some((kind, number)) = id.split_once("://") else { return Ok(None) };
        let Ok(number) = number.parse::<u64>() else { return Ok(None) };
        let account = |path: &str| format!("/{path}/{number}");
        match kind {
            "github_user" => {
                let found: Option<Account> = self.one(&account("user")).await?;
                Ok(found.map(Account::user))
            }
            "github_org" => {
                let found: Option<Account> = self.one(&account("organizations")).await?;
                Ok(found.map(Account::organisation))
            }
            "github_team" => {
                let found: Option<Team> = self.one(&account("teams")).await?;
                Ok(found.map(Team::principal))
            }
            _ => Ok(None),
        }
    }

    /// An object; none if there is no such one.
    async fn one<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ProviderError> {
        let response = self.get(&format!("{}{path}", self.base)).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        decode(SERVICE, &response).map(Some)
    }

    /// A list with all its pages.
    async fn all<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, ProviderError> {
        let mut all = Vec::new();
        let mut next = Some(format!("{}{path}?per_page={PER_PAGE}", self.base));
        for _ in 0..PAGES_MAX {
            let Some(url) = next else { break };
            let response = self.get(&url).await?;
            all.extend(decode::<Vec<T>>(SERVICE, &response)?);
            next = next_page(&response).filter(|next| next.starts_with(&self.base));
        }
        Ok(all)
    }

    async fn get(&self, url: &str) -> Result<HttpResponse, ProviderError> {
        let headers = [("x-github-api-version", VERSION)];
        let response = self.http.get(SERVICE, url, self.token, &headers).await?;
        refused(&response).map_or(Ok(response), Err)
    }
}

/// Why GitHub did not do what was requested, if it did not. What does not exist is no refusal.
fn refused(response: &HttpResponse) -> Option<ProviderError> {
    let status = response.status();
    if status.is_success() || status == StatusCode::NOT_FOUND {
        return None;
    }
    let text = String::from_utf8_lossy(response.body());
    Some(match status {
        StatusCode::UNAUTHORIZED => ProviderError::Wrong,
        StatusCode::FORBIDDEN if text.contains("suspended") => ProviderError::Disabled,
        _ => ProviderError::Unavailable(format!("GitHub responds with status {status}")),
    })
}

/// The address of the next page, from the header `Link`.
fn next_page(response: &HttpResponse) -> Option<String> {
    let links = response.headers().get(header::LINK)?.to_str().ok()?;
    links.split(',').find_map(|link| {
        let (address, parameters) = link.split_once(';')?;
        let is_next = parameters.contains("rel=\"next\"");
        let address = address.trim().strip_prefix('<')?.strip_suffix('>')?;
        is_next.then(|| address.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, link: Option<&str>, body: &str) -> HttpResponse {
        let mut response = http::Response::builder().status(status);
        if let Some(link) = link {
            response = response.header(header::LINK, link);
        }
        response.body(body.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn lists_go_on_where_github_says() {
        let link = "<https://api.github.com/user/orgs?page=1>; rel=\"prev\", \
                    <https://api.github.com/user/orgs?page=3>; rel=\"next\"";
        let next = next_page(&response(200, Some(link), "[]"));
        assert_eq!(next.as_deref(), Some("https://api.github.com/user/orgs?page=3"));
        let last = response(200, Some("<https://api.github.com/x>; rel=\"first\""), "[]");
        assert_eq!(next_page(&last), None);
        assert_eq!(next_page(&response(200, None, "[]")), None);
    }

    #[test]
    fn a_refusal_says_whether_the_user_is_out_or_github_is_busy() {
        let of = |status, body| refused(&response(status, None, body));
        assert_eq!(of(200, ""), None);
        assert_eq!(of(404, ""), None);
        assert_eq!(of(401, "{}"), Some(ProviderError::Wrong));
        assert_eq!(of(403, "Your account is suspended"), Some(ProviderError::Disabled));
        for (status, body) in [(403, "API rate limit exceeded"), (429, ""), (500, "")] {
            assert!(matches!(of(status, body), Some(ProviderError::Unavailable(_))), "{status}");
        }
    }

    #[test]
    fn accounts_are_users_or_organisations() {
        let account = |kind: &str| {
            let text =
                format!("{{\"id\": 7, \"login\": \"acme\", \"name\": null, \"type\": \"{kind}\"}}");
            serde_json::from_str::<Account>(&text).unwrap().principal()
        };
        assert_eq!(account("User").id, "github_user://7");
        assert_eq!(account("Organization").id, "github_org://7");
        assert_eq!(account("Organization").kind, PrincipalKind::Group);
    }
}
