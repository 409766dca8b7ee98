//! Ends what a token or a role carried once it no longer holds: open streams, watches, sockets.
//!
//! Whoever opens something that lives on takes a signal ([`Revocations::of_token`],
//! [`Revocations::of_roles`]). Events fire it: a change of the token or its user, the token's
//! expiry, a change of any role. Nothing is polled; what a change can concern is checked, in one
//! task.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use api_management::{Token, User};
use controller::Change;
use feature_kit::{Membership, RoleResolver};
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::time::{DelayQueue, delay_queue};

use crate::{Directory, holds};

/// A token that was read from the API may not be in memory yet; if it is not by then, it is
/// deleted.
const NEW_TOKEN_GRACE: Duration = Duration::from_secs(2);
/// Longest wait for a token's expiry before the clock is read again, since it may have jumped.
const EXPIRY_CHECK_MAX: Duration = Duration::from_secs(60);
/// Shortest time between two checks of all roles in use, so that many changes at once cost one.
const ROLE_CHECK_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Signals of roles kept at once. Beyond that all are fired, and clients come back.
const ROLE_SIGNALS_MAX: usize = 100_000;

/// Where roles are given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RoleScope {
    /// The management API, with the roles in all clusters.
    Management,
    Cluster(String),
}

/// Whose roles are in use. An impersonated user has other groups than the same user logged in.
#[derive(PartialEq, Eq, Hash)]
struct Holder {
    scope: RoleScope,
    user: String,
    /// Principal ids.
    groups: Vec<String>,
}

/// Roles in use.
#[derive(Default)]
struct RoleUse {
    signal: CancellationToken,
    /// What was given, sorted.
    roles: Vec<String>,
}

struct TokenUse {
    signal: CancellationToken,
    user: String,
    since: Instant,
    /// The token has been in memory: if it no longer is, it is deleted.
    is_seen: bool,
}

/// See the module.
pub struct Revocations {
    directory: Arc<Directory>,
    access: Arc<dyn RoleResolver>,
    /// By token. There are never more than tokens that hold.
    tokens: Mutex<HashMap<String, TokenUse>>,
    roles: Mutex<HashMap<Holder, RoleUse>>,
    pending: Arc<Pending>,
}

/// What is to be checked.
#[derive(Default)]
struct Pending {
    changed: Mutex<Changed>,
    wake: Notify,
}

#[derive(Default)]
struct Changed {
    tokens: HashSet<String>,
    users: HashSet<String>,
}

