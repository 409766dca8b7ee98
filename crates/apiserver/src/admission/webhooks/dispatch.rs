//! Who is asked about a write, and what becomes of the answers.

use std::borrow::Cow;
use std::collections::BTreeSet;

use api_meta::labels::LabelSelector;
use api_meta::object::ObjectExt;
use api_meta::patch;
use api_meta::status::{Cause, Status};
use serde_json::Value;

use super::hook::Hook;
use super::{EXEMPT, GROUP, Table, review};
use crate::admission::request::{Operation, Request};
use crate::registry::Registry;
use crate::webhook::CallError;

/// The objects of a write.
#[derive(Clone, Copy)]
struct Objects<'a> {
    new: Option<&'a Value>,
    old: Option<&'a Value>,
}

impl Table {
    /// Lets the mutating webhooks change `object`, one after the other. It is given back in the form
    /// that its kind reads; validation is still to come. Without a change it stays as it was.
    ///
    /// # Errors
    /// A refusal, or a call that failed where that may not be passed over.
    pub(crate) async fn mutate(
        &self,
        registry: &Registry,
        request: &Request<'_>,
        object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if !concerns(&self.mutating, registry, request) {
            return Ok(());
        }
        let mut working = object.as_deref().map(|object| decoded(request, object.clone()));
        let before = working.clone();
        // Webhooks that want to be asked again, and those that have reason to.
        let (mut asked, mut again) = (BTreeSet::new(), BTreeSet::new());
        for (index, hook) in self.mutating.iter().enumerate() {
            if call_mutating(hook, registry, request, &mut working, old).await? {
                again.append(&mut asked);
            }
            if hook.reinvoked {
                asked.insert(index);
            }
        }
        for index in again {
            call_mutating(&self.mutating[index], registry, request, &mut working, old).await?;
        }
        if let (Some(object), Some(working)) = (object, working)
            && Some(&working) != before.as_ref()
        {
            *object = working;
        }
        Ok(())
    }

    /// Asks the validating webhooks, all at once, about an object that is otherwise ready to be
    /// written.
    ///
    /// # Errors
    /// As [`Table::mutate`]; of several, that of the first webhook.
    pub(crate) async fn validate(
        &self,
        registry: &Registry,
        request: &Request<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if !concerns(&self.validating, registry, request) {
            return Ok(());
        }
        let objects = Objects { new: object, old };
        let mut calls = Vec::new();
        for hook in &self.validating {
            if let Some(version) = selected(hook, registry, request, objects).await? {
                calls.push(
                    async move { call(hook, registry, request, &version, objects, false).await },
                );
            }
        }
        let answers = futures::future::join_all(calls).await;
        answers.into_iter().try_for_each(|answer| answer.map(drop))
    }
}

/// Whether any rule names the write, before anything costly is done.
fn concerns(hooks: &[Hook], registry: &Registry, request: &Request<'_>) -> bool {
    let resource = request.resource;
    if hooks.is_empty() || resource.group == GROUP && EXEMPT.contains(&resource.plural.as_str()) {
        return false;
    }
    let catalog = registry.catalog();
    let served = catalog.versions(&resource.group);
    hooks.iter().any(|hook| hook.wanted_version(request, &served, &resource.version).is_some())
}

/// A body in the form in which its kind reads it, and without what only the server sets.
fn decoded(request: &Request<'_>, mut object: Value) -> Value {
    if request.operation == Operation::Create && request.subresource.is_empty() {
        let own = [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ];
        for field in own {
            object.remove_meta(field);
        }
    }
    conform(request, &mut object);
    object
}

fn conform(request: &Request<'_>, object: &mut Value) {
    if !has_own_kind(request) {
        request.resource.strategy.prune(object);
        request.resource.strategy.default(object);
    }
}

/// Whether the body is of another kind than the resource's objects.
fn has_own_kind(request: &Request<'_>) -> bool {
    let subresource = request.resource.subresource(request.subresource);
    subresource.is_some_and(|subresource| subresource.gvk.is_some())
}

