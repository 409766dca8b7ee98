//! Decides which names a definition gets, and the conditions that report it. Pure.

use std::collections::BTreeSet;

use api_meta::object::ObjectExt;
use api_meta::time;
use serde_json::{Map, Value, json};

/// The annotation in which definitions of groups of the Kubernetes project state their API review.
pub const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";

/// Whether a group belongs to the Kubernetes project.
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|suffix| {
        group == *suffix || group.strip_suffix(suffix).is_some_and(|head| head.ends_with('.'))
    })
}

/// The desired status of a definition. `others` are all other definitions. `now` is in Unix seconds
/// and only used in conditions that change.
///
/// The first definition that requests a name gets it: a name that another definition of the group
/// has is not accepted, and accepted names are retained. An established definition remains
/// established.
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
    } else if !conditions.is_true("Established") {
        conditions.set("Established", false, "NotAccepted", "not all names are accepted");
    }
    if is_protected(crd["spec"]["group"].as_str().unwrap_or_default()) {
        approval(crd, &mut conditions);
    }
    if crd.is_terminating() && !conditions.is_true("Terminating") {
        let message = "CustomResource deletion is in progress";
        conditions.set("Terminating", true, "InstanceDeletionInProgress", message);
    }
    status.insert("conditions".to_owned(), conditions.list.into());
    status.insert("acceptedNames".to_owned(), accepted);
    let versions = stored_versions(crd);
    status.insert("storedVersions".to_owned(), versions.into());
    Value::Object(status)
}

/// Whether a definition with this status may be served.
pub fn is_established(status: &Value) -> bool {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// The stored versions of the status, with the current storage version added.
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

/// The names of a group that other definitions have.
#[derive(Default)]
struct NamesInUse<'a> {
    resources: BTreeSet<&'a str>,
    kinds: BTreeSet<&'a str>,
}

impl<'a> NamesInUse<'a> {
    fn of(crd: &Value, others: &[&'a Value]) -> Self {
        let mut in_use = Self::default();
        for other in others {
            let same = other.name() == crd.name() || other["spec"]["group"] != crd["spec"]["group"];
            if same {
                continue;
            }
            let names = &other["status"]["acceptedNames"];
            let short = names["shortNames"].as_array().into_iter().flatten();
            let resources = [&names["plural"], &names["singular"]].into_iter().chain(short);
            in_use.resources.extend(resources.filter_map(Value::as_str));
            let kinds = [&names["kind"], &names["listKind"]];
            in_use.kinds.extend(kinds.into_iter().filter_map(Value::as_str));
        }
        in_use.resources.remove("");
        in_use.kinds.remove("");
        in_use
    }
}

/// The accepted names, and the last conflict with its reason and message.
fn accept_names(crd: &Value, others: &[&Value]) -> (Value, Option<(&'static str, String)>) {
    let in_use = NamesInUse::of(crd, others);
    let requested = &crd["spec"]["names"];
    let mut accepted =
        crd["status"]["acceptedNames"].as_object().cloned().unwrap_or_else(empty_names);
    let mut conflict = None;
    let mut single = |key: &str, held: &BTreeSet<&str>, reason: &'static str| {
        let name = requested[key].as_str().unwrap_or_default();
        if held.contains(name) {
            conflict = Some((reason, format!("{name:?} is already in use")));
        } else if !name.is_empty() {
            accepted.insert(key.to_owned(), name.into());
        }
    };
    single("plural", &in_use.resources, "PluralConflict");
    single("singular", &in_use.resources, "SingularConflict");
    let short = requested["shortNames"].as_array().cloned().unwrap_or_default();
    let held: Vec<String> = short
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| in_use.resources.contains(*name))
        .map(|name| format!("{name:?} is already in use"))
        .collect();
    let short_conflict = match held.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    };
    single("kind", &in_use.kinds, "KindConflict");
    single("listKind", &in_use.kinds, "ListKindConflict");
    match short_conflict {
        // Conflicts of kinds are reported instead, like later conflicts.
        Some(message) => conflict = conflict.or(Some(("ShortNamesConflict", message))),
        None => replace_list(&mut accepted, "shortNames", short),
    }
    let categories = requested["categories"].as_array().cloned().unwrap_or_default();
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

/// A builder of conditions; a transition time changes only with the status.
pub(super) struct Conditions {
    pub(super) list: Vec<Value>,
    now: String,
}

impl Conditions {
    /// Starts with the conditions of a status. `now` is in Unix seconds.
    pub(super) fn of(status: &Map<String, Value>, now: i64) -> Self {
        let list = status.get("conditions").and_then(Value::as_array).cloned();
        Self { list: list.unwrap_or_default(), now: time::format_seconds(now) }
    }
    fn is_true(&self, kind: &str) -> bool {
        self.list.iter().any(|c| c["type"] == kind && c["status"] == "True")
    }
    /// Sets a condition to true unless it is true already.
    fn set_once(&mut self, kind: &str, reason: &str, message: &str) {
        if !self.is_true(kind) {
            self.set(kind, true, reason, message);
        }
    }
    /// Sets a condition. Its transition time becomes now if its status changes.
    pub(super) fn set(&mut self, kind: &str, is_true: bool, reason: &str, message: &str) {
        let status = if is_true { "True" } else { "False" };
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
