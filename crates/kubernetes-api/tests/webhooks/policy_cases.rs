//! Policies, their bindings and requests, which are sent to both servers.

use serde_json::{Value, json};

/// The namespace of the cases' requests.
pub const NAMESPACE: &str = "policed";
pub const MAPS: &str = "/api/v1/namespaces/policed/configmaps";
/// A user with few rights.
pub const READER: &str = "reader";

/// One policy with its binding, and the values of the ConfigMaps to write.
pub struct Case {
    pub name: &'static str,
    pub policy: Value,
    pub binding: Value,
    pub values: &'static [&'static str],
}

/// A policy about ConfigMaps with the label `case`.
fn case(
    name: &'static str,
    policy: Value,
    binding: Value,
    values: &'static [&'static str],
) -> Case {
    let mut spec = json!({"matchConstraints": constraints(name)});
    merge(&mut spec, policy);
    let mut bound = json!({"policyName": name, "validationActions": ["Deny"]});
    merge(&mut bound, binding);
    Case { name, policy: spec, binding: bound, values }
}

pub fn constraints(case: &str) -> Value {
    json!({
        "objectSelector": {"matchLabels": {"case": case}},
        "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["configmaps"]}],
    })
}

/// Sets the fields of `from`.
pub fn merge(into: &mut Value, from: Value) {
    for (field, value) in from.as_object().cloned().unwrap_or_default() {
        into[field] = value;
    }
}

fn checks(list: &[(&str, &str)]) -> Value {
    let all = list.iter().map(|(expression, message)| match *message {
        "" => json!({"expression": expression}),
        message => json!({"expression": expression, "messageExpression": message}),
    });
    Value::Array(all.collect())
}

fn params(reference: Value) -> Value {
    json!({"paramRef": reference})
}

