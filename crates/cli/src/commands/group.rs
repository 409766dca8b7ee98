//! `drover group …`: groups of directories, as far as roles are given to them, and how current
//! their members are.

use http::Method;
use serde_json::{Value, json};

use crate::api::{self, Api, id, text};
use crate::args::GroupCommand;
use crate::commands::listing;
use crate::commands::role::{CLUSTER_BINDINGS, GLOBAL_BINDINGS, PROJECT_BINDINGS};
use crate::error::{CliError, Failure};
use crate::output::TableColumn;

/// The action of a user, and of all users, that reads groups anew.
const REFRESH: &str = "refreshauthprovideraccess";

const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "GROUP", cell: |given, _| text(given, "group").to_owned() },
    TableColumn { heading: "ROLE", cell: |given, _| text(given, "role").to_owned() },
    TableColumn { heading: "WHERE", cell: |given, _| text(given, "where").to_owned() },
    TableColumn { heading: "BINDING", cell: |given, _| text(given, "id").to_owned() },
];

/// Lists groups with their roles, or reads the groups of users anew.
///
/// # Errors
/// A user does not exist, or a request fails.
pub async fn run(command: GroupCommand) -> Result<(), CliError> {
    match command {
        GroupCommand::Ls(args) => {
            let api = Api::open(args.output.server.name())?;
            listing::show(&args, COLUMNS, async || roles_of_groups(&api).await).await
        }
        GroupCommand::Refresh { users, server } => {
            let api = Api::open(server.name())?;
            if users.is_empty() {
                let what = "reading the groups of all users";
                let path = format!("/v3/users?action={REFRESH}");
                api.call(Method::POST, &path, Some(&json!({})), what).await?;
                notify!("the groups of all users were read from their directories");
            }
            for user in &users {
                let found = api.resolve(&api::USER, user).await?;
                let what = format!("reading the groups of \"{user}\"");
                api.action("users", id(&found), REFRESH, &json!({}), &what).await?;
                notify!("the groups of {user} were read from the directory");
            }
            Ok(())
        }
    }
}

/// Every role that a group has, as far as the caller sees the bindings, sorted by group.
async fn roles_of_groups(api: &Api) -> Result<Vec<Value>, CliError> {
    let mut given = Vec::new();
    for plural in [GLOBAL_BINDINGS, CLUSTER_BINDINGS, PROJECT_BINDINGS] {
        match api.list(plural, &[]).await {
            Ok(bindings) => given.extend(bindings.iter().filter_map(given_to_group)),
            Err(error) if error.failure == Failure::Forbidden => {}
            Err(error) => return Err(error),
        }
    }
    given.sort_by(|a, b| {
        let key =
            |given: &Value| ["group", "where", "role"].map(|field| text(given, field).to_owned());
        key(a).cmp(&key(b))
    });
    Ok(given)
}

/// What a binding gives to a group; `None` when it is for a user.
fn given_to_group(binding: &Value) -> Option<Value> {
    let first = |fields: &[&str]| {
        let found = fields.iter().map(|field| text(binding, field)).find(|text| !text.is_empty());
        found.map(str::to_owned)
    };
    Some(json!({
        "id": id(binding),
        "group": first(&["groupPrincipalId", "groupId"])?,
        "role": first(&["globalRoleId", "roleTemplateId"]),
        "where": first(&["projectId", "clusterId"]).unwrap_or_else(|| "global".to_owned()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_of_a_group_says_what_it_gives_where() {
        let global = json!({"id": "grb-1", "globalRoleId": "user", "groupPrincipalId": "g://a"});
        let given = given_to_group(&global).unwrap();
        assert_eq!(
            given,
            json!({"id": "grb-1", "group": "g://a", "role": "user", "where": "global"})
        );
        let project = json!({"id": "p-1:b", "roleTemplateId": "read-only", "projectId": "c-1:p-1",
            "groupPrincipalId": "g://a"});
        assert_eq!(given_to_group(&project).unwrap()["where"], "c-1:p-1");
        let user = json!({"id": "grb-2", "globalRoleId": "user", "userId": "u-1",
            "groupPrincipalId": ""});
        assert_eq!(given_to_group(&user), None);
    }
}
