//! Validation of FlowSchemas and priority levels. Pure; the messages are those of Kubernetes.

use api_meta::names;
use api_meta::object::ObjectExt;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use apiserver::flow_control::bootstrap::{self, EXEMPT};
use serde_json::{Value, json};

const PRECEDENCE_MAX: i64 = 10_000;
const QUEUES_MAX: i64 = 10_000_000;
/// Number of bits of a hash that the choice of a hand may use.
const ENTROPY_BITS_MAX: u32 = 60;
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub(super) fn flow_schema(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (name, spec) = (object.name(), &object["spec"]);
    let precedence = &spec["matchingPrecedence"];
    let field = "spec.matchingPrecedence";
    match precedence.as_i64().unwrap_or_default() {
        number if number <= 0 => {
            causes.push(Cause::invalid(field, precedence, "must be a positive value"));
        }
        number if number > PRECEDENCE_MAX => {
            let text = format!("must not be greater than {PRECEDENCE_MAX}");
            causes.push(Cause::invalid(field, precedence, &text));
        }
        1 if name != EXEMPT => {
            let text = "only the schema named 'exempt' may have matchingPrecedence 1";
            causes.push(Cause::invalid(field, precedence, text));
        }
        _ => {}
    }
    let method = &spec["distinguisherMethod"];
    if !method.is_null() && !matches!(str_of(&method["type"]), "ByNamespace" | "ByUser") {
        let shown = json!({"Type": method["type"]});
        let known = ["ByNamespace", "ByUser"];
        causes.push(Cause::not_supported("spec.distinguisherMethod.type", &shown, &known));
    }
    let field = "spec.priorityLevelConfiguration.name";
    let level = &spec["priorityLevelConfiguration"]["name"];
    if str_of(level).is_empty() {
        causes.push(Cause::required(field, "must reference a priority level"));
    } else {
        let problems = names::dns1123_subdomain(str_of(level));
        causes.extend(problems.iter().map(|text| Cause::invalid(field, level, text)));
    }
    for (index, rule) in items(&spec["rules"]).iter().enumerate() {
        rules(rule, &format!("spec.rules[{index}]"), &mut causes);
    }
    validate_fixed_spec(object, bootstrap::flow_schemas(), &mut causes);
    causes
}

/// The mandatory objects have a fixed spec.
fn validate_fixed_spec(object: &Value, initial: Vec<Value>, causes: &mut Vec<Cause>) {
    let name = object.name();
    let expected = initial.into_iter().find(|expected| expected.name() == name);
    let Some(expected) = expected.filter(|_| bootstrap::is_mandatory(name)) else { return };
    if object["spec"] != expected["spec"] {
        let text = format!("spec of '{name}' must equal the fixed value");
        causes.push(Cause::invalid("spec", &object["spec"], &text));
    }
}

fn rules(rule: &Value, path: &str, causes: &mut Vec<Cause>) {
    let subjects = items(&rule["subjects"]);
    if subjects.is_empty() {
        let text = "subjects must contain at least one value";
        causes.push(Cause::required(format!("{path}.subjects"), text));
    }
    for (index, subject) in subjects.iter().enumerate() {
        self::subject(subject, &format!("{path}.subjects[{index}]"), causes);
    }
    let resources = items(&rule["resourceRules"]);
    let paths = items(&rule["nonResourceRules"]);
    if resources.is_empty() && paths.is_empty() {
        let text = "at least one of resourceRules and nonResourceRules has to be non-empty";
        causes.push(Cause::required(path, text));
    }
    for (index, rule) in resources.iter().enumerate() {
        resource_rule(rule, &format!("{path}.resourceRules[{index}]"), causes);
    }
    for (index, rule) in paths.iter().enumerate() {
        path_rule(rule, &format!("{path}.nonResourceRules[{index}]"), causes);
    }
}

