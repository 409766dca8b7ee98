//! Which webhooks are called for a write, and how their responses are enforced.

use api_meta::object::ObjectExt;
use api_meta::patch;
use api_meta::status::{Cause, Status};
use serde_json::Value;

use super::hook::{Hook, SCOPE};
use super::{WebhookTable, is_exempt, review};
use crate::admission::expressions::{Facts, RequestAuthority};
use crate::admission::objects::{
    check_readable, conform, convert_object, convert_objects, decode_body,
};
use crate::admission::reinvocation::Reinvocation;
use crate::admission::rules::{self, Objects};
use crate::catalog::Catalog;
use crate::registry::Registry;
use crate::registry::admission::{AdmissionOperation, AdmissionRequest};
use crate::resource::Resource;
use crate::webhook::CallError;

impl WebhookTable {
    /// Lets the mutating webhooks change `object`, one after the other; in the second round only
    /// those that are due. The object is returned as its kind decodes it, before validation.
    /// Without a change it stays as it was. Returns whether there was one.
    ///
    /// # Errors
    /// A refusal, or a failed call of a webhook whose failure policy is `Fail`.
    pub(crate) async fn mutate(
        &self,
        registry: &Registry,
        request: &AdmissionRequest<'_>,
        object: Option<&mut Value>,
        old: Option<&Value>,
        rounds: &mut Reinvocation<usize>,
    ) -> Result<bool, Status> {
        let catalog = registry.catalog();
        if !any_matches(&self.mutating, &catalog, request) {
            return Ok(false);
        }
        let mut working = object.as_deref().map(|object| decode_body(request, object.clone()));
        let before = working.clone();
        let mut changed = false;
        for (index, hook) in self.mutating.iter().enumerate() {
            if !rounds.should_invoke(&index) {
                continue;
            }
            if call_mutating(hook, registry, &catalog, request, &mut working, old).await? {
                rounds.mark_changed();
                changed = true;
            }
            if hook.is_reinvoked {
                rounds.record(index);
            }
        }
        if let (Some(object), Some(working)) = (object, working)
            && Some(&working) != before.as_ref()
        {
            *object = working;
        }
        Ok(changed)
    }

    /// Calls the validating webhooks concurrently with an object that is otherwise ready to be
    /// written.
    ///
    /// # Errors
    /// As [`WebhookTable::mutate`]; of several, that of the first webhook.
    pub(crate) async fn validate(
        &self,
        registry: &Registry,
        request: &AdmissionRequest<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let catalog = registry.catalog();
        if !any_matches(&self.validating, &catalog, request) {
            return Ok(());
        }
        let objects = Objects { new: object, old };
        let mut calls = Vec::new();
        for hook in &self.validating {
            if let Some(seen) = matched_resource(hook, registry, &catalog, request, objects).await?
            {
                calls.push(call(hook, registry, request, seen, objects, false));
            }
        }
        let responses = futures::future::join_all(calls).await;
        responses.into_iter().try_for_each(|response| response.map(drop))
    }
}

/// Whether any rule matches the write, checked before anything costly.
fn any_matches(hooks: &[Hook], catalog: &Catalog, request: &AdmissionRequest<'_>) -> bool {
    !is_exempt(request.resource)
        && hooks.iter().any(|hook| hook.matching_resource(request, catalog).is_some())
}

/// Calls one mutating webhook, if it matches. Returns whether it changed the object.
async fn call_mutating(
    hook: &Hook,
    registry: &Registry,
    catalog: &Catalog,
    request: &AdmissionRequest<'_>,
    object: &mut Option<Value>,
    old: Option<&Value>,
) -> Result<bool, Status> {
    let objects = Objects { new: object.as_ref(), old };
    let Some(seen) = matched_resource(hook, registry, catalog, request, objects).await? else {
        return Ok(false);
    };
    let Some(patch) = call(hook, registry, request, seen, objects, true).await? else {
        return Ok(false);
    };
    if patch.as_array().is_some_and(Vec::is_empty) {
        return Ok(false);
    }
    let Some(object) = object else {
        return Err(Status::internal(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for \
             this operation",
            hook.name
        )));
    };
    let mut patched = convert_object(registry, request, seen, Some(object)).await?.into_owned();
    apply(hook, &patch, &mut patched)?;
    if seen.api_version() != request.resource.api_version() {
        registry.convert(request.resource, &mut patched).await?;
    }
    check_readable(request, request.resource, &patched)?;
    check_same_name(request, object, &patched)?;
    conform(request, request.resource, &mut patched);
    let changed = patched != *object;
    *object = patched;
    Ok(changed)
}

