//! What the locations in the tables cannot express: one module for each part of a pod that the view
//! represents differently.

mod containers;
mod environment;
mod expressions;
mod handler;
pub mod ports;
mod scheduling;

use rest_view::ApiError;
use serde_json::{Map, Value};

use super::lens::Lens;
use super::path;

/// Adds to the view of a type what its fields do not express.
pub fn get(lens: &Lens<'_>, id: &str, stored: &Value, view: &mut Map<String, Value>) {
    match id {
        "podSpec" => containers::get(lens, stored, view),
        "container" => {
            environment::get(stored, view);
            upper_case(view);
        }
        "containerPort" => ports::get(stored, view),
        "handler" | "probe" => handler::get(stored, view),
        "scheduling" => scheduling::get(stored, view),
        "persistentVolumeClaimVolumeSource" => {
            if let Some(Value::String(claim)) = view.get_mut(CLAIM) {
                *claim = format!("{}:{claim}", lens.namespace);
            }
        }
        _ => {}
    }
}

/// Puts back what [`get`] added. `before`: the view of what is stored; `stored` has all else
/// already.
///
/// # Errors
/// A field has not the form of its type, or says what cannot be stored.
pub fn put(
    lens: &Lens<'_>,
    id: &str,
    before: Option<&Map<String, Value>>,
    view: &Map<String, Value>,
    stored: &mut Value,
) -> Result<(), ApiError> {
    match id {
        "podSpec" => containers::put(lens, view, stored)?,
        "container" => environment::put(view, stored)?,
        "containerPort" => ports::put(view, stored),
        "handler" | "probe" => handler::put(view, stored)?,
        "scheduling" => scheduling::put(before, view, stored)?,
        "persistentVolumeClaimVolumeSource" => {
            let claim = view.get(CLAIM).and_then(Value::as_str).unwrap_or_default();
            if let Some((namespace, name)) = claim.split_once(':') {
                if namespace != lens.namespace {
                    let text = format!(
                        "\"{claim}\" is not in the namespace \"{}\" of the workload",
                        lens.namespace
                    );
                    return Err(ApiError::invalid_field("InvalidReference", CLAIM, text));
                }
                path::write_keys(stored, &["claimName"], name.into());
            }
        }
        "volume" => one_source(lens, view, stored),
        _ => {}
    }
    Ok(())
}

const CLAIM: &str = "persistentVolumeClaimId";

/// Capabilities may be stored in any case; the options of the view are in capitals.
fn upper_case(view: &mut Map<String, Value>) {
    for key in ["capAdd", "capDrop"] {
        for name in view.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::String(name) = name {
                *name = name.to_uppercase();
            }
        }
    }
}

/// A volume has one source: a source that the view knows replaces one that it does not know.
fn one_source(lens: &Lens<'_>, view: &Map<String, Value>, stored: &mut Value) {
    let fields = lens.types.fields("volume").unwrap_or_default();
    let is_known = |key: &str| fields.iter().any(|field| field.name == key);
    let has_source = view.iter().any(|(key, v)| key != "name" && is_known(key) && !v.is_null());
    if has_source {
        path::object(stored).retain(|key, _| is_known(key));
    }
}
