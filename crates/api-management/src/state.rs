//! The state of a cluster in one word: computed from its conditions, never stored.
//!
//! `active` only when every condition that a cluster needs exists and no condition is violated. The
//! words are those that existing clients wait for. Pure.

use crate::cluster as c;
use crate::condition::{Condition, FALSE, TRUE, UNKNOWN, find};

/// The word when everything is well.
pub const ACTIVE: &str = "active";
/// The word for an object under deletion.
pub const REMOVING: &str = "removing";

/// What users see of an object as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Lower case, one word.
    pub state: String,
    /// `yes`, `no` or `error`.
    pub transitioning: &'static str,
    /// Empty when there is no message.
    pub message: String,
}

impl Summary {
    /// Whether the state is `active`.
    pub fn is_active(&self) -> bool {
        self.state == ACTIVE
    }
}

/// The conditions that every cluster needs, in the order in which they become true, with their
/// state words: the first that is not true determines the state.
pub const CLUSTER_NEEDS: &[(&str, &str)] = &[
    (c::PENDING, "pending"),
    (c::BACKING_NAMESPACE_CREATED, "configuring"),
    (c::DEFAULT_PROJECT_CREATED, "configuring"),
    (c::SYSTEM_PROJECT_CREATED, "configuring"),
    (c::PROVISIONED, "provisioning"),
    (c::WAITING, "waiting"),
    (c::AGENT_DEPLOYED, "provisioning"),
    (c::CONNECTED, "unavailable"),
    (c::READY, "unavailable"),
];

/// State words of further conditions that exist and are not true.
const WORDS: &[(&str, &str)] = &[
    (c::UPDATED, "updating"),
    ("Upgraded", "upgrading"),
    (c::CREATOR_MADE_OWNER, "configuring"),
    ("InitialRolesPopulated", "activating"),
    ("AddonDeploy", "provisioning"),
    ("DefaultNamespaceAssigned", "configuring"),
];

/// Conditions that are true while something is wrong or in progress. They do not count against a
/// cluster when they are false.
const NEGATIVE: &[&str] = &["Reconciling", c::REMOVED];

/// The state of a cluster with these conditions.
///
/// `terminating`: the cluster is being deleted; then it is `removing`, and the message says what
/// prevents the removal.
pub fn of_cluster(conditions: &[Condition], terminating: bool) -> Summary {
    if terminating {
        return removing(conditions);
    }
    for (kind, word) in CLUSTER_NEEDS {
        match find(conditions, kind) {
            Some(condition) if condition.status == TRUE => {}
            Some(condition) => return not_yet(word, condition),
            None => {
                let (state, transitioning) = ((*word).to_owned(), "yes");
                return Summary { state, transitioning, message: String::new() };
            }
        }
    }
    let positive = conditions.iter().filter(|c| !NEGATIVE.contains(&c.kind.as_str()));
    for condition in positive {
        if condition.status != TRUE {
            let word = WORDS.iter().find(|(kind, _)| *kind == condition.kind);
            return not_yet(word.map_or("updating", |(_, word)| word), condition);
        }
    }
    if let Some(condition) = find(conditions, "Reconciling")
        && condition.status == TRUE
    {
        let message = condition.message.clone();
        return Summary { state: "reconciling".to_owned(), transitioning: "yes", message };
    }
    Summary { state: ACTIVE.to_owned(), transitioning: "no", message: String::new() }
}

fn not_yet(word: &str, condition: &Condition) -> Summary {
    let failed = condition.reason == "Error" || condition.status == FALSE;
    Summary {
        state: word.to_owned(),
        transitioning: if failed { "error" } else { "yes" },
        message: condition.message.clone(),
    }
}

fn removing(conditions: &[Condition]) -> Summary {
    let condition = find(conditions, c::REMOVED);
    let failed = condition.is_some_and(|c| c.reason == "Error" && c.status != UNKNOWN);
    Summary {
        state: REMOVING.to_owned(),
        transitioning: if failed { "error" } else { "yes" },
        message: condition.map(|c| c.message.clone()).unwrap_or_default(),
    }
}
