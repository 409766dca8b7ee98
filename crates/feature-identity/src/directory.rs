//! Users and their tokens. One per server, shared by all callers.
//!
//! Reads come from watches; what a watch has not brought yet is read from the API, so a token holds
//! from the moment it was made. Writes act as one identity, whose rights are these and no more.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_management::{Token, User, keys};
use controller::{Change, Reflector, Whole};
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, ManagementContext, Settings};
use identity::throttle::ThrottlePolicy;
use identity::{LoginThrottle, Passwords, Throttle};
use kube::{Api, Client};
use parking_lot::RwLock;

use crate::code_login::CodeLogins;
use crate::external_user::Memberships;
use crate::providers::Providers;
use crate::refresh::Refreshing;
use crate::token::last_use::LastUses;

/// How long a request waits for a server that has just started to know its users.
const SYNC_TIME_MAX: Duration = Duration::from_secs(5);

/// Wrong current passwords, at a change of one's own, that cost nothing yet.
const CHANGES: ThrottlePolicy = ThrottlePolicy { free_failures: 5, under_way_max: 5 };

/// What the directory may do: read users and make those of people from elsewhere, make and end
/// tokens, keep password hashes.
pub fn identity() -> ControllerIdentity {
    let secrets = rule("", &["secrets"], &["get", "create", "patch"]);
    ControllerIdentity::new(
        "directory",
        vec![
            ours(&["users"], &["get", "create", "patch"]),
            ours(&["users/status"], &["patch"]),
            ours(&["globalrolebindings"], &["get", "create"]),
            ours(&["tokens"], &["get", "list", "create", "patch", "delete"]),
        ],
    )
    .within(keys::PASSWORDS_NS, secrets.clone())
    .within(keys::LOGIN_GRANTS_NS, secrets)
}

/// See the module.
pub struct Directory {
    /// Itself, for work that outlives a request.
    pub(crate) own: Weak<Self>,
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) passwords: Passwords,
    pub(crate) logins: LoginThrottle,
    /// Wrong current passwords, at a change of one's own, by user id.
    pub(crate) changes: Throttle,
    /// Identity providers other than this server.
    pub(crate) providers: Providers,
    pub(crate) memberships: Memberships,
    /// Users whose groups are being read anew.
    pub(crate) refreshing: Refreshing,
    pub(crate) last_uses: LastUses,
    /// Logins on the pages of providers that are under way.
    pub(crate) code_logins: CodeLogins,
    users: Arc<Reflector<Whole<User>>>,
    tokens: Arc<Reflector<Whole<Token>>>,
    /// Login name to user id.
    by_username: Arc<RwLock<HashMap<String, String>>>,
}

impl Directory {
    /// Must be called inside a tokio runtime.
    pub fn new(context: &ManagementContext) -> Arc<Self> {
        let reflectors = &context.scope.reflectors;
        let users = reflectors.get::<Whole<User>>();
        let by_username = Arc::new(RwLock::new(HashMap::new()));
        let index = by_username.clone();
        users.subscribe(move |change| {
            note_username(&mut index.write(), change);
            true
        });
        Arc::new_cyclic(|own| Self {
            own: own.clone(),
            client: context.clients.controller(&identity()),
            settings: context.settings.clone(),
            passwords: Passwords::default(),
            logins: LoginThrottle::default(),
            changes: Throttle::new(CHANGES),
            providers: Providers::new(context),
            memberships: Memberships::new(context),
            refreshing: Refreshing::default(),
            last_uses: LastUses::default(),
            code_logins: CodeLogins::default(),
            users,
            tokens: reflectors.get(),
            by_username,
        })
    }

    /// The watch of tokens, for those who must know when one ends.
    pub fn tokens(&self) -> &Arc<Reflector<Whole<Token>>> {
        &self.tokens
    }
    /// The identity providers other than this server.
    pub fn providers(&self) -> &Providers {
        &self.providers
    }
    /// The watch of users.
    pub fn users(&self) -> &Arc<Reflector<Whole<User>>> {
        &self.users
    }

    /// Waits, within bounds, until users and tokens have been read once.
    pub async fn synced(&self) -> bool {
        let all = async {
            tokio::join!(
                self.users.synced(),
                self.tokens.synced(),
                self.settings.synced(),
                self.providers.synced(),
                self.memberships.synced(),
            )
        };
        tokio::time::timeout(SYNC_TIME_MAX, all).await.is_ok()
    }

    /// The user of this id.
    pub async fn user(&self, id: &str) -> Option<Arc<User>> {
        if let Some(user) = self.users.named(id) {
            return Some(user);
        }
        let read = Api::<User>::all(self.client.clone()).get_opt(id).await;
        read.ok().flatten().map(Arc::new)
    }

    /// The user who logs in with this name.
    pub fn user_by_username(&self, username: &str) -> Option<Arc<User>> {
        let id = self.by_username.read().get(username).cloned()?;
        self.users.named(&id)
    }

    pub(crate) async fn token(&self, name: &str) -> Option<Arc<Token>> {
        if let Some(token) = self.tokens.named(name) {
            return Some(token);
        }
        let read = Api::<Token>::all(self.client.clone()).get_opt(name).await;
        read.ok().flatten().map(Arc::new)
    }
}

fn note_username(index: &mut HashMap<String, String>, change: &Change<'_, User>) {
    let id = &change.key().name;
    let old = match change {
        Change::Applied { old, .. } => *old,
        Change::Deleted { old, .. } => Some(*old),
    };
    if let Some(old) = old
        && index.get(&old.username) == Some(id)
    {
        index.remove(&old.username);
    }
    if let Change::Applied { new, .. } = change
        && !new.username.is_empty()
    {
        // The first to have a name keeps it, should two objects ever claim the same one.
        index.entry(new.username.clone()).or_insert_with(|| id.clone());
    }
}
