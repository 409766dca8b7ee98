//! Lease: leader election and node heartbeats, with times in microseconds.

use api_meta::status::Cause;
use api_meta::time;
use apiserver::fields::{child, ensure, map, str_of};
use apiserver::kind::cells;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use apiserver::resource::ResourceRules;
use apiserver::strategy::Write;
use serde_json::Value;

/// The kind Lease of the group `coordination.k8s.io`: namespaced, with the defaults, validation and
/// columns of kube-apiserver.
pub fn kind() -> Kind {
    let mut kind = Kind {
        columns: &[NAME, ("Holder", "string", "", 0), AGE],
        hooks: Hooks {
            default: |object| {
                let spec = map(object).and_then(|object| ensure(object, "spec"));
                if let Some(spec) = spec {
                    canonical_micros(spec, &["acquireTime", "renewTime"]);
                }
            },
            prepare,
            validate,
            decode_problem: |object| {
                ["acquireTime", "renewTime"]
                    .into_iter()
                    .find_map(|field| micro_problem(&object["spec"][field]))
            },
            cells: |object, now| {
                let holder = str_of(&object["spec"]["holderIdentity"]);
                vec![cells::name(object), holder.into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new("coordination.k8s.io", "leases", "lease", "Lease")
    };
    kind.rules =
        ResourceRules { create_on_update: true, unconditional_update: false, ..kind.rules };
    kind
}

fn validate(_write: &Write<'_>, object: &Value, _old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &object["spec"];
    if spec["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
        let value = &spec["leaseDurationSeconds"];
        causes.push(Cause::invalid("spec.leaseDurationSeconds", value, "must be greater than 0"));
    }
    if spec["leaseTransitions"].as_i64().is_some_and(|count| count < 0) {
        let value = &spec["leaseTransitions"];
        let text = "must be greater than or equal to 0";
        causes.push(Cause::invalid("spec.leaseTransitions", value, text));
    }
    causes
}

/// Coordinated leader election is behind a feature gate that is disabled.
fn prepare(_: &Write<'_>, object: &mut Value, old: Option<&Value>) {
    let Some(spec) = map(object).and_then(|object| child(object, "spec")) else { return };
    for field in ["strategy", "preferredHolder"] {
        if old.is_none_or(|old| old["spec"][field].is_null()) {
            spec.remove(field);
        }
    }
}

/// Converts microsecond times to UTC. Leaves other values unchanged.
pub fn canonical_micros(object: &mut apiserver::fields::Object, fields: &[&str]) {
    for field in fields {
        if let Some(Value::String(text)) = object.get_mut(*field)
            && let Ok(canonical) = time::canonical_micro(text)
        {
            *text = canonical;
        }
    }
}

/// The message about a value that is no microsecond time; `None` for a valid one.
pub fn micro_problem(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => time::canonical_micro(text).err(),
        other => Some(format!(
            "json: cannot unmarshal {} into Go value of type string",
            api_meta::decode::type_name(other)
        )),
    }
}
