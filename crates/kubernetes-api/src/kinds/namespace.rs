//! Namespace: its finalizers in `spec`, its phase, its name as a label, and protected namespaces.

use api_meta::names;
use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use apiserver::fields::{ensure, items, map, preset, str_of};
use apiserver::kind::cells;
use apiserver::kind::{AGE, FieldSpec, Hooks, Kind, NAME};
use apiserver::resource::NameRule;
use apiserver::strategy::{Operation, Write};
use serde_json::{Value, json};

/// The label that contains the name of every namespace.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The finalizer in `spec.finalizers` of a namespace until its contents are deleted.
pub const FINALIZER: &str = "kubernetes";
/// Namespaces that cannot be deleted.
pub const PROTECTED: &[&str] = &["default", "kube-public", "kube-system"];

/// The kind Namespace with its subresource `finalize`.
pub fn kind() -> Kind {
    Kind {
        namespaced: false,
        short_names: &["ns"],
        name_rule: NameRule::Dns1123Label,
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        finalize: true,
        columns: &[NAME, ("Status", "string", "", 0), AGE],
        fields: vec![FieldSpec::text("status.phase")],
        hooks: Hooks {
            default,
            prepare,
            validate,
            validate_status: |object, _| status_problem(object).into_iter().collect(),
            admit_delete,
            cells: |object, now| {
                let phase = str_of(&object["status"]["phase"]);
                vec![cells::name(object), phase.into(), cells::age(object, now)]
            },
            holds: |object| !items(&object["spec"]["finalizers"]).is_empty(),
            ..Hooks::default()
        },
        ..Kind::new("", "namespaces", "namespace", "Namespace").with_status().deleted_as_object()
    }
}

fn default(object: &mut Value) {
    let name = object.name().to_owned();
    if let Some(metadata) = map(object).and_then(|object| ensure(object, "metadata"))
        && let Some(labels) = ensure(metadata, "labels")
        && !name.is_empty()
    {
        labels.insert(NAME_LABEL.to_owned(), name.into());
    }
    let Some(object) = map(object) else { return };
    ensure(object, "spec");
    if let Some(status) = ensure(object, "status") {
        preset(status, "phase", "Active");
    }
}

fn prepare(write: &Write<'_>, object: &mut Value, old: Option<&Value>) {
    match (write.operation, old) {
        (Operation::Create, _) => {
            let mut finalizers = object["spec"]["finalizers"].take();
            if !items(&finalizers).contains(&FINALIZER.into()) {
                let mut list = items(&finalizers).to_vec();
                list.push(FINALIZER.into());
                finalizers = list.into();
            }
            // A generated name is only known here.
            default(object);
            object["spec"]["finalizers"] = finalizers;
            object["status"] = json!({"phase": "Active"});
        }
        (Operation::Delete, _) => {
            object.remove_meta("deletionGracePeriodSeconds");
            if object["status"].is_object() {
                object["status"]["phase"] = "Terminating".into();
            }
        }
        // Only the finalize endpoint changes finalizers.
        (Operation::Update, Some(old)) if object["spec"].is_object() => {
            object["spec"]["finalizers"] = old["spec"]["finalizers"].clone();
        }
        _ => {}
    }
}

fn validate(write: &Write<'_>, object: &Value, _old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, finalizer) in items(&object["spec"]["finalizers"]).iter().enumerate() {
        let text = str_of(finalizer);
        let field = match write.operation {
            Operation::Finalize => format!("spec.finalizers[{index}]"),
            _ => "spec.finalizers".to_owned(),
        };
        for problem in names::qualified_name(text) {
            causes.push(Cause::invalid(&field, finalizer, &problem));
        }
        if text != FINALIZER && !text.contains('/') {
            let problem = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(&field, finalizer, problem));
        }
    }
    causes
}

/// The phase must agree with whether the namespace is being deleted.
fn status_problem(object: &Value) -> Option<Cause> {
    let (expected, is) = match object.is_terminating() {
        true => ("Terminating", "is not empty"),
        false => ("Active", "is empty"),
    };
    let phase = &object["status"]["phase"];
    let text = format!("may only be '{expected}' if `deletionTimestamp` {is}");
    (phase != expected).then(|| Cause::invalid("status.Phase", phase, &text))
}

fn admit_delete(write: &Write<'_>) -> Result<(), Status> {
    if PROTECTED.contains(&write.name) {
        let text = "this namespace may not be deleted";
        return Err(Status::forbidden("", "namespaces", write.name, text));
    }
    Ok(())
}
