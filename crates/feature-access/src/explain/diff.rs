//! What changes of roles and bindings would do, before they are made: who gains and who loses a
//! role where, and which rules a role gains and loses.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_management::{PolicyRule, RoleTemplate};
use controller::Key;
use rest_view::{Descriptor, Registry, mapping};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::graph::{Holding, ProposedChange};
use crate::role_template::rules::to_authz;

/// Most entries of each list in one response; the rest is counted.
pub const LISTED_MAX: usize = 1_000;
/// Most objects of one request.
pub const OBJECTS_MAX: usize = 500;

/// Objects as `/v3` has them, with a `type`; existing ones have an `id`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Changes {
    /// Created, or merged into the object of their `id`.
    pub apply: Vec<Map<String, Value>>,
    pub delete: Vec<Map<String, Value>>,
}

/// What the changes would do.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Differences {
    pub gains: Vec<Holding>,
    pub loses: Vec<Holding>,
    /// Roles whose rules would change, with all that have them.
    pub rules: Vec<RuleChange>,
    /// The groups among those that gain and lose.
    pub groups: Vec<GroupPeople>,
    /// Number of gains and losses that the lists leave out.
    pub left_out: usize,
}

/// How many users a group has, as far as this server knows: those who logged in with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupPeople {
    /// As an identity provider knows it.
    pub group: String,
    pub users: usize,
}

/// A role whose own rules would change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleChange {
    pub role: String,
    pub added: Vec<authz::PolicyRule>,
    pub removed: Vec<authz::PolicyRule>,
    /// Number of users and groups that have the role, before and after.
    pub holders: usize,
    /// Number of clusters in which somebody has it.
    pub clusters: usize,
}

/// Name and rules of a role, before and after.
pub type ChangedRules = (String, Vec<PolicyRule>, Vec<PolicyRule>);

/// A proposed object: the change of the graph, and for a role its rules before and after.
pub struct Proposal {
    /// Absent for a global role, whose rules alone change.
    pub change: Option<ProposedChange>,
    pub rules: Option<ChangedRules>,
}

/// The differences of two states of the graph. Pure.
pub fn differences(
    before: &BTreeSet<Holding>,
    after: &BTreeSet<Holding>,
    rules: impl IntoIterator<Item = ChangedRules>,
    users_of: impl Fn(&str) -> usize,
) -> Differences {
    let mut gains: Vec<Holding> = after.difference(before).cloned().collect();
    let mut loses: Vec<Holding> = before.difference(after).cloned().collect();
    let left_out = gains.len().saturating_sub(LISTED_MAX) + loses.len().saturating_sub(LISTED_MAX);
    gains.truncate(LISTED_MAX);
    loses.truncate(LISTED_MAX);
    let changed = rules.into_iter().filter_map(|(role, old, new)| {
        let wire = |rules: &[PolicyRule]| rules.iter().map(to_authz).collect::<Vec<_>>();
        let (old, new) = (wire(&old), wire(&new));
        let added = authz::covers(&old, &new).err().unwrap_or_default();
        let removed = authz::covers(&new, &old).err().unwrap_or_default();
        if added.is_empty() && removed.is_empty() {
            return None;
        }
        let having = before.union(after).filter(|holding| holding.role == role);
        let holders: BTreeSet<(&str, &str)> =
            having.clone().map(|holding| (holding.kind, holding.name.as_str())).collect();
        let clusters: BTreeSet<&str> = having.map(|holding| holding.cluster.as_str()).collect();
        Some(RuleChange { role, added, removed, holders: holders.len(), clusters: clusters.len() })
    });
    let rules = changed.collect();
    let groups = gains.iter().chain(&loses).filter(|holding| holding.kind == "Group");
    let groups: BTreeSet<&str> = groups.map(|holding| holding.name.as_str()).collect();
    let count = |group: &str| GroupPeople { group: group.to_owned(), users: users_of(group) };
    let groups = groups.into_iter().map(count).collect();
    Differences { gains, loses, rules, groups, left_out }
}

/// The proposal of one object.
///
/// - `place`: its position in the request, which names new objects.
/// - `stored`: the object of its id, as it is stored.
///
/// # Errors
/// The object is of no type that grants rights, or is no valid object of its type.
pub fn proposal(
    registry: &Registry,
    view: &Descriptor,
    input: &Map<String, Value>,
    stored: Option<&Value>,
    deletes: bool,
    place: usize,
) -> Result<Proposal, String> {
    let new = match stored {
        Some(stored) => {
            let mut merged = stored.clone();
            mapping::merge(view, registry, &mut merged, input, false);
            merged
        }
        None if deletes => return Err("an object that is deleted needs its id".to_owned()),
        None => {
            let mut created = mapping::to_stored(view, input, "");
            created["metadata"]["name"] = format!("new-{place}").into();
            created
        }
    };
    let text = |field: &str| new["metadata"][field].as_str().unwrap_or_default();
    let key = Key { namespace: text("namespace").to_owned(), name: text("name").to_owned() };
    let change = match view.id.as_str() {
        "globalRoleBinding" => ProposedChange::Global(key, object(&new, deletes)?),
        "clusterRoleTemplateBinding" => ProposedChange::Cluster(key, object(&new, deletes)?),
        "projectRoleTemplateBinding" => ProposedChange::Project(key, object(&new, deletes)?),
        "roleTemplate" => {
            let template: Option<Arc<RoleTemplate>> = object(&new, deletes)?;
            let rules = rule_change(&key.name, stored, &new, deletes)?;
            let change = Some(ProposedChange::Template(key, template));
            return Ok(Proposal { change, rules });
        }
        "globalRole" => {
            let rules = rule_change(&key.name, stored, &new, deletes)?;
            return Ok(Proposal { change: None, rules });
        }
        other => return Err(format!("type \"{other}\" grants no rights")),
    };
    Ok(Proposal { change: Some(change), rules: None })
}

fn rule_change(
    role: &str,
    stored: Option<&Value>,
    new: &Value,
    deletes: bool,
) -> Result<Option<ChangedRules>, String> {
    let rules = |object: &Value| match &object["rules"] {
        Value::Null => Ok(Vec::new()),
        rules => read::<Vec<PolicyRule>>(rules),
    };
    let before = stored.map_or_else(|| Ok(Vec::new()), rules)?;
    let after = if deletes { Vec::new() } else { rules(new)? };
    Ok(Some((role.to_owned(), before, after)))
}

fn object<K: DeserializeOwned>(value: &Value, deletes: bool) -> Result<Option<Arc<K>>, String> {
    if deletes { Ok(None) } else { read(value).map(|object| Some(Arc::new(object))) }
}

fn read<K: DeserializeOwned>(value: &Value) -> Result<K, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}
