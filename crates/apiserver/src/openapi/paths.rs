//! The paths of the documents, with their operations. kubectl finds in them which query parameters
//! PATCH of a kind accepts.

use serde_json::{Map, Value, json};

use crate::body::negotiate::Typed;
use crate::resource::{Resource, Subresource, SubresourceHandler};
use crate::schemas::{self, definition_name, gvk, meta, reference};

const PLAIN_PATCHES: [&str; 2] = ["application/json-patch+json", "application/merge-patch+json"];
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// The root path of a version: `/api/v1` or `/apis/<group>/<version>`.
pub fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// All paths of a resource, by path.
pub fn resource_paths(resource: &Resource) -> Map<String, Value> {
    let root = root(&resource.group, &resource.version);
    let plural = &resource.plural;
    let home = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let mut paths = Map::new();
    let collection = [("get", "list"), ("post", "create"), ("delete", "deletecollection")];
    let item = [("get", "get"), ("put", "update"), ("delete", "delete"), ("patch", "patch")];
    let scope = PathScope { resource, sub: None, namespaced: resource.namespaced };
    insert(&mut paths, format!("{root}{home}/{plural}"), &scope, &collection, false);
    insert(&mut paths, format!("{root}{home}/{plural}/{{name}}"), &scope, &item, true);
    if resource.namespaced {
        let all = PathScope { namespaced: false, ..scope };
        let list = [("get", "list")];
        insert(&mut paths, format!("{root}/{plural}"), &all, &list, false);
    }
    let methods = [("get", "get"), ("post", "create"), ("put", "update"), ("patch", "patch")];
    // Connections have no body that a definition describes.
    let is_described = |sub: &&Subresource| !matches!(sub.handler, SubresourceHandler::Connect);
    for sub in resource.subresources.iter().filter(is_described) {
        let scope = PathScope { resource, sub: Some(sub), namespaced: resource.namespaced };
        let path = format!("{root}{home}/{plural}/{{name}}/{}", sub.name);
        insert(&mut paths, path, &scope, &methods, true);
    }
    paths
}

/// The path of the discovery document of a version, and its item.
pub fn version_path(group: &str, version: &str) -> (String, Value) {
    let list = json!({"schema": reference(&meta("APIResourceList"))});
    let content: Map<String, Value> =
        Typed::Yes.media_types().iter().map(|media| ((*media).to_owned(), list.clone())).collect();
    let operation = json!({
        "tags": [tag(group, version)], "description": "get available resources",
        "operationId": format!("get{}{}APIResources", camel(group), upper_first(version)),
        "responses": {
            "200": {"description": "OK", "content": content},
            "401": {"description": "Unauthorized"},
        },
    });
    (format!("{}/", root(group, version)), json!({"get": operation}))
}

#[derive(Clone, Copy)]
struct PathScope<'a> {
    resource: &'a Resource,
    sub: Option<&'a Subresource>,
    /// The path has a namespace.
    namespaced: bool,
}

impl PathScope<'_> {
    fn verbs(&self) -> &[&'static str] {
        self.sub.map_or(&self.resource.verbs, |sub| &sub.verbs)
    }
    fn kind(&self) -> Value {
        match self.sub.and_then(|sub| sub.gvk) {
            Some((group, version, kind)) if !self.resource.custom => gvk(group, version, kind),
            _ => gvk(&self.resource.group, &self.resource.version, &self.resource.kind),
        }
    }
    /// Name of the definition of the bodies.
    fn body(&self) -> String {
        let other = self.sub.and_then(|sub| sub.gvk);
        match other.map(|(group, version, kind)| schemas::builtin(group, version, kind)) {
            Some(Some(builtin)) => builtin.definition(),
            _ => definition_name(self.resource),
        }
    }
}