fn subject(subject: &Value, path: &str, causes: &mut Vec<Cause>) {
    let kind = str_of(&subject["kind"]);
    let kinds = [("User", "user"), ("Group", "group"), ("ServiceAccount", "serviceAccount")];
    if !kinds.iter().any(|(known, _)| *known == kind) {
        let known = ["Group", "ServiceAccount", "User"];
        causes.push(Cause::not_supported(format!("{path}.kind"), &subject["kind"], &known));
        return;
    }
    for (of, field) in kinds {
        let (value, at) = (&subject[field], format!("{path}.{field}"));
        if of != kind && !value.is_null() {
            let text = format!("{field} is forbidden when subject kind is not '{of}'");
            causes.push(Cause::forbidden(at, &text));
        } else if of == kind && value.is_null() {
            let text = format!("{field} is required when subject kind is '{of}'");
            causes.push(Cause::required(at, &text));
        } else if of == kind {
            if str_of(&value["name"]).is_empty() {
                causes.push(Cause::required(format!("{at}.name"), ""));
            }
            if field == "serviceAccount" && str_of(&value["namespace"]).is_empty() {
                let text = "must specify namespace for service account";
                causes.push(Cause::required(format!("{at}.namespace"), text));
            }
        }
    }
}

/// A list in which `*` must be the only item. `missing` is the message for an empty list.
fn wildcards(list: &Value, path: &str, what: &str, missing: &str, causes: &mut Vec<Cause>) -> bool {
    let all = items(list);
    if all.is_empty() {
        causes.push(Cause::required(path, missing));
        return false;
    }
    let has_all = all.iter().any(|item| item == "*");
    if has_all && all.len() > 1 {
        let text = format!("if '*' is present, must not specify other {what}");
        causes.push(Cause::invalid(path, list, &text));
    }
    !has_all
}

fn verbs(rule: &Value, path: &str, causes: &mut Vec<Cause>) {
    let (list, path) = (&rule["verbs"], format!("{path}.verbs"));
    let missing = "verbs must contain at least one value";
    let plain = wildcards(list, &path, "verbs", missing, causes);
    if plain && !items(list).iter().all(|verb| VERBS.contains(&str_of(verb))) {
        causes.push(Cause::not_supported(path, list, &VERBS));
    }
}

fn resource_rule(rule: &Value, path: &str, causes: &mut Vec<Cause>) {
    verbs(rule, path, causes);
    for (field, what, one) in
        [("apiGroups", "api groups", "api group"), ("resources", "resources", "resource")]
    {
        let missing = format!("resource rules must supply at least one {one}");
        wildcards(&rule[field], &format!("{path}.{field}"), what, &missing, causes);
    }
    let (list, path) = (&rule["namespaces"], format!("{path}.namespaces"));
    if items(list).is_empty() && rule["clusterScope"] == true {
        return;
    }
    let missing = "resource rules that are not cluster scoped must supply at least one namespace";
    if !wildcards(list, &path, "namespaces", missing, causes) {
        return;
    }
    for (index, namespace) in items(list).iter().enumerate() {
        for problem in names::dns1123_label(str_of(namespace)) {
            let text =
                format!("each member of this list must be '*' or a DNS-1123 label; {problem}");
            causes.push(Cause::invalid(format!("{path}[{index}]"), namespace, &text));
        }
    }
}

fn path_rule(rule: &Value, path: &str, causes: &mut Vec<Cause>) {
    verbs(rule, path, causes);
    let (list, path) = (&rule["nonResourceURLs"], format!("{path}.nonResourceURLs"));
    let missing = "nonResourceURLs must contain at least one value";
    if !wildcards(list, &path, "non-resource URLs", missing, causes) {
        return;
    }
    for (index, url) in items(list).iter().enumerate() {
        if let Some(problem) = url_problem(str_of(url)) {
            causes.push(Cause::invalid(format!("{path}[{index}]"), url, problem));
        }
    }
}

fn url_problem(url: &str) -> Option<&'static str> {
    if url.is_empty() {
        return Some("must not be empty");
    }
    if !url.starts_with('/') {
        return Some("must start with slash");
    }
    if url.contains(' ') {
        return Some("must not contain white-space");
    }
    if url.contains("//") {
        return Some("must not contain double slash");
    }
    let wild = url.find('*').is_some_and(|place| place + 1 != url.len() || !url.ends_with("/*"));
    wild.then_some("wildcard can only do suffix matching")
}

