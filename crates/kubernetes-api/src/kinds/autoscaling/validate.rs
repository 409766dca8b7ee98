//! Validation of the spec of a HorizontalPodAutoscaler, with kube-apiserver's messages and order.

use api_meta::names;
use api_meta::quantity::Quantity;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use apiserver::kind::cells::number;
use serde_json::Value;

use crate::kinds::pod;

const WINDOW_SECONDS_MAX: i64 = 3600;
const PERIOD_SECONDS_MAX: i64 = 1800;
const SELECT_POLICIES: [&str; 3] = ["Disabled", "Max", "Min"];
const POLICIES: [&str; 2] = ["Percent", "Pods"];
const METRICS: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const TARGETS: [&str; 3] = ["Utilization", "Value", "AverageValue"];
const NOT_POSITIVE: &str = "must be greater than zero";

/// Sources in the order of validation. When several are set, the first one is validated.
const SOURCES: [(&str, MetricCheck); 5] = [
    ("object", of_object),
    ("external", of_external),
    ("pods", of_pods),
    ("resource", of_resource),
    ("containerResource", of_container),
];

type MetricCheck = fn(&str, &Value, Group, &mut Vec<Cause>);

/// The requirement on the API group of a reference.
#[derive(Clone, Copy)]
enum Group {
    Named,
    /// The core group, whose name is empty, is also allowed.
    AnyOrNone,
    /// It was there before the update, and is not validated.
    Unchecked,
}

/// Returns all causes to refuse `spec`. `old` is the spec before an update.
pub fn validate(spec: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    counts(spec, old, &mut causes);
    let target = &spec["scaleTargetRef"];
    let is_kept =
        |field: &str| old.is_some_and(|old| old["scaleTargetRef"][field] == target[field]);
    let group = match str_of(&target["kind"]) {
        _ if is_kept("apiVersion") && is_kept("kind") => Group::Unchecked,
        "ReplicationController" => Group::AnyOrNone,
        _ => Group::Named,
    };
    reference("spec.scaleTargetRef", target, group, &mut causes);
    metrics(spec, old, &mut causes);
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][direction];
        if rules.is_object() {
            scaling(&format!("spec.behavior.{direction}"), rules, &mut causes);
        }
    }
    causes
}

fn counts(spec: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let least = spec["minReplicas"].as_i64();
    let bound = i64::from(old.is_none_or(|old| old["minReplicas"] != 0));
    if least.is_some_and(|least| least < bound) {
        let text = format!("must be greater than or equal to {bound}");
        causes.push(Cause::invalid("spec.minReplicas", &spec["minReplicas"], &text));
    }
    let (field, most) = ("spec.maxReplicas", number(&spec["maxReplicas"]));
    if most == 0 {
        causes.push(Cause::required(field, "must be set and greater than 0"));
    } else if most < 0 {
        causes.push(Cause::invalid(field, &most.into(), "must be greater than or equal to 1"));
    }
    if least.is_some_and(|least| most < least) {
        let text = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid(field, &most.into(), text));
    }
}

fn reference(field: &str, target: &Value, group: Group, causes: &mut Vec<Cause>) {
    for part in ["kind", "name"] {
        segment(&format!("{field}.{part}"), &target[part], "", causes);
    }
    let version = str_of(&target["apiVersion"]);
    if let Some(problem) = version_problem(version, group) {
        causes.push(Cause::invalid(format!("{field}.apiVersion"), &version.into(), &problem));
    }
}

fn version_problem(version: &str, group: Group) -> Option<String> {
    match (group, version.matches('/').count()) {
        (Group::Unchecked, _) => None,
        (_, 2..) => Some(format!("unexpected GroupVersion string: {version}")),
        (Group::Named, 0) => Some("apiVersion must specify API group".to_owned()),
        (Group::Named, _) if version.starts_with('/') => {
            Some("apiVersion must specify API group".to_owned())
        }
        _ => None,
    }
}

/// A name that is a segment of a path.
fn segment(field: &str, name: &Value, missing: &str, causes: &mut Vec<Cause>) {
    let name = str_of(name);
    if name.is_empty() {
        causes.push(Cause::required(field, missing));
    }
    let problems = names::path_segment(name, false);
    causes.extend(problems.iter().map(|why| Cause::invalid(field, &name.into(), why)));
}