#[expect(clippy::too_many_lines, reason = "a table")]
pub fn cases() -> Vec<Case> {
    let key_is_good = "object.data.key == 'good'";
    let none = || json!({});
    let of_maps = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let allowed = checks(&[("params != null && object.data.key == params.data.allowed", "")]);
    let many_checks: Vec<Value> = (0..15)
        .map(|index| {
            let check = |name: &str| {
                format!(
                    "authorizer.group('').resource('pods').name('{name}{index}').check('get').allowed()"
                )
            };
            json!({"expression": format!("{} || !{}", check("a"), check("b"))})
        })
        .collect();
    let heavy = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, \
                 [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, \
                 [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a + b + c + d + e + f > 0))))))";
    vec![
        case(
            "plain",
            json!({"validations": checks(&[(key_is_good, "")])}),
            none(),
            &["good", "bad"],
        ),
        case(
            "reason",
            json!({"validations": [
                {"expression": "true"},
                {"expression": key_is_good, "message": " must be good ", "reason": "Forbidden"}]}),
            none(),
            &["good", "bad"],
        ),
        case(
            "too-large",
            json!({"validations": [{"expression": key_is_good, "reason": "RequestEntityTooLarge"}]}),
            none(),
            &["bad"],
        ),
        case(
            "message",
            json!({"validations": checks(&[
                (key_is_good, "' got ' + object.data.key + ' as ' + request.operation")])}),
            none(),
            &["bad"],
        ),
        case(
            "no-message",
            json!({"validations": [{"expression": key_is_good, "message": "own text",
                "messageExpression": "string(object.data.absent)"}]}),
            none(),
            &["bad"],
        ),
        case(
            "lines",
            json!({"validations": [{"expression": key_is_good, "message": "one line",
                "messageExpression": "'two\\nlines'"}]}),
            none(),
            &["bad"],
        ),
        case(
            "variables",
            json!({
                "variables": [
                    {"name": "key", "expression": "object.data.key"},
                    {"name": "twice", "expression": "variables.key + variables.key"},
                    {"name": "broken", "expression": "object.data.absent"}],
                "validations": checks(&[
                    ("variables.twice == 'goodgood'", "'twice: ' + variables.twice"),
                    ("variables.key != 'broken' || variables.broken == 'x'", "")]),
            }),
            none(),
            &["good", "bad", "broken"],
        ),
        case(
            "error",
            json!({"validations": checks(&[("object.data.absent == 'x'", "")])}),
            none(),
            &["x"],
        ),
        case(
            "error-ignored",
            json!({"failurePolicy": "Ignore", "validations": checks(&[
                ("object.data.absent == 'x'", ""), (key_is_good, "")])}),
            none(),
            &["good", "bad"],
        ),
        case(
            "conditions",
            json!({
                "matchConditions": [
                    {"name": "one", "expression": "object.data.key != 'skip'"},
                    {"name": "two", "expression": "object.data.key != 'error' || object.data.no == 'x'"}],
                "validations": checks(&[("false", "")]),
            }),
            none(),
            &["skip", "error", "other"],
        ),
        case(
            "conditions-ignored",
            json!({
                "failurePolicy": "Ignore",
                "matchConditions": [{"name": "one", "expression": "object.data.no == 'x'"}],
                "validations": checks(&[("false", "")]),
            }),
            none(),
            &["x"],
        ),
        case(
            "warned",
            json!({"validations": checks(&[(key_is_good, ""), ("object.data.no == 'x'", "")])}),
            json!({"validationActions": ["Warn"]}),
            &["bad"],
        ),
        case("warned-denied", json!({"validations": checks(&[("false", "")])}), none(), &["x"]),
        case(
            "warned-too",
            json!({"matchConstraints": constraints("warned-denied"),
                "validations": checks(&[("false", "")])}),
            json!({"validationActions": ["Warn"]}),
            &[],
        ),
        case(
            "recorded",
            json!({"validations": checks(&[(key_is_good, "")])}),
            json!({"validationActions": ["Audit"]}),
            &["bad"],
        ),
        case(
            "params",
            json!({"paramKind": of_maps, "validations": allowed}),
            params(
                json!({"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}),
            ),
            &["allowed", "bad"],
        ),
        case(
            "params-absent",
            json!({"paramKind": of_maps, "validations": allowed}),
            params(json!({"name": "absent", "parameterNotFoundAction": "Deny"})),
            &["allowed"],
        ),
        case(
            "params-allowed",
            json!({"paramKind": of_maps, "validations": allowed}),
            params(json!({"name": "absent", "parameterNotFoundAction": "Allow"})),
            &["bad"],
        ),
        case(
            "params-selected",
            json!({"paramKind": of_maps, "validations": checks(&[
                ("object.data.key == params.data.allowed", "string(params.metadata.name)")])}),
            params(json!({"selector": {"matchLabels": {"limits": "yes"}}, "namespace": "default",
                "parameterNotFoundAction": "Deny"})),
            &["allowed"],
        ),
        case(
            "params-unknown",
            json!({"paramKind": {"apiVersion": "nowhere.example/v1", "kind": "Nothing"},
                "validations": checks(&[("true", "")])}),
            params(json!({"name": "x", "parameterNotFoundAction": "Allow"})),
            &["x"],
        ),
        case(
            "params-unused",
            json!({"paramKind": of_maps, "validations": checks(&[("params == null", "")])}),
            none(),
            &["x"],
        ),
        case(
            "params-misplaced",
            json!({"paramKind": {"apiVersion": "v1", "kind": "Namespace"},
                "validations": checks(&[("true", "")])}),
            params(
                json!({"name": "x", "namespace": "default", "parameterNotFoundAction": "Allow"}),
            ),
            &["x"],
        ),
        case(
            "authorizer",
            json!({"validations": checks(&[
                ("authorizer.group('').resource('configmaps').namespace('policed').check('create').allowed()", ""),
                ("authorizer.requestResource.check('create').allowed()", ""),
                ("!authorizer.path('/healthz').check('post').allowed() || request.userInfo.username == 'admin'", ""),
                ("!authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('list').allowed()", ""),
                ("!authorizer.group('').resource('secrets').check('list').errored()", ""),
                ("authorizer.group('').resource('secrets').subresource('x').name('y').check('list').error() == ''", ""),
                ("authorizer.group('apps').resource('deployments').namespace('policed').check('delete').allowed()",
                    "'may not: ' + request.userInfo.username")])}),
            none(),
            &["x"],
        ),
        case(
            "authorizer-names",
            json!({"validations": checks(&[("authorizer.serviceAccount('default', 'No').path('/').check('get').allowed()", "")])}),
            none(),
            &["x"],
        ),
        case(
            "condition-asks",
            json!({
                "matchConditions": [{"name": "asks",
                    "expression": "!authorizer.group('').resource('secrets').check('list').allowed()"}],
                "validations": checks(&[("false", "")]),
            }),
            none(),
            &["x"],
        ),
        case(
            "namespace",
            json!({"validations": checks(&[
                ("namespaceObject.metadata.labels['env'] == 'prod'", ""),
                ("namespaceObject.metadata.name == 'policed' && namespaceObject.status.phase == 'Active'", ""),
                ("object.metadata.namespace != namespaceObject.metadata.name", "")])}),
            none(),
            &["x"],
        ),
        case(
            "request",
            json!({"validations": checks(&[("false",
                "[request.kind.kind, request.resource.resource, request.requestKind.version, request.name, \
                 request.namespace, request.operation, string(request.dryRun), \
                 has(request.subResource) ? 'sub' : 'none'].join(' ')")])}),
            none(),
            &["x"],
        ),
        case(
            "old",
            json!({"validations": checks(&[
                ("request.operation != 'UPDATE' || oldObject.data.key == object.data.key", ""),
                ("request.operation != 'CREATE' || oldObject == null", ""),
                ("request.operation != 'DELETE' || (object == null && oldObject.data.key != 'kept')", "")])}),
            none(),
            &["kept", "gone"],
        ),
        case("heavy", json!({"validations": checks(&[(heavy, "")])}), none(), &["x"]),
        case("budget", json!({"validations": many_checks}), none(), &["x"]),
        case(
            "excluded",
            json!({"matchConstraints": {
                "objectSelector": {"matchLabels": {"case": "excluded"}},
                "excludeResourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
                    "operations": ["*"], "resources": ["*"], "resourceNames": ["excluded-free"]}],
                "resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
                    "operations": ["CREATE"], "resources": ["*"]}]},
                "validations": checks(&[("false", "")])}),
            none(),
            &["free", "held"],
        ),
        case(
            "bound",
            json!({"validations": checks(&[("false", "")])}),
            json!({"matchResources": {
                "namespaceSelector": {"matchLabels": {"env": "test"}}}}),
            &["x"],
        ),
        case(
            "bound-here",
            json!({"validations": checks(&[("false", "")])}),
            json!({"matchResources": {
                "namespaceSelector": {"matchLabels": {"env": "prod"}},
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                    "operations": ["CREATE"], "resources": ["configmaps"],
                    "resourceNames": ["bound-here-named"]}]}}),
            &["x", "named"],
        ),
        case(
            "annotated",
            json!({"auditAnnotations": [
                {"key": "value", "valueExpression": "'key is ' + object.data.key"},
                {"key": "empty", "valueExpression": "' '"}]}),
            none(),
            &["x"],
        ),
        case(
            "annotation-error",
            json!({"auditAnnotations": [{"key": "value", "valueExpression": "string(object.data.no)"}]}),
            json!({"validationActions": ["Audit"]}),
            &["x"],
        ),
    ]
}

