//! Operations of collections, resources, their actions and links.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Components, VersionPart, json_content, reference};
use crate::collection::query::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use crate::types::action::Action;
use crate::types::descriptor::Descriptor;
use crate::types::field::{Field, FieldType};
use crate::types::registry::NamedType;

/// Parameters of every list; a filter of this name is left out.
const LIST_PARAMETERS: [&str; 4] = ["limit", "marker", "sort", "order"];

/// One operation, before it becomes JSON.
struct ApiOperation {
    id: String,
    tag: String,
    summary: String,
    description: Option<String>,
    parameters: Vec<Value>,
    body: Option<ApiBody>,
    /// Status code, description, schema.
    responses: Vec<(&'static str, &'static str, Option<Value>)>,
}

struct ApiBody {
    schema: Value,
    required: bool,
}

impl ApiOperation {
    fn into_value(self) -> Value {
        let mut responses = json!({"default": {"$ref": "#/components/responses/Error"}});
        for (code, meaning, schema) in self.responses {
            responses[code] = json!({"description": meaning});
            if let Some(schema) = schema {
                responses[code]["content"] = json_content(schema);
            }
        }
        let mut out = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "responses": responses,
        });
        if let Some(text) = self.description {
            out["description"] = text.into();
        }
        if !self.parameters.is_empty() {
            out["parameters"] = self.parameters.into();
        }
        if let Some(ApiBody { schema, required }) = self.body {
            out["requestBody"] = json!({"content": json_content(schema), "required": required});
        }
        out
    }
}