fn metrics(spec: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let (field, list) = ("spec.metrics", items(&spec["metrics"]));
    let was_wrong = |metric: &Value| {
        let version = str_of(&metric["object"]["describedObject"]["apiVersion"]);
        metric["type"] == "Object" && version_problem(version, Group::AnyOrNone).is_some()
    };
    let before = old.map(|old| items(&old["metrics"])).unwrap_or_default();
    let group = if before.iter().any(was_wrong) { Group::Unchecked } else { Group::AnyOrNone };
    for (index, given) in list.iter().enumerate() {
        metric(&format!("{field}[{index}]"), given, group, causes);
    }
    let is_outside = |metric: &Value| matches!(str_of(&metric["type"]), "Object" | "External");
    if spec["minReplicas"] == 0 && !list.iter().any(is_outside) {
        let text = "must specify at least one Object or External metric to support scaling to \
                    zero replicas";
        causes.push(Cause::forbidden(field, text));
    }
}

fn metric(field: &str, metric: &Value, group: Group, causes: &mut Vec<Cause>) {
    let kind = str_of(&metric["type"]);
    let of_kind = format!("{field}.type");
    let unknown = || Cause::not_supported(&*of_kind, &kind.into(), &METRICS);
    if kind.is_empty() {
        causes.push(Cause::required(&*of_kind, "must specify a metric source type"));
    }
    if !METRICS.contains(&kind) {
        causes.push(unknown());
    }
    let given: Vec<_> = SOURCES.iter().filter(|(name, _)| metric[name].is_object()).collect();
    if let Some((name, check)) = given.first() {
        check(&format!("{field}.{name}"), &metric[name], group, causes);
    }
    let expected =
        SOURCES.iter().map(|(name, _)| *name).find(|name| name.eq_ignore_ascii_case(kind));
    match expected.filter(|_| METRICS.contains(&kind)) {
        None => causes.push(unknown()),
        Some(name) if !metric[name].is_object() => {
            let text = "must populate information for the given metric source";
            causes.push(Cause::required(format!("{field}.{name}"), text));
        }
        Some(_) => {}
    }
    if given.len() > 1 {
        let others = given.iter().filter(|(name, _)| Some(*name) != expected);
        let text = "must populate the given metric source only";
        causes.extend(others.map(|(name, _)| Cause::forbidden(format!("{field}.{name}"), text)));
    }
}

fn of_object(field: &str, source: &Value, group: Group, causes: &mut Vec<Cause>) {
    reference(&format!("{field}.describedObject"), &source["describedObject"], group, causes);
    named(field, source, causes);
    let text = "must set either a target value or averageValue";
    target(field, source, ["value", "averageValue"], ("averageValue", text), causes);
}

fn of_external(field: &str, source: &Value, _: Group, causes: &mut Vec<Cause>) {
    named(field, source, causes);
    let text = "must set either a target value for metric or a per-pod target";
    target(field, source, ["value", "averageValue"], ("averageValue", text), causes);
    let given = &source["target"];
    if !given["value"].is_null() && !given["averageValue"].is_null() {
        let text = "may not set both a target value for metric and a per-pod target";
        causes.push(Cause::forbidden(format!("{field}.target.value"), text));
    }
}

fn of_pods(field: &str, source: &Value, _: Group, causes: &mut Vec<Cause>) {
    named(field, source, causes);
    let text = "must specify a positive target averageValue";
    target(field, source, ["averageValue"; 2], ("averageValue", text), causes);
}

fn of_resource(field: &str, source: &Value, _: Group, causes: &mut Vec<Cause>) {
    if str_of(&source["name"]).is_empty() {
        causes.push(Cause::required(format!("{field}.name"), "must specify a resource name"));
    }
    of_use(field, source, causes);
}

fn of_container(field: &str, source: &Value, _: Group, causes: &mut Vec<Cause>) {
    let checks: [(&str, &str, names::NameCheck); 2] = [
        ("name", "must specify a resource name", pod::validate::container_name_problems),
        ("container", "must specify a container", names::dns1123_label),
    ];
    for (part, missing, check) in checks {
        let (field, name) = (format!("{field}.{part}"), str_of(&source[part]));
        if name.is_empty() {
            causes.push(Cause::required(field, missing));
            continue;
        }
        causes.extend(check(name).iter().map(|why| Cause::invalid(&*field, &name.into(), why)));
    }
    of_use(field, source, causes);
}

