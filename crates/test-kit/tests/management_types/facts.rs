//! Compares each schema with the reference, line by line.
//!
//! `fixtures/management-types.txt` has the facts; the served schemas are written in the same
//! format. Every difference is in [`super::known`] with its reason, and every entry there is a
//! difference.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::known;
use super::rest::Rest;

const FACTS: &str = include_str!("../../fixtures/management-types.txt");
const IN_CLUSTERS: &str = include_str!("../../fixtures/cluster-types.txt");
const IN_PROJECTS: &str = include_str!("../../fixtures/project-types.txt");

/// Key (`type`, `type.field`, `type?action`, `type??collectionAction`) → the rest of the line.
pub type Lines = BTreeMap<String, String>;

pub fn facts(text: &str) -> Lines {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(": ").map(|(k, v)| (k.to_owned(), v.to_owned())).unwrap())
        .collect()
}

pub fn served(schemas: &[Value]) -> Lines {
    let mut lines = Lines::new();
    for schema in schemas {
        let id = schema["id"].as_str().unwrap();
        if known::NOT_OFFERED.contains(&id) {
            continue;
        }
        lines.insert(id.to_owned(), head(schema));
        let actions =
            [("resourceActions", "?", "action"), ("collectionActions", "??", "collection action")];
        for (key, mark, word) in actions {
            for (name, action) in schema[key].as_object().into_iter().flatten() {
                let part = |key: &str| action[key].as_str().unwrap_or("-").to_owned();
                let text = format!("{word} {} {}", part("input"), part("output"));
                lines.insert(format!("{id}{mark}{name}"), text);
            }
        }
        for (name, field) in schema["resourceFields"].as_object().unwrap() {
            lines.insert(format!("{id}.{name}"), field_line(field));
        }
    }
    lines
}

/// A type without methods in the reference's lists is a nested one.
fn head(schema: &Value) -> String {
    let methods = |key: &str| {
        let words = [
            ("collectionMethods", "GET", "list"),
            ("collectionMethods", "POST", "create"),
            ("resourceMethods", "GET", "get"),
            ("resourceMethods", "PUT", "update"),
            ("resourceMethods", "DELETE", "delete"),
        ];
        let has = |method: &&str| schema[key].as_array().unwrap().iter().any(|m| m == *method);
        let found = words.into_iter().filter(|(of, method, _)| *of == key && has(method));
        found.map(|(_, _, word)| word).collect::<Vec<_>>()
    };
    let mut methods = [methods("collectionMethods"), methods("resourceMethods")].concat();
    methods.sort_unstable();
    if methods.is_empty() {
        return "nested".to_owned();
    }
    let mut line = format!("type {} {}", schema["pluralName"].as_str().unwrap(), methods.join(","));
    if schema["baseType"] != schema["id"] {
        line.push_str(&format!(" base={}", schema["baseType"].as_str().unwrap()));
    }
    line
}

fn field_line(field: &Value) -> String {
    let letters = [
        ("create", 'C'),
        ("update", 'U'),
        ("required", 'R'),
        ("nullable", 'N'),
        ("writeOnly", 'W'),
    ];
    let access: String =
        letters.iter().filter(|(key, _)| field[key] == true).map(|(_, letter)| letter).collect();
    let access = if access.is_empty() { "-" } else { &access };
    let mut line = format!("{} {access}", field["type"].as_str().unwrap());
    if let Some(default) = field.get("default") {
        line.push_str(&format!(" default={default}"));
    }
    if let Some(options) = field["options"].as_array() {
        let options: Vec<_> = options.iter().filter_map(Value::as_str).collect();
        line.push_str(&format!(" options={}", options.join("|")));
    }
    for key in ["min", "max", "minLength", "maxLength"] {
        if let Some(limit) = field.get(key) {
            line.push_str(&format!(" {key}={limit}"));
        }
    }
    line
}

/// Whether a served line agrees with the reference, where the reference has the fact.
fn agrees(fact: &str, served: &str, nested: bool) -> bool {
    let (Some((kind, rest)), Some((served_kind, served_rest))) =
        (fact.split_once(' '), served.split_once(' '))
    else {
        return fact == served;
    };
    if rest == "?" {
        return kind == served_kind;
    }
    let without_null = |rest: &str| {
        let (access, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let access = access.replace(['N', 'n', '-'], "");
        format!("{access} {more}")
    };
    let null_unknown = nested || rest.split(' ').next().is_some_and(|access| access.contains('n'));
    kind == served_kind
        && if null_unknown {
            without_null(rest) == without_null(served_rest)
        } else {
            rest == served_rest
        }
}

/// The differences without a reason, and the reasons without a difference, as text; and the number
/// of lines that agree.
pub fn differences(facts: &Lines, served: &Lines, reasons: known::Reasons) -> (String, usize) {
    let keys: BTreeSet<&String> = facts.keys().chain(served.keys()).collect();
    let mut differences = BTreeMap::new();
    let mut compared = 0;
    for key in keys {
        let id = key.split(['.', '?']).next().unwrap();
        let nested = facts.get(id).is_some_and(|line| line == "nested");
        match (facts.get(key), served.get(key)) {
            (Some(fact), Some(line)) if key != id && agrees(fact, line, nested) => compared += 1,
            (Some(fact), Some(line)) if key == id && fact == line => compared += 1,
            // A missing type counts as one difference.
            (Some(_), None) if key != id && !served.contains_key(id) => {}
            (fact, line) => {
                differences.insert(key.clone(), (fact.cloned(), line.cloned()));
            }
        }
    }
    let (unexplained, idle) = known::explain(reasons, &differences);
    println!("{compared} lines agree, {} differences are explained", differences.len());
    let unexplained = unexplained.iter().map(|key| {
        let (fact, line) = &differences[key];
        format!("difference without a reason: {key}\n  fact   {fact:?}\n  served {line:?}\n")
    });
    let idle = idle.iter().map(|key| format!("reason without a difference: {key}\n"));
    (unexplained.chain(idle).collect(), compared)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_schema_equals_the_reference() {
    let rest = Rest::start().await;
    let served = served(&rest.schemas("/v3").await);
    let (wrong, _) = differences(&facts(FACTS), &served, known::MANAGEMENT);
    assert!(wrong.is_empty(), "{wrong}");
    let text: Vec<_> = served.iter().map(|(key, line)| format!("{key}: {line}")).collect();
    insta::assert_snapshot!("schemas", text.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_schema_inside_clusters_and_projects_equals_the_reference() {
    let rest = Rest::start().await;
    let versions = [
        ("/v3/cluster", IN_CLUSTERS, known::IN_CLUSTERS, 280),
        ("/v3/project", IN_PROJECTS, known::IN_PROJECTS, 300),
    ];
    for (version, text, reasons, lines_min) in versions {
        let facts = facts(text);
        let mut served = served(&rest.schemas(version).await);
        // Workloads have their own facts.
        served.retain(|key, _| facts.contains_key(key.split(['.', '?']).next().unwrap()));
        let (wrong, compared) = differences(&facts, &served, reasons);
        assert!(wrong.is_empty(), "{version}: {wrong}");
        assert!(compared > lines_min, "{version}: {compared} lines");
    }
}
