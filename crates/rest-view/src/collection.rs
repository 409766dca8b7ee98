//! The representation of resources and collections: default links and actions, and the envelope of
//! lists.

pub mod listing;
pub mod query;
pub(crate) mod reduced;

use serde_json::{Map, Value, json};

use crate::collection::listing::Page;
use crate::collection::query::{ListQuery, PageUrl};
use crate::mapping;
use crate::state::summarise;
use crate::types::context::{Context, Presentation};
use crate::types::descriptor::{Descriptor, Resource};
use crate::types::store::Key;

/// A stored object as the caller sees it, after the formatter.
pub(crate) fn resource(
    context: &Presentation<'_>,
    descriptor: &Descriptor,
    stored: &Value,
    reveal: bool,
) -> Resource {
    Showing::new(context, descriptor).resource(stored, reveal)
}

/// Renders objects of one type: what is the same for all of them is computed once.
pub(crate) struct Showing<'a> {
    context: &'a Presentation<'a>,
    descriptor: &'a Descriptor,
    related: Vec<Related<'a>>,
}

/// A link to the resources of another type that belong to the one shown.
struct Related<'a> {
    plural: &'a str,
    target: RelatedTarget<'a>,
}

enum RelatedTarget<'a> {
    /// Below the resource, at this name.
    Below(String),
    /// In the collection of this type, filtered by the field that refers to the resource.
    Referring { other: &'a Descriptor, field: &'a str },
}

impl<'a> Showing<'a> {
    /// Computes the links that all objects of the type have.
    pub fn new(context: &'a Presentation<'a>, descriptor: &'a Descriptor) -> Self {
        Self { context, descriptor, related: related(context, descriptor) }
    }

    /// `reveal`: also fields that are shown only in the reply to a create.
    pub fn resource(&self, stored: &Value, reveal: bool) -> Resource {
        let Self { context, descriptor, .. } = *self;
        let (id, fields) = fields(context, descriptor, stored, reveal);
        let mut resource = Resource { id, key: Key::of(stored), fields, ..Resource::default() };
        self.add_links(&mut resource);
        add_served_links(context, descriptor, stored, &mut resource);
        add_actions(context, descriptor, stored, &mut resource);
        if let Some(formatter) = &descriptor.formatter {
            formatter.format(context, stored, &mut resource);
        }
        resource
    }

    fn add_links(&self, resource: &mut Resource) {
        let Self { context, descriptor, .. } = *self;
        let own = context.urls.resource(descriptor, &resource.id);
        let methods = descriptor.methods;
        for (name, on) in [("update", methods.update), ("remove", methods.delete)] {
            if on {
                resource.links.insert(name.to_owned(), own.clone());
            }
        }
        for Related { plural, target } in &self.related {
            let target = match target {
                RelatedTarget::Below(name) => format!("{own}/{name}"),
                RelatedTarget::Referring { other, field } => {
                    context.urls.filtered(other, field, &resource.id)
                }
            };
            resource.links.insert((*plural).to_owned(), target);
        }
        resource.links.insert("self".to_owned(), own);
    }
}

fn related<'a>(context: &'a Presentation<'a>, descriptor: &'a Descriptor) -> Vec<Related<'a>> {
    let (registry, version) = (context.registry, &descriptor.version);
    let sub_context = registry.version_inside(version, &descriptor.id);
    let below = |other: &'a Descriptor| Related {
        plural: &other.plural,
        target: RelatedTarget::Below(other.plural.to_lowercase()),
    };
    let mut found = Vec::new();
    for other in registry.descriptors_of(version).filter(|d| d.methods.list) {
        let mut fields = other.references_to(&descriptor.id).filter(|name| *name != "creatorId");
        let Some(field) = fields.next() else { continue };
        found.push(match sub_context {
            Some(_) => below(other),
            None => {
                Related { plural: &other.plural, target: RelatedTarget::Referring { other, field } }
            }
        });
    }
    if let Some(inside) = sub_context {
        let inner = registry.descriptors_of(&inside.path).filter(|d| d.methods.list);
        found.extend(inner.map(|other| below(other)));
    }
    found
}

/// Id and fields, before the formatter.
fn fields(
    context: &Presentation<'_>,
    descriptor: &Descriptor,
    stored: &Value,
    reveal: bool,
) -> (String, Map<String, Value>) {
    let mut fields = mapping::to_view(descriptor, context.registry, stored, reveal);
    if descriptor.has_state {
        let summary = summarise(stored, context.now);
        fields.insert("state".to_owned(), summary.state.into());
        fields.insert("transitioning".to_owned(), summary.transitioning.as_str().into());
        fields.insert("transitioningMessage".to_owned(), summary.message.into());
    }
    let id = id_of(descriptor, stored);
    if descriptor.fields.contains_key("id") {
        fields.insert("id".to_owned(), id.clone().into());
    }
    (id, fields)
}

/// The fields as [`resource`] shows them, without links and actions: lists cannot filter or sort by
/// those.
pub(crate) fn shown_fields(
    context: &Presentation<'_>,
    descriptor: &Descriptor,
    stored: &Value,
) -> Map<String, Value> {
    let (id, fields) = fields(context, descriptor, stored, false);
    let mut resource = Resource { id, fields, ..Resource::default() };
    if let Some(formatter) = &descriptor.formatter {
        formatter.format(context, stored, &mut resource);
    }
    resource.fields
}

/// `name`, or `namespace:name`, or the id that the [`Ids`](crate::descriptor::Ids) of the type
/// give.
pub(crate) fn id_of(descriptor: &Descriptor, stored: &Value) -> String {
    if let Some(ids) = &descriptor.ids {
        return ids.id(stored);
    }
    let text = |field: &str| stored["metadata"][field].as_str().unwrap_or_default();
    if descriptor.namespaced {
        format!("{}:{}", text("namespace"), text("name"))
    } else {
        text("name").to_owned()
    }
}

fn add_served_links(
    context: &Presentation<'_>,
    descriptor: &Descriptor,
    stored: &Value,
    resource: &mut Resource,
) {
    let own = context.urls.resource(descriptor, &resource.id);
    let links = descriptor.served_links.iter();
    for link in links.filter(|link| link.is_available(stored, context.caller)) {
        resource.links.insert(link.name.clone(), format!("{own}/{}", link.segment()));
    }
    let sockets = descriptor.sockets.iter();
    for socket in sockets.filter(|socket| socket.is_available(stored, context.caller)) {
        resource.links.insert(socket.name.clone(), context.urls.socket(&own, &socket.name));
    }
}

/// Adds the actions that a type has for the object: what a formatter does that shows an object as
/// another type than that of its collection.
pub fn add_actions(
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

/// The resource as JSON. The caller may request `actionLinks` instead of `actions`.
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

/// A page as a collection.
pub(crate) fn collection(
    context: &Context<'_>,
    descriptor: &Descriptor,
    query: &ListQuery,
    self_url: &str,
    page: Page,
) -> Value {
    let url = PageUrl { url: self_url, pairs: context.query };
    let pagination = query.pagination(&url, &page);
    let data = page.resources.into_iter().map(|r| reduced::to_json(context, descriptor, r));

    let mut out = envelope(&descriptor.id, self_url, data.collect());
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

/// A collection of any values.
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
