//! `drover access …`: why a user may do something in a cluster, and who may.

use http::Method;
use serde_json::{Value, json};

use crate::api::{self, Api, id, text};
use crate::args::{AccessCommand, AccessDiffArgs, AccessRequest};
use crate::commands::role::{rule, words};
use crate::commands::{apply, scope};
use crate::error::CliError;
use crate::output::{self, TableColumn};

/// Begins the paths of the server's explanations.
const PATH: &str = "/drover.io/v1/access";
/// The name of the caller in place of a user's.
const ME: &str = "me";

const WHY_ROWS: &[TableColumn] = &[
    TableColumn {
        heading: "Allowed",
        cell: |found, _| if found["allowed"] == true { "yes" } else { "no" }.to_owned(),
    },
    TableColumn { heading: "Because", cell: |found, _| ways(found) },
    TableColumn { heading: "Missing", cell: |found, _| rule(&found["missing"]) },
    TableColumn { heading: "Next step", cell: |found, _| text(found, "nextStep").to_owned() },
    TableColumn { heading: "Owners", cell: |found, _| words(&found["granters"]) },
];

const WHO_COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "WHO", cell: |one, _| text(one, "who").to_owned() },
    TableColumn { heading: "NAME", cell: |one, _| text(one, "displayName").to_owned() },
    TableColumn {
        heading: "ROLE",
        cell: |one, _| text(&one["because"]["role"], "name").to_owned(),
    },
    TableColumn { heading: "BY", cell: |one, _| by(&one["because"]) },
];

const DIFF_COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "CHANGE", cell: |one, _| text(one, "change").to_owned() },
    TableColumn { heading: "WHO", cell: |one, _| text(one, "who").to_owned() },
    TableColumn { heading: "ROLE", cell: |one, _| text(one, "role").to_owned() },
    TableColumn { heading: "WHERE", cell: |one, _| place(one) },
    TableColumn { heading: "RULE", cell: |one, _| rule(&one["rule"]) },
];

/// Explains one request, lists who may send it, or shows what changes would do.
///
/// # Errors
/// The user or cluster does not exist, the caller may not see who is in it, or a request fails.
pub async fn run(command: AccessCommand) -> Result<(), CliError> {
    match command {
        AccessCommand::Why { user, request, output } => {
            let api = Api::open(output.server.name())?;
            let mut question = question(&api, &request).await?;
            if user != ME {
                question["user"] = id(&api.resolve(&api::USER, &user).await?).into();
            }
            let found = explain(&api, "why", &question).await?;
            output::one(output.output, WHY_ROWS, &found)
        }
        AccessCommand::Diff(args) => diff(args).await,
        AccessCommand::Who { request, output } => {
            let api = Api::open(output.server.name())?;
            let found = explain(&api, "who", &question(&api, &request).await?).await?;
            let left_out = found["leftOut"].as_u64().unwrap_or_default();
            if left_out > 0 {
                notify!("{left_out} more may do it, and are not listed");
            }
            output::list(output.output, WHO_COLUMNS, &everybody(&found))
        }
    }
}

async fn diff(args: AccessDiffArgs) -> Result<(), CliError> {
    let api = Api::open(args.output.server.name())?;
    let objects = apply::resolved(&api, &args.files).await?;
    let field = if args.delete { "delete" } else { "apply" };
    let found = explain(&api, "diff", &json!({field: objects})).await?;
    let format = args.output.output;
    if !format.is_table() {
        return output::one(format, &[], &found);
    }
    let rows = differences(&found);
    if rows.is_empty() {
        notify!("nobody gains or loses a right");
    }
    output::list(format, DIFF_COLUMNS, &rows)
}

/// One row for each gain and loss of a role, and for each rule that a role gains or loses.
fn differences(found: &Value) -> Vec<Value> {
    let items = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let holdings = |field: &str, change: &str| {
        let rows = items(&found[field]).into_iter().map(|mut one| {
            one["who"] =
                format!("{} {}", text(&one, "kind").to_lowercase(), text(&one, "name")).into();
            one["change"] = change.into();
            one
        });
        rows.collect::<Vec<Value>>()
    };
    let of_roles = items(&found["rules"]).into_iter().flat_map(|role| {
        let holders = format!("{} users and groups", role["holders"]);
        let row = |change: &str, rule: &Value| {
            json!({"change": change, "who": holders, "role": role["role"], "rule": rule,
                "clusters": role["clusters"]})
        };
        let added = items(&role["added"]).iter().map(|rule| row("gains", rule)).collect::<Vec<_>>();
        let removed = items(&role["removed"]).iter().map(|rule| row("loses", rule)).collect();
        [added, removed].concat()
    });
    let roles = [holdings("gains", "gains"), holdings("loses", "loses")].concat();
    roles.into_iter().chain(of_roles).collect()
}

/// Where a role is gained or lost.
fn place(one: &Value) -> String {
    match (text(one, "cluster"), text(one, "project"), one["clusters"].as_u64()) {
        (_, _, Some(clusters)) => format!("{clusters} clusters"),
        ("", _, _) => "the server".to_owned(),
        (cluster, "", _) => format!("cluster {cluster}"),
        (cluster, project, _) => format!("project {cluster}:{project}"),
    }
}