impl Revocations {
    /// Must be called inside a tokio runtime.
    pub fn new(directory: Arc<Directory>, access: Arc<dyn RoleResolver>) -> Arc<Self> {
        let pending = Arc::<Pending>::default();
        let of_token = pending.clone();
        directory.tokens().subscribe(move |change: &Change<'_, Token>| {
            of_token.note(|changed| &mut changed.tokens, &change.key().name);
            true
        });
        let of_user = pending.clone();
        directory.users().subscribe(move |change: &Change<'_, User>| {
            of_user.note(|changed| &mut changed.users, &change.key().name);
            true
        });
        Arc::new(Self {
            directory,
            access,
            tokens: Mutex::default(),
            roles: Mutex::default(),
            pending,
        })
    }

    /// Fires when the token or its user no longer holds.
    pub fn of_token(&self, token: &str, user: &str) -> CancellationToken {
        let mut tokens = self.tokens.lock();
        if let Some(usage) = tokens.get(token) {
            return usage.signal.clone();
        }
        let signal = CancellationToken::new();
        let is_seen = self.directory.tokens().named(token).is_some();
        let usage = TokenUse {
            signal: signal.clone(),
            user: user.to_owned(),
            since: Instant::now(),
            is_seen,
        };
        tokens.insert(token.to_owned(), usage);
        drop(tokens);
        // Also finds out what happened between authentication and now, and when to check next.
        self.pending.note(|changed| &mut changed.tokens, token);
        signal
    }

    /// The person's role groups in a scope, and a signal that fires when one of them is taken away.
    pub fn of_roles(
        &self,
        scope: RoleScope,
        person: Membership<'_>,
    ) -> (Vec<String>, CancellationToken) {
        let holder = Holder { scope, user: person.user.to_owned(), groups: person.groups.to_vec() };
        let mut in_use = self.roles.lock();
        // With the lock, so that no change comes in between.
        let roles = self.roles_of(&holder);
        if in_use.len() >= ROLE_SIGNALS_MAX {
            in_use.drain().for_each(|(_, usage)| usage.signal.cancel());
        }
        let usage = in_use.entry(holder).or_default();
        usage.change(&roles);
        (roles, usage.signal.clone())
    }

    fn roles_of(&self, holder: &Holder) -> Vec<String> {
        let person = Membership { user: &holder.user, groups: &holder.groups };
        let mut roles = match &holder.scope {
            RoleScope::Management => self.access.management_groups(person),
            RoleScope::Cluster(cluster) => self.access.cluster_groups(cluster, person),
        };
        roles.sort();
        roles
    }

    /// Fires signals until `stop`.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken) {
        tokio::join!(self.watch_tokens(&stop), self.watch_roles(&stop));
    }

    async fn watch_tokens(&self, stop: &CancellationToken) {
        let mut checks = DelayQueue::new();
        let mut scheduled = HashMap::<String, delay_queue::Key>::new();
        loop {
            let Changed { mut tokens, users } = tokio::select! {
                () = stop.cancelled() => return,
                () = self.pending.wake.notified() => std::mem::take(&mut *self.pending.changed.lock()),
                Some(check) = checks.next() => {
                    let token = check.into_inner();
                    scheduled.remove(&token);
                    Changed { tokens: HashSet::from([token]), users: HashSet::new() }
                }
            };
            if !users.is_empty() {
                let in_use = self.tokens.lock();
                let of_users = in_use.iter().filter(|(_, usage)| users.contains(&usage.user));
                tokens.extend(of_users.map(|(token, _)| token.clone()));
            }
            for token in tokens {
                let after = self.check_token(&token);
                if let Some(earlier) = scheduled.remove(&token) {
                    checks.remove(&earlier);
                }
                if let Some(after) = after {
                    scheduled.insert(token.clone(), checks.insert(token, after));
                }
            }
        }
    }

    /// Fires the token's signal if it no longer holds. Otherwise says when to check again without
    /// an event of a change, if at all.
    fn check_token(&self, name: &str) -> Option<Duration> {
        let mut tokens = self.tokens.lock();
        let usage = tokens.get_mut(name)?;
        let token = self.directory.tokens().named(name);
        let user = self.directory.users().named(&usage.user);
        let now = jiff::Timestamp::now().as_millisecond();
        let next = match &token {
            Some(token) => {
                usage.is_seen = true;
                let is_valid = holds(token, user.as_deref(), now);
                is_valid.then(|| token.expires_at_millis()).map(|expiry| {
                    let millis = expiry.map(|expiry| u64::try_from(expiry - now).unwrap_or(0));
                    // A moment later than it expires.
                    millis.map(|millis| Duration::from_millis(millis + 1).min(EXPIRY_CHECK_MAX))
                })
            }
            None if usage.is_seen => None,
            None => NEW_TOKEN_GRACE.checked_sub(usage.since.elapsed()).map(Some),
        };
        match next {
            Some(after) => after,
            None => {
                usage.signal.cancel();
                tokens.remove(name);
                None
            }
        }
    }

    async fn watch_roles(&self, stop: &CancellationToken) {
        let mut changes = self.access.changes();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
            self.check_roles();
            tokio::time::sleep(ROLE_CHECK_INTERVAL_MIN).await;
        }
    }

    fn check_roles(&self) {
        for (holder, usage) in self.roles.lock().iter_mut() {
            usage.change(&self.roles_of(holder));
        }
    }
}

impl Pending {
    fn note(&self, set: impl FnOnce(&mut Changed) -> &mut HashSet<String>, name: &str) {
        set(&mut self.changed.lock()).insert(name.to_owned());
        self.wake.notify_one();
    }
}

impl RoleUse {
    /// Takes over what is given now; whoever rests on something that was taken away is notified.
    fn change(&mut self, roles: &[String]) {
        let is_lost = self.roles.iter().any(|role| roles.binary_search(role).is_err());
        if is_lost {
            self.signal.cancel();
            self.signal = CancellationToken::new();
        }
        if self.roles != roles {
            self.roles = roles.to_vec();
        }
    }
}