impl VersionPart<'_> {
    pub(super) fn add_paths(&self, components: &mut Components, paths: &mut Map<String, Value>) {
        for descriptor in self.types() {
            let name = self.name(&descriptor.id);
            let path = format!("{}/{}", self.root, descriptor.plural);
            let collection = self.collection(descriptor, &name, components);
            add(paths, &path, self.around(), collection);
            let id = json!({"$ref": "#/components/parameters/id"});
            let own = [self.around(), vec![id]].concat();
            let path = format!("{path}/{{id}}");
            add(paths, &path, own.clone(), self.resource(descriptor, &name));
            for link in &descriptor.served_links {
                let operation = ApiOperation {
                    id: format!("follow{}Of{name}", super::capitalised(&link.name)),
                    tag: name.clone(),
                    summary: format!("Follows the link `{}` of a resource that has it.", link.name),
                    description: None,
                    parameters: vec![],
                    body: None,
                    responses: vec![("200", "What the link leads to.", Some(json!({})))],
                };
                let path = format!("{path}/{}", link.segment());
                add(paths, &path, own.clone(), vec![("get", operation)]);
            }
        }
    }

    /// Collections of `outer` below a resource of type `parent`, which list the resources that
    /// refer to it. Their resources have no paths here.
    pub(super) fn describe_narrowed(
        &self,
        outer: &VersionPart<'_>,
        parent: &str,
        components: &mut Components,
        paths: &mut Map<String, Value>,
    ) {
        for descriptor in outer.types() {
            let refers = descriptor.references_to(parent).any(|name| name != "creatorId");
            let own = self.registry.find(&self.version.path, &descriptor.plural);
            if !refers || own.is_some() {
                continue;
            }
            let name = outer.name(&descriptor.id);
            let mut operations = outer.collection(descriptor, &name, components);
            // An action does not depend on the resource in the path.
            operations.retain(|(method, _)| *method == "get" || descriptor.methods.create);
            for (method, operation) in &mut operations {
                operation.id.push_str(&self.prefix);
                let what = if *method == "get" { "Lists only what" } else { "What is created" };
                let narrowed = format!("{what} belongs to the `{parent}` of the path.");
                operation.description = match operation.description.take() {
                    Some(text) => Some(format!("{text}\n\n{narrowed}")),
                    None => Some(narrowed),
                };
            }
            let path = format!("{}/{}", self.root, descriptor.plural);
            add(paths, &path, self.around(), operations);
        }
    }

    fn types(&self) -> impl Iterator<Item = &Descriptor> {
        self.ids.iter().filter_map(|id| match self.registry.find_named(&self.version.path, id) {
            Some(NamedType::Type(descriptor)) => Some(descriptor),
            _ => None,
        })
    }

    /// The path parameter of the root, if it has one.
    fn around(&self) -> Vec<Value> {
        let parent = self.version.parent_type.iter();
        let parameter = |parent: &String| {
            json!({
                "name": parent, "in": "path", "required": true,
                "schema": {"type": "string"}, "description": format!("Id of a `{parent}`."),
            })
        };
        parent.map(parameter).collect()
    }

    fn collection(
        &self,
        descriptor: &Descriptor,
        name: &str,
        components: &mut Components,
    ) -> Vec<(&'static str, ApiOperation)> {
        let id = &descriptor.id;
        let mut found = Vec::new();
        if descriptor.methods.list {
            let list = ApiOperation {
                id: format!("list{name}"),
                tag: name.to_owned(),
                summary: format!("Lists resources of type `{id}`."),
                description: None,
                parameters: list_parameters(descriptor, name, &mut components.parameters),
                body: None,
                responses: vec![("200", "A page.", Some(reference(&format!("{name}Collection"))))],
            };
            found.push(("get", list));
        }
        let actions = &descriptor.collection_actions;
        let create = descriptor.methods.create.then(|| reference(&format!("{name}Create")));
        let post = match (create, actions.is_empty()) {
            (None, true) => return found,
            (Some(create), true) => ApiOperation {
                id: format!("create{name}"),
                tag: name.to_owned(),
                summary: format!("Creates a resource of type `{id}`."),
                description: None,
                parameters: vec![],
                body: Some(ApiBody { schema: create, required: true }),
                responses: vec![("201", "Created.", Some(reference(name)))],
            },
            (None, false) => self.act(&format!("actOn{name}Collection"), name, actions, None),
            (Some(create), false) => {
                self.act(&format!("createOrActOn{name}Collection"), name, actions, Some(create))
            }
        };
        found.push(("post", post));
        found
    }

    fn resource(&self, descriptor: &Descriptor, name: &str) -> Vec<(&'static str, ApiOperation)> {
        let (methods, id) = (descriptor.methods, &descriptor.id);
        let operation = |verb: &str, summary: String, responses| ApiOperation {
            id: format!("{verb}{name}"),
            tag: name.to_owned(),
            summary,
            description: None,
            parameters: vec![],
            body: None,
            responses,
        };
        let mut found = Vec::new();
        if methods.get {
            let responses = vec![("200", "The resource.", Some(reference(name)))];
            let summary = format!("Reads a resource of type `{id}`.");
            found.push(("get", operation("get", summary, responses)));
        }
        if methods.update {
            let responses = vec![("200", "As it is now.", Some(reference(name)))];
            let summary = format!("Changes a resource of type `{id}`.");
            let mut update = operation("update", summary, responses);
            update.parameters.push(json!({"$ref": "#/components/parameters/replace"}));
            update.body = Some(ApiBody { schema: reference(name), required: true });
            found.push(("put", update));
        }
        if methods.delete {
            let deleting = ("200", "It is still going.", Some(reference(name)));
            let responses = vec![deleting, ("204", "It is gone.", None)];
            let summary = format!("Deletes a resource of type `{id}`.");
            let mut delete = operation("delete", summary, responses);
            for parameter in ["propagationPolicy", "gracePeriodSeconds"] {
                let target = format!("#/components/parameters/{parameter}");
                delete.parameters.push(json!({"$ref": target}));
            }
            found.push(("delete", delete));
        }
        if !descriptor.actions.is_empty() {
            let act = self.act(&format!("actOn{name}"), name, &descriptor.actions, None);
            found.push(("post", act));
        }
        found
    }

    /// One operation for all actions, and for a create if there is one: only the query
    /// distinguishes them.
    fn act(&self, id: &str, name: &str, actions: &[Action], create: Option<Value>) -> ApiOperation {
        let names: Vec<&str> = actions.iter().map(|action| action.name.as_str()).collect();
        let parameter = json!({
            "name": "action", "in": "query", "required": create.is_none(),
            "schema": {"type": "string", "enum": names},
        });
        let takes = |action: &Action| match &action.input {
            Some(input) => {
                let body = self.input(input);
                let name = body["$ref"].as_str().and_then(|target| target.rsplit('/').next());
                format!("- `{}` takes `{}`", action.name, name.unwrap_or("any object"))
            }
            None => format!("- `{}` needs no body", action.name),
        };
        let responds_with = |action: &Action| match action.output.as_deref() {
            Some("collection") => " and answers a collection.".to_owned(),
            Some(output) => format!(" and answers `{}`.", self.name(output)),
            None => ".".to_owned(),
        };
        let lines = actions.iter().map(|action| takes(action) + &responds_with(action));
        let without = create.iter().map(|_| format!("- Without `action`, creates a `{name}`."));
        let description = without.chain(lines).collect::<Vec<_>>().join("\n");
        let has_create = create.is_some();
        let inputs = actions.iter().filter_map(|action| Some(self.input(action.input.as_ref()?)));
        let outputs = actions.iter().filter_map(|a| Some(self.output(a.output.as_ref()?)));
        let needs_body = actions.iter().all(|action| action.input.is_some());
        let body = any_of(create.into_iter().chain(inputs));
        let mut responses = Vec::new();
        if has_create {
            responses.push(("201", "Created.", Some(reference(name))));
        }
        responses.push(("200", "Done.", any_of(outputs)));
        if actions.iter().any(|action| action.output.is_none()) {
            responses.push(("204", "Done, with nothing to say.", None));
        }
        let summary = match has_create {
            true => "Creates a resource, or runs an action on the collection.",
            false => "Runs an action.",
        };
        ApiOperation {
            id: id.to_owned(),
            tag: name.to_owned(),
            summary: summary.to_owned(),
            description: Some(description),
            parameters: vec![parameter],
            body: body.map(|schema| ApiBody { schema, required: needs_body }),
            responses,
        }
    }
}

