//! Where pods may run: the view has node selectors and node affinity as lists of texts.
//!
//! What must hold in every case (`requireAll`) comes from the node selector and from affinity with
//! a single term; several terms, of which one must hold, are `requireAny`; preferences go by
//! weight.

use rest_view::ApiError;
use serde_json::{Map, Value, json};

use super::expressions::{AND, expressions, texts};
use crate::workload::path::{object, read_keys, remove_keys, write_keys};

const FIELD: &str = "node";
const AFFINITY: [&str; 2] = ["affinity", "nodeAffinity"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const TERMS: &str = "nodeSelectorTerms";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// The weights of preferences are counted down from here, in order, and end at one.
const WEIGHT_MAX: usize = 100;

/// What the view says of nodes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Nodes {
    node: Option<String>,
    /// From the node selector, key and value beside the text.
    selected: Vec<(String, String)>,
    all: Vec<String>,
    any: Vec<String>,
    preferred: Vec<String>,
}

impl Nodes {
    fn of(spec: &Value) -> Self {
        let terms = required(spec);
        let said: Vec<Vec<String>> =
            terms.iter().map(texts).filter(|texts| !texts.is_empty()).collect();
        let (all, any) = match said.as_slice() {
            [only] => (only.clone(), Vec::new()),
            several => (Vec::new(), several.iter().map(|texts| texts.join(AND)).collect()),
        };
        let mut preferred = preferences(spec);
        preferred.sort_by_key(|term| -term.get("weight").and_then(Value::as_i64).unwrap_or(0));
        Self {
            node: read_keys(spec, &["nodeName"]).and_then(Value::as_str).map(str::to_owned),
            selected: selector(spec),
            all,
            any,
            preferred: preferred.iter().map(preference).collect(),
        }
    }
    fn require_all(&self) -> Vec<String> {
        self.selected.iter().map(|(_, text)| text).chain(&self.all).cloned().collect()
    }
}

/// Adds where pods may run to the view of a pod template.
pub fn get(spec: &Value, view: &mut Map<String, Value>) {
    let nodes = Nodes::of(spec);
    let mut out = Map::new();
    if let Some(node) = &nodes.node {
        out.insert("nodeId".to_owned(), node.as_str().into());
    }
    let lists = [
        ("requireAll", nodes.require_all()),
        ("requireAny", nodes.any),
        ("preferred", nodes.preferred),
    ];
    for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        out.insert(key.to_owned(), list.into());
    }
    if !out.is_empty() {
        view.insert(FIELD.to_owned(), out.into());
    }
}

/// Writes where pods may run into `spec`. Unchanged if the view equals `before`, the view of the
/// stored object.
///
/// # Errors
/// A field is of another type.
pub fn put(
    before: Option<&Map<String, Value>>,
    view: &Map<String, Value>,
    spec: &mut Value,
) -> Result<(), ApiError> {
    let node = match view.get(FIELD) {
        None | Some(Value::Null) => &Value::Null,
        Some(node @ Value::Object(_)) => node,
        Some(_) => return Err(wrong(FIELD, "nodeScheduling")),
    };
    if before.and_then(|before| before.get(FIELD)).unwrap_or(&Value::Null) == node {
        return Ok(());
    }
    let old = Nodes::of(spec);
    match node.get("nodeId") {
        Some(Value::String(id)) if !id.is_empty() => {
            write_keys(spec, &["nodeName"], id.as_str().into());
        }
        None | Some(Value::Null | Value::String(_)) if old.node.is_some() => {
            remove_keys(spec, &["nodeName"]);
        }
        None | Some(Value::Null | Value::String(_)) => {}
        Some(_) => return Err(wrong("nodeId", "reference[node]")),
    }
    let mut all = strings(node, "requireAll")?;
    let (any, preferred) = (strings(node, "requireAny")?, strings(node, "preferred")?);
    for (key, text) in &old.selected {
        match all.iter().position(|known| known == text) {
            Some(at) => drop(all.remove(at)),
            None => remove_label(spec, key),
        }
    }
    if (&all, &any) != (&old.all, &old.any) {
        put_required(spec, &all, &any);
    }
    if preferred != old.preferred {
        put_preferred(spec, &preferred);
    }
    Ok(())
}

