//! Why one user may do something in one cluster, or who could make it so.

use api_management::role_template::CLUSTER_OWNER;
use authz::PolicyRule;
use serde::Serialize;

use super::Question;
use super::policy::{Grant, Policy, Requester, is_master};
use crate::graph::RoleSource;

/// The explanation of one decision.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    #[serde(flatten)]
    pub question: Question,
    pub allowed: bool,
    /// Groups that the cluster sees with requests of the user.
    pub groups: Vec<String>,
    /// All ways in which it is allowed; empty when it is not.
    pub because: Vec<Way>,
    /// The right that is missing; absent when it is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<PolicyRule>,
    /// The next step for a user without the right; empty when it is allowed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next_step: String,
    /// Ids of users who own the cluster, as far as the caller may see them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub granters: Vec<String>,
}

/// One way from a user to a right.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Way {
    /// The binding in the cluster, and the rule of its role.
    #[serde(flatten)]
    pub grant: Grant,
    /// The bindings of Drover that put the user into the group of the grant; empty for a group of
    /// another origin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<RoleSource>,
}

/// Explains the decision about a request. Pure.
///
/// - `sources`: where each role group of the requester comes from.
/// - `granters`: owners of the cluster that may be named.
pub fn explain(
    question: Question,
    requester: Requester<'_>,
    policy: &Policy,
    sources: &[RoleSource],
    granters: Vec<String>,
) -> Explanation {
    let grants = policy.grants(requester, &question.action());
    let way = |grant: Grant| {
        let is_source = |source: &&RoleSource| {
            grant.subject.kind == "Group" && source.group == grant.subject.name
        };
        let from = sources.iter().filter(is_source).cloned().collect();
        Way { grant, from }
    };
    let because: Vec<Way> = grants.into_iter().map(way).collect();
    let allowed = is_master(requester) || !because.is_empty();
    let missing = (!allowed).then(|| question.rule());
    let next_step = if allowed { String::new() } else { next_step(&question) };
    Explanation {
        allowed,
        groups: requester.groups.to_vec(),
        because,
        missing,
        next_step,
        granters: if allowed { Vec::new() } else { granters },
        question,
    }
}

fn next_step(question: &Question) -> String {
    let cluster = &question.cluster;
    match question.namespace.as_str() {
        "" => format!(
            "a user with the role {CLUSTER_OWNER} in cluster \"{cluster}\", or an administrator, can give a role with \
             this right: drover role grant ROLE --user USER --cluster \
             {cluster}"
        ),
        namespace => format!(
            "an owner of the project of namespace \"{namespace}\", a user with the role {CLUSTER_OWNER} in cluster \
             \"{cluster}\", or an administrator can give a role with this right: drover role grant ROLE --user \
             USER --project PROJECT"
        ),
    }
}
