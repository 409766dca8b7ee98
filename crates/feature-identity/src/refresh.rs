//! Reads the groups of people from their providers anew: when somebody requests it, and in the
//! background when a token is used whose groups are old.
//!
//! Who is gone or disabled at a provider, or is no longer let in, loses the tokens of its logins.
//! When a provider does not respond nothing changes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use api_management::{Token, User, setting};
use controller::{Attempt, ReconcileError, ensure};
use identity::Secret;
use identity::provider::{CodeProvider, Person, Refreshed, provider_of_user};
use jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;

use crate::directory::Directory;
use crate::provider_kind::Backend;
use crate::providers::LOCAL;
use crate::token::issue::now;

/// Age at which groups are read anew when the setting cannot be read, in seconds.
const MAX_AGE_SECONDS: i64 = 3600;
/// Shortest time between two attempts for one user, so that a provider that does not respond is
/// not called for each request.
const RETRY_MILLIS: i64 = 60_000;
/// Users that are read anew at once.
const REFRESHING_MAX: usize = 16;

/// Users whose groups are being read, and when it was tried last.
#[derive(Default)]
pub struct Refreshing {
    running: Mutex<HashSet<String>>,
    tried: Mutex<HashMap<String, i64>>,
    /// Held, by user, while the user is read anew with a grant.
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Refreshing {
    fn begin(&self, user: &str, now_millis: i64) -> bool {
        let mut tried = self.tried.lock();
        tried.retain(|_, at| now_millis - *at < RETRY_MILLIS);
        let mut running = self.running.lock();
        if tried.contains_key(user) || running.len() >= REFRESHING_MAX {
            return false;
        }
        tried.insert(user.to_owned(), now_millis);
        running.insert(user.to_owned())
    }
    /// Who holds it is the only one to use a grant of the user.
    fn turn_of(&self, user: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock();
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        turns.entry(user.to_owned()).or_default().clone()
    }
    fn end(&self, user: &str) {
        self.running.lock().remove(user);
    }
}

/// Whether groups that were read at this time are older than allowed. Pure.
fn is_old(read_at: &str, max_age_seconds: i64, now_millis: i64) -> bool {
    if max_age_seconds <= 0 {
        return false;
    }
    let read = read_at.parse::<Timestamp>().map_or(0, Timestamp::as_millisecond);
    now_millis - read > max_age_seconds.saturating_mul(1000)
}

impl Directory {
    /// Starts to read the groups of the token's user anew if they are old. Does not wait.
    pub(crate) fn refresh_if_old(&self, token: &Token, now_millis: i64) {
        if token.auth_provider == LOCAL || token.auth_provider.is_empty() {
            return;
        }
        let max_age = self.settings.get(setting::AUTH_USER_INFO_MAX_AGE_SECONDS);
        let max_age = max_age.parse().unwrap_or(MAX_AGE_SECONDS);
        if !is_old(&token.last_update_time, max_age, now_millis) {
            return;
        }
        let Some(own) = self.own.upgrade() else { return };
        let user = token.user_id.clone();
        if !self.refreshing.begin(&user, now_millis) {
            return;
        }
        tokio::spawn(async move {
            if let Err(error) = own.refresh_user(&user).await {
                tracing::warn!(user, error = error.chain(), "groups were not read anew");
            }
            own.refreshing.end(&user);
        });
    }

    /// The users with a token of another provider than this server.
    pub(crate) fn users_elsewhere(&self) -> Vec<String> {
        let mut users = BTreeSet::new();
        self.tokens().for_each(|_, token| {
            if token.auth_provider != LOCAL && !token.auth_provider.is_empty() {
                users.insert(token.user_id.clone());
            }
        });
        users.into_iter().collect()
    }

    /// Reads the groups of a user anew from the providers of the user's tokens.
    ///
    /// # Errors
    /// The API refused. What a provider did not respond to is only logged.
    pub async fn refresh_user(&self, user_id: &str) -> Result<(), ReconcileError> {
        let Some(user) = self.user(user_id).await else { return Ok(()) };
        let api: Api<Token> = Api::all(self.client.clone());
        let tokens = api.list(&ListParams::default()).await;
        let tokens = tokens.attempt(|| "list tokens".to_owned())?.items;
        let of_user = |token: &&Token| token.user_id == user_id && token.auth_provider != LOCAL;
        let tokens: Vec<&Token> = tokens.iter().filter(of_user).collect();
        let providers: BTreeSet<&str> =
            tokens.iter().map(|token| token.auth_provider.as_str()).collect();
        for provider in providers {
            let own = tokens.iter().filter(|token| token.auth_provider == provider).copied();
            self.refresh_at(provider, &user, own).await?;
        }
        Ok(())
    }

