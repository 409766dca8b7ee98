//! Idempotent changes: there afterwards, like this afterwards, gone afterwards.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;

use crate::error::{Attempt, ReconcileError, is_code};
use crate::status::merge_difference;

/// What any kind must be for these.
pub trait Object:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize + Send + Sync
{
}
impl<K> Object for K where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize + Send + Sync
{
}

fn named<K: Object>(verb: &str, name: &str) -> String {
    format!("{verb} {} \"{name}\"", K::kind(&()).to_lowercase())
}

/// Creates the object unless one of that name is there. Answers whether it was created.
///
/// # Errors
/// The API refused for another reason than that it exists.
pub async fn created<K: Object>(api: &Api<K>, object: &K) -> Result<bool, ReconcileError> {
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(true),
        Err(error) if is_code(&error, 409) => Ok(false),
        Err(error) => Err(error).attempt(|| named::<K>("create", &object.name_any())),
    }
}

/// Creates the object, or makes the one of that name agree with it in every field it states. Fields
/// it does not state stay. Answers whether anything changed.
///
/// # Errors
/// The API refused.
pub async fn like<K: Object>(api: &Api<K>, object: &K) -> Result<bool, ReconcileError> {
    let name = object.name_any();
    let current = api.get_opt(&name).await.attempt(|| named::<K>("read", &name))?;
    let Some(current) = current else { return created(api, object).await };
    let wanted = to_value(object)?;
    let current = to_value(&current)?;
    let Some(patch) = missing(&wanted, &current) else { return Ok(false) };
    let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    patched.attempt(|| named::<K>("update", &name))?;
    Ok(true)
}

/// Deletes the object, its dependants in the background. Answers whether it is gone already.
///
/// # Errors
/// The API refused.
pub async fn absent<K: Object>(api: &Api<K>, name: &str) -> Result<bool, ReconcileError> {
    match api.delete(name, &DeleteParams::background()).await {
        Ok(answer) => Ok(answer.is_right()),
        Err(error) if is_code(&error, 404) => Ok(true),
        Err(error) => Err(error).attempt(|| named::<K>("delete", name)),
    }
}

fn to_value(object: &impl Serialize) -> Result<Value, ReconcileError> {
    serde_json::to_value(object).map_err(|error| ReconcileError::other("encode object", error))
}

/// The merge patch that brings in what `wanted` states and `current` lacks. Pure.
pub fn missing(wanted: &Value, current: &Value) -> Option<Value> {
    let mut merged = current.clone();
    overlay(&mut merged, wanted);
    merge_difference(current, &merged)
}

fn overlay(onto: &mut Value, wanted: &Value) {
    match (onto, wanted) {
        (Value::Object(onto), Value::Object(wanted)) => {
            for (key, value) in wanted {
                overlay(onto.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (onto, wanted) => *onto = wanted.clone(),
    }
}
