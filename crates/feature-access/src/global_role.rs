//! Global roles: named sets of rights in the management API.

pub mod admission;
pub mod management;

use api_management::{GlobalRole, PolicyRule};
use feature_kit::table;
use rest_view::Descriptor;

use crate::role_template::view::without_removal;

/// The type `globalRole` under `/v3`.
pub fn view() -> Descriptor {
    table::descriptor("globalRole").formatter(without_removal).personal(&[])
}

/// The resource whose rules hold only in the namespace of global data: elsewhere Secrets belong to
/// clusters, projects and the server.
const SECRETS: &str = "secrets";

/// What the role allows in the whole management API. Pure.
pub fn everywhere(role: &GlobalRole) -> Vec<PolicyRule> {
    split(role).0
}

/// What the role allows in the namespace of global data alone. Pure.
pub fn in_global_data(role: &GlobalRole) -> Vec<PolicyRule> {
    split(role).1
}

fn split(role: &GlobalRole) -> (Vec<PolicyRule>, Vec<PolicyRule>) {
    let is_core = |rule: &PolicyRule| rule.api_groups.iter().any(String::is_empty);
    let mut everywhere = Vec::new();
    let mut within = Vec::new();
    for rule in &role.rules {
        let (secrets, others): (Vec<String>, Vec<String>) =
            rule.resources.iter().cloned().partition(|name| is_core(rule) && name == SECRETS);
        if !secrets.is_empty() {
            let api_groups = vec![String::new()];
            within.push(PolicyRule { api_groups, resources: secrets, ..rule.clone() });
        }
        if !others.is_empty() || !rule.non_resource_urls.is_empty() {
            everywhere.push(PolicyRule { resources: others, ..rule.clone() });
        }
    }
    (everywhere, within)
}

#[cfg(test)]
mod tests {
    use feature_kit::rbac::rule;

    use super::*;

    #[test]
    fn rules_on_secrets_hold_in_the_namespace_of_global_data_alone() {
        let urls = PolicyRule {
            non_resource_urls: vec!["/metrics".to_owned()],
            verbs: vec!["get".to_owned()],
            ..PolicyRule::default()
        };
        let rules = vec![
            rule("", &["secrets", "nodes"], &["get"]),
            rule("other.example", &["secrets"], &["list"]),
            urls.clone(),
        ];
        let role = GlobalRole { rules, ..GlobalRole::default() };
        let expected =
            [rule("", &["nodes"], &["get"]), rule("other.example", &["secrets"], &["list"]), urls];
        assert_eq!(everywhere(&role), expected);
        assert_eq!(in_global_data(&role), [rule("", &["secrets"], &["get"])]);
    }
}
