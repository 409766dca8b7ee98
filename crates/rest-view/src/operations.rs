//! The verbs on collections and resources, over a type's store.

use http::StatusCode;
use serde_json::{Map, Value};

use crate::collection;
use crate::collection::listing::{ListRequest, Lists, Page};
use crate::collection::query::{Filter, ListQuery, Modifier};
use crate::collection::reduced;
use crate::error::ApiError;
use crate::input::{self, WriteOperation};
use crate::mapping;
use crate::references;
use crate::response::ViewResponse;
use crate::route::Route;
use crate::types::action::{Action, ActionRequest, ActionResponse};
use crate::types::context::Context;
use crate::types::context::Inside;
use crate::types::descriptor::Descriptor;
use crate::types::field::FieldLocation;
use crate::types::rights;
use crate::types::store::{DeleteOptions, ListScope};

/// Attempts of an update that meets concurrent writes.
const UPDATE_ATTEMPTS_MAX: usize = 5;

type OperationResult = Result<ViewResponse, ApiError>;

/// Narrowing by the path: only resources whose `field` is `id`.
pub(crate) struct Narrowed {
    pub field: String,
    pub id: String,
}

impl Narrowed {
    /// Below one resource, a type is narrowed by the field that refers to it. A type of the
    /// sub-context is not: its store evaluates [`Context::inside`].
    ///
    /// # Errors
    /// 404 when no field of the type refers to the resource.
    pub fn by(route: &Route, descriptor: &Descriptor) -> Result<Option<Self>, ApiError> {
        let Some(Inside { kind, id }) = &route.inside else { return Ok(None) };
        if route.version.parent_type.is_some() && descriptor.version == route.version.path {
            return Ok(None);
        }
        let mut fields = descriptor.references_to(kind).filter(|name| *name != "creatorId");
        match fields.next() {
            Some(field) => Ok(Some(Self { field: field.to_owned(), id: id.clone() })),
            None => Err(ApiError::not_found(format!("failed to find schema {}", descriptor.id))),
        }
    }

    fn filter(&self) -> Filter {
        Filter { field: self.field.clone(), modifier: Modifier::Eq, values: vec![self.id.clone()] }
    }
}

pub(crate) async fn list(
    context: &Context<'_>,
    descriptor: &Descriptor,
    narrowed: Option<&Narrowed>,
    self_url: &str,
    lists: &dyn Lists,
) -> OperationResult {
    if !descriptor.methods.list {
        return Err(ApiError::method_not_allowed("GET"));
    }
    let mut query = ListQuery::parse(descriptor, context.query);
    query.filters.extend(narrowed.map(Narrowed::filter));
    let scope = ListScope { namespace: namespace_of(context, descriptor, &query) };
    if descriptor.parent_field.is_some() {
        // Shown as null, so the scope alone decides.
        query.filters.retain(|filter| filter.field != "namespaceId");
    }
    let request = ListRequest { descriptor, query: &query, scope: &scope };
    let mut page = lists.page(context, request).await?;
    rights::trim(context, descriptor, &mut page.resources).await?;
    let body = collection::collection(context, descriptor, &query, self_url, page);
    Ok(ViewResponse::Json(StatusCode::OK, body))
}

/// The scope of all resources of a type, or of those below one resource.
pub(crate) fn scope_within(
    context: &Context<'_>,
    descriptor: &Descriptor,
    narrowed: Option<&Narrowed>,
) -> ListScope {
    let mut query = ListQuery::parse(descriptor, &[]);
    query.filters.extend(narrowed.map(Narrowed::filter));
    ListScope { namespace: namespace_of(context, descriptor, &query) }
}

/// A namespace that all matches must be in, so that less is read.
fn namespace_of(
    context: &Context<'_>,
    descriptor: &Descriptor,
    query: &ListQuery,
) -> Option<String> {
    if !descriptor.namespaced {
        return None;
    }
    let named = query
        .equal_to("namespaceId")
        .or_else(|| context.query_value("namespaceId"))
        .or_else(|| context.query_value("namespace"));
    let from_parent = || {
        let field = descriptor.parent_field.as_deref()?;
        query.equal_to(field)?.rsplit(':').next()
    };
    let is_namespace = FieldLocation::path("metadata.namespace");
    let in_field = || {
        let field =
            descriptor.fields.values().find(|f| f.location.as_ref() == Some(&is_namespace))?;
        query.equal_to(&field.name)
    };
    named.or_else(from_parent).or_else(in_field).filter(|ns| !ns.is_empty()).map(str::to_owned)
}

