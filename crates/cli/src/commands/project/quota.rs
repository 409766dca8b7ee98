//! `drover project quota`.

use api_management::project::{CONTAINER_RESOURCES, QUOTA_RESOURCES};
use serde_json::{Map, Value, json};

use crate::api::{Api, id, text};
use crate::args::QuotaChanges;
use crate::commands::scope;
use crate::error::CliError;
use crate::output::{self, TableColumn};
use crate::similar;

const LIMIT: &str = "resourceQuota";
const NAMESPACE_DEFAULT: &str = "namespaceDefaultResourceQuota";
const CONTAINERS: &str = "containerDefaultResourceLimit";

const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "RESOURCE", cell: |row, _| text(row, "resource").to_owned() },
    TableColumn { heading: "LIMIT", cell: |row, _| text(row, "limit").to_owned() },
    TableColumn { heading: "USED", cell: |row, _| text(row, "used").to_owned() },
    TableColumn {
        heading: "NAMESPACE DEFAULT",
        cell: |row, _| text(row, "namespaceDefault").to_owned(),
    },
    TableColumn { heading: "CONTAINER", cell: |row, _| text(row, "container").to_owned() },
];

/// Changes the quota and the limits for containers of a project, if there is anything to change,
/// and prints them.
///
/// # Errors
/// The project does not exist, the server refuses the change, or a request fails.
pub async fn run(project: &str, changes: QuotaChanges) -> Result<(), CliError> {
    check_names(&changes)?;
    let api = Api::open(changes.output.server.name())?;
    let mut project = scope::project(&api, changes.cluster.name(), project).await?;
    let body = body(&project, &changes);
    let name = text(&project, "name").to_owned();
    if body != json!({}) {
        let what = format!("changing the quota of project \"{name}\"");
        project = api.update("projects", id(&project), &body, &what).await?;
    }
    let rows = rows(&project);
    if rows.is_empty() {
        notify!(
            "project {name} has no quota; next: drover project quota {name} --limit pods=100 \
             --namespace-default pods=10"
        );
    }
    output::list(changes.output.output, COLUMNS, &rows)
}

/// The server ignores fields that it does not know, so a misspelt name would have no effect.
fn check_names(changes: &QuotaChanges) -> Result<(), CliError> {
    let of_quotas = QUOTA_RESOURCES.map(|(name, _)| name);
    let of_containers = CONTAINER_RESOURCES.map(|(request, limit)| [request, limit]).concat();
    for (flag, changes, known) in [
        ("--limit", &changes.limit, &of_quotas[..]),
        ("--namespace-default", &changes.namespace_default, &of_quotas),
        ("--container", &changes.container, &of_containers),
    ] {
        let unknown = changes.iter().find(|(resource, _)| !known.contains(&resource.as_str()));
        if let Some((resource, _)) = unknown {
            let text = format!("{flag} does not know the resource \"{resource}\"");
            let all = format!("known are {}", known.join(", "));
            return Err(CliError::usage(text).hint(
                match similar::closest(resource, known.iter().copied()) {
                    Some(meant) => format!("did you mean \"{meant}\"? {all}"),
                    None => all,
                },
            ));
        }
    }
    Ok(())
}

/// The fields to change: each as it is, with the changes.
fn body(project: &Value, changes: &QuotaChanges) -> Value {
    let mut body = Map::new();
    for (field, changes) in [
        (LIMIT, &changes.limit),
        (NAMESPACE_DEFAULT, &changes.namespace_default),
        (CONTAINERS, &changes.container),
    ] {
        if changes.is_empty() {
            continue;
        }
        let mut limits = limits(project, field).cloned().unwrap_or_default();
        for (resource, amount) in changes {
            match amount.is_empty() {
                true => limits.remove(resource),
                false => limits.insert(resource.clone(), amount.as_str().into()),
            };
        }
        let value = match (limits.is_empty(), field) {
            (true, _) => Value::Null,
            (false, CONTAINERS) => limits.into(),
            (false, _) => json!({"limit": limits}),
        };
        body.insert(field.to_owned(), value);
    }
    body.into()
}

fn limits<'a>(project: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    match field {
        CONTAINERS => project[field].as_object(),
        _ => project[field]["limit"].as_object(),
    }
}

/// One row for each resource that has any limit.
fn rows(project: &Value) -> Vec<Value> {
    let used = project[LIMIT]["usedLimit"].as_object();
    let columns = [
        ("limit", limits(project, LIMIT)),
        ("used", used),
        ("namespaceDefault", limits(project, NAMESPACE_DEFAULT)),
        ("container", limits(project, CONTAINERS)),
    ];
    let mut rows: std::collections::BTreeMap<&str, Map<String, Value>> = Default::default();
    for (column, limits) in columns {
        for (resource, amount) in limits.into_iter().flatten() {
            let row = rows.entry(resource).or_default();
            row.insert(column.to_owned(), amount.clone());
        }
    }
    let with_name = |(resource, mut row): (&str, Map<String, Value>)| {
        row.insert("resource".to_owned(), resource.into());
        row.into()
    };
    rows.into_iter().map(with_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> Value {
        json!({
            "name": "shop",
            "resourceQuota": {"limit": {"pods": "100"}, "usedLimit": {"pods": "30"}},
            "namespaceDefaultResourceQuota": {"limit": {"pods": "10"}},
            "containerDefaultResourceLimit": {"limitsCpu": "500m"},
        })
    }

    fn changes(limit: &[(&str, &str)], container: &[(&str, &str)]) -> QuotaChanges {
        let of = |list: &[(&str, &str)]| {
            list.iter().map(|(name, it)| ((*name).to_owned(), (*it).to_owned())).collect()
        };
        QuotaChanges { limit: of(limit), container: of(container), ..QuotaChanges::default() }
    }

    #[test]
    fn a_change_keeps_the_other_resources() {
        assert_eq!(body(&project(), &changes(&[], &[])), json!({}));
        let changed = body(&project(), &changes(&[("secrets", "5")], &[("limitsCpu", "")]));
        let expected = json!({
            "resourceQuota": {"limit": {"pods": "100", "secrets": "5"}},
            "containerDefaultResourceLimit": null,
        });
        assert_eq!(changed, expected);
    }

    #[test]
    fn a_misspelt_resource_is_refused() {
        assert!(check_names(&changes(&[("pods", "1")], &[("limitsCpu", "1")])).is_ok());
        let refused = check_names(&changes(&[("pod", "1")], &[])).unwrap_err();
        assert!(format!("{refused:?}").contains("did you mean"), "{refused:?}");
        assert!(check_names(&changes(&[], &[("pods", "1")])).is_err());
    }

    #[test]
    fn each_resource_is_a_row() {
        let expected = [
            json!({"resource": "limitsCpu", "container": "500m"}),
            json!({"resource": "pods", "limit": "100", "used": "30", "namespaceDefault": "10"}),
        ];
        assert_eq!(rows(&project()), expected);
        assert!(rows(&json!({})).is_empty());
    }
}
