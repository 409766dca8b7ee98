//! One object as the view shows it. Pure.

use jiff::Timestamp;
use rest_view::state::{Transitioning, summarise};
use rest_view::urls::encode;
use rest_view::{Key, MayChange, Presentation};
use serde_json::{Map, Value, json};

use crate::kinds::{Kinds, ServedKind};
use crate::path::Place;
use crate::schema::collection_url;

/// Fields of the view. An object's own fields of these names are shown with a `_` before them.
pub const OWN_FIELDS: [&str; 4] = ["id", "type", "links", "actions"];
/// The type whose state is a cell: what `kubectl get` prints.
const POD: &str = "pod";
/// The cell `STATUS` of a pod.
const POD_STATUS: usize = 2;

/// `namespace/name`, or `name` without a namespace.
pub fn id_of(key: &Key) -> String {
    match key.namespace.as_str() {
        "" => key.name.clone(),
        namespace => format!("{namespace}/{}", key.name),
    }
}

/// The object with its id, links and state.
pub fn present(
    presentation: &Presentation<'_>,
    place: &Place,
    kind: &ServedKind,
    stored: Value,
    may: MayChange,
) -> Value {
    let key = Key::of(&stored);
    let id = id_of(&key);
    let urls = presentation.urls;
    let segments: Vec<String> = id.split('/').map(encode).collect();
    let own = format!("{}/{}", collection_url(place, urls, kind), segments.join("/"));
    let view = format!("{}{}", place.api_root(), kind.resource.object_path(&key));
    let mut links = Map::from_iter([
        ("self".to_owned(), Value::from(own.clone())),
        ("view".to_owned(), urls.path(&view).into()),
    ]);
    for (link, is_allowed) in [("update", may.update), ("remove", may.delete)] {
        if is_allowed {
            links.insert(link.to_owned(), own.clone().into());
        }
    }
    let mut shown = Map::from_iter([
        ("id".to_owned(), Value::from(id)),
        ("type".to_owned(), kind.id().into()),
        ("links".to_owned(), links.into()),
    ]);
    let state = state(presentation.now, kind, &stored);
    let Value::Object(fields) = stored else { return shown.into() };
    for (name, value) in fields {
        let is_own = OWN_FIELDS.contains(&name.as_str());
        shown.insert(if is_own { format!("_{name}") } else { name }, value);
    }
    let mut shown = Value::Object(shown);
    let relationships = relationships(&shown, &key.namespace);
    if let Some(Value::Object(metadata)) = shown.get_mut("metadata") {
        metadata.insert("state".to_owned(), state);
        metadata.insert("relationships".to_owned(), relationships);
    }
    explain_conditions(&mut shown);
    shown
}

fn state(now: Timestamp, kind: &ServedKind, stored: &Value) -> Value {
    let summary = summarise(stored, now);
    let printed = stored["metadata"]["fields"][POD_STATUS].as_str().filter(|_| kind.id() == POD);
    let name = printed.map_or(summary.state, str::to_lowercase);
    json!({
        "name": name,
        "error": summary.transitioning == Transitioning::Error,
        "transitioning": summary.transitioning == Transitioning::Yes,
        "message": summary.message,
    })
}

/// What owns the object.
fn relationships(object: &Value, namespace: &str) -> Value {
    let owners = object["metadata"]["ownerReferences"].as_array().map(Vec::as_slice);
    let owner = |owner: &Value| {
        let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
        let key = Key { namespace: namespace.to_owned(), name: text("name") };
        json!({
            "fromId": id_of(&key), "rel": "owner",
            "fromType": Kinds::id_of(&text("apiVersion"), &text("kind")),
        })
    };
    owners.map_or(Value::Null, |owners| owners.iter().map(owner).collect())
}

/// Says of each condition whether it is an error or in progress, as clients read it.
fn explain_conditions(object: &mut Value) {
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        let is = |field: &str, value: &str| condition.get(field).is_some_and(|it| it == value);
        let is_error = is("status", "False") && is("reason", "Error");
        let is_transitioning = is("status", "Unknown");
        let changed = condition.get("lastTransitionTime").cloned().unwrap_or_default();
        condition.entry("lastUpdateTime").or_insert(changed);
        condition.insert("error".to_owned(), is_error.into());
        condition.insert("transitioning".to_owned(), is_transitioning.into());
    }
}

/// An object of a request body as the Kubernetes API takes it: without the fields of the view, with
/// those that they displaced.
pub fn stored_from(mut body: Map<String, Value>, kind: &ServedKind) -> Value {
    let displaced = OWN_FIELDS.map(|name| (name, body.remove(&format!("_{name}"))));
    // Clients that know the Kubernetes API send its `type`, others the type of the view.
    let is_of_view = body.get("type").and_then(Value::as_str).is_some_and(|text| {
        text.eq_ignore_ascii_case(&kind.id()) || text.eq_ignore_ascii_case(&kind.plural())
    });
    let own_type = body.remove("type").filter(|_| !is_of_view);
    OWN_FIELDS.iter().for_each(|name| drop(body.remove(*name)));
    for (name, value) in displaced {
        let value = if name == "type" { value.or_else(|| own_type.clone()) } else { value };
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    }
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        let added = ["cluster", "fields", "relationships", "state"];
        added.iter().for_each(|name| drop(metadata.remove(*name)));
    }
    body.insert("apiVersion".to_owned(), kind.resource.api_version().into());
    body.insert("kind".to_owned(), kind.resource.kind.clone().into());
    body.into()
}

