//! One mutation of a policy: what its expression returns, and how that changes an object.

use std::borrow::Cow;

use api_meta::patch::{self, Unfit};
use api_meta::status::Status;
use cel::message::{JSON_PATCH, OBJECT};
use cel::{List, Type};
use serde_json::{Value, json};
use structured_merge::{Duplicates, Schema, Typed};

use crate::admission::expressions::{Composition, Expression, Facts, evaluate_all};
use crate::admission::objects::has_own_kind;
use crate::fields::str_of;
use crate::registry::admission::AdmissionRequest;
use crate::registry::merge_schema;
use crate::resource::Resource;
use crate::schemas::builtin;

/// The cost units that one mutation may use.
const COST_MAX: u64 = 10_000_000;

/// How a mutation changes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admission::policies) enum PatchType {
    /// Merges an apply configuration into it.
    ApplyConfiguration,
    /// Applies a JSON patch to it.
    JsonPatch,
}

/// A compiled mutation.
pub(super) struct Mutation {
    patch_type: PatchType,
    expression: Expression,
}

/// Why a mutation failed.
pub(super) enum MutationError {
    /// The failure policy decides about the write.
    Failed(String),
    /// The result is no object of the kind, which refuses the write in any case.
    Unreadable(Box<Status>),
}

impl MutationError {
    /// The label value in metrics.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Failed(text) if text.starts_with("compilation") => "compile_error",
            Self::Failed(text) if text.contains("running out of cost budget") => "out_of_budget",
            _ => "invalid_error",
        }
    }
}

impl PatchType {
    /// Each type, its name in `patchType`, and its field in a mutation.
    pub(in crate::admission::policies) const ALL: [(Self, &'static str, &'static str); 2] = [
        (Self::ApplyConfiguration, "ApplyConfiguration", "applyConfiguration"),
        (Self::JsonPatch, "JSONPatch", "jsonPatch"),
    ];

    /// The type that the expression must have.
    pub(in crate::admission::policies) fn result(self) -> Type {
        match self {
            Self::ApplyConfiguration => Type::Message(OBJECT.into()),
            Self::JsonPatch => Type::List(Type::Message(JSON_PATCH.into()).into()),
        }
    }
}

impl Mutation {
    /// Parses and compiles a mutation that passed validation.
    pub(super) fn read(mutation: &Value, scope: &Composition) -> Self {
        let [apply, patch] = PatchType::ALL;
        let (patch_type, _, field) = if mutation["patchType"] == apply.1 { apply } else { patch };
        let source = str_of(&mutation[field]["expression"]);
        Self { patch_type, expression: scope.mutation(source, &patch_type.result()) }
    }

    /// Applies the mutation to the object of `facts` and returns the result.
    ///
    /// # Errors
    /// The expression failed, or its result cannot be applied.
    pub(super) fn patch_object(
        &self,
        scope: &Composition,
        facts: Facts<'_>,
        request: &AdmissionRequest<'_>,
        resource: &Resource,
    ) -> Result<Value, MutationError> {
        let composed = scope.over(facts);
        let evaluated = evaluate_all(&composed, [Some(&self.expression)], COST_MAX);
        let (results, _) = evaluated.map_err(MutationError::Failed)?;
        let made = results.into_iter().flatten().next();
        let made = made.unwrap_or_else(|| Err("the mutation has no expression".to_owned()));
        let made = made.map_err(MutationError::Failed)?;
        match self.patch_type {
            PatchType::ApplyConfiguration => {
                merge_configuration(&made, facts.object, schema(request, resource))
                    .map_err(MutationError::Failed)
            }
            PatchType::JsonPatch => {
                let operations = operations(&made).map_err(MutationError::Failed)?;
                apply_operations(&operations, facts.object, request, resource)
            }
        }
    }
}

