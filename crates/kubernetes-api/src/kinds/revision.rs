//! ControllerRevision and PodTemplate: states that controllers store.

use api_meta::status::Cause;
use apiserver::fields::{items, map, str_of};
use apiserver::kind::cells::{self, NONE, number};
use apiserver::kind::normal::quantity_problem;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use serde_json::Value;

use super::{old_annotations, pod, template};

/// The kind ControllerRevision of the group `apps`: namespaced, with the validation and columns of
/// kube-apiserver.
pub fn controller_revision() -> Kind {
    Kind {
        columns: &[NAME, ("Controller", "string", "", 0), ("Revision", "string", "", 0), AGE],
        opaque: &["data"],
        hooks: Hooks {
            validate: |_, object, old| {
                let changed = old.is_some_and(|old| old["data"] != object["data"]);
                let text = "field is immutable";
                let cause = changed.then(|| Cause::invalid("data", &object["data"], text));
                cause.into_iter().collect()
            },
            cells: |object, now| {
                let owner = items(&object["metadata"]["ownerReferences"])
                    .iter()
                    .find(|owner| owner["controller"] == true);
                let owner = owner.map(|owner| {
                    let group = str_of(&owner["apiVersion"]).split_once('/').map(|(g, _)| g);
                    let kind = str_of(&owner["kind"]).to_lowercase();
                    let kind = group.map_or(kind.clone(), |group| format!("{kind}.{group}"));
                    format!("{kind}/{}", str_of(&owner["name"]))
                });
                vec![
                    cells::name(object),
                    owner.unwrap_or_else(|| NONE.to_owned()).into(),
                    number(&object["revision"]).into(),
                    cells::age(object, now),
                ]
            },
            ..Hooks::default()
        },
        ..Kind::new("apps", "controllerrevisions", "controllerrevision", "ControllerRevision")
    }
}

/// The kind PodTemplate of the core group: namespaced, with the defaults, validation and columns of
/// kube-apiserver.
pub fn pod_template() -> Kind {
    Kind {
        columns: &[
            NAME,
            ("Containers", "string", "", 0),
            ("Images", "string", "", 0),
            ("Pod Labels", "string", "", 0),
        ],
        hooks: Hooks {
            default: |object| {
                if let Some(object) = map(object) {
                    template::default(object);
                }
            },
            validate: |_, object, _| pod::validate::template("template", &object["template"]),
            decode_problem: |object| quantity_problem(&object["template"]),
            warnings: |object, old| old_annotations::of_template("template", object, old),
            cells: |object: &Value, _| {
                let (names, images) = cells::containers(&object["template"]["spec"]);
                let labels = cells::pairs(&object["template"]["metadata"]["labels"]);
                vec![cells::name(object), names, images, labels]
            },
            ..Hooks::default()
        },
        ..Kind::new("", "podtemplates", "podtemplate", "PodTemplate").counted().deleted_as_object()
    }
}