/// Each schema once; `None` for none.
fn any_of(schemas: impl Iterator<Item = Value>) -> Option<Value> {
    let mut seen = BTreeSet::new();
    let mut each: Vec<Value> = schemas.filter(|schema| seen.insert(schema.to_string())).collect();
    match each.len() {
        0 => None,
        1 => each.pop(),
        _ => Some(json!({"anyOf": each})),
    }
}

fn add(
    paths: &mut Map<String, Value>,
    path: &str,
    parameters: Vec<Value>,
    operations: Vec<(&'static str, ApiOperation)>,
) {
    if operations.is_empty() {
        return;
    }
    let operations = operations.into_iter();
    let mut item: Map<String, Value> =
        operations.map(|(method, operation)| (method.to_owned(), operation.into_value())).collect();
    if !parameters.is_empty() {
        item.insert("parameters".to_owned(), parameters.into());
    }
    paths.insert(path.to_owned(), item.into());
}

/// References to the parameters of a list. Adds the parameters that are missing.
fn list_parameters(
    descriptor: &Descriptor,
    name: &str,
    parameters: &mut Map<String, Value>,
) -> Vec<Value> {
    let fields: Vec<&Field> = descriptor.filterable().collect();
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let mut keys = ["limit", "marker", "order"].map(str::to_owned).to_vec();
    if !names.is_empty() {
        let key = format!("sort{name}");
        let sort = json!({
            "name": "sort", "in": "query", "schema": {"type": "string", "enum": names},
            "description": "Field to sort by, as text; by id without it.",
        });
        parameters.insert(key.clone(), sort);
        keys.push(key);
    }
    for field in fields {
        for modifier in field.kind.modifiers() {
            let (key, parameter) = filter(field, modifier);
            if !LIST_PARAMETERS.contains(&parameter["name"].as_str().unwrap_or_default()) {
                parameters.insert(key.clone(), parameter);
                keys.push(key);
            }
        }
    }
    let target = |key: String| json!({"$ref": format!("#/components/parameters/{key}")});
    keys.into_iter().map(target).collect()
}

/// The parameter that filters by `field`, and the name of its component. Types share components.
fn filter(field: &Field, modifier: &str) -> (String, Value) {
    let is_boolean = field.kind == FieldType::Boolean;
    // Everything but booleans is compared as text.
    let one = json!({"type": if is_boolean { "boolean" } else { "string" }});
    let parameter = match modifier {
        "eq" => field.name.clone(),
        modifier => format!("{}_{modifier}", field.name),
    };
    let (schema, meaning) = match modifier {
        "eq" => (one, "is this"),
        "ne" => (one, "is not this"),
        "in" => (json!({"type": "array", "items": one}), "is one of these"),
        _ => (json!({"type": "array", "items": one}), "is none of these"),
    };
    let kind = if is_boolean { "filterBoolean" } else { "filter" };
    let description = format!("Only where `{}` {meaning}.", field.name);
    let value = json!({
        "name": parameter, "in": "query", "schema": schema, "description": description,
    });
    (format!("{kind}.{parameter}"), value)
}

/// Those of every version.
pub(super) fn parameters() -> Map<String, Value> {
    let query = |name: &str, schema: Value, description: &str| json!({"name": name, "in": "query", "schema": schema, "description": description});
    let limit = format!(
        "Resources on a page; -1 for as many as there may be. {PAGE_SIZE_DEFAULT} unless asked, \
         {PAGE_SIZE_MAX} at most."
    );
    let text = || json!({"type": "string"});
    Map::from_iter([
        (
            "id".to_owned(),
            json!({
                "name": "id", "in": "path", "required": true, "schema": {"type": "string"},
                "description": "The `id` of the resource.",
            }),
        ),
        ("limit".to_owned(), query("limit", json!({"type": "integer"}), &limit)),
        (
            "marker".to_owned(),
            query(
                "marker",
                text(),
                "Id of the first resource of the page; `pagination` of a page has the address of the next.",
            ),
        ),
        (
            "order".to_owned(),
            query(
                "order",
                json!({"type": "string", "enum": ["asc", "desc"], "default": "asc"}),
                "`desc` reverses the order.",
            ),
        ),
        (
            "replace".to_owned(),
            query(
                "_replace",
                json!({"type": "boolean", "default": false}),
                "Whether what is not sent is removed, where it can be.",
            ),
        ),
        (
            "propagationPolicy".to_owned(),
            query(
                "propagationPolicy",
                json!({"type": "string", "enum": ["Background", "Foreground", "Orphan"]}),
                "What becomes of dependants, in the words of Kubernetes; in the background without it.",
            ),
        ),
        (
            "gracePeriodSeconds".to_owned(),
            query("gracePeriodSeconds", json!({"type": "integer"}), "Time that it has to end."),
        ),
    ])
}