pub(super) fn priority_level(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (name, spec) = (object.name(), &object["spec"]);
    let kind = str_of(&spec["type"]);
    if matches!(kind, "Exempt" | "Limited") && (kind == "Exempt") != (name == EXEMPT) {
        let text = "must be 'Exempt' if and only if `name` is 'exempt'";
        causes.push(Cause::invalid("spec.type", &spec["type"], text));
    }
    match kind {
        "Exempt" => {
            if !spec["limited"].is_null() {
                let text = "must be nil if the type is not Limited";
                causes.push(Cause::forbidden("spec.limited", text));
            }
            if !spec["exempt"].is_null() {
                shares(&spec["exempt"], "spec.exempt", &mut causes);
            }
        }
        "Limited" => {
            if !spec["exempt"].is_null() {
                let text = "must be nil if the type is Limited";
                causes.push(Cause::forbidden("spec.exempt", text));
            }
            if spec["limited"].is_null() {
                let text = "must not be empty when type is Limited";
                causes.push(Cause::required("spec.limited", text));
            } else {
                validate_limited(&spec["limited"], &mut causes);
            }
        }
        "" => causes.push(Cause::required("spec.type", "")),
        _ => {
            let known = ["Exempt", "Limited"];
            causes.push(Cause::not_supported("spec.type", &spec["type"], &known));
        }
    }
    if name != EXEMPT {
        validate_fixed_spec(object, bootstrap::priority_levels(), &mut causes);
    }
    causes
}

fn shares(limits: &Value, path: &str, causes: &mut Vec<Cause>) {
    let number = |field: &str| limits[field].as_i64();
    if number("nominalConcurrencyShares").is_some_and(|number| number < 0) {
        let field = format!("{path}.nominalConcurrencyShares");
        let text = "must be a non-negative integer";
        causes.push(Cause::invalid(field, &limits["nominalConcurrencyShares"], text));
    }
    if number("lendablePercent").is_some_and(|number| !(0..=100).contains(&number)) {
        let field = format!("{path}.lendablePercent");
        let text = "must be between 0 and 100, inclusive";
        causes.push(Cause::invalid(field, &limits["lendablePercent"], text));
    }
}

fn validate_limited(limited: &Value, causes: &mut Vec<Cause>) {
    let path = "spec.limited";
    shares(limited, path, causes);
    let borrowing = &limited["borrowingLimitPercent"];
    if borrowing.as_i64().is_some_and(|number| number < 0) {
        let text = "if specified, must be a non-negative integer";
        causes.push(Cause::invalid(format!("{path}.borrowingLimitPercent"), borrowing, text));
    }
    let response = &limited["limitResponse"];
    let (kind, queuing) = (&response["type"], &response["queuing"]);
    let path = format!("{path}.limitResponse");
    match str_of(kind) {
        "Queue" if queuing.is_null() => {
            let text = "must not be empty if limited.limitResponse.type is Limited";
            causes.push(Cause::required(format!("{path}.queuing"), text));
        }
        "Queue" => self::queuing(queuing, &format!("{path}.queuing"), causes),
        "Reject" => {
            if !queuing.is_null() {
                let text = "must be nil if limited.limitResponse.type is not Limited";
                causes.push(Cause::forbidden(format!("{path}.queuing"), text));
            }
        }
        "" => causes.push(Cause::required(format!("{path}.type"), "")),
        _ => {
            causes.push(Cause::not_supported(format!("{path}.type"), kind, &["Queue", "Reject"]));
        }
    }
}

fn queuing(queuing: &Value, path: &str, causes: &mut Vec<Cause>) {
    let number = |field: &str| queuing[field].as_i64().unwrap_or_default();
    let mut problem = |field: &str, text: &str| {
        causes.push(Cause::invalid(format!("{path}.{field}"), &queuing[field], text));
    };
    let (queues, hand) = (number("queues"), number("handSize"));
    if number("queueLengthLimit") <= 0 {
        problem("queueLengthLimit", "must be positive");
    }
    if queues <= 0 {
        problem("queues", "must be positive");
    } else if queues > QUEUES_MAX {
        problem("queues", &format!("must not be greater than {QUEUES_MAX}"));
    }
    if hand <= 0 {
        problem("handSize", "must be positive");
    } else if hand > queues {
        problem("handSize", &format!("should not be greater than queues ({queues})"));
    } else if entropy_bits(queues, hand) > ENTROPY_BITS_MAX {
        let text = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater \
             than {ENTROPY_BITS_MAX}"
        );
        problem("handSize", &text);
    }
}

