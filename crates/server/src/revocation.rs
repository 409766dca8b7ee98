//! What open streams rest on: a token that holds, roles that are still given. When that ends, they are cut.
//!
//! A request asks for a signal when it begins ([`Standing::of_token`], [`Standing::of_roles`]); one task looks at all
//! signals given out, several times a second, and fires those whose ground is gone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use feature_identity::Directory;
use feature_kit::AccessResolver;
use feature_kit::Membership;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Pause between looks: streams are cut within a second of the change.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A token made a moment ago may not be in memory yet.
const NEW_TOKEN_GRACE: Duration = Duration::from_secs(2);
/// Signals kept at once. Beyond that all are fired, and clients come back.
const SIGNALS_MAX: usize = 100_000;

/// The person and the cluster that roles were given in.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    cluster: String,
    user: String,
}

struct Roles {
    signal: CancellationToken,
    /// Principal ids that took part in the decision.
    principals: Vec<String>,
    /// What was given, sorted.
    groups: Vec<String>,
}

struct TokenUse {
    signal: CancellationToken,
    user: String,
    since: Instant,
    /// The token has been in memory: if it no longer is, it is gone.
    seen: bool,
}

/// See the module.
pub struct Standing {
    directory: Arc<Directory>,
    access: Arc<dyn AccessResolver>,
    tokens: Mutex<HashMap<String, TokenUse>>,
    roles: Mutex<HashMap<Place, Roles>>,
}

impl Standing {
    pub fn new(directory: Arc<Directory>, access: Arc<dyn AccessResolver>) -> Arc<Self> {
        Arc::new(Self { directory, access, tokens: Mutex::default(), roles: Mutex::default() })
    }

    /// Fires when the token or its user no longer holds.
    pub fn of_token(&self, token: &str, user: &str) -> CancellationToken {
        let mut tokens = self.tokens.lock();
        if tokens.len() >= SIGNALS_MAX {
            tokens.drain().for_each(|(_, usage)| usage.signal.cancel());
        }
        let usage = tokens.entry(token.to_owned()).or_insert_with(|| TokenUse {
            signal: CancellationToken::new(),
            user: user.to_owned(),
            since: Instant::now(),
            seen: self.directory.tokens().named(token).is_some(),
        });
        usage.signal.clone()
    }

    /// The person's role groups in a cluster, and a signal that fires when one of them is taken away.
    pub fn of_roles(
        &self,
        cluster: &str,
        person: Membership<'_>,
    ) -> (Vec<String>, CancellationToken) {
        let mut groups = self.access.cluster_groups(cluster, person);
        groups.sort();
        let place = Place { cluster: cluster.to_owned(), user: person.user.to_owned() };
        let mut roles = self.roles.lock();
        if roles.len() >= SIGNALS_MAX {
            roles.drain().for_each(|(_, given)| given.signal.cancel());
        }
        let given = roles.entry(place).or_insert_with(|| Roles {
            signal: CancellationToken::new(),
            principals: Vec::new(),
            groups: Vec::new(),
        });
        given.change(person.groups, &groups);
        (groups, given.signal.clone())
    }

    /// Looks until `stop`.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = look.tick() => {}
            }
            self.look();
        }
    }

    fn look(&self) {
        let now = jiff::Timestamp::now().as_millisecond();
        self.tokens.lock().retain(|name, usage| {
            usage.seen |= self.directory.tokens().named(name).is_some();
            let holds = self.holds(name, usage, now);
            if !holds {
                usage.signal.cancel();
            }
            holds
        });
        for (place, given) in self.roles.lock().iter_mut() {
            let principals = given.principals.clone();
            let person = Membership { user: &place.user, groups: &principals };
            let mut groups = self.access.cluster_groups(&place.cluster, person);
            groups.sort();
            given.change(&principals, &groups);
        }
    }

    fn holds(&self, name: &str, usage: &TokenUse, now_millis: i64) -> bool {
        let user = self.directory.users().named(&usage.user);
        match self.directory.tokens().named(name) {
            Some(token) => {
                let user_holds = user.is_some_and(|user| user.is_enabled());
                user_holds && token.is_enabled() && !token.is_expired(now_millis)
            }
            None => !usage.seen && usage.since.elapsed() < NEW_TOKEN_GRACE,
        }
    }
}

impl Roles {
    /// Takes over what is given now; whoever rests on something that was taken away is told.
    fn change(&mut self, principals: &[String], groups: &[String]) {
        let lost = self.groups.iter().any(|group| groups.binary_search(group).is_err());
        if lost {
            self.signal.cancel();
            self.signal = CancellationToken::new();
        }
        if self.groups != groups {
            self.groups = groups.to_vec();
        }
        if self.principals != principals {
            self.principals = principals.to_vec();
        }
    }
}
