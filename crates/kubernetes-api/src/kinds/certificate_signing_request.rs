//! CertificateSigningRequest: the requester, the requested certificate, its approval and its
//! signature.
//!
//! A request names its requester, and never changes. `/approval` writes the conditions `Approved`
//! and `Denied`, `/status` the certificate and `Failed`. [`apiserver::admission`] checks the rights
//! on the signer.

mod validate;

use api_meta::names::NameRule;
use api_meta::time;
use apiserver::attributes::UserInfo;
use apiserver::fields::{ensure, items, map, str_of};
use apiserver::kind::cells;
use apiserver::kind::{AGE, FieldSpec, Hooks, Kind, NAME, PartialSubresource};
use apiserver::strategy::{Operation, Write};
use serde_json::{Value, json};

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";
const APPROVAL: &str = "approval";

/// The kind CertificateSigningRequest with its subresources `approval` and `status`.
pub fn kind() -> Kind {
    Kind {
        namespaced: false,
        short_names: &["csr"],
        name_rule: NameRule::PathSegment,
        parts: &[PartialSubresource {
            name: APPROVAL,
            writes: &[&["metadata"], &["status", "conditions"]],
            through_endpoint: false,
        }],
        columns: &[
            NAME,
            AGE,
            ("SignerName", "string", "", 0),
            ("Requestor", "string", "", 0),
            ("RequestedDuration", "string", "", 0),
            ("Condition", "string", "", 0),
        ],
        fields: vec![FieldSpec::text("spec.signerName")],
        hooks: Hooks {
            default: |object| {
                let Some(object) = map(object) else { return };
                ensure(object, "spec");
                ensure(object, "status");
            },
            prepare,
            validate: |write, object, old| {
                validate::all(write.operation == Operation::Part(APPROVAL), object, old)
            },
            validate_status: |object, old| validate::all(false, object, Some(old)),
            cells: row,
            ..Hooks::default()
        },
        ..Kind::new(GROUP, PLURAL, "certificatesigningrequest", "CertificateSigningRequest")
            .with_status()
    }
}

fn prepare(write: &Write<'_>, object: &mut Value, old: Option<&Value>) {
    match (write.operation, old) {
        (Operation::Create, _) => {
            let Some(spec) = map(object).and_then(|object| ensure(object, "spec")) else { return };
            for field in ["username", "uid", "groups", "extra"] {
                spec.remove(field);
            }
            let UserInfo { name, uid, groups, extra } = write.user;
            let reported = [
                ("username", json!(name), name.is_empty()),
                ("uid", json!(uid), uid.is_empty()),
                ("groups", json!(groups), groups.is_empty()),
                ("extra", json!(extra), extra.is_empty()),
            ];
            for (field, value, _) in reported.into_iter().filter(|(.., empty)| !empty) {
                spec.insert(field.to_owned(), value);
            }
        }
        (_, Some(old)) => {
            object["spec"] = old["spec"].clone();
            if write.operation != Operation::Update {
                date_conditions(object, old);
            }
        }
        _ => {}
    }
}

/// Sets the time of conditions that have none: that of an equal condition before, else now.
fn date_conditions(object: &mut Value, old: &Value) {
    let now = time::format_seconds(jiff::Timestamp::now().as_second());
    let conditions = object["status"].get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter(|condition| condition.is_object()) {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = now.clone().into();
        }
        if condition["lastTransitionTime"].is_null() {
            let same = |before: &&Value| {
                before["type"] == condition["type"] && before["status"] == condition["status"]
            };
            let before = items(&old["status"]["conditions"]).iter().find(same);
            let since = before.map(|before| before["lastTransitionTime"].clone());
            condition["lastTransitionTime"] =
                since.filter(Value::is_string).unwrap_or_else(|| now.clone().into());
        }
    }
}

fn row(object: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let has = |kind: &str| items(&status["conditions"]).iter().any(|c| c["type"] == kind);
    let mut state = String::from(match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    });
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !str_of(&status["certificate"]).is_empty() {
        state.push_str(",Issued");
    }
    let duration = spec["expirationSeconds"].as_i64().map(time::human_duration);
    vec![
        cells::name(object),
        cells::age(object, now),
        str_of(&spec["signerName"]).into(),
        str_of(&spec["username"]).into(),
        duration.unwrap_or_else(|| cells::NONE.to_owned()).into(),
        state.into(),
    ]
}