/// Policies that are refused.
pub fn bad_policies() -> Vec<Value> {
    let base =
        || json!({"matchConstraints": constraints("bad"), "validations": checks(&[("true", "")])});
    let with = |changes: Value| {
        let mut spec = base();
        merge(&mut spec, changes);
        spec
    };
    let validation = |value: Value| with(json!({"validations": [value]}));
    let rule = |field: &str, value: Value| {
        let mut spec = base();
        spec["matchConstraints"]["resourceRules"][0][field] = value;
        spec
    };
    vec![
        json!({}),
        json!({"matchConstraints": {}}),
        with(json!({"failurePolicy": "Sometimes"})),
        with(json!({"paramKind": {}})),
        with(json!({"paramKind": {"apiVersion": "a/b/c", "kind": "not a kind"}})),
        with(json!({"paramKind": {"apiVersion": "A_b/v_1", "kind": "ok"}})),
        validation(json!({"expression": " "})),
        validation(json!({"expression": "object.x == params.y"})),
        validation(json!({"expression": "1 + 1"})),
        validation(json!({"expression": "object.spec.flag"})),
        validation(json!({"expression": "variables.x == 1"})),
        validation(json!({"expression": "request.nothing == 'x'"})),
        validation(json!({"expression": "namespaceObject.metadata.uid == 'x'"})),
        validation(json!({"expression": "true", "message": " "})),
        validation(json!({"expression": "true", "message": "two\nlines"})),
        validation(json!({"expression": "true", "messageExpression": " "})),
        validation(json!({"expression": "true", "messageExpression": "1"})),
        validation(json!({"expression": "true",
            "messageExpression": "authorizer.path('/').check('get').reason()"})),
        validation(json!({"expression": "true", "reason": "Teapot"})),
        with(json!({"variables": [{"name": "no name", "expression": "1"},
            {"name": "if", "expression": " "}, {"name": "bad", "expression": "1 + 'a'"}]})),
        with(json!({"variables": [{"name": "one", "expression": "1"}],
            "validations": checks(&[("variables.one == 'text'", ""), ("variables.two == 2", "")])})),
        with(json!({"matchConditions": [{"name": "v", "expression": "variables.x"},
            {"name": "v", "expression": "params.x == 1"}]})),
        with(json!({"auditAnnotations": [{"key": "no key!", "valueExpression": " "},
            {"key": "same", "valueExpression": "1"}, {"key": "same", "valueExpression": "'x'"}]})),
        rule("operations", json!(["CREATE", "*"])),
        rule("resourceNames", json!(["a/b", "x", "x"])),
        rule("apiGroups", json!([])),
        with(json!({"matchConstraints": {"matchPolicy": "Roughly",
            "objectSelector": {"matchLabels": {"a": "b c"}},
            "resourceRules": base()["matchConstraints"]["resourceRules"]}})),
    ]
}

/// Bindings that are refused.
pub fn bad_bindings() -> Vec<Value> {
    let with = |changes: Value| {
        let mut spec = json!({"policyName": "any", "validationActions": ["Deny"]});
        merge(&mut spec, changes);
        spec
    };
    vec![
        json!({"validationActions": ["Deny"]}),
        with(json!({"policyName": "Not A Name"})),
        with(json!({"validationActions": []})),
        with(json!({"validationActions": ["Deny", "Warn"]})),
        with(json!({"validationActions": ["Shout"]})),
        with(json!({"paramRef": {}})),
        with(
            json!({"paramRef": {"name": "a/b", "selector": {}, "parameterNotFoundAction": "Maybe"}}),
        ),
        with(json!({"matchResources": {"matchPolicy": "Roughly"}})),
    ]
}