    async fn refresh_at<'a>(
        &self,
        provider: &str,
        user: &User,
        tokens: impl Iterator<Item = &'a Token>,
    ) -> Result<(), ReconcileError> {
        let open = match self.providers.open(provider).await {
            Ok(open) => open,
            Err(cause) => {
                // Tokens of a disabled provider are ended by another part.
                tracing::info!(provider, cause, "groups cannot be read now");
                return Ok(());
            }
        };
        let mut ids = user.principal_ids.iter();
        let principal =
            ids.find(|id| provider_of_user(id).is_some_and(|(name, _)| name == provider));
        let refreshed = match (principal, &open.backend) {
            (None, _) => Refreshed::Gone,
            (Some(principal), Backend::Passwords(backend)) => backend.refresh(principal).await,
            (Some(principal), Backend::Codes(backend)) => {
                self.refresh_by_grant(backend.as_ref(), provider, principal, user).await?
            }
        };
        match refreshed {
            Refreshed::Known(person) if self.lets_in(&open.access, &person, Some(user)) => {
                self.store_groups(tokens, &person).await
            }
            Refreshed::Known(_) | Refreshed::Gone | Refreshed::Disabled => {
                let user = user.name_any();
                tracing::info!(provider, user, "the provider no longer lets the user in");
                self.end_all(tokens).await
            }
            Refreshed::Unavailable(cause) => {
                tracing::warn!(provider, cause, "groups cannot be read now");
                Ok(())
            }
        }
    }

    /// Reads the user anew with the grant of the last login. One at a time: a grant may be good for
    /// one use only.
    async fn refresh_by_grant(
        &self,
        backend: &dyn CodeProvider,
        provider: &str,
        principal: &str,
        user: &User,
    ) -> Result<Refreshed, ReconcileError> {
        let name = user.name_any();
        let turn = self.refreshing.turn_of(&name);
        let _held = turn.lock().await;
        let grant = self.stored_grant(&name, provider).await?;
        let (refreshed, renewed) = backend.refresh(principal, grant.as_ref()).await;
        let known = grant.as_ref().map(Secret::expose);
        if let Some(renewed) = renewed.filter(|renewed| known != Some(renewed.expose())) {
            self.store_grant(user, provider, &renewed).await?;
        }
        Ok(refreshed)
    }

    async fn store_groups<'a>(
        &self,
        tokens: impl Iterator<Item = &'a Token>,
        person: &Person,
    ) -> Result<(), ReconcileError> {
        let groups: Vec<&str> = person.groups.iter().map(|group| group.id.as_str()).collect();
        let patch = Patch::Merge(json!({"groupPrincipals": groups, "lastUpdateTime": now()}));
        let api: Api<Token> = Api::all(self.client.clone());
        for token in tokens {
            let name = token.name_any();
            let patched = api.patch(&name, &PatchParams::default(), &patch).await;
            patched.attempt(|| format!("store the groups of token \"{name}\""))?;
        }
        Ok(())
    }

    async fn end_all<'a>(
        &self,
        tokens: impl Iterator<Item = &'a Token>,
    ) -> Result<(), ReconcileError> {
        let api: Api<Token> = Api::all(self.client.clone());
        for token in tokens {
            ensure::absent(&api, &token.name_any()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_old_after_their_time_and_never_without_one() {
        let at = "2026-01-01T00:00:00Z";
        let read = at.parse::<Timestamp>().unwrap().as_millisecond();
        assert!(!is_old(at, 60, read + 60_000));
        assert!(is_old(at, 60, read + 60_001));
        assert!(!is_old(at, 0, i64::MAX));
        assert!(is_old("", 60, read));
    }

    #[test]
    fn one_user_is_read_once_at_a_time_and_not_again_at_once() {
        let refreshing = Refreshing::default();
        assert!(refreshing.begin("u-1", 1_000_000));
        assert!(!refreshing.begin("u-1", 1_000_001));
        refreshing.end("u-1");
        assert!(!refreshing.begin("u-1", 1_000_002));
        assert!(refreshing.begin("u-1", 1_000_000 + RETRY_MILLIS));
    }
}
