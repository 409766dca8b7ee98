//! Whole objects in the flattened representation, in both directions. Pure.
//!
//! The flattened object has the object's metadata, each field of the view at the top under its own
//! name, and the object itself as it is stored ([`STORED`]), which the view does not show. The REST
//! view lays input over the flattened form by its own rules; [`put`] then brings what changed back
//! into the object, and leaves all else of it as it was.

use rest_view::ApiError;
use serde_json::{Map, Value};

use super::kind::WorkloadKind;
use super::lens::Lens;
use super::particular::ports;
use super::path::{object, read_keys, remove_keys, write_keys};
use super::pod;
use super::types::{POD_SPEC, Types};

/// Key of the flattened object that holds the stored one.
pub const STORED: &str = "storedObject";
const CONTAINERS: &str = "containers";
const ANNOTATIONS: &str = "annotations";
const METRICS: &str = "workloadMetrics";
/// Annotation of pod templates: where metrics are to be had.
const METRICS_ANNOTATION: &str = "field.cattle.io/workloadMetrics";
/// Keys that are copied as they are; the REST view maps them itself.
const COPIED: [&str; 3] = ["apiVersion", "kind", "projectId"];

/// The flattened representation of a stored object.
pub fn get(types: &Types, kind: WorkloadKind, stored: &Value) -> Value {
    let mut flat = fields(types, kind, stored);
    for key in COPIED {
        flat.extend(stored.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    let metadata = stored.get("metadata").cloned().unwrap_or_else(|| Map::new().into());
    flat.insert("metadata".to_owned(), metadata);
    flat.insert(STORED.to_owned(), stored.clone());
    flat.into()
}

/// The object of a flattened one: the object in [`STORED`] with the changes, or a new one.
///
/// # Errors
/// A field does not have its type, or has a value that cannot be stored.
pub fn put(types: &Types, kind: WorkloadKind, flat: &Value) -> Result<Value, ApiError> {
    let Value::Object(view) = flat else {
        return Err(ApiError::invalid_body("a workload must be an object"));
    };
    let lens = Lens { types, namespace: namespace(flat) };
    let old = view.get(STORED);
    let before = old.map(|old| fields(types, kind, old)).unwrap_or_default();
    let mut view = view.clone();
    let annotations = settle(&lens, kind, flat, &before, &mut view)?;

    let mut out = lens.put(kind.id(), old, &view)?;
    let way = kind.pod_spec();
    let old_spec = old.and_then(|old| read_keys(old, way));
    let spec = lens.put(POD_SPEC, old_spec, &view)?;
    if old_spec.is_some() || spec.as_object().is_some_and(|spec| !spec.is_empty()) {
        write_keys(&mut out, way, spec);
    }
    for (key, text) in annotations {
        match text {
            Some(text) => {
                write_keys(&mut out, &[template(kind), &[ANNOTATIONS, key]].concat(), text)
            }
            None => remove_keys(&mut out, &[template(kind), &[ANNOTATIONS, key]].concat()),
        }
    }
    drop_unused_rolling_update(old, &mut out);
    if let Some(metadata) = view.get("metadata") {
        object(&mut out).insert("metadata".to_owned(), metadata.clone());
    }
    let resource = kind.resource();
    let map = object(&mut out);
    map.insert("apiVersion".to_owned(), resource.api_version().into());
    map.insert("kind".to_owned(), resource.kind.into());
    // The project is not stored: the store adds it.
    map.remove("projectId");
    Ok(out)
}

/// What the view shows of an object, without its metadata.
fn fields(types: &Types, kind: WorkloadKind, stored: &Value) -> Map<String, Value> {
    let lens = Lens { types, namespace: namespace(stored) };
    let mut view = lens.get(kind.id(), stored);
    if let Some(spec) = read_keys(stored, kind.pod_spec()) {
        view.extend(lens.get(POD_SPEC, spec));
    }
    let annotations = read_keys(stored, &[template(kind), &[ANNOTATIONS]].concat());
    if let Some(containers) = view.get_mut(CONTAINERS) {
        ports::annotate(containers, annotations.and_then(|all| all.get(ports::ANNOTATION)));
        if kind == WorkloadKind::Pod {
            pod::show_states(stored.get("status").unwrap_or(&Value::Null), containers);
        }
    }
    let metrics = annotations.and_then(|all| all.get(METRICS_ANNOTATION)).and_then(Value::as_str);
    if let Some(metrics) = metrics.and_then(|text| serde_json::from_str(text).ok()) {
        view.insert(METRICS.to_owned(), metrics);
    }
    if let Some(Value::Object(shown)) = view.get_mut(ANNOTATIONS) {
        shown.retain(|key, _| ![ports::ANNOTATION, METRICS_ANNOTATION].contains(&key.as_str()));
    }
    view
}

type Annotations = Vec<(&'static str, Option<Value>)>;

/// Prepares ports to be stored. Returns the new annotations of the pod template that the view has
/// in other fields.
fn settle(
    lens: &Lens<'_>,
    kind: WorkloadKind,
    flat: &Value,
    before: &Map<String, Value>,
    view: &mut Map<String, Value>,
) -> Result<Annotations, ApiError> {
    for container in view.get_mut(CONTAINERS).and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(container) = container {
            container.retain(|key, _| !pod::STATES.contains(&key.as_str()));
        }
    }
    if kind == WorkloadKind::Pod {
        // A pod has what its template had, and its ports do not change.
        return Ok(Vec::new());
    }
    let old = flat.get(STORED);
    let way = [template(kind), &[ANNOTATIONS]].concat();
    let stored = old.and_then(|old| read_keys(old, &way));
    let kept = |key: &str| stored.and_then(|all| all.get(key)).cloned();
    let mut ports_note = kept(ports::ANNOTATION);
    if let Some(containers) = view.get_mut(CONTAINERS) {
        let shown = before.get(CONTAINERS).unwrap_or(&Value::Null);
        let name = read_keys(flat, &["metadata", "name"]).and_then(Value::as_str);
        if let Some(note) = ports::settle(name.unwrap_or_default(), shown, containers)? {
            ports_note = Some(note.into());
        }
        let plain = old.and_then(|old| read_keys(old, kind.pod_spec()));
        let plain = plain.map(|spec| lens.get(POD_SPEC, spec)).unwrap_or_default();
        unannotate(shown, plain.get(CONTAINERS), containers);
    }
    let metrics = match (before.get(METRICS), view.get(METRICS)) {
        (before, now) if before == now => kept(METRICS_ANNOTATION),
        (_, None | Some(Value::Null)) => None,
        (_, Some(metrics)) => Some(metrics.to_string().into()),
    };
    Ok(vec![(ports::ANNOTATION, ports_note), (METRICS_ANNOTATION, metrics)])
}

/// Ports that did not change get the form that the containers alone have.
fn unannotate(shown: &Value, plain: Option<&Value>, containers: &mut Value) {
    for (at, container) in containers.as_array_mut().into_iter().flatten().enumerate() {
        let Some((at, old)) = ports::partner(shown, at, container) else { continue };
        let ports = plain.and_then(|plain| plain.get(at)).and_then(|plain| plain.get("ports"));
        if let (true, Some(ports)) = (container.get("ports") == old.get("ports"), ports) {
            object(container).insert("ports".to_owned(), ports.clone());
        }
    }
}

/// Removes what belongs to rolling updates when the strategy changes to another one: Kubernetes
/// refuses it.
fn drop_unused_rolling_update(old: Option<&Value>, out: &mut Value) {
    for key in ["strategy", "updateStrategy"] {
        let strategy = read_keys(out, &["spec", key]);
        let changed = strategy != old.and_then(|old| read_keys(old, &["spec", key]));
        let word = strategy.and_then(|s| s.get("type")).and_then(Value::as_str);
        if changed && word.is_some_and(|word| word != "RollingUpdate") {
            remove_keys(out, &["spec", key, "rollingUpdate"]);
        }
    }
}

/// Path of the metadata of the pods of an object.
fn template(kind: WorkloadKind) -> &'static [&'static str] {
    match kind {
        WorkloadKind::Pod => &["metadata"],
        WorkloadKind::CronJob => &["spec", "jobTemplate", "spec", "template", "metadata"],
        _ => &["spec", "template", "metadata"],
    }
}

fn namespace(object: &Value) -> &str {
    read_keys(object, &["metadata", "namespace"]).and_then(Value::as_str).unwrap_or_default()
}