fn apply(hook: &Hook, patch: &Value, object: &mut Value) -> Result<(), Status> {
    let failed = |problem: String| {
        let name = &hook.name;
        Status::internal(format!(
            "the patch of admission webhook {name:?} cannot be applied: {problem}"
        ))
    };
    let (api_version, kind) = (object["apiVersion"].clone(), object["kind"].clone());
    patch::check_json_patch(patch).map_err(|error| failed(error.to_string()))?;
    patch::json_patch(object, patch).map_err(|error| failed(error.to_string()))?;
    if object["apiVersion"] != api_version || object["kind"] != kind {
        return Err(failed("it changes what kind the object is of".to_owned()));
    }
    match object["metadata"].is_object() {
        true => Ok(()),
        false => Err(failed("the object is left without metadata".to_owned())),
    }
}

/// Refuses a new name in an update. In a create the name may change.
fn check_same_name(
    request: &AdmissionRequest<'_>,
    before: &Value,
    patched: &Value,
) -> Result<(), Status> {
    let name = patched.name();
    if request.operation != AdmissionOperation::Update || name == before.name() {
        return Ok(());
    }
    let cause = Cause::invalid("metadata.name", &name.into(), "field is immutable");
    let (group, _, kind) = request.kind();
    Err(Status::invalid(&group, &kind, name, vec![cause]))
}

/// The resource to which objects are converted for the webhook; `None` when it does not match.
async fn matched_resource<'r>(
    hook: &Hook,
    registry: &Registry,
    catalog: &'r Catalog,
    request: &AdmissionRequest<'r>,
    objects: Objects<'_>,
) -> Result<Option<&'r Resource>, Status> {
    if !rules::selects(&hook.objects, objects) {
        return Ok(None);
    }
    let Some(seen) = hook.matching_resource(request, catalog) else { return Ok(None) };
    if !rules::in_namespaces(&hook.namespaces, registry, request, objects).await? {
        return Ok(None);
    }
    if hook.conditions.is_empty() {
        return Ok(Some(seen));
    }
    let (new, old) = convert_objects(registry, request, seen, objects).await?;
    let attributes = request.attributes(seen);
    let authority = RequestAuthority::new(registry.authorizer(), request);
    let facts = Facts {
        object: &new,
        old_object: &old,
        request: &attributes,
        namespace: &Value::Null,
        params: &Value::Null,
        authority: &authority,
    };
    match hook.conditions.all_match(&SCOPE.over(facts)) {
        Ok(true) => Ok(Some(seen)),
        Ok(false) => Ok(None),
        Err(_) if hook.ignores_failure => Ok(None),
        Err(problem) => Err(request.forbidden(objects.new, &problem)),
    }
}

/// Calls one webhook. Returns its patch, if any.
///
/// # Errors
/// Its refusal, or a failed call when its failure policy is `Fail`.
async fn call(
    hook: &Hook,
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    seen: &Resource,
    objects: Objects<'_>,
    mutating: bool,
) -> Result<Option<Value>, Status> {
    let name = &hook.name;
    if request.options.dry_run && hook.has_side_effects {
        let text = format!("admission webhook {name:?} does not support dry run");
        return Err(Status::bad_request(text));
    }
    let (new, old) = convert_objects(registry, request, seen, objects).await?;
    let attributes = request.attributes(seen);
    match send_review(hook, registry, review::build_request(hook, attributes, &new, &old), mutating)
        .await
    {
        Ok(response) => {
            request.options.warnings.add(response.warnings);
            for (key, text) in response.annotations {
                request.options.audit.annotate(&key, text);
            }
            response.result
        }
        Err(problem) if hook.ignores_failure => {
            tracing::warn!(webhook = name, problem, "failed calling a webhook, passing it over");
            Ok(None)
        }
        Err(problem) => {
            tracing::warn!(webhook = name, problem, "failed calling a webhook, refusing the write");
            Err(Status::internal(format!("failed calling webhook {name:?}: {problem}")))
        }
    }
}

async fn send_review(
    hook: &Hook,
    registry: &Registry,
    review_request: review::ReviewRequest,
    mutating: bool,
) -> Result<review::ReviewResponse, String> {
    let unusable = |problem: &str| format!("could not get REST client: {problem}");
    let client = hook.client.as_ref().map_err(|problem| unusable(problem))?;
    let calls = registry.webhook_client();
    let bytes = calls
        .post(registry.webhook_target(client), client, hook.timeout, review_request.body)
        .await;
    let bytes = bytes.map_err(|error| match error {
        CallError::Unusable(problem) => unusable(&problem),
        error => format!("failed to call webhook: {error}"),
    })?;
    review::parse_response(hook, &review_request.uid, mutating, &bytes)
}
