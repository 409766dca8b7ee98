//! Idempotent writes: the object exists afterwards, has these fields, or is deleted.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;

use crate::error::{Attempt, ReconcileError, is_code};
use crate::status::merge_difference;

/// The bounds on a kind that the functions of this module write.
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

/// Creates the object unless an object of this name exists. Returns whether it was created.
///
/// # Errors
/// The API refused the request for another reason than a conflict. Return the error from the
/// reconcile, which is then retried.
pub async fn created<K: Object>(api: &Api<K>, object: &K) -> Result<bool, ReconcileError> {
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(true),
        Err(error) if is_code(&error, 409) => Ok(false),
        Err(error) => Err(error).attempt(|| named::<K>("create", &object.name_any())),
    }
}

/// Creates the object, or patches the existing one so that every field that `object` sets has the
/// same value. Other fields stay. Returns whether anything changed.
///
/// # Errors
/// The API refused the request. Return the error from the reconcile, which is then retried.
pub async fn like<K: Object>(api: &Api<K>, object: &K) -> Result<bool, ReconcileError> {
    let name = object.name_any();
    let current = api.get_opt(&name).await.attempt(|| named::<K>("read", &name))?;
    let Some(current) = current else { return created(api, object).await };
    let desired = to_value(object)?;
    let current = to_value(&current)?;
    let Some(patch) = missing(&desired, &current) else { return Ok(false) };
    let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    patched.attempt(|| named::<K>("update", &name))?;
    Ok(true)
}

/// Deletes the object; its dependants are deleted in the background. Returns true when the object
/// no longer exists, false while its deletion is pending (a finalizer).
///
/// # Errors
/// The API refused the request. Return the error from the reconcile, which is then retried.
pub async fn absent<K: Object>(api: &Api<K>, name: &str) -> Result<bool, ReconcileError> {
    match api.delete(name, &DeleteParams::background()).await {
        Ok(result) => Ok(result.is_right()),
        Err(error) if is_code(&error, 404) => Ok(true),
        Err(error) => Err(error).attempt(|| named::<K>("delete", name)),
    }
}

fn to_value(object: &impl Serialize) -> Result<Value, ReconcileError> {
    serde_json::to_value(object).map_err(|error| ReconcileError::other("encode object", error))
}

/// The merge patch that sets in `current` every field that `desired` sets; `None` when they agree
/// already. Fields that only `current` has stay. Pure.
pub fn missing(desired: &Value, current: &Value) -> Option<Value> {
    let mut merged = current.clone();
    overlay(&mut merged, desired);
    merge_difference(current, &merged)
}

fn overlay(onto: &mut Value, desired: &Value) {
    match (onto, desired) {
        (Value::Object(onto), Value::Object(desired)) => {
            for (key, value) in desired {
                overlay(onto.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (onto, desired) => *onto = desired.clone(),
    }
}
