//! Which names a definition is given, and the conditions that tell it. Pure.

use std::collections::BTreeSet;

use api_meta::object::ObjectExt;
use api_meta::time;
use serde_json::{Map, Value, json};

/// The annotation by which definitions in groups of the Kubernetes project state their review.
pub const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";

/// Whether a group belongs to the Kubernetes project.
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|suffix| {
        group == *suffix || group.strip_suffix(suffix).is_some_and(|head| head.ends_with('.'))
    })
}

/// The status a definition should have beside `others`, all other definitions. `now` is unix
/// seconds and only shows in conditions that change.
///
/// Names are given first come, first served: a name that another definition of the group holds is
/// not accepted, and the names accepted before stay. Once established, a definition stays so.
pub fn desired_status(crd: &Value, others: &[&Value], now: i64) -> Value {
    let mut status = crd["status"].as_object().cloned().unwrap_or_default();
    let (accepted, conflict) = accept_names(crd, others);
    let mut conditions = Conditions::of(&status, now);
    match &conflict {
        Some((reason, message)) => conditions.set("NamesAccepted", false, reason, message),
        None => conditions.set("NamesAccepted", true, "NoConflicts", "no conflicts found"),
    }
    if conflict.is_none() {
        let message = "the initial names have been accepted";
        conditions.set_once("Established", "InitialNamesAccepted", message);
    } else if !conditions.holds("Established") {
        conditions.set("Established", false, "NotAccepted", "not all names are accepted");
    }
    if is_protected(crd["spec"]["group"].as_str().unwrap_or_default()) {
        approval(crd, &mut conditions);
    }
    if crd.is_terminating() && !conditions.holds("Terminating") {
        let message = "CustomResource deletion is in progress";
        conditions.set("Terminating", true, "InstanceDeletionInProgress", message);
    }
    status.insert("conditions".to_owned(), conditions.list.into());
    status.insert("acceptedNames".to_owned(), accepted);
    let versions = stored_versions(crd);
    status.insert("storedVersions".to_owned(), versions.into());
    Value::Object(status)
}

/// Whether the definition in this status may be served.
pub fn is_established(status: &Value) -> bool {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// The status's stored versions, with the present storage version.
pub fn stored_versions(crd: &Value) -> Vec<Value> {
    let mut stored = crd["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let storage = versions.into_iter().find(|version| version["storage"] == true);
    if let Some(name) = storage.map(|version| version["name"].clone())
        && !stored.contains(&name)
    {
        stored.push(name);
    }
    stored
}

/// The names of a group that other definitions hold.
#[derive(Default)]
struct Taken<'a> {
    resources: BTreeSet<&'a str>,
    kinds: BTreeSet<&'a str>,
}

impl<'a> Taken<'a> {
    fn by(crd: &Value, others: &[&'a Value]) -> Self {
        let mut taken = Self::default();
        for other in others {
            let same = other.name() == crd.name() || other["spec"]["group"] != crd["spec"]["group"];
            if same {
                continue;
            }
            let names = &other["status"]["acceptedNames"];
            let short = names["shortNames"].as_array().into_iter().flatten();
            let resources = [&names["plural"], &names["singular"]].into_iter().chain(short);
            taken.resources.extend(resources.filter_map(Value::as_str));
            let kinds = [&names["kind"], &names["listKind"]];
            taken.kinds.extend(kinds.into_iter().filter_map(Value::as_str));
        }
        taken.resources.remove("");
        taken.kinds.remove("");
        taken
    }
}

/// The accepted names, and the last conflict: reason and message.
fn accept_names(crd: &Value, others: &[&Value]) -> (Value, Option<(&'static str, String)>) {
    let taken = Taken::by(crd, others);
    let wanted = &crd["spec"]["names"];
    let mut accepted =
        crd["status"]["acceptedNames"].as_object().cloned().unwrap_or_else(empty_names);
    let mut conflict = None;
    let mut single = |key: &str, held: &BTreeSet<&str>, reason: &'static str| {
        let name = wanted[key].as_str().unwrap_or_default();
        if held.contains(name) {
            conflict = Some((reason, format!("{name:?} is already in use")));
        } else if !name.is_empty() {
            accepted.insert(key.to_owned(), name.into());
        }
    };
    single("plural", &taken.resources, "PluralConflict");
    single("singular", &taken.resources, "SingularConflict");
    let short = wanted["shortNames"].as_array().cloned().unwrap_or_default();
    let held: Vec<String> = short
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| taken.resources.contains(*name))
        .map(|name| format!("{name:?} is already in use"))
        .collect();
    let short_conflict = match held.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    };
    single("kind", &taken.kinds, "KindConflict");
    single("listKind", &taken.kinds, "ListKindConflict");
    match short_conflict {
        // Conflicts of kinds are told in its stead, as the later ones are.
        Some(message) => conflict = conflict.or(Some(("ShortNamesConflict", message))),
        None => replace_list(&mut accepted, "shortNames", short),
    }
    let categories = wanted["categories"].as_array().cloned().unwrap_or_default();
    replace_list(&mut accepted, "categories", categories);
    (Value::Object(accepted), conflict)
}

