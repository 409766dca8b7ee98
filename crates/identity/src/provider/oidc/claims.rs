//! From what a provider claims about a user to the person with groups.

use std::collections::BTreeMap;

use openidconnect::AdditionalClaims;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::{Person, Principal, PrincipalKind};
use super::Flavour;

/// Keycloak's claim with the paths of groups: a member of `/staff/admins` is in both.
const PATHS_CLAIM: &str = "full_group_path";
/// Longest name of a group, in bytes. Longer ones are left out.
const GROUP_NAME_MAX: usize = 512;
/// Groups of one user; the last ones of more, by name, are left out.
const GROUPS_MAX: usize = 5000;

/// All claims but those that the protocol itself needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MoreClaims(pub Map<String, Value>);

impl AdditionalClaims for MoreClaims {}

/// The names of a user, each if it was claimed.
#[derive(Clone, Debug, Default)]
pub struct ClaimedNames {
    pub name: Option<String>,
    pub preferred_username: Option<String>,
    pub email: Option<String>,
}

/// The person with this subject. Pure.
pub fn person(
    flavour: &Flavour,
    groups_claim: &str,
    subject: &str,
    names: ClaimedNames,
    claims: &Map<String, Value>,
) -> Person {
    let login_name = names.preferred_username.or(names.email);
    let login_name = login_name.unwrap_or_else(|| subject.to_owned());
    let user = Principal {
        id: flavour.user_id(subject),
        kind: PrincipalKind::User,
        display_name: names.name.unwrap_or_else(|| login_name.clone()),
        login_name,
    };
    let named = texts(claims.get(groups_claim)).map(str::to_owned);
    let by_path =
        texts(claims.get(PATHS_CLAIM)).flat_map(|path| path.split('/')).map(str::to_owned);
    let groups: BTreeMap<String, Principal> = named
        .chain(by_path)
        .filter(|name| !name.trim().is_empty() && name.len() <= GROUP_NAME_MAX)
        .map(|name| (flavour.group_id(&name), flavour.group(&name)))
        .collect();
    Person { user, groups: groups.into_values().take(GROUPS_MAX).collect() }
}

/// A claim with several texts; some providers send a single one without a list.
fn texts(claim: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = claim.and_then(Value::as_array).into_iter().flatten();
    list.chain(claim.filter(|claim| claim.is_string())).filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::KEYCLOAK;
    use super::*;

    fn groups(claims: Value) -> Vec<String> {
        let claims = claims.as_object().unwrap();
        let person = person(&KEYCLOAK, "groups", "1", ClaimedNames::default(), claims);
        person.groups.into_iter().map(|group| group.id).collect()
    }

    #[test]
    fn groups_are_named_as_claimed_and_once() {
        let found = groups(json!({"groups": ["ops", "dev", "ops", "", 7, "/a/b"]}));
        let expected =
            ["keycloakoidc_group:///a/b", "keycloakoidc_group://dev", "keycloakoidc_group://ops"];
        assert_eq!(found, expected);
        assert_eq!(groups(json!({"groups": "ops"})), ["keycloakoidc_group://ops"]);
        assert!(groups(json!({"groups": {"ops": true}})).is_empty());
        assert!(groups(json!({"groups": ["x".repeat(513)]})).is_empty());
    }

    #[test]
    fn a_member_of_a_group_is_one_of_those_above_it() {
        let found = groups(json!({"full_group_path": ["/staff/admins"]}));
        assert_eq!(found, ["keycloakoidc_group://admins", "keycloakoidc_group://staff"]);
    }

    #[test]
    fn a_user_is_called_by_the_best_name_there_is() {
        let name = |text: &str| Some(text.to_owned());
        let all = ClaimedNames {
            name: name("Ada Lovelace"),
            preferred_username: name("ada"),
            email: name("ada@example.org"),
        };
        let by_mail = ClaimedNames { email: name("ada@example.org"), ..ClaimedNames::default() };
        for (names, display_name, login_name) in [
            (all, "Ada Lovelace", "ada"),
            (by_mail, "ada@example.org", "ada@example.org"),
            (ClaimedNames::default(), "s-1", "s-1"),
        ] {
            let user = person(&KEYCLOAK, "groups", "s-1", names, &Map::new()).user;
            assert_eq!(
                (user.display_name.as_str(), user.login_name.as_str()),
                (display_name, login_name)
            );
            assert_eq!(user.id, "keycloakoidc_user://s-1");
        }
    }
}