#[cfg(test)]
mod tests {
    use rest_view::{Caller, Registry, Urls};

    use super::*;

    fn kind(plural: &str, name: &str) -> ServedKind {
        let mut kinds = Kinds::default();
        let list = json!({"resources": [
            {"name": plural, "kind": name, "namespaced": true, "verbs": ["get"]}]});
        kinds.add_listed("", "v1", &list);
        kinds.find(plural).unwrap().clone()
    }

    fn shown(place: &Place, kind: &ServedKind, stored: Value, may: MayChange) -> Value {
        let (caller, urls) = (Caller::user("u"), Urls::new("https://drover.example"));
        let registry = Registry::new([], []);
        let now = "2026-11-27T10:00:00Z".parse().unwrap();
        let presentation = Presentation {
            caller: &caller,
            urls: &urls,
            registry: &registry,
            now,
            action_links: false,
        };
        present(&presentation, place, kind, stored, may)
    }

    #[test]
    fn an_object_has_an_id_links_and_a_state() {
        let stored = json!({"kind": "Secret", "type": "Opaque",
            "metadata": {"name": "a", "namespace": "web", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}]}});
        let place = Place::Cluster("c-abcde".into());
        let read_only = shown(&place, &kind("secrets", "Secret"), stored.clone(), MayChange::NONE);
        let own = "https://drover.example/k8s/clusters/c-abcde/v1/secrets/web/a";
        let view = "https://drover.example/k8s/clusters/c-abcde/api/v1/namespaces/web/secrets/a";
        assert_eq!(read_only["links"], json!({"self": own, "view": view}));
        assert_eq!((&read_only["id"], &read_only["type"]), (&json!("web/a"), &json!("secret")));
        assert_eq!(read_only["_type"], "Opaque");
        assert_eq!(read_only["metadata"]["state"]["name"], "active");
        let owner = json!([{"fromId": "web/d", "fromType": "apps.deployment", "rel": "owner"}]);
        assert_eq!(read_only["metadata"]["relationships"], owner);
        let all = shown(&Place::Management, &kind("secrets", "Secret"), stored, MayChange::ALL);
        assert_eq!(all["links"]["remove"], "https://drover.example/v1/secrets/web/a");
    }

    #[test]
    fn conditions_say_whether_they_are_errors() {
        let stored = json!({"metadata": {"name": "a"}, "status": {"conditions": [
            {"type": "Ready", "status": "Unknown", "lastTransitionTime": "then"},
            {"type": "Done", "status": "False", "reason": "Error", "lastUpdateTime": "now"}]}});
        let pods = kind("pods", "Pod");
        let shown = shown(&Place::Management, &pods, stored, MayChange::NONE);
        let conditions = &shown["status"]["conditions"];
        assert_eq!(conditions[0]["lastUpdateTime"], "then");
        assert_eq!(
            (&conditions[0]["transitioning"], &conditions[0]["error"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(
            (&conditions[1]["lastUpdateTime"], &conditions[1]["error"]),
            (&json!("now"), &json!(true))
        );
    }

    #[test]
    fn an_object_of_another_shape_is_shown_as_it_is() {
        let pods = kind("pods", "Pod");
        for stored in [json!({"metadata": "m", "status": "s"}), json!({"status": []}), json!({})] {
            let shown = shown(&Place::Management, &pods, stored.clone(), MayChange::NONE);
            assert_eq!((&shown["status"], &shown["type"]), (&stored["status"], &json!("pod")));
        }
    }

    #[test]
    fn a_pod_is_in_the_state_that_is_printed() {
        let stored = json!({"metadata": {"name": "a", "namespace": "web",
            "fields": ["a", "0/1", "CrashLoopBackOff"]}, "status": {"phase": "Running"}});
        let pod = shown(&Place::Management, &kind("pods", "Pod"), stored, MayChange::NONE);
        assert_eq!(pod["metadata"]["state"]["name"], "crashloopbackoff");
    }

    #[test]
    fn what_is_shown_can_be_sent_back() {
        let secret = kind("secrets", "Secret");
        let stored = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "a", "namespace": "web"}, "data": {"k": "dg=="}});
        let shown = shown(&Place::Management, &secret, stored.clone(), MayChange::ALL);
        let Value::Object(body) = shown else { unreachable!() };
        assert_eq!(stored_from(body, &secret), stored);
    }

    #[test]
    fn a_body_may_have_the_type_of_the_view_or_that_of_kubernetes() {
        let secret = kind("secrets", "Secret");
        let of = |body: Value| {
            let Value::Object(body) = body else { unreachable!() };
            stored_from(body, &secret)["type"].clone()
        };
        assert_eq!(of(json!({"type": "secret"})), Value::Null);
        assert_eq!(of(json!({"type": "kubernetes.io/tls"})), "kubernetes.io/tls");
        assert_eq!(of(json!({"type": "secret", "_type": "Opaque"})), "Opaque");
        assert_eq!(of(json!({"type": "Opaque", "_type": "Opaque"})), "Opaque");
    }
}
