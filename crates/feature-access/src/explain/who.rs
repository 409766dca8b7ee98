//! Who may do something in one cluster: users of Drover, and subjects that only the cluster knows.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Question;
use super::policy::{Grant, Named, Policy, Requester, is_subject};

/// Most users and other subjects in one response; the rest is counted.
pub const LISTED_MAX: usize = 1_000;

/// Who may do something.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Allowed {
    #[serde(flatten)]
    pub question: Question,
    pub users: Vec<AllowedUser>,
    /// Subjects of bindings in the cluster that are no users or role groups of Drover: service
    /// accounts, groups of the cluster's own certificates, and the like.
    pub others: Vec<Named>,
    /// Number of users and others that the lists leave out.
    pub left_out: usize,
}

/// A user who may do it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowedUser {
    pub user: String,
    /// The name typed at login; empty for users of other providers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// The first way in which it is allowed.
    pub because: Grant,
}

/// A user, with the groups that the cluster would see.
pub struct Candidate {
    pub user: String,
    pub username: String,
    pub display_name: String,
    pub groups: Vec<String>,
}

/// The candidates who may send the request, and the other subjects that may. Pure.
pub fn allowed(
    question: Question,
    policy: &Policy,
    candidates: impl IntoIterator<Item = Candidate>,
    is_role_group: impl Fn(&str) -> bool,
) -> Allowed {
    let grants: Vec<Grant> = policy.all_grants(&question.action()).collect();
    let mut users = Vec::new();
    let mut ids = BTreeSet::new();
    for candidate in candidates {
        let requester = Requester { user: &candidate.user, groups: &candidate.groups };
        let because = grants.iter().find(|grant| is_subject(&grant.subject, requester));
        ids.insert(candidate.user.clone());
        if let Some(because) = because {
            users.push(AllowedUser {
                because: because.clone(),
                user: candidate.user,
                username: candidate.username,
                display_name: candidate.display_name,
            });
        }
    }
    let is_other = |subject: &Named| match subject.kind.as_str() {
        "Group" => !is_role_group(&subject.name),
        "User" => !ids.contains(&subject.name),
        _ => true,
    };
    let others: BTreeSet<Named> =
        grants.into_iter().map(|grant| grant.subject).filter(is_other).collect();
    let left_out = users.len().saturating_sub(LISTED_MAX) + others.len().saturating_sub(LISTED_MAX);
    users.truncate(LISTED_MAX);
    let others = others.into_iter().take(LISTED_MAX).collect();
    Allowed { question, users, others, left_out }
}
