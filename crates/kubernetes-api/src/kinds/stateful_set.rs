//! StatefulSet: pods with stable names and their own volumes.

use api_meta::status::Cause;
use apiserver::fields::{Object, each, ensure, map, preset, text};
use apiserver::kind::cells::{self, number};
use apiserver::kind::normal::quantity_problem;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use serde_json::Value;

use super::{old_annotations, status, template, volume};

/// Numbers of replicas that cannot exceed the total.
const PARTS: [&str; 4] =
    ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];

const MUTABLE: [&str; 7] = [
    "minReadySeconds",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "replicas",
    "revisionHistoryLimit",
    "template",
    "updateStrategy",
];

/// The kind StatefulSet of the group `apps`: namespaced, with the defaults, validation and columns
/// of kube-apiserver.
pub fn kind() -> Kind {
    Kind {
        short_names: &["sts"],
        categories: &["all"],
        columns: &[
            NAME,
            ("Ready", "string", "", 0),
            AGE,
            ("Containers", "string", "", 1),
            ("Images", "string", "", 1),
        ],
        hooks: Hooks {
            default,
            validate: |_, object, old| {
                let mut causes = template::validate(object, "statefulset");
                causes.extend(old.and_then(|old| immutable_change(&object["spec"], &old["spec"])));
                causes
            },
            validate_status: |object, old| {
                let status = &object["status"];
                let mut causes = status::counts(status, &["replicas"]);
                causes.extend(status::counts(status, &PARTS));
                causes.extend(status::counts(status, &["observedGeneration", "collisionCount"]));
                causes.extend(status::replicas(status, &PARTS, "status.readyReplicas"));
                causes.extend(status::collisions(status, &old["status"]));
                causes
            },
            decode_problem: |object| quantity_problem(&object["spec"]),
            warnings: |object, old| old_annotations::of_template("spec.template", object, old),
            cells: |object, now| {
                let (spec, status) = (&object["spec"], &object["status"]);
                let (names, images) = cells::containers(&spec["template"]["spec"]);
                let (ready, desired) =
                    (number(&status["readyReplicas"]), number(&spec["replicas"]));
                let ready = format!("{ready}/{desired}");
                vec![cells::name(object), ready.into(), cells::age(object, now), names, images]
            },
            ..Hooks::default()
        },
        ..Kind::new("apps", "statefulsets", "statefulset", "StatefulSet").with_status().counted()
    }
}

/// A cause for changes of fields that are immutable because pods have stable names and volumes.
fn immutable_change(new: &Value, old: &Value) -> Option<Cause> {
    let fixed = |spec: &Value| {
        let fields = spec.as_object().into_iter().flatten();
        let fields = fields.filter(|(field, _)| !MUTABLE.contains(&field.as_str()));
        fields.map(|(field, value)| (field.clone(), value.clone())).collect::<Object>()
    };
    let text = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                'template', 'updateStrategy', 'revisionHistoryLimit', \
                'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    (fixed(new) != fixed(old)).then(|| Cause::forbidden("spec", text))
}

fn default(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(status) = ensure(object, "status") {
        preset(status, "replicas", 0);
        preset(status, "availableReplicas", 0);
    }
    let Some(spec) = ensure(object, "spec") else { return };
    preset(spec, "replicas", 1);
    preset(spec, "revisionHistoryLimit", 10);
    preset(spec, "podManagementPolicy", "OrderedReady");
    if let Some(policy) = ensure(spec, "persistentVolumeClaimRetentionPolicy") {
        preset(policy, "whenDeleted", "Retain");
        preset(policy, "whenScaled", "Retain");
    }
    if let Some(strategy) = ensure(spec, "updateStrategy") {
        preset(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = ensure(strategy, "rollingUpdate")
        {
            preset(rolling, "partition", 0);
        }
    }
    template::default(spec);
    each(spec, "volumeClaimTemplates", |claim| {
        preset(claim, "apiVersion", "v1");
        preset(claim, "kind", "PersistentVolumeClaim");
        volume::default_claim(claim);
    });
}