fn insert(
    paths: &mut Map<String, Value>,
    path: String,
    scope: &PathScope<'_>,
    methods: &[(&str, &str)],
    named: bool,
) {
    let mut entry = Map::new();
    for (method, verb) in methods.iter().filter(|(_, verb)| scope.verbs().contains(verb)) {
        entry.insert((*method).to_owned(), operation(scope, verb));
    }
    if entry.is_empty() {
        return;
    }
    let mut parameters = Vec::new();
    if named {
        let text = format!("name of the {}", scope.resource.kind);
        parameters.push(path_parameter("name", &text));
    }
    if scope.namespaced {
        parameters.push(path_parameter(
            "namespace",
            "object name and auth scope, such as for teams and projects",
        ));
    }
    parameters.push(query("pretty", "string", "If 'true', then the output is pretty printed."));
    entry.insert("parameters".to_owned(), parameters.into());
    paths.insert(path, Value::Object(entry));
}

fn operation(scope: &PathScope<'_>, verb: &str) -> Value {
    let resource = scope.resource;
    let body = scope.body();
    let (response_type, codes) = match verb {
        "list" => (format!("{body}List"), &["200"][..]),
        "deletecollection" => (meta("Status"), &["200"][..]),
        "delete" => (meta("Status"), &["200", "202"][..]),
        "create" => (body.clone(), &["200", "201", "202"][..]),
        "update" | "patch" => (body.clone(), &["200", "201"][..]),
        _ => (body.clone(), &["200"][..]),
    };
    let mut responses = Map::new();
    for code in codes {
        responses.insert((*code).to_owned(), response(scope, code, &response_type, verb));
    }
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    let action = match verb {
        "create" => "post",
        "update" => "put",
        other => other,
    };
    let mut operation = json!({
        "tags": [tag(&resource.group, &resource.version)],
        "description": description(scope, verb),
        "operationId": operation_id(scope, verb),
        "responses": responses,
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": scope.kind(),
    });
    // Clients that encode the document again omit an empty list.
    let parameters = parameters(verb);
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(request) = request_body(scope, verb, &body) {
        operation["requestBody"] = request;
    }
    operation
}

fn response(scope: &PathScope<'_>, code: &str, response_type: &str, verb: &str) -> Value {
    let typed = Typed::from(scope.resource.has_protobuf(scope.sub));
    let watches = if verb == "list" { typed.watch_media_types() } else { &[] };
    let schema = json!({"schema": reference(response_type)});
    let media = typed.media_types().iter().chain(watches);
    let content: Map<String, Value> =
        media.map(|media| ((*media).to_owned(), schema.clone())).collect();
    let text = match code {
        "200" => "OK",
        "201" => "Created",
        _ => "Accepted",
    };
    json!({"description": text, "content": content})
}

fn request_body(scope: &PathScope<'_>, verb: &str, body: &str) -> Option<Value> {
    let schema = |name: &str| json!({"schema": reference(name)});
    Some(match verb {
        "create" | "update" => json!({"required": true, "content": {"*/*": schema(body)}}),
        "delete" | "deletecollection" => {
            json!({"content": {"*/*": schema(&meta("DeleteOptions"))}})
        }
        "patch" => {
            let strategic = scope.resource.strategy.merge_keys().is_some();
            let is_stored =
                scope.sub.is_none_or(|sub| !matches!(sub.handler, SubresourceHandler::Endpoint(_)));
            let media = PLAIN_PATCHES
                .into_iter()
                .chain(strategic.then_some(STRATEGIC_MERGE_PATCH))
                .chain(is_stored.then_some(APPLY_PATCH));
            let content: Map<String, Value> =
                media.map(|media| (media.to_owned(), schema(&meta("Patch")))).collect();
            json!({"required": true, "content": content})
        }
        _ => return None,
    })
}

fn path_parameter(name: &str, description: &str) -> Value {
    json!({
        "name": name, "in": "path", "description": description, "required": true,
        "schema": {"type": "string", "uniqueItems": true},
    })
}

fn query(name: &str, kind: &str, description: &str) -> Value {
    json!({
        "name": name, "in": "query", "description": description,
        "schema": {"type": kind, "uniqueItems": true},
    })
}