/// Asks one mutating webhook, if it wants to be asked. Whether it changed the object.
async fn call_mutating(
    hook: &Hook,
    registry: &Registry,
    request: &Request<'_>,
    object: &mut Option<Value>,
    old: Option<&Value>,
) -> Result<bool, Status> {
    let objects = Objects { new: object.as_ref(), old };
    let Some(version) = selected(hook, registry, request, objects).await? else {
        return Ok(false);
    };
    let Some(patch) = call(hook, registry, request, &version, objects, true).await? else {
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
    let mut patched = one_in_version(registry, request, &version, Some(object)).await?.into_owned();
    apply(hook, &patch, &mut patched)?;
    if version != request.resource.version {
        registry.convert(request.resource, &mut patched).await?;
    }
    check_readable(request, &patched)?;
    check_same_name(request, object, &patched)?;
    conform(request, &mut patched);
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

/// What a webhook made of an object must still be one of its kind.
fn check_readable(request: &Request<'_>, object: &Value) -> Result<(), Status> {
    let strategy = &request.resource.strategy;
    let problem = api_meta::metadata::type_problem(object);
    let problem = problem.or_else(|| match has_own_kind(request) {
        true => None,
        false => strategy.decode_problem(object),
    });
    problem.map_or(Ok(()), |problem| Err(Status::internal(problem)))
}

/// What exists keeps its name. What does not may be given another.
fn check_same_name(request: &Request<'_>, before: &Value, patched: &Value) -> Result<(), Status> {
    let name = patched.name();
    if request.operation != Operation::Update || name == before.name() {
        return Ok(());
    }
    let cause = Cause::invalid("metadata.name", &name.into(), "field is immutable");
    let (group, _, kind) = request.kind();
    Err(Status::invalid(&group, &kind, name, vec![cause]))
}

/// The version in which the webhook is to be asked, if it is to be asked at all.
async fn selected(
    hook: &Hook,
    registry: &Registry,
    request: &Request<'_>,
    objects: Objects<'_>,
) -> Result<Option<String>, Status> {
    let resource = request.resource;
    let matches = |object: Option<&Value>| {
        object.is_some_and(|object| hook.objects.matches_labels(&object["metadata"]["labels"]))
    };
    if !hook.objects.is_everything() && !matches(objects.new) && !matches(objects.old) {
        return Ok(None);
    }
    let catalog = registry.catalog();
    let served = catalog.versions(&resource.group);
    let wanted = hook.wanted_version(request, &served, &resource.version);
    let Some(version) = wanted.map(str::to_owned) else { return Ok(None) };
    if !in_namespaces(&hook.namespaces, registry, request, objects).await? {
        return Ok(None);
    }
    if hook.conditions.is_empty() {
        return Ok(Some(version));
    }
    let (new, old) = in_version(registry, request, &version, objects).await?;
    let attributes = review::attributes(request, &version);
    match hook.conditions.hold(&new, &old, &attributes) {
        Ok(true) => Ok(Some(version)),
        Ok(false) => Ok(None),
        Err(_) if hook.ignores_failure => Ok(None),
        Err(problem) => {
            Err(Status::forbidden(&resource.group, &resource.plural, request.name, &problem))
        }
    }
}

/// Whether the namespace of the write is one of those that the webhook is for.
async fn in_namespaces(
    selector: &LabelSelector,
    registry: &Registry,
    request: &Request<'_>,
    objects: Objects<'_>,
) -> Result<bool, Status> {
    if selector.is_everything() || request.namespace.is_empty() {
        return Ok(true);
    }
    // A namespace that is being written has the labels that it is being given.
    if request.is_namespace()
        && request.subresource.is_empty()
        && let Some(object) = objects.new
    {
        return Ok(selector.matches_labels(&object["metadata"]["labels"]));
    }
    let namespaces = registry.find("", "namespaces").ok_or_else(Status::unknown_resource)?;
    let namespace = registry.get(&namespaces, "", request.namespace).await?;
    Ok(selector.matches_labels(&*namespace))
}

/// Both objects in a version of the resource; null for those that are absent.
async fn in_version<'a>(
    registry: &Registry,
    request: &Request<'_>,
    version: &str,
    objects: Objects<'a>,
) -> Result<(Cow<'a, Value>, Cow<'a, Value>), Status> {
    let new = one_in_version(registry, request, version, objects.new).await?;
    Ok((new, one_in_version(registry, request, version, objects.old).await?))
}

async fn one_in_version<'a>(
    registry: &Registry,
    request: &Request<'_>,
    version: &str,
    object: Option<&'a Value>,
) -> Result<Cow<'a, Value>, Status> {
    let Some(object) = object else { return Ok(Cow::Owned(Value::Null)) };
    let resource = request.resource;
    if version == resource.version || has_own_kind(request) {
        return Ok(Cow::Borrowed(object));
    }
    let catalog = registry.catalog();
    let other = catalog.get(&resource.group, version, &resource.plural);
    let other = other.ok_or_else(Status::unknown_resource)?;
    let mut converted = object.clone();
    registry.convert(other, &mut converted).await?;
    Ok(Cow::Owned(converted))
}

/// Asks one webhook. The patch that it wants, if any.
///
/// # Errors
/// Its refusal, or that it could not be asked where that refuses the write.
async fn call(
    hook: &Hook,
    registry: &Registry,
    request: &Request<'_>,
    version: &str,
    objects: Objects<'_>,
    mutating: bool,
) -> Result<Option<Value>, Status> {
    let name = &hook.name;
    if request.options.dry_run && hook.has_side_effects {
        let text = format!("admission webhook {name:?} does not support dry run");
        return Err(Status::bad_request(text));
    }
    let (new, old) = in_version(registry, request, version, objects).await?;
    let attributes = review::attributes(request, version);
    match ask(hook, registry, review::question(hook, attributes, &new, &old), mutating).await {
        Ok(answer) => {
            request.options.warnings.add(answer.warnings);
            answer.verdict
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

async fn ask(
    hook: &Hook,
    registry: &Registry,
    question: review::Question,
    mutating: bool,
) -> Result<review::Answer, String> {
    let unusable = |problem: &str| format!("could not get REST client: {problem}");
    let client = hook.client.as_ref().map_err(|problem| unusable(problem))?;
    let calls = registry.webhook_calls();
    let bytes = calls.post(registry, client, hook.timeout, question.body).await;
    let bytes = bytes.map_err(|error| match error {
        CallError::Unusable(problem) => unusable(&problem),
        error => format!("failed to call webhook: {error}"),
    })?;
    review::answer(hook, &question.uid, mutating, &bytes)
}
