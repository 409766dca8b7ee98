//! Whose token it is, answered from memory.

use std::time::{Duration, SystemTime};

use api_management::{Token, User};
use futures::future::BoxFuture;
use identity::{Authenticate, Identity, Presented, Refused, verify_key};
use jiff::Timestamp;

use crate::directory::Directory;

/// What kinds of groups are called in their ids, after the name of the provider.
const GROUP_KINDS: [&str; 3] = ["group", "org", "team"];

/// Whether a stored token and user make the presented key hold at `now_millis`. Pure.
pub(crate) fn validate(
    presented: &Presented,
    token: &Token,
    user: Option<&User>,
    now_millis: i64,
) -> Result<Identity, Refused> {
    if !verify_key(&token.token, &presented.token.key) {
        return Err(Refused::WrongKey);
    }
    let user = check(token, user, now_millis)?;
    let expires_at = token.expires_at_millis().and_then(|millis| u64::try_from(millis).ok());
    Ok(Identity {
        user_id: token.user_id.clone(),
        login_name: user.username.clone(),
        display_name: user.display_name.clone(),
        principal_ids: user.principal_ids.clone(),
        groups: groups(token),
        token_id: presented.token.name.clone(),
        cluster: (!token.cluster_name.is_empty()).then(|| token.cluster_name.clone()),
        project: (!token.project_name.is_empty()).then(|| token.project_name.clone()),
        auth_provider: token.auth_provider.clone(),
        expires_at: expires_at.map(|millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis)),
    })
}

/// The groups of the login that the token comes from: those of its own provider and no others.
fn groups(token: &Token) -> Vec<String> {
    let is_of_provider = |id: &&String| {
        let scheme = id.split_once("://").map_or("", |(scheme, _)| scheme);
        let kind = scheme.strip_prefix(token.auth_provider.as_str());
        kind.and_then(|kind| kind.strip_prefix('_')).is_some_and(|kind| GROUP_KINDS.contains(&kind))
    };
    token.group_principals.iter().filter(is_of_provider).cloned().collect()
}

/// Whether a token whose key was verified still holds, and for whom. Pure.
fn check<'a>(token: &Token, user: Option<&'a User>, now_millis: i64) -> Result<&'a User, Refused> {
    if !token.is_enabled() || token.metadata.deletion_timestamp.is_some() {
        return Err(Refused::Disabled);
    }
    if token.is_expired(now_millis) {
        return Err(Refused::Expired);
    }
    let holds = |user: &&User| user.is_enabled() && is_of(token, user);
    user.filter(holds).ok_or(Refused::NoUser)
}

/// Whether the token is this user's, and not that of an earlier one with the same id: it refers to
/// the user by uid, or was not there before the user.
fn is_of(token: &Token, user: &User) -> bool {
    let mut owners = token.metadata.owner_references.iter().flatten();
    match owners.find(|owner| owner.kind == "User") {
        Some(owner) => user.metadata.uid.as_ref() == Some(&owner.uid),
        None => token.metadata.creation_timestamp >= user.metadata.creation_timestamp,
    }
}

/// Whether a token that was accepted before holds at `now_millis`. Pure.
pub fn holds(token: &Token, user: Option<&User>, now_millis: i64) -> bool {
    check(token, user, now_millis).is_ok()
}

impl Directory {
    async fn identify(&self, presented: &Presented) -> Result<Identity, Refused> {
        let token = self.token(&presented.token.name).await.ok_or(Refused::Unknown)?;
        let user = self.user(&token.user_id).await;
        let now = Timestamp::now().as_millisecond();
        let identity = validate(presented, &token, user.as_deref(), now)?;
        if !self.providers.is_enabled(&token.auth_provider) {
            return Err(Refused::Disabled);
        }
        self.refresh_if_old(&token, now);
        self.note_use(&token, now);
        Ok(identity)
    }
}

impl Authenticate for Directory {
    fn authenticate<'a>(
        &'a self,
        presented: &'a Presented,
    ) -> BoxFuture<'a, Result<Identity, Refused>> {
        Box::pin(self.identify(presented))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_the_tokens_own_provider_count() {
        let ids = [
            "github_team://7",
            "github_org://1",
            "github_user://2",
            "github_admins://3",
            "github://4",
            "openldap_group://cn=x",
            "system:masters",
            "githubx_team://5",
        ];
        let token = |provider: &str| Token {
            auth_provider: provider.to_owned(),
            group_principals: ids.map(str::to_owned).to_vec(),
            ..Token::default()
        };
        assert_eq!(groups(&token("github")), ["github_team://7", "github_org://1"]);
        assert_eq!(groups(&token("openldap")), ["openldap_group://cn=x"]);
        assert!(groups(&token("local")).is_empty());
    }
}