fn put_required(spec: &mut Value, all: &[String], any: &[String]) {
    let old = required(spec);
    let of_texts = |required: &[String]| {
        let same = |term: &&Value| texts(term).join(AND) == required.join(AND);
        old.iter().find(same).cloned().unwrap_or_else(|| term(required))
    };
    let mut terms: Vec<Value> = match (all, any) {
        ([], []) => Vec::new(),
        (all, []) => vec![of_texts(all)],
        // One of several must hold, and with it what must hold in every case.
        (all, any) => {
            any.iter().map(|one| of_texts(&[std::slice::from_ref(one), all].concat())).collect()
        }
    };
    terms.extend(old.iter().filter(|term| texts(term).is_empty()).cloned());
    let way = [AFFINITY[0], AFFINITY[1], REQUIRED, TERMS];
    match terms.is_empty() {
        // Without terms there must be no requirement at all: it would hold nowhere.
        true => remove_keys(spec, &way[..3]),
        false => write_keys(spec, &way, terms.into()),
    }
}

fn put_preferred(spec: &mut Value, preferred: &[String]) {
    let old = preferences(spec);
    let weighted = preferred.iter().enumerate().map(|(at, text)| {
        let weight = WEIGHT_MAX.saturating_sub(at).max(1);
        let same = |term: &&Value| preference(term) == *text;
        let known = old.iter().find(same).and_then(|term| term.get("preference")).cloned();
        let preference = known.unwrap_or_else(|| term(std::slice::from_ref(text)));
        json!({"weight": weight, "preference": preference})
    });
    let terms: Vec<Value> = weighted.collect();
    let way = [AFFINITY[0], AFFINITY[1], PREFERRED];
    match terms.is_empty() {
        true => remove_keys(spec, &way),
        false => write_keys(spec, &way, terms.into()),
    }
}

fn term(texts: &[String]) -> Value {
    let all: Vec<Value> = texts.iter().flat_map(|text| expressions(text)).collect();
    json!({"matchExpressions": all})
}

fn required(spec: &Value) -> Vec<Value> {
    list(spec, &[AFFINITY[0], AFFINITY[1], REQUIRED, TERMS])
}

fn preferences(spec: &Value) -> Vec<Value> {
    list(spec, &[AFFINITY[0], AFFINITY[1], PREFERRED])
}

fn preference(term: &Value) -> String {
    term.get("preference").map(texts).unwrap_or_default().join(AND)
}

fn list(spec: &Value, way: &[&str]) -> Vec<Value> {
    read_keys(spec, way).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Keys of the node selector with their texts.
fn selector(spec: &Value) -> Vec<(String, String)> {
    let map = read_keys(spec, &["nodeSelector"]).and_then(Value::as_object);
    let labels = map.into_iter().flatten().map(|(key, value)| match value.as_str() {
        None | Some("") => (key.clone(), key.clone()),
        Some(value) => (key.clone(), format!("{key} = {value}")),
    });
    labels.collect()
}

fn remove_label(spec: &mut Value, key: &str) {
    let map = object(spec);
    let left = map.get_mut("nodeSelector").and_then(Value::as_object_mut).map(|labels| {
        labels.remove(key);
        labels.len()
    });
    if left == Some(0) {
        map.remove("nodeSelector");
    }
}

fn strings(node: &Value, key: &str) -> Result<Vec<String>, ApiError> {
    let items = match node.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(wrong(key, "array[string]")),
    };
    let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
    texts.collect::<Option<_>>().ok_or_else(|| wrong(key, "array[string]"))
}

fn wrong(field: &str, kind: &str) -> ApiError {
    let text = format!("field \"{field}\" must be of type {kind}");
    ApiError::invalid_field("InvalidFormat", field, text)
}
