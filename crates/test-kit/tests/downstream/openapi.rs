//! The OpenAPI document against the server that it describes, its schemas, and a published parser.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};
use testbed::{Binaries, Program};

use super::users::{CLUSTER, OWNER, Users};

/// Variable of `cargo xtask openapi`, which makes the test write the committed document again.
const RENEW: &str = "DROVER_RENEW_OPENAPI";
const COMMITTED: &str = "docs/reference/openapi.yaml";
const HEAD: &str = "# What /v3/openapi.yaml answers. Written by `cargo xtask openapi`.\n";
/// Fields of every response that replace fields of the same name in a type.
const OF_EVERY_RESOURCE: [&str; 5] = ["id", "type", "baseType", "links", "actions"];
/// Versions, and the prefix of their types' names.
const VERSIONS: [(&str, &str); 3] =
    [("/v3", ""), ("/v3/cluster", "InCluster"), ("/v3/project", "InProject")];
const ROOTS: [&str; 3] = ["/v3", "/v3/clusters/{cluster}", "/v3/projects/{project}"];

async fn document(users: &Users) -> Value {
    users.must(200, "GET", "/v3/openapi.json", &Value::Null).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_path_of_the_openapi_document_is_served() {
    let users = Users::start().await;
    let project = users.project("one").await;
    let document = document(&users).await;
    let (mut lists, mut resources) = (0, 0);
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.replace("{cluster}", CLUSTER).replace("{project}", &project);
        if !path.contains("{id}") {
            if item.get("get").is_some() {
                let list = users.must(200, "GET", &path, &Value::Null).await;
                assert_eq!(list["type"], "collection", "{path}");
                lists += 1;
            }
            continue;
        }
        // No object has this id, but methods and types are refused before the lookup.
        let path = path.replace("{id}", "none");
        for method in ["get", "put", "delete"] {
            let method_name = method.to_uppercase();
            let (_, response) = users.request(OWNER, &method_name, &path, &Value::Null).await;
            let is_refused = response["code"] == "MethodNotAllow";
            assert_eq!(is_refused, item.get(method).is_none(), "{method} {path}: {response}");
            let text = response["message"].as_str().unwrap_or_default();
            assert!(!text.starts_with("failed to find schema"), "{method} {path}: {response}");
        }
        resources += 1;
    }
    println!("{lists} lists, {resources} resources");
    assert!(lists > 100 && resources > 90, "{lists} lists, {resources} resources");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_openapi_document_has_the_content_of_the_schemas_and_no_more() {
    let users = Users::start().await;
    let document = document(&users).await;
    let (mut types, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for ((version, prefix), root) in VERSIONS.into_iter().zip(ROOTS) {
        let list = users.must(200, "GET", &format!("{version}/schemas"), &Value::Null).await;
        for schema in list["data"].as_array().unwrap() {
            let name = format!("{prefix}{}", capitalised(schema["id"].as_str().unwrap()));
            let known = properties(&document, &name);
            for (field, says) in schema["resourceFields"].as_object().unwrap() {
                let property = &known[field.as_str()];
                assert!(property.is_object(), "{name} lacks {field}");
                if OF_EVERY_RESOURCE.contains(&field.as_str()) {
                    continue;
                }
                let fixed = says["create"] == false && says["update"] == false;
                assert_eq!(property["readOnly"] == true, fixed, "{name}.{field}");
            }
            let plural = schema["pluralName"].as_str().unwrap();
            let collection = format!("{root}/{plural}");
            let resource = format!("{collection}/{{id}}");
            for (path, methods, actions) in [
                (&collection, "collectionMethods", "collectionActions"),
                (&resource, "resourceMethods", "resourceActions"),
            ] {
                check_operations(&document, path, &schema[methods], &schema[actions]);
                paths.insert(path.clone());
            }
            check_filters(&document, &collection, &schema["collectionFilters"]);
            assert!(types.insert(name.clone()), "two types are {name}");
        }
    }
    let beside = ["Resource", "Collection", "Pagination", "Error"];
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        let of = |end: &str| name.strip_suffix(end).is_some_and(|name| types.contains(name));
        let known = types.contains(name) || beside.contains(&name.as_str());
        assert!(known || of("Create") || of("Collection"), "{name} is in no list of schemas");
        assert!(!(types.contains(name) && (of("Create") || of("Collection"))), "{name} is two");
    }
    let cookie = &document["components"]["securitySchemes"]["session"]["name"];
    assert_eq!(cookie, identity::credential::COOKIE_NAME);
}

fn capitalised(id: &str) -> String {
    format!("{}{}", id[..1].to_uppercase(), &id[1..])
}

/// Whether a type has the fields of all resources, or is an embedded type.
fn properties(document: &Value, name: &str) -> Map<String, Value> {
    let schemas = &document["components"]["schemas"];
    let own = &schemas[name];
    let Some(parts) = own["allOf"].as_array() else {
        return own["properties"].as_object().unwrap_or_else(|| panic!("no {name}")).clone();
    };
    let mut found = schemas["Resource"]["properties"].as_object().unwrap().clone();
    found.extend(parts[1]["properties"].as_object().unwrap().clone());
    found
}

fn check_operations(document: &Value, path: &str, methods: &Value, actions: &Value) {
    let item = &document["paths"][path];
    let has = |method: &str| methods.as_array().unwrap().iter().any(|known| known == method);
    for method in ["GET", "POST", "PUT", "DELETE"] {
        let acts = method == "POST" && actions.as_object().is_some_and(|known| !known.is_empty());
        let there = item.get(method.to_lowercase()).is_some();
        assert_eq!(there, has(method) || acts, "{method} {path}");
    }
    let known: BTreeSet<&str> = actions.as_object().unwrap().keys().map(String::as_str).collect();
    if known.is_empty() {
        return;
    }
    let action = &item["post"]["parameters"][0];
    assert_eq!((&action["name"], action["required"] == true), (&"action".into(), !has("POST")));
    let offered = action["schema"]["enum"].as_array().unwrap().iter().filter_map(Value::as_str);
    assert_eq!(offered.collect::<BTreeSet<_>>(), known, "{path}");
}

fn check_filters(document: &Value, path: &str, filters: &Value) {
    let Some(parameters) = document["paths"][path]["get"]["parameters"].as_array() else { return };
    let names: BTreeSet<&str> = parameters
        .iter()
        .map(|parameter| document.pointer(&parameter["$ref"].as_str().unwrap()[1..]).unwrap())
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), parameters.len(), "{path} has parameters of one name");
    for (field, filter) in filters.as_object().unwrap() {
        for modifier in filter["modifiers"].as_array().unwrap() {
            let name = match modifier.as_str().unwrap() {
                "eq" => field.clone(),
                modifier => format!("{field}_{modifier}"),
            };
            assert!(names.contains(name.as_str()), "{path} lacks the filter {name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_committed_openapi_document_is_the_one_served_and_can_be_parsed() {
    let users = Users::start().await;
    let served = document(&users).await;
    assert!(encoded(&served) > 100_000);
    let public = users.must(200, "GET", "/v3-public/openapi.json", &Value::Null).await;
    assert!(public["paths"].get("/v3-public/localProviders/{id}").is_some(), "{public}");
    encoded(&public);
    names_differ(&served);
    references_lead_somewhere(&served, &served);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(COMMITTED);
    if std::env::var_os(RENEW).is_some() {
        let text = serde_saphyr::to_string(&served).unwrap();
        return std::fs::write(&file, format!("{HEAD}{text}")).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let committed: Option<Value> = serde_saphyr::from_str(&committed).ok();
    assert!(
        committed.as_ref() == Some(&served),
        "{COMMITTED} is not what is served: run `cargo xtask openapi` and look at the difference"
    );
}

/// Length of gnostic's output for it. gnostic refuses everything that the version does not define.
fn encoded(document: &Value) -> usize {
    let mut go = Command::new(Binaries::locate().path(Program::GoClient).unwrap());
    let mut go = go.arg("gnostic").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = go.stdin.take().unwrap();
    // It parses YAML, in which these characters have another meaning.
    let mut text = String::new();
    for character in document.to_string().chars() {
        match u32::from(character) {
            code @ 0x7f..=0xffff => write!(text, "\\u{code:04x}").unwrap(),
            _ => text.push(character),
        }
    }
    let feed = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = go.wait_with_output().unwrap();
    feed.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", output.status);
    output.stdout.len()
}

fn references_lead_somewhere(document: &Value, part: &Value) {
    if let Some(target) = part["$ref"].as_str() {
        assert!(document.pointer(&target[1..]).is_some(), "{target} leads nowhere");
    }
    let inner = part.as_object().into_iter().flat_map(Map::values);
    let inner = inner.chain(part.as_array().into_iter().flatten());
    inner.for_each(|inner| references_lead_somewhere(document, inner));
}

/// The parts that generators turn into functions and arguments.
fn names_differ(document: &Value) {
    let mut seen = BTreeSet::new();
    let name = |parameter: &Value| {
        let target = parameter["$ref"].as_str().map(|target| &target[1..]);
        let parameter = target.map_or(Some(parameter), |target| document.pointer(target));
        parameter.unwrap()["name"].as_str().unwrap().to_owned()
    };
    for (path, item) in document["paths"].as_object().unwrap() {
        let list = |of: &Value| of["parameters"].as_array().cloned().unwrap_or_default();
        for operation in item.as_object().unwrap().values().filter(|part| part.is_object()) {
            let all = [list(item), list(operation)].concat();
            let names: BTreeSet<String> = all.iter().map(name).collect();
            assert_eq!(names.len(), all.len(), "{path} has two parameters of one name");
        }
        let operations = item.as_object().unwrap().values();
        for id in operations.filter_map(|operation| operation["operationId"].as_str()) {
            assert!(seen.insert(id), "two operations are {id}");
        }
    }
}
