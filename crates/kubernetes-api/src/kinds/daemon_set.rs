//! DaemonSet: one pod on every node.

use api_meta::object::ObjectExt;
use apiserver::fields::{ensure, map, preset, text};
use apiserver::kind::cells::{self, number};
use apiserver::kind::normal::quantity_problem;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use apiserver::strategy::{Operation, Write};
use serde_json::Value;

use super::{old_annotations, status, template};

/// Non-negative numbers in its status.
const COUNTS: [&str; 9] = [
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
];

/// Counts the changes of the template; old clients read it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The kind DaemonSet of the group `apps`: namespaced, with the defaults, validation and columns of
/// kube-apiserver.
pub fn kind() -> Kind {
    Kind {
        short_names: &["ds"],
        categories: &["all"],
        columns: &[
            NAME,
            ("Desired", "integer", "", 0),
            ("Current", "integer", "", 0),
            ("Ready", "integer", "", 0),
            ("Up-to-date", "integer", "", 0),
            ("Available", "integer", "", 0),
            ("Node Selector", "string", "", 0),
            AGE,
            ("Containers", "string", "", 1),
            ("Images", "string", "", 1),
            ("Selector", "string", "", 1),
        ],
        hooks: Hooks {
            default,
            prepare,
            validate: |_, object, old| {
                let mut causes: Vec<_> =
                    template::selector_change(object, old).into_iter().collect();
                causes.extend(template::validate(object, "daemonset"));
                causes
            },
            validate_status: |object, old| {
                let mut causes = status::counts(&object["status"], &COUNTS);
                causes.extend(status::collisions(&object["status"], &old["status"]));
                causes
            },
            decode_problem: |object| quantity_problem(&object["spec"]),
            warnings: |object, old| {
                if old.is_some_and(|old| old["spec"]["template"] == object["spec"]["template"]) {
                    return Vec::new();
                }
                old_annotations::of_template("spec.template", object, None)
            },
            cells: row,
            ..Hooks::default()
        },
        ..Kind::new("apps", "daemonsets", "daemonset", "DaemonSet").with_status().counted()
    }
}

fn default(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(status) = ensure(object, "status") {
        for field in [
            "currentNumberScheduled",
            "desiredNumberScheduled",
            "numberMisscheduled",
            "numberReady",
        ] {
            preset(status, field, 0);
        }
    }
    let Some(spec) = ensure(object, "spec") else { return };
    preset(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = ensure(spec, "updateStrategy") {
        preset(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = ensure(strategy, "rollingUpdate")
        {
            preset(rolling, "maxUnavailable", 1);
            preset(rolling, "maxSurge", 0);
        }
    }
    template::default(spec);
}

fn prepare(write: &Write<'_>, object: &mut Value, old: Option<&Value>) {
    let generation = match (write.operation, old) {
        (Operation::Create, _) => 1,
        (Operation::Update, Some(old)) => {
            let before: i64 =
                old.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse().ok()).unwrap_or(1);
            let same = old["spec"]["template"] == object["spec"]["template"];
            before + i64::from(!same)
        }
        _ => return,
    };
    let metadata = object.meta_mut();
    if let Some(annotations) = ensure(metadata, "annotations") {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
    }
}

fn row(object: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (names, images) = cells::containers(&spec["template"]["spec"]);
    vec![
        cells::name(object),
        number(&status["desiredNumberScheduled"]).into(),
        number(&status["currentNumberScheduled"]).into(),
        number(&status["numberReady"]).into(),
        number(&status["updatedNumberScheduled"]).into(),
        number(&status["numberAvailable"]).into(),
        cells::pairs(&spec["template"]["spec"]["nodeSelector"]),
        cells::age(object, now),
        names,
        images,
        cells::selector(&spec["selector"]),
    ]
}