/// The target for the use of pods: a value, or a percentage of their requests.
fn of_use(field: &str, source: &Value, causes: &mut Vec<Cause>) {
    let text = "must set either a target raw value or a target utilization";
    let either = ["averageUtilization", "averageValue"];
    target(field, source, either, ("averageUtilization", text), causes);
    if either.iter().all(|part| !source["target"][part].is_null()) {
        let text = "may not set both a target raw value and a target utilization";
        causes.push(Cause::forbidden(format!("{field}.target.averageValue"), text));
    }
}

fn named(field: &str, source: &Value, causes: &mut Vec<Cause>) {
    let name = &source["metric"]["name"];
    segment(&format!("{field}.metric.name"), name, "must specify a metric name", causes);
}

/// The target of a source, which must have one field of `either`; `missing` is the message when it
/// has none.
fn target(
    field: &str,
    source: &Value,
    either: [&str; 2],
    missing: (&str, &str),
    causes: &mut Vec<Cause>,
) {
    let (field, target) = (format!("{field}.target"), &source["target"]);
    let kind = str_of(&target["type"]);
    let of_kind = format!("{field}.type");
    if kind.is_empty() {
        causes.push(Cause::required(&*of_kind, "must specify a metric target type"));
    }
    if !TARGETS.contains(&kind) {
        let text = "must be either Utilization, Value, or AverageValue";
        causes.push(Cause::invalid(of_kind, &kind.into(), text));
    }
    for part in ["value", "averageValue"] {
        let amount = str_of(&target[part]).parse::<Quantity>();
        if amount.is_ok_and(|amount| amount <= Quantity::from_whole(0)) {
            causes.push(Cause::invalid(
                format!("{field}.{part}"),
                &target[part],
                "must be positive",
            ));
        }
    }
    let percent = &target["averageUtilization"];
    if percent.as_i64().is_some_and(|percent| percent < 1) {
        let field = format!("{field}.averageUtilization");
        causes.push(Cause::invalid(field, percent, "must be greater than 0"));
    }
    if either.iter().all(|part| target[part].is_null()) {
        causes.push(Cause::required(format!("{field}.{}", missing.0), missing.1));
    }
}

fn scaling(field: &str, rules: &Value, causes: &mut Vec<Cause>) {
    let (window, path) =
        (&rules["stabilizationWindowSeconds"], format!("{field}.stabilizationWindowSeconds"));
    match window.as_i64() {
        Some(..0) => {
            causes.push(Cause::invalid(path, window, "must be greater than or equal to zero"));
        }
        Some(seconds) if seconds > WINDOW_SECONDS_MAX => {
            let text = format!("must be less than or equal to {WINDOW_SECONDS_MAX}");
            causes.push(Cause::invalid(path, window, &text));
        }
        _ => {}
    }
    let select = &rules["selectPolicy"];
    if !select.is_null() && !SELECT_POLICIES.contains(&str_of(select)) {
        let path = format!("{field}.selectPolicy");
        causes.push(Cause::not_supported(path, select, &SELECT_POLICIES));
    }
    let (path, policies) = (format!("{field}.policies"), items(&rules["policies"]));
    if policies.is_empty() {
        causes.push(Cause::required(&*path, "must specify at least one Policy"));
    }
    for (index, given) in policies.iter().enumerate() {
        policy(&format!("{path}[{index}]"), given, causes);
    }
    let tolerance = &rules["tolerance"];
    if str_of(tolerance).parse().is_ok_and(|amount: Quantity| amount.is_negative()) {
        let text = "must be greater than or equal to 0";
        causes.push(Cause::invalid(format!("{field}.tolerance"), tolerance, text));
    }
}

fn policy(field: &str, policy: &Value, causes: &mut Vec<Cause>) {
    let kind = str_of(&policy["type"]);
    if !POLICIES.contains(&kind) {
        causes.push(Cause::not_supported(format!("{field}.type"), &kind.into(), &POLICIES));
    }
    for part in ["value", "periodSeconds"] {
        let count = number(&policy[part]);
        if count <= 0 {
            causes.push(Cause::invalid(format!("{field}.{part}"), &count.into(), NOT_POSITIVE));
        }
    }
    let period = &policy["periodSeconds"];
    if number(period) > PERIOD_SECONDS_MAX {
        let text = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
        causes.push(Cause::invalid(format!("{field}.periodSeconds"), period, &text));
    }
}