async fn explain(api: &Api, action: &str, question: &Value) -> Result<Value, CliError> {
    api.call(Method::POST, &format!("{PATH}/{action}"), Some(question), "the explanation").await
}

async fn question(api: &Api, request: &AccessRequest) -> Result<Value, CliError> {
    let cluster = scope::cluster(api, request.cluster.name()).await?;
    let mut question = json!({"cluster": id(&cluster), "verb": request.verb});
    if request.resource.starts_with('/') {
        question["path"] = request.resource.clone().into();
        return Ok(question);
    }
    let (resource, group, subresource) = parts(&request.resource);
    question["resource"] = resource.into();
    question["group"] = group.into();
    question["subresource"] = subresource.into();
    question["namespace"] = request.namespace.clone().unwrap_or_default().into();
    question["name"] = request.name.clone().unwrap_or_default().into();
    Ok(question)
}

/// Plural, group and subresource of `deployments.apps/scale`.
fn parts(resource: &str) -> (&str, &str, &str) {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    (plural, group, subresource)
}

/// Users and others in one list.
fn everybody(found: &Value) -> Vec<Value> {
    let items = |field: &str| found[field].as_array().cloned().unwrap_or_default();
    let users = items("users").into_iter().map(|mut user| {
        let name = [text(&user, "username"), text(&user, "user")];
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default().to_owned();
        user["who"] = format!("user {name}").into();
        user
    });
    let others = items("others").into_iter().map(|mut other| {
        let namespace = text(&other, "namespace");
        let namespace = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let kind = text(&other, "kind").to_lowercase();
        other["who"] = format!("{kind} {namespace}{}", text(&other, "name")).into();
        other
    });
    users.chain(others).collect()
}

/// Each way to the right: rule, role and binding in the cluster, then the bindings of Drover.
fn ways(found: &Value) -> String {
    let ways = found["because"].as_array().into_iter().flatten();
    let lines = ways.flat_map(|way| {
        let first = format!(
            "{} ({} {}), by {}",
            rule(&way["rule"]),
            text(&way["role"], "kind"),
            text(&way["role"], "name"),
            by(way)
        );
        let from = way["from"].as_array().into_iter().flatten();
        let from = from.map(|source| {
            let roles = words(&source["roles"]).replace(", ", " → ");
            let group = text(source, "throughGroup");
            let through =
                if group.is_empty() { String::new() } else { format!(", through group {group}") };
            let namespace = text(source, "namespace");
            let namespace =
                if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
            let (kind, name) = (text(source, "kind"), text(source, "name"));
            format!("  role {roles}, given by {kind} {namespace}{name}{through}")
        });
        std::iter::once(first).chain(from).collect::<Vec<_>>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The binding of a grant and whom it names.
fn by(grant: &Value) -> String {
    let (binding, subject) = (&grant["binding"], &grant["subject"]);
    if text(binding, "name").is_empty() {
        return String::new();
    }
    let kind = text(subject, "kind").to_lowercase();
    format!(
        "{} {} to {kind} {}",
        text(binding, "kind"),
        text(binding, "name"),
        text(subject, "name")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_a_plural_a_group_and_a_subresource() {
        assert_eq!(parts("pods"), ("pods", "", ""));
        assert_eq!(parts("pods/exec"), ("pods", "", "exec"));
        assert_eq!(parts("deployments.apps/scale"), ("deployments", "apps", "scale"));
        assert_eq!(
            parts("routes.gateway.networking.k8s.io"),
            ("routes", "gateway.networking.k8s.io", "")
        );
    }

    #[test]
    fn a_difference_is_one_row_for_each_role_and_rule() {
        let found = json!({
            "gains": [{"kind": "User", "name": "u-1", "role": "r", "cluster": "c-1"}],
            "loses": [{"kind": "Group", "name": "openldap_group://cn=dev", "role": "admin"}],
            "rules": [{"role": "r", "holders": 3, "clusters": 2, "added": [],
                "removed": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}],
        });
        let rows = differences(&found);
        let line = |row: &Value| {
            let cells = DIFF_COLUMNS.iter().map(|column| (column.cell)(row, Default::default()));
            cells.collect::<Vec<_>>().join("|")
        };
        let lines: Vec<String> = rows.iter().map(line).collect();
        assert_eq!(
            lines,
            [
                "gains|user u-1|r|cluster c-1|",
                "loses|group openldap_group://cn=dev|admin|the server|",
                "loses|3 users and groups|r|2 clusters|get on pods",
            ]
        );
    }

    #[test]
    fn an_explanation_names_every_step_from_the_rule_to_the_binding() {
        let found = json!({"because": [{
            "rule": {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
            "role": {"kind": "ClusterRole", "name": "admin"},
            "binding": {"kind": "RoleBinding", "name": "b"},
            "subject": {"kind": "Group", "name": "drover:project:p-1:admin"},
            "from": [{"roles": ["project-owner", "admin"], "kind": "ProjectRoleTemplateBinding",
                "namespace": "p-1", "name": "x", "throughGroup": "openldap_group://cn=dev"}],
        }]});
        assert_eq!(
            ways(&found),
            "get on pods (ClusterRole admin), by RoleBinding b to group drover:project:p-1:admin\n  role project-owner \
             → admin, given by ProjectRoleTemplateBinding p-1/x, through group openldap_group://cn=dev"
        );
    }
}