fn replace_list(names: &mut Map<String, Value>, key: &str, list: Vec<Value>) {
    if list.is_empty() {
        names.remove(key);
    } else {
        names.insert(key.to_owned(), list.into());
    }
}

fn empty_names() -> Map<String, Value> {
    let names = json!({"plural": "", "kind": ""});
    names.as_object().cloned().unwrap_or_default()
}

fn approval(crd: &Value, conditions: &mut Conditions) {
    const TYPE: &str = "KubernetesAPIApprovalPolicyConformant";
    let annotation = crd.annotation(APPROVAL_ANNOTATION).unwrap_or_default();
    if annotation.starts_with("https://") || annotation.starts_with("http://") {
        let message = format!("approved in {annotation}");
        conditions.set(TYPE, true, "ApprovedAnnotation", &message);
    } else if annotation.starts_with("unapproved") {
        let message = format!("not approved: {annotation:?}");
        conditions.set(TYPE, false, "UnapprovedAnnotation", &message);
    } else if !annotation.is_empty() {
        let message = format!(
            "protected groups must have approval annotation {APPROVAL_ANNOTATION:?} with either a \
             URL or a reason starting with \"unapproved\", see \
             https://github.com/kubernetes/enhancements/pull/1111"
        );
        conditions.set(TYPE, false, "InvalidAnnotation", &message);
    }
}

/// Conditions in the making; a transition time moves only with the status.
pub(super) struct Conditions {
    pub(super) list: Vec<Value>,
    now: String,
}

impl Conditions {
    pub(super) fn of(status: &Map<String, Value>, now: i64) -> Self {
        let list = status.get("conditions").and_then(Value::as_array).cloned();
        Self { list: list.unwrap_or_default(), now: time::format_seconds(now) }
    }
    fn holds(&self, kind: &str) -> bool {
        self.list.iter().any(|c| c["type"] == kind && c["status"] == "True")
    }
    /// Sets a condition to true unless it is already.
    fn set_once(&mut self, kind: &str, reason: &str, message: &str) {
        if !self.holds(kind) {
            self.set(kind, true, reason, message);
        }
    }
    pub(super) fn set(&mut self, kind: &str, holds: bool, reason: &str, message: &str) {
        let status = if holds { "True" } else { "False" };
        let before = self.list.iter_mut().find(|condition| condition["type"] == kind);
        let since = before
            .as_ref()
            .filter(|condition| condition["status"] == status)
            .and_then(|condition| condition["lastTransitionTime"].as_str())
            .unwrap_or(&self.now)
            .to_owned();
        let condition = json!({
            "type": kind, "status": status, "lastTransitionTime": since,
            "reason": reason, "message": message,
        });
        match before {
            Some(before) => *before = condition,
            None => self.list.push(condition),
        }
    }
}
