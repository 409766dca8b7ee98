//! `drover whoami`: the caller as the server identifies them, with roles and the expiry of the
//! login.

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{Api, encode, id, text};
use crate::args::{OutputArgs, OutputFormat};
use crate::error::{CliError, Failure};
use crate::output::{self, TableColumn};

/// Prefix of the groups of roles, followed by scope and role.
const ROLE_GROUP: &str = "drover:";

const ROWS: &[TableColumn] = &[
    TableColumn { heading: "User", cell: |me, _| text(&me["user"], "username").to_owned() },
    TableColumn { heading: "Name", cell: |me, _| text(&me["user"], "name").to_owned() },
    TableColumn { heading: "Id", cell: |me, _| text(&me["user"], "id").to_owned() },
    TableColumn { heading: "Server", cell: |me, _| text(me, "server").to_owned() },
    TableColumn { heading: "Login", cell: |me, _| text(me, "context").to_owned() },
    TableColumn { heading: "Expires", cell: |me, now| expires(me, now) },
    TableColumn { heading: "Roles", cell: |me, _| roles_shown(me) },
    TableColumn { heading: "Groups", cell: |me, _| groups_shown(me) },
];

fn expires(me: &Value, now: Timestamp) -> String {
    let at = text(&me["token"], "expiresAt");
    match at.parse::<Timestamp>() {
        Ok(end) => {
            let minutes = end.duration_since(now).as_mins().max(0);
            format!("{at} (in {} h {} min)", minutes / 60, minutes % 60)
        }
        Err(_) if at.is_empty() => "never".to_owned(),
        Err(_) => at.to_owned(),
    }
}

fn roles_shown(me: &Value) -> String {
    let roles = me["roles"].as_array().into_iter().flatten();
    let lines = roles.map(|role| match text(role, "scope") {
        "global" => format!("{} of the server", text(role, "role")),
        scope => format!("{} in {scope} {}", text(role, "role"), text(role, "name")),
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        "none; ask an administrator for one".to_owned()
    } else {
        lines.join("\n")
    }
}

fn groups_shown(me: &Value) -> String {
    let groups = me["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
    groups.collect::<Vec<_>>().join(", ")
}

/// Prints the user of the login, their roles, and when the login expires.
///
/// # Errors
/// The login has ended, or a request fails.
pub async fn run(args: OutputArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.name())?;
    let me = read_caller(&api).await?;
    // The object with a name is the user.
    let shown = if args.output == OutputFormat::Name { &me["user"] } else { &me };
    output::one(args.output, ROWS, shown)
}

async fn read_caller(api: &Api) -> Result<Value, CliError> {
    let what = "reading your identity from the server";
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
    });
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let mut review = api.call(Method::POST, path, Some(&review), what).await?;
    let info = review["status"]["userInfo"].take();
    let user_id = text(&info, "username");
    let user = optional(api.get("users", user_id, what).await)?;
    let token_id = api.login().token.split(':').next().unwrap_or_default();
    let token = optional(api.get("tokens", token_id, what).await)?;
    let groups: Vec<&str> =
        info["groups"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut roles: Vec<Value> = groups.iter().filter_map(|group| role_of(group)).collect();
    for role in &mut roles {
        name_scope(api, role).await?;
    }
    let others: Vec<&&str> = groups.iter().filter(|group| role_of(group).is_none()).collect();
    Ok(json!({
        "user": {
            "id": user_id,
            "username": text(&user, "username"),
            "name": text(&user, "name"),
        },
        "server": api.url(),
        "context": api.name(),
        "token": {"id": id(&token), "expiresAt": token["expiresAt"]},
        "roles": roles,
        "groups": others,
    }))
}

/// Null for objects that the caller may not see, such as the token of a cluster's own identity.
fn optional(found: Result<Value, CliError>) -> Result<Value, CliError> {
    match found {
        Err(error) if matches!(error.failure, Failure::NotFound | Failure::Forbidden) => {
            Ok(Value::Null)
        }
        other => other,
    }
}

/// The role of a group: `drover:global:<role>`, `drover:cluster:<id>:<role>` or
/// `drover:project:<cluster>:<project>:<role>`.
fn role_of(group: &str) -> Option<Value> {
    let (scope, rest) = group.strip_prefix(ROLE_GROUP)?.split_once(':')?;
    match scope {
        "global" => Some(json!({"scope": scope, "role": rest})),
        "cluster" | "project" => {
            let (id, role) = rest.rsplit_once(':')?;
            Some(json!({"scope": scope, "id": id, "role": role}))
        }
        _ => None,
    }
}

/// Adds the name of the cluster or project, or its id if the name is not visible.
async fn name_scope(api: &Api, role: &mut Value) -> Result<(), CliError> {
    let scope_id = text(role, "id").to_owned();
    if scope_id.is_empty() {
        return Ok(());
    }
    let path = format!("/v3/{}s/{}", text(role, "scope"), encode(&scope_id));
    let found = optional(api.call(Method::GET, &path, None, "the scope of a role").await)?;
    let name = if found.is_null() { scope_id.as_str() } else { crate::api::name(&found) };
    role["name"] = name.into();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_roles_are_read_as_roles() {
        for (group, role) in [
            ("drover:global:admin", Some(json!({"scope": "global", "role": "admin"}))),
            (
                "drover:cluster:c-1:cluster-member",
                Some(json!({"scope": "cluster", "id": "c-1", "role": "cluster-member"})),
            ),
            (
                "drover:project:c-1:p-2:shop",
                Some(json!({"scope": "project", "id": "c-1:p-2", "role": "shop"})),
            ),
            ("system:authenticated", None),
            ("drover:", None),
            ("drover:cluster:", None),
        ] {
            assert_eq!(role_of(group), role, "{group}");
        }
    }

    #[test]
    fn a_user_is_shown_with_roles_and_the_end_of_the_login() {
        let me = json!({
            "user": {"id": "u-1", "username": "maria", "name": "Maria"},
            "server": "https://a", "context": "a", "groups": ["system:authenticated"],
            "token": {"id": "token-x", "expiresAt": "2024-01-01T02:05:00Z"},
            "roles": [
                {"scope": "global", "role": "admin"},
                {"scope": "cluster", "id": "c-1", "name": "north", "role": "cluster-member"},
            ],
        });
        let shown = output::details(ROWS, &me, "2024-01-01T00:00:00Z".parse().unwrap());
        insta::assert_snapshot!(shown, @"
        User:      maria
        Name:      Maria
        Id:        u-1
        Server:    https://a
        Login:     a
        Expires:   2024-01-01T02:05:00Z (in 2 h 5 min)
        Roles:     admin of the server
                   cluster-member in cluster north
        Groups:    system:authenticated
        ");
    }
}