/// The merge schema of the kind that the write is about.
fn schema<'s>(request: &AdmissionRequest<'_>, resource: &'s Resource) -> &'s Schema {
    if has_own_kind(request) {
        let (group, version, kind) = request.kind();
        if let Some(own) = builtin(&group, &version, &kind) {
            return own.merge_schema();
        }
    }
    merge_schema(resource)
}

/// Merges the apply configuration that an expression returned into `object`.
fn merge_configuration(
    made: &cel::Value<'_>,
    object: &Value,
    schema: &Schema,
) -> Result<Value, String> {
    let cel::Value::Message(made) = made else {
        return Err("unsupported return type from ApplyConfiguration expression".to_owned());
    };
    let mut configuration = made.to_object()?;
    for field in ["apiVersion", "kind"] {
        configuration[field] = object[field].clone();
    }
    let failed = |what: &str, problem: &dyn std::fmt::Display| {
        format!("error applying patch: {what}: {problem}")
    };
    let configuration = Typed::new(Cow::Owned(configuration), schema, Duplicates::Refuse)
        .map_err(|problems| failed("failed to convert patch object to typed object", &problems))?;
    let atomics = configuration.atomics();
    if !atomics.is_empty() {
        let text = format!("may not mutate atomic arrays, maps or structs: {}", atomics.join(", "));
        return Err(failed("invalid ApplyConfiguration", &text));
    }
    let live =
        Typed::new(Cow::Borrowed(object), schema, Duplicates::Allow).map_err(|problems| {
            failed("failed to convert original object to typed object", &problems)
        })?;
    let merged = live.merge(&configuration);
    let merged = merged.map_err(|problems| failed("failed to merge patch", &problems))?;
    Ok(merged.value.into_owned())
}

/// Converts the result of an expression to a JSON patch.
fn operations(made: &cel::Value<'_>) -> Result<Value, String> {
    let cel::Value::List(List::Made(made)) = made else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    made.iter().map(operation).collect()
}

fn operation(made: &cel::Value<'_>) -> Result<Value, String> {
    let cel::Value::Message(made) = made else {
        return Err(
            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch"
                .to_owned(),
        );
    };
    let text = |field: &str| match made.fields().get(field) {
        Some(cel::Value::Text(text)) => text.to_string(),
        _ => String::new(),
    };
    let mut operation = json!({"op": text("op"), "path": text("path")});
    if !text("from").is_empty() {
        operation["from"] = text("from").into();
    }
    if let Some(value) = made.fields().get("value") {
        operation["value"] = match value {
            cel::Value::Message(object) => object.to_object()?,
            other => other.to_json().map_err(|problem| {
                format!(
                    "JSONPath valueExpression evaluated to a type that could not marshal to JSON: \
                     {problem}"
                )
            })?,
        };
    }
    Ok(operation)
}

/// Applies a JSON patch to `object`. A failed `test` operation leaves the object unchanged.
fn apply_operations(
    operations: &Value,
    object: &Value,
    request: &AdmissionRequest<'_>,
    resource: &Resource,
) -> Result<Value, MutationError> {
    let mut changed = object.clone();
    match patch::json_patch_explained(&mut changed, operations) {
        Ok(()) => {}
        Err(Unfit::Test(_)) => return Ok(object.clone()),
        Err(problem) => return Err(MutationError::Failed(format!("JSON Patch: {problem}"))),
    }
    let unreadable = |text: &str| Err(MutationError::Unreadable(Box::new(Status::internal(text))));
    if !changed["metadata"].is_object() {
        return unreadable("the object is left without metadata");
    }
    if changed["apiVersion"] != object["apiVersion"] || changed["kind"] != object["kind"] {
        return unreadable("a mutation may not change what kind an object is of");
    }
    if !resource.custom && !has_own_kind(request) {
        let unknown = resource.strategy.unknown_fields(&changed);
        if !unknown.is_empty() {
            let problems: Vec<_> =
                unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
            return unreadable(&format!("strict decoding error: {}", problems.join(", ")));
        }
    }
    Ok(changed)
}