/// Checks that a resource which is named below another one belongs to it.
///
/// # Errors
/// 404 when it does not.
pub(crate) async fn require(
    context: &Context<'_>,
    descriptor: &Descriptor,
    id: &str,
    narrowed: &Narrowed,
) -> Result<(), ApiError> {
    let stored = descriptor.store.get(context, &descriptor.key_of(id)?).await?;
    let view = mapping::to_view(descriptor, context.registry, &stored, false);
    if view.get(&narrowed.field).and_then(Value::as_str) == Some(narrowed.id.as_str()) {
        return Ok(());
    }
    Err(ApiError::no_such_id())
}

/// Checks that the caller may see the resource that the path is inside of, if there is one.
///
/// # Errors
/// The refusal of its store.
pub(crate) async fn require_around(context: &Context<'_>, route: &Route) -> Result<(), ApiError> {
    let Some(Inside { kind: parent, id }) = &route.inside else { return Ok(()) };
    let version = match &route.version.parent_type {
        Some(_) => route.version.path.rsplit_once('/').map_or("", |(outer, _)| outer),
        None => route.version.path.as_str(),
    };
    let descriptor = context.registry.find(version, parent).ok_or_else(ApiError::no_such_id)?;
    descriptor.store.get(context, &descriptor.key_of(id)?).await.map(drop)
}

pub(crate) async fn get(
    context: &Context<'_>,
    descriptor: &Descriptor,
    id: &str,
) -> OperationResult {
    if !descriptor.methods.get {
        return Err(ApiError::method_not_allowed("GET"));
    }
    let stored = descriptor.store.get(context, &descriptor.key_of(id)?).await?;
    shown(context, descriptor, stored, StatusCode::OK, false).await
}

/// `reveal`: also what is shown only in the reply to a create.
async fn shown(
    context: &Context<'_>,
    descriptor: &Descriptor,
    mut stored: Value,
    status: StatusCode,
    reveal: bool,
) -> OperationResult {
    descriptor.store.reveal(context, std::slice::from_mut(&mut stored)).await?;
    let mut resource = collection::resource(context, descriptor, &stored, reveal);
    if !reveal {
        resource = rights::trim_one(context, descriptor, resource).await?;
    }
    Ok(ViewResponse::Json(status, reduced::to_json(context, descriptor, resource)))
}

pub(crate) async fn create(
    context: &Context<'_>,
    descriptor: &Descriptor,
    mut body: Map<String, Value>,
    narrowed: Option<&Narrowed>,
) -> OperationResult {
    if !descriptor.methods.create {
        return Err(ApiError::method_not_allowed("POST"));
    }
    if let Some(narrowed) = narrowed {
        // The path takes precedence over the body.
        body.insert(narrowed.field.clone(), narrowed.id.clone().into());
    }
    let input = input::check(descriptor, context.registry, &body, WriteOperation::Create)?;
    if let Some(validator) = &descriptor.validator {
        validator.validate(context, &input, None)?;
    }
    references::require(context, descriptor, &input, None).await?;
    let object = mapping::to_stored(descriptor, &input, &context.caller.user_id);
    let created = descriptor.store.create(context, object).await?;
    shown(context, descriptor, created, StatusCode::CREATED, true).await
}