/// Number of bits that distinguish all hands of a deck, including the order of cards.
fn entropy_bits(deck: i64, hand: i64) -> u32 {
    let bits: f64 = (0..hand).map(|dealt| ((deck - dealt) as f64).log2()).sum();
    bits.ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(causes: &[Cause]) -> Vec<String> {
        causes.iter().map(|cause| cause.field.clone()).collect()
    }

    /// The expected messages are those of a kube-apiserver 1.36.3.
    #[test]
    fn levels_are_refused_for_what_kubernetes_refuses() {
        let level = |name: &str, spec: Value| {
            let mut object = json!({"metadata": {"name": name}, "spec": spec});
            super::super::default_level(&mut object);
            priority_level(&object)
        };
        let queue = |queuing: Value| {
            json!({
                "type": "Limited",
                "limited": {"limitResponse": {"type": "Queue", "queuing": queuing}},
            })
        };
        assert_eq!(fields(&level("a", json!({"type": "Limited"}))), ["spec.limited"]);
        assert_eq!(fields(&level("a", json!({"type": "Foo"}))), ["spec.type"]);
        assert_eq!(fields(&level("a", json!({}))), ["spec.type"]);
        let both = json!({"type": "Exempt", "limited": {}});
        assert_eq!(fields(&level("a", both)), ["spec.type", "spec.limited"]);
        assert_eq!(level("exempt", json!({"type": "Exempt"})), []);
        let hand = "spec.limited.limitResponse.queuing.handSize";
        let causes = level("a", queue(json!({"queues": 2, "handSize": 8})));
        assert_eq!(fields(&causes), [hand]);
        assert_eq!(causes[0].message, "Invalid value: 8: should not be greater than queues (2)");
        let causes = level("a", queue(json!({"queues": 20_000_000, "handSize": 11})));
        assert_eq!(fields(&causes), ["spec.limited.limitResponse.queuing.queues", hand]);
        assert_eq!(level("a", queue(json!({"queues": 0, "handSize": 0}))), []);
        let fixed = level("catch-all", queue(json!({})));
        assert_eq!(fields(&fixed), ["spec"]);
        for initial in bootstrap::priority_levels() {
            assert_eq!(priority_level(&initial), [], "{}", initial.name());
        }
    }

    #[test]
    fn schemas_are_refused_for_what_kubernetes_refuses() {
        let schema = |spec: Value| flow_schema(&json!({"metadata": {"name": "a"}, "spec": spec}));
        let causes = schema(json!({
            "priorityLevelConfiguration": {"name": "x"},
            "matchingPrecedence": 1,
            "rules": [{
                "subjects": [
                    {"kind": "Foo"}, {"kind": "User"}, {"kind": "Group", "group": {}},
                    {"kind": "ServiceAccount", "serviceAccount": {}},
                    {"kind": "User", "user": {"name": "x"}, "group": {"name": "q"}},
                ],
                "resourceRules": [
                    {},
                    {
                        "verbs": ["get", "*"], "apiGroups": ["*", "a"], "resources": ["*", "b"],
                        "namespaces": ["*", "c"],
                    },
                    {
                        "verbs": ["foo"], "apiGroups": [""], "resources": ["a"],
                        "namespaces": ["c_d"],
                    },
                ],
                "nonResourceRules": [{}, {"verbs": ["foo"], "nonResourceURLs": ["x", "*"]}],
            }],
        }));
        let rule = |rest: &str| format!("spec.rules[0].{rest}");
        let expected = [
            "spec.matchingPrecedence".to_owned(),
            rule("subjects[0].kind"),
            rule("subjects[1].user"),
            rule("subjects[2].group.name"),
            rule("subjects[3].serviceAccount.name"),
            rule("subjects[3].serviceAccount.namespace"),
            rule("subjects[4].group"),
            rule("resourceRules[0].verbs"),
            rule("resourceRules[0].apiGroups"),
            rule("resourceRules[0].resources"),
            rule("resourceRules[0].namespaces"),
            rule("resourceRules[1].verbs"),
            rule("resourceRules[1].apiGroups"),
            rule("resourceRules[1].resources"),
            rule("resourceRules[1].namespaces"),
            rule("resourceRules[2].verbs"),
            rule("resourceRules[2].namespaces[0]"),
            rule("nonResourceRules[0].verbs"),
            rule("nonResourceRules[0].nonResourceURLs"),
            rule("nonResourceRules[1].verbs"),
            rule("nonResourceRules[1].nonResourceURLs"),
        ];
        assert_eq!(fields(&causes), expected);
        for initial in bootstrap::flow_schemas() {
            assert_eq!(flow_schema(&initial), [], "{}", initial.name());
        }
    }
}
