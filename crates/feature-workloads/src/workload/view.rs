//! The types of workloads in the REST view.

use std::sync::Arc;

use feature_kit::table::{field, methods};
use futures::future::BoxFuture;
use rest_view::{
    ActionHandler, ActionRequest, ActionResponse, ApiError, Descriptor, Field, FieldLocation,
    Formatter, Key, Link, ListScope, Presentation, Resource, Store, mapping,
};
use serde_json::{Map, Value, json};

use super::flat::{self, STORED};
use super::kind::WorkloadKind;
use super::store::{Flattened, Stores, WorkloadIds};
use super::types::{self, POD_SPEC, Types};
use super::{actions, state};

/// Types inside projects.
const VERSION: &str = "/v3/project";
/// The type that shows all kinds together.
const ANY: &str = "workload";
/// WorkloadFormatter as a field of its own.
const ENDPOINTS: &str = "field.cattle.io/publicEndpoints";
/// Of a Deployment: its ReplicaSets.
const REVISIONS: &str = "revisions";

/// All types. `stores`: where the objects of each kind are.
pub fn views(stores: &Stores) -> Vec<Descriptor> {
    let types = Arc::new(Types::read());
    let kinds = WorkloadKind::ALL.into_iter().map(|kind| of_kind(kind, &types, stores));
    let mut views: Vec<Descriptor> = kinds.collect();
    views.push(of_any(&views, &types, stores));
    if let Some(first) = views.first_mut() {
        first.types.extend(types::nested());
    }
    views
}

fn of_kind(kind: WorkloadKind, types: &Arc<Types>, stores: &Stores) -> Descriptor {
    let table = types::table_of(kind);
    let store = Flattened::new(types.clone(), &[kind], stores.clone());
    let mut view = Descriptor::with_store(table.id, table.plural, Arc::new(store))
        .version(VERSION)
        .ids(WorkloadIds::Of(kind))
        .methods(methods(&table));
    view.base_type = table.base.map(str::to_owned);
    let namespace = Field::reference("namespaceId", "namespace").create().required();
    view.insert(namespace.at("metadata.namespace"));
    for field in types.fields(POD_SPEC).unwrap_or_default() {
        view.insert(at_top(field.clone()));
    }
    for field in table.fields.iter().map(field) {
        view.insert(if types::is_metadata(&field) { field } else { at_top(field) });
    }
    finished(view, &[kind], types, stores)
}

fn of_any(views: &[Descriptor], types: &Arc<Types>, stores: &Stores) -> Descriptor {
    let store = Flattened::new(types.clone(), &WorkloadKind::WORKLOADS, stores.clone());
    let mut view = Descriptor::with_store(ANY, "workloads", Arc::new(store))
        .version(VERSION)
        .ids(WorkloadIds::Any);
    let is_workload = |view: &&Descriptor| view.base_type.as_deref() == Some(ANY);
    // Later ones win, and all but one kind select pods in the same way.
    let kinds = || views.iter().filter(is_workload);
    let own = |controller: bool| {
        kinds()
            .filter(move |view| (view.id == WorkloadKind::ReplicationController.id()) == controller)
    };
    for field in own(true).chain(own(false)).flat_map(|view| view.fields.values()) {
        view.insert(field.clone());
    }
    finished(view, &WorkloadKind::WORKLOADS, types, stores)
}

fn finished(
    view: Descriptor,
    kinds: &[WorkloadKind],
    types: &Arc<Types>,
    stores: &Stores,
) -> Descriptor {
    let mut view = view.with_state().formatter(WorkloadFormatter { is_any: kinds.len() > 1 });
    view.namespaced = true;
    let Some(replica_sets) = stores.get(&WorkloadKind::ReplicaSet) else { return view };
    for action in actions::of_type(kinds, types, replica_sets) {
        view = view.action(action);
    }
    if kinds.contains(&WorkloadKind::Deployment) {
        let revisions = Revisions { types: types.clone(), replica_sets: replica_sets.clone() };
        let link = Link::new(REVISIONS, revisions);
        let of = |flat: &Value, _: &rest_view::Caller| {
            WorkloadKind::of_object(flat) == Some(WorkloadKind::Deployment)
        };
        view = view.link(link.available_when(of));
    }
    view
}

/// In the flattened form each field is at the top.
fn at_top(mut field: Field) -> Field {
    field.location = Some(FieldLocation::path(&field.name));
    field
}

/// What is shown beside the fields.
struct WorkloadFormatter {
    is_any: bool,
}

impl Formatter for WorkloadFormatter {
    fn format(&self, context: &Presentation<'_>, flat: &Value, resource: &mut Resource) {
        let Some(kind) = WorkloadKind::of_object(flat) else { return };
        if self.is_any
            && let Some(own) = context.registry.find(VERSION, kind.id())
        {
            // As the kind's own type shows it.
            resource.fields = mapping::to_view(own, context.registry, flat, false);
            resource.subtype = Some(kind.id().to_owned());
        }
        let summary = state::of(kind, flat.get(STORED).unwrap_or(flat), context.now);
        let said = [
            ("state", summary.state.as_str()),
            ("transitioning", summary.transitioning.as_str()),
            ("transitioningMessage", summary.message.as_str()),
        ];
        for (key, text) in said {
            resource.fields.insert(key.to_owned(), text.into());
        }
        if kind == WorkloadKind::Pod {
            return;
        }
        // Where it may run is part of `scheduling`.
        resource.fields.remove("nodeId");
        if let Some(Value::Object(all)) = resource.fields.get_mut("workloadAnnotations") {
            all.remove(ENDPOINTS);
        }
        let Some(any) = context.registry.find(VERSION, ANY) else { return };
        let own = context.urls.resource(any, &resource.id);
        for name in ["self", "update", "remove"] {
            resource.links.insert(name.to_owned(), own.clone());
        }
        if let Some(link) = resource.links.get_mut(REVISIONS) {
            *link = format!("{own}/{REVISIONS}");
        }
        for (name, url) in &mut resource.actions {
            *url = context.urls.action(&own, name);
        }
    }
}

/// The ReplicaSets of a Deployment, which lists leave out.
struct Revisions {
    types: Arc<Types>,
    replica_sets: Arc<dyn Store>,
}

impl ActionHandler for Revisions {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let deployment = request.object.ok_or_else(ApiError::no_such_id)?;
            let context = request.context;
            let id = WorkloadKind::ReplicaSet.id();
            let view = context.registry.find(VERSION, id).ok_or_else(ApiError::no_such_id)?;
            let scope = ListScope { namespace: Some(Key::of(deployment).namespace) };
            let mut all = self.replica_sets.list(context, &scope).await?;
            all.retain(|set| actions::is_owned(set, deployment));
            let shown = all.iter().map(|set| {
                let flat = flat::get(&self.types, WorkloadKind::ReplicaSet, set);
                let mut fields: Map<String, Value> =
                    mapping::to_view(view, context.registry, &flat, false);
                let set = WorkloadKind::ReplicaSet.id_of(&Key::of(set));
                let own = context.urls.resource(view, &set);
                let more = json!({"id": set, "type": id, "baseType": ANY, "links": {"self": own},
                    "actions": {}});
                fields.extend(more.as_object().cloned().unwrap_or_default());
                fields
            });
            let data: Vec<_> = shown.collect();
            let body = json!({"type": "collection", "resourceType": id, "data": data});
            let answer = http::Response::builder()
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(body.to_string().into());
            answer.map(ActionResponse::Raw).map_err(|_| ApiError::no_such_id())
        })
    }
}