pub(crate) async fn update(
    context: &Context<'_>,
    descriptor: &Descriptor,
    id: &str,
    body: Map<String, Value>,
) -> OperationResult {
    if !descriptor.methods.update {
        return Err(ApiError::method_not_allowed("PUT"));
    }
    let key = descriptor.key_of(id)?;
    let input = input::check(descriptor, context.registry, &body, WriteOperation::Update)?;
    let replace = context.query_value("_replace") == Some("true");
    let mut attempt = 1;
    loop {
        let mut stored = descriptor.store.get(context, &key).await?;
        if let Some(validator) = &descriptor.validator {
            validator.validate(context, &input, Some(&stored))?;
        }
        references::require(context, descriptor, &input, Some(&stored)).await?;
        mapping::merge(descriptor, context.registry, &mut stored, &input, replace);
        match descriptor.store.replace(context, &key, stored).await {
            Ok(updated) => return shown(context, descriptor, updated, StatusCode::OK, false).await,
            Err(error) if error.is_conflict() && attempt < UPDATE_ATTEMPTS_MAX => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

pub(crate) async fn delete(
    context: &Context<'_>,
    descriptor: &Descriptor,
    id: &str,
) -> OperationResult {
    if !descriptor.methods.delete {
        return Err(ApiError::method_not_allowed("DELETE"));
    }
    let options = DeleteOptions {
        propagation_policy: context.query_value("propagationPolicy").map(str::to_owned),
        grace_period_seconds: context
            .query_value("gracePeriodSeconds")
            .and_then(|text| text.parse().ok()),
    };
    let key = descriptor.key_of(id)?;
    references::refuse_held(context, descriptor, &key, id).await?;
    match descriptor.store.delete(context, &key, &options).await? {
        Some(stored) => shown(context, descriptor, stored, StatusCode::OK, false).await,
        None => Ok(ViewResponse::Empty(StatusCode::NO_CONTENT)),
    }
}

/// Runs an action. `id`: of the resource; `None` for an action on the collection.
pub(crate) async fn act(
    context: &Context<'_>,
    descriptor: &Descriptor,
    id: Option<&str>,
    name: &str,
    body: Map<String, Value>,
) -> OperationResult {
    let actions = if id.is_some() { &descriptor.actions } else { &descriptor.collection_actions };
    let action: &Action = actions
        .iter()
        .find(|action| action.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| ApiError::invalid_action(name))?;
    let object = match id {
        Some(id) => match descriptor.store.get(context, &descriptor.key_of(id)?).await {
            Ok(object) => Some(object),
            Err(error) if error.is_forbidden() => return Err(ApiError::no_such_id()),
            Err(error) => return Err(error),
        },
        None => None,
    };
    if let Some(object) = &object
        && !action.is_available(object, context.caller)
    {
        return Err(ApiError::action_not_available(name));
    }
    let input = match &action.input {
        Some(kind) => input::check_struct(context.registry, &descriptor.version, kind, &body)?,
        None => body,
    };
    let request = ActionRequest { context, descriptor, object: object.as_ref(), input };
    let response = action.handler.run(request).await?;
    response_of(context, descriptor, response).await
}

/// What a link of a resource returns.
pub(crate) async fn follow(
    context: &Context<'_>,
    descriptor: &Descriptor,
    id: &str,
    name: &str,
) -> OperationResult {
    let Some(link) = descriptor.served_links.iter().find(|link| link.segment() == name) else {
        // Below a resource with a sub-context, the name can also be that of a type.
        let inside = context.registry.version_inside(&descriptor.version, &descriptor.id);
        let what = if inside.is_some() { "schema" } else { "link" };
        return Err(ApiError::not_found(format!("failed to find {what} {name}")));
    };
    let stored = descriptor.store.get(context, &descriptor.key_of(id)?).await?;
    if !link.is_available(&stored, context.caller) {
        return Err(ApiError::not_found(format!("link \"{name}\" is not available now")));
    }
    let input = Map::new();
    let request = ActionRequest { context, descriptor, object: Some(&stored), input };
    let response = link.handler.run(request).await?;
    response_of(context, descriptor, response).await
}

/// All objects on one page, in the given order.
fn page_of_all(context: &Context<'_>, descriptor: &Descriptor, stored: &[Value]) -> Page {
    let resources = stored.iter().map(|o| collection::resource(context, descriptor, o, false));
    Page { total: stored.len(), resources: resources.collect(), ..Page::default() }
}

async fn response_of(
    context: &Context<'_>,
    descriptor: &Descriptor,
    response: ActionResponse,
) -> OperationResult {
    Ok(match response {
        ActionResponse::Empty(status) => ViewResponse::Empty(status),
        ActionResponse::Object(stored) => {
            return shown(context, descriptor, stored, StatusCode::OK, false).await;
        }
        ActionResponse::ObjectWith(stored, fields) => {
            let mut response = shown(context, descriptor, stored, StatusCode::OK, false).await?;
            if let ViewResponse::Json(_, Value::Object(body)) = &mut response {
                body.extend(fields);
            }
            response
        }
        ActionResponse::Objects(mut stored) => {
            descriptor.store.reveal(context, &mut stored).await?;
            let url = context.urls.collection(descriptor);
            let mut page = page_of_all(context, descriptor, &stored);
            rights::trim(context, descriptor, &mut page.resources).await?;
            let query = ListQuery::parse(descriptor, &[]);
            let body = collection::collection(context, descriptor, &query, &url, page);
            ViewResponse::Json(StatusCode::OK, body)
        }
        ActionResponse::Struct { status, id, mut fields } => {
            fields.insert("type".to_owned(), id.clone().into());
            fields.insert("baseType".to_owned(), id.into());
            ViewResponse::Json(status, fields.into())
        }
        ActionResponse::Raw(response) => ViewResponse::Raw(response),
    })
}