fn parameters(verb: &str) -> Vec<Value> {
    let dry_run =
        || query("dryRun", "string", "'All': process the request completely, but persist nothing.");
    let manager = || query("fieldManager", "string", "Name of the actor that makes this change.");
    let validation = || {
        let text = "What to do about unknown and duplicate fields: 'Ignore', 'Warn' or 'Strict'.";
        query("fieldValidation", "string", text)
    };
    match verb {
        "create" | "update" => vec![dry_run(), manager(), validation()],
        "patch" => {
            let force = query("force", "boolean", "Take over fields that other managers own.");
            vec![dry_run(), manager(), validation(), force]
        }
        "delete" => [vec![dry_run()], delete_parameters()].concat(),
        "deletecollection" => [vec![dry_run()], delete_parameters(), list_parameters()].concat(),
        "list" => list_parameters(),
        _ => Vec::new(),
    }
}

fn delete_parameters() -> Vec<Value> {
    vec![
        query("gracePeriodSeconds", "integer", "Seconds before the object is deleted; 0 is now."),
        query("orphanDependents", "boolean", "Deprecated: use propagationPolicy."),
        query("propagationPolicy", "string", "'Orphan', 'Background' or 'Foreground'."),
    ]
}

fn list_parameters() -> Vec<Value> {
    vec![
        query("allowWatchBookmarks", "boolean", "Ask for events of type BOOKMARK."),
        query("continue", "string", "Token of the previous page."),
        query("fieldSelector", "string", "Restricts the answer by the objects' fields."),
        query("labelSelector", "string", "Restricts the answer by the objects' labels."),
        query("limit", "integer", "Most objects in one answer."),
        query("resourceVersion", "string", "Constrains which versions may be served."),
        query("resourceVersionMatch", "string", "How resourceVersion is applied to lists."),
        query("sendInitialEvents", "boolean", "Begin a watch with the present objects."),
        query("timeoutSeconds", "integer", "Duration of a list or watch."),
        query("watch", "boolean", "Follow changes instead of listing."),
    ]
}

fn description(scope: &PathScope<'_>, verb: &str) -> String {
    let kind = &scope.resource.kind;
    let part = scope.sub.map(|sub| format!("{} of ", sub.name)).unwrap_or_default();
    let a = if kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
    match verb {
        "list" => format!("list or watch objects of kind {kind}"),
        "deletecollection" => format!("delete collection of {kind}"),
        "create" => format!("create {part}{a} {kind}"),
        "get" => format!("read {part}the specified {kind}"),
        "update" => format!("replace {part}the specified {kind}"),
        "patch" => format!("partially update {part}the specified {kind}"),
        other => format!("{other} {part}{a} {kind}"),
    }
}

fn operation_id(scope: &PathScope<'_>, verb: &str) -> String {
    let resource = scope.resource;
    let of = if verb == "deletecollection" { "Collection" } else { "" };
    let verb = match verb {
        "get" => "read",
        "update" => "replace",
        "deletecollection" => "delete",
        other => other,
    };
    let version_name = format!("{}{}{of}", camel(&resource.group), upper_first(&resource.version));
    let namespaced = if scope.namespaced { "Namespaced" } else { "" };
    let all = if resource.namespaced && !scope.namespaced { "ForAllNamespaces" } else { "" };
    let sub = scope.sub.map(|sub| upper_first(sub.name)).unwrap_or_default();
    format!("{verb}{version_name}{namespaced}{}{sub}{all}", resource.kind)
}

/// `rbac.authorization.k8s.io` → `RbacAuthorization`; the core group is `Core`.
fn camel(group: &str) -> String {
    let name = group.strip_suffix(".k8s.io").unwrap_or(group);
    if name.is_empty() {
        return "Core".to_owned();
    }
    name.split(['.', '-']).map(upper_first).collect()
}

fn upper_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

/// `rbac.authorization.k8s.io`, `v1` → `rbacAuthorization_v1`.
fn tag(group: &str, version: &str) -> String {
    let name = camel(group);
    let (first, rest) = name.split_at(name.len().min(1));
    format!("{}{rest}_{version}", first.to_ascii_lowercase())
}
