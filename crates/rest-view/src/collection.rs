//! The wire form of resources and collections: default links and actions, the envelope of lists.

use serde_json::{Map, Value, json};

use crate::context::{Context, Presentation};
use crate::descriptor::{Descriptor, Resource};
use crate::mapping;
use crate::query::{ListQuery, PageUrl};
use crate::state::summarise;

/// A stored object as the caller sees it, formatter and all.
pub(crate) fn resource(
    context: &Presentation<'_>,
    descriptor: &Descriptor,
    stored: &Value,
    reveal: bool,
) -> Resource {
    let mut fields = mapping::to_view(descriptor, context.registry, stored, reveal);
    if descriptor.has_state {
        let summary = summarise(stored, context.now);
        fields.insert("state".to_owned(), summary.state.into());
        fields.insert("transitioning".to_owned(), summary.transitioning.as_str().into());
        fields.insert("transitioningMessage".to_owned(), summary.message.into());
    }
    let id = id_of(descriptor, stored);
    let mut resource = Resource { id, fields, ..Resource::default() };
    add_links(context, descriptor, &mut resource);
    add_actions(context, descriptor, stored, &mut resource);
    if let Some(formatter) = &descriptor.formatter {
        formatter.format(context, stored, &mut resource);
    }
    resource
}

/// `name`, or `namespace:name`.
pub(crate) fn id_of(descriptor: &Descriptor, stored: &Value) -> String {
    let text = |field: &str| stored["metadata"][field].as_str().unwrap_or_default();
    if descriptor.namespaced {
        format!("{}:{}", text("namespace"), text("name"))
    } else {
        text("name").to_owned()
    }
}

fn add_links(context: &Presentation<'_>, descriptor: &Descriptor, resource: &mut Resource) {
    let own = context.urls.resource(descriptor, &resource.id);
    let methods = descriptor.methods;
    for (name, on) in [("update", methods.update), ("remove", methods.delete)] {
        if on {
            resource.links.insert(name.to_owned(), own.clone());
        }
    }
    let registry = context.registry;
    let sub_context = registry.version_inside(&descriptor.version, &descriptor.id);
    for other in registry.descriptors_of(&descriptor.version).filter(|d| d.methods.list) {
        let mut fields = other.references_to(&descriptor.id).filter(|name| *name != "creatorId");
        let Some(field) = fields.next() else { continue };
        let target = if sub_context.is_some() {
            format!("{own}/{}", other.plural.to_lowercase())
        } else {
            let collection = context.urls.path(&format!("{}/{}", other.version, other.plural));
            format!("{collection}?{field}={}", crate::urls::encode(&resource.id))
        };
        resource.links.insert(other.plural.clone(), target);
    }
    if let Some(version) = sub_context {
        for inner in registry.descriptors_of(&version.path).filter(|d| d.methods.list) {
            let target = format!("{own}/{}", inner.plural.to_lowercase());
            resource.links.insert(inner.plural.clone(), target);
        }
    }
    resource.links.insert("self".to_owned(), own);
}

fn add_actions(
    context: &Presentation<'_>,
    descriptor: &Descriptor,
    stored: &Value,
    resource: &mut Resource,
) {
    let own = context.urls.resource(descriptor, &resource.id);
    for action in &descriptor.actions {
        if action.is_available(stored, context.caller) {
            let url = context.urls.action(&own, &action.name);
            resource.actions.insert(action.name.clone(), url);
        }
    }
}

/// The resource as JSON. The caller may ask for `actionLinks` in place of `actions`.
pub(crate) fn to_json(
    context: &Presentation<'_>,
    descriptor: &Descriptor,
    resource: Resource,
) -> Value {
    let mut out = resource.fields;
    out.insert("id".to_owned(), resource.id.into());
    let shown_type = resource.subtype.unwrap_or_else(|| descriptor.id.clone());
    out.insert("type".to_owned(), shown_type.into());
    out.insert("baseType".to_owned(), descriptor.base_type().into());
    out.insert("links".to_owned(), json!(resource.links));
    let actions = if context.action_links { "actionLinks" } else { "actions" };
    out.insert(actions.to_owned(), json!(resource.actions));
    Value::Object(out)
}

/// Filters, sorts and cuts; the result is the collection's JSON.
pub(crate) fn collection(
    context: &Context<'_>,
    descriptor: &Descriptor,
    query: &ListQuery,
    self_url: &str,
    stored: &[Value],
) -> Value {
    let mut found: Vec<Resource> = stored
        .iter()
        .map(|object| resource(context, descriptor, object, false))
        .filter(|resource| query.matches(descriptor, &resource.fields))
        .collect();
    found.sort_by(|a, b| query.compare((&a.id, &a.fields), (&b.id, &b.fields)));
    let url = PageUrl { url: self_url, pairs: context.query };
    let ids: Vec<&str> = found.iter().map(|resource| resource.id.as_str()).collect();
    let pagination = query.pagination(&url, &ids);
    let (start, end) = query.page(&ids);
    let page = found.drain(start..end).map(|r| to_json(context, descriptor, r)).collect();

    let mut out = envelope(&descriptor.id, self_url, page);
    out.insert("pagination".to_owned(), pagination);
    out.insert("sort".to_owned(), query.sort_links(descriptor, &url));
    out.insert("filters".to_owned(), query.filters_shown(descriptor));
    let own = context.urls.collection(descriptor);
    if descriptor.methods.create {
        out.insert("createTypes".to_owned(), json!({ &descriptor.id: own }));
    }
    let actions = descriptor.collection_actions.iter();
    let actions: Map<String, Value> = actions
        .map(|action| (action.name.clone(), context.urls.action(&own, &action.name).into()))
        .collect();
    out.insert("actions".to_owned(), actions.into());
    Value::Object(out)
}

/// A collection of anything.
pub(crate) fn envelope(
    resource_type: &str,
    self_url: &str,
    data: Vec<Value>,
) -> Map<String, Value> {
    let body = json!({
        "type": "collection",
        "resourceType": resource_type,
        "links": {"self": self_url},
        "data": data,
    });
    match body {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
