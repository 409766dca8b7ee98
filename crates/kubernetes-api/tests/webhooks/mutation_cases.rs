//! Mutating policies, their bindings and the objects that they change, which are sent to both
//! servers.

use serde_json::{Value, json};

use super::policy_cases::merge;

/// One policy with its binding, and the bodies that are written, each under the name of the case
/// and its index.
pub struct Mutating {
    pub name: &'static str,
    pub policy: Value,
    pub binding: Value,
    pub bodies: Vec<Value>,
}

fn case(name: &'static str, policy: Value, binding: Value, bodies: Vec<Value>) -> Mutating {
    let mut spec = json!({"matchConstraints": constraints(name), "reinvocationPolicy": "Never"});
    merge(&mut spec, policy);
    let mut bound = json!({"policyName": name});
    merge(&mut bound, binding);
    Mutating { name, policy: spec, binding: bound, bodies }
}

/// All writes of objects with the label `case`.
pub fn constraints(case: &str) -> Value {
    json!({
        "objectSelector": {"matchLabels": {"case": case}},
        "resourceRules": [{"apiGroups": ["", "apps", "mutated.example"], "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"], "resources": ["configmaps", "deployments",
            "deployments/status", "things"]}],
    })
}

pub fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

pub fn patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

fn mutations(list: Vec<Value>) -> Value {
    json!({"mutations": list})
}

pub fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data})
}

fn plain() -> Vec<Value> {
    vec![map(json!({"key": "value"}))]
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [
            {"name": "a", "image": "a:1", "args": ["x"], "ports": [{"containerPort": 80}]},
            {"name": "b", "image": "b:1"}]}}}})
}

fn thing(spec: Value) -> Value {
    json!({"apiVersion": "mutated.example/v1", "kind": "Thing", "spec": spec})
}

/// The definition of the kind of [`thing`].
pub fn definition() -> Value {
    let list = |keys: Value| {
        let item = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "size": {"type": "integer", "default": 7}}});
        let mut list = json!({"type": "array", "items": item});
        merge(&mut list, keys);
        list
    };
    let spec = json!({"type": "object", "properties": {
        "count": {"type": "integer", "maximum": 5}, "preset": {"type": "string", "default": "set"},
        "keyed": list(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})),
        "atomic": list(json!({})),
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    json!({
        "metadata": {"name": "things.mutated.example"},
        "spec": {"group": "mutated.example", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]},
    })
}

#[expect(clippy::too_many_lines, reason = "a table")]
pub fn cases() -> Vec<Mutating> {
    let none = || json!({});
    let of_maps = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let one = |mutation: Value| mutations(vec![mutation]);
    let count = "has(object.data.count) ? string(int(object.data.count) + 1) : '1'";
    let counted = format!("Object{{data: {{'count': {count}}}}}");
    let failing = || {
        vec![
            apply("Object{data: {'a': string(object.data.no)}}"),
            apply("Object{data: {'b': 'set'}}"),
        ]
    };
    vec![
        case(
            "labels",
            one(apply("Object{metadata: Object.metadata{labels: {'added': 'yes'}}}")),
            none(),
            vec![map(json!({"key": "value"})), deployment(), thing(json!({"count": 1}))],
        ),
        case(
            "containers",
            one(apply(
                "Object{spec: Object.spec{template: Object.spec.template{\
            spec: Object.spec.template.spec{containers: object.spec.template.spec.containers.map(c, \
            Object.spec.template.spec.containers{name: c.name, imagePullPolicy: 'Never'}) + \
            [Object.spec.template.spec.containers{name: 'added', image: 'x:1'}]}}}}",
            )),
            none(),
            vec![deployment()],
        ),
        case(
            "atomic",
            one(apply(
                "Object{spec: Object.spec{template: Object.spec.template{\
            spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{\
            name: 'a', args: ['y']}]}}}}",
            )),
            none(),
            vec![deployment()],
        ),
        case(
            "atomic-map",
            one(apply(
                "Object{spec: Object.spec{selector: Object.spec.selector{\
            matchLabels: {'a': 'b'}}}}",
            )),
            none(),
            vec![deployment()],
        ),
        case(
            "undeclared",
            one(apply("Object{spec: Object.spec{nothing: 1}}")),
            none(),
            vec![deployment(), thing(none())],
        ),
        case(
            "mistyped",
            one(apply("Object{spec: Object.spec{replicas: 'three'}}")),
            none(),
            vec![deployment()],
        ),
        case(
            "misnamed",
            one(apply("Object{spec: Object.other{replicas: 3}}")),
            none(),
            vec![deployment()],
        ),
        case(
            "keyed",
            one(apply(
                "Object{spec: Object.spec{keyed: [Object.spec.keyed{name: 'a', size: 2}, \
            Object.spec.keyed{name: 'new'}]}}",
            )),
            none(),
            vec![thing(json!({"keyed": [{"name": "b"}, {"name": "a"}]})), thing(none())],
        ),
        case(
            "atomic-list",
            one(apply("Object{spec: Object.spec{atomic: [Object.spec.atomic{name: 'a'}]}}")),
            none(),
            vec![thing(none())],
        ),
        case(
            "open",
            one(apply(
                "Object{spec: Object.spec{open: Object.spec.open{any: Object.spec.open.any{x: 1}}}}",
            )),
            none(),
            vec![thing(json!({"open": {"y": [2]}}))],
        ),
        case(
            "too-many",
            one(apply("Object{spec: Object.spec{count: 6}}")),
            none(),
            vec![thing(none())],
        ),
        case(
            "optional",
            one(apply(
                "Object{data: {?'copied': object.data[?'key'], ?'never': object.data[?'no']}, \
            ?immutable: object.?spec.no}",
            )),
            none(),
            plain(),
        ),
        case(
            "duplicates",
            one(apply(
                "Object{spec: Object.spec{keyed: [Object.spec.keyed{name: 'a'}, \
            Object.spec.keyed{name: 'a'}]}}",
            )),
            none(),
            vec![thing(none())],
        ),
        case(
            "patch",
            one(patch(
                "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}, \
            JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('a.b/c~d'), value: 'e'}, \
            JSONPatch{op: 'copy', from: '/data/key', path: '/data/copied'}, \
            JSONPatch{op: 'move', from: '/data/key', path: '/data/moved'}, \
            JSONPatch{op: 'replace', path: '/data/moved', value: 'new'}]",
            )),
            none(),
            plain(),
        ),
        case(
            "patch-object",
            one(patch(
                "[JSONPatch{op: 'add', path: '/spec/template/spec/containers/-', \
            value: Object.spec.template.spec.containers{name: 'c', image: 'c:1', \
            ports: [Object.spec.template.spec.containers.ports{containerPort: 8080}]}}, \
            JSONPatch{op: 'remove', path: '/spec/template/spec/containers/0/args'}]",
            )),
            none(),
            vec![deployment()],
        ),
        case(
            "patch-test",
            one(patch(
                "[JSONPatch{op: 'add', path: '/data/a', value: 'b'}, \
            JSONPatch{op: 'test', path: '/data/key', value: 'value'}, \
            JSONPatch{op: 'add', path: '/data/c', value: 'd'}]",
            )),
            none(),
            vec![map(json!({"key": "value"})), map(json!({"key": "other"}))],
        ),
        case(
            "patch-none",
            one(patch(
                "object.data.key == 'value' ? [] : [JSONPatch{op: 'remove', path: '/data/key'}]",
            )),
            none(),
            vec![map(json!({"key": "value"})), map(json!({"key": "other"}))],
        ),
        case(
            "patch-path",
            one(patch("[JSONPatch{op: 'add', path: '/nothing/here', value: 1}]")),
            none(),
            plain(),
        ),
        case(
            "patch-remove",
            one(patch("[JSONPatch{op: 'remove', path: '/data/no'}]")),
            none(),
            plain(),
        ),
        case(
            "patch-replace",
            one(patch("[JSONPatch{op: 'replace', path: '/nothing/no', value: 'x'}]")),
            none(),
            plain(),
        ),
        case(
            "patch-move",
            one(patch("[JSONPatch{op: 'move', from: '/data/no', path: '/data/x'}]")),
            none(),
            plain(),
        ),
        case(
            "patch-copy",
            one(patch("[JSONPatch{op: 'copy', from: '/nothing/no', path: '/data/x'}]")),
            none(),
            plain(),
        ),
        case(
            "patch-index",
            one(patch(
                "[JSONPatch{op: 'add', path: '/spec/template/spec/containers/9', value: {}}]",
            )),
            none(),
            vec![deployment()],
        ),
        case(
            "patch-no-index",
            one(patch(
                "[JSONPatch{op: 'add', path: '/spec/template/spec/containers/x', value: {}}]",
            )),
            none(),
            vec![deployment()],
        ),
        case(
            "patch-kind",
            one(patch("[JSONPatch{op: 'unheard', path: '/data/x'}]")),
            none(),
            plain(),
        ),
        case(
            "patch-misnamed",
            one(patch("[JSONPatch{op: 'add', path: '/x', value: Object.a{b: Object.c{}}}]")),
            none(),
            plain(),
        ),
        case(
            "patch-unknown",
            one(patch("[JSONPatch{op: 'add', path: '/nothing', value: 'x'}]")),
            none(),
            vec![map(json!({"key": "value"})), thing(none())],
        ),
        case(
            "patch-type",
            one(patch("[JSONPatch{op: 'add', path: '/data/x', value: 1}]")),
            none(),
            plain(),
        ),
        case("patch-op", one(patch("[JSONPatch{op: dyn(1), path: '/data/x'}]")), none(), plain()),
        case(
            "in-order",
            mutations(vec![
                apply("Object{data: {'first': object.data.key}}"),
                apply("Object{data: {'second': object.data.first + '!'}}"),
                patch(
                    "[JSONPatch{op: 'add', path: '/data/third', value: object.data.second + '!'}]",
                ),
            ]),
            none(),
            plain(),
        ),
        case(
            "variables",
            json!({"variables": [{"name": "text", "expression": "object.data.key + '?'"}],
            "mutations": [apply("Object{data: {'made': variables.text, 'key': 'x'}}"),
                apply("Object{data: {'again': variables.text}}")]}),
            none(),
            plain(),
        ),
        case(
            "variable-fails",
            json!({"variables": [{"name": "no", "expression": "object.data.no"}],
            "mutations": [apply("Object{data: {'made': variables.no}}")]}),
            none(),
            plain(),
        ),
        case("error", mutations(failing()), none(), plain()),
        case(
            "error-ignored",
            json!({"failurePolicy": "Ignore", "mutations": failing()}),
            none(),
            plain(),
        ),
        case(
            "conditions",
            json!({"matchConditions": [
            {"name": "one", "expression": "object.data.key != 'skip'"},
            {"name": "two", "expression": "object.data.key != 'error' || object.data.no == 'x'"}],
            "mutations": [apply("Object{data: {'a': 'b'}}")]}),
            none(),
            vec![
                map(json!({"key": "skip"})),
                map(json!({"key": "error"})),
                map(json!({"key": "x"})),
            ],
        ),
        case(
            "conditions-ignored",
            json!({"failurePolicy": "Ignore", "matchConditions": [
            {"name": "one", "expression": "object.data.no == 'x'"}],
            "mutations": [apply("Object{data: {'a': 'b'}}")]}),
            none(),
            plain(),
        ),
        case(
            "params",
            json!({"paramKind": of_maps, "mutations":
            [apply("Object{data: {'allowed': params.data.allowed}}")]}),
            json!({"paramRef": {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}}),
            plain(),
        ),
        case(
            "params-selected",
            json!({"paramKind": of_maps, "mutations":
            [apply("Object{data: {params.metadata.name: params.data.allowed}}")]}),
            json!({"paramRef": {"selector": {"matchLabels": {"limits": "yes"}}, "namespace": "default",
                "parameterNotFoundAction": "Deny"}}),
            plain(),
        ),
        case(
            "params-absent",
            json!({"paramKind": of_maps, "mutations": [apply("Object{}")]}),
            json!({"paramRef": {"name": "absent", "parameterNotFoundAction": "Deny"}}),
            plain(),
        ),
        case(
            "params-allowed",
            json!({"paramKind": of_maps, "mutations": [apply("Object{data: {'a': 'b'}}")]}),
            json!({"paramRef": {"name": "absent", "parameterNotFoundAction": "Allow"}}),
            plain(),
        ),
        case(
            "params-unknown",
            json!({"paramKind": {"apiVersion": "nowhere.example/v1", "kind": "Nothing"},
            "mutations": [apply("Object{}")]}),
            json!({"paramRef": {"name": "x", "parameterNotFoundAction": "Allow"}}),
            plain(),
        ),
        case(
            "bound",
            one(apply("Object{data: {'a': 'b'}}")),
            json!({"matchResources": {
            "namespaceSelector": {"matchLabels": {"env": "test"}}}}),
            plain(),
        ),
        case(
            "asks",
            one(apply(
                "Object{data: {'namespace': namespaceObject.metadata.name, \
            'may': string(authorizer.group('').resource('secrets').check('list').allowed()), \
            'who': request.userInfo.username, 'what': request.operation, \
            'old': oldObject == null ? 'none' : string(oldObject.data.key)}}",
            )),
            none(),
            plain(),
        ),
        case(
            "twice",
            json!({"reinvocationPolicy": "IfNeeded", "mutations": [apply(&counted)]}),
            none(),
            plain(),
        ),
        case("once", one(apply(&counted)), none(), plain()),
        case(
            "again",
            json!({"reinvocationPolicy": "IfNeeded", "mutations": [
            apply("Object{data: {'seen': has(object.data.later) ? 'later' : 'nothing'}}")]}),
            none(),
            plain(),
        ),
        // Sorts after `again`, for the same objects.
        case(
            "then",
            json!({"matchConstraints": constraints("again"),
            "mutations": [apply("Object{data: {'later': 'yes'}}")]}),
            none(),
            Vec::new(),
        ),
        case(
            "name",
            one(patch(
                "[JSONPatch{op: 'add', path: '/metadata/labels/named', value: object.metadata.name}]",
            )),
            none(),
            plain(),
        ),
        case(
            "library",
            json!({"mutations": [apply("Object{data: {\
            'sorted': [3, 1, 2].sort().map(x, string(x)).join(), \
            'by': ['aa', 'b'].sortBy(x, x.size()).join(), \
            'distinct': string([1, 1, 2].distinct().size()), \
            'flat': string([[1], [2, 3]].flatten().size()), \
            'range': lists.range(3).reverse().map(x, string(x)).join(), \
            'slice': ['a', 'b', 'c'].slice(1, 3).join(), \
            'first': ['a'].first().orValue('') + [].last().orValue('none'), \
            'unwrapped': string(optional.unwrap([optional.of(1), optional.none()]).size()), \
            'unwrap': string([optional.of(1), optional.none()].unwrapOpt().size()), \
            'two': string({'a': 1}.all(k, v, k == 'a' && v == 1)) + string([1, 2].exists(i, v, i + v == 3)), \
            'list': ['a', 'b'].transformList(i, v, v + string(i)).join(), \
            'map': {'a': 1}.transformMap(k, v, k + string(v))['a'], \
            'entry': ['a'].transformMapEntry(i, v, {v: i}).a == 0 ? 'zero' : '', \
            'semver': string(semver('v1.2', true).minor()) + string(isSemver('1.0.0-alpha')), \
            'format': string(format.dns1123Label().validate('A_b').hasValue()), \
            'named': string(format.named('qualifiedName').hasValue()), \
            'ip': string(ip('::1').family()) + string(cidr('10.0.0.0/8').containsIP('10.1.1.1')), \
            'masked': string(cidr('10.1.0.0/8').masked()), \
            'quantity': string(quantity('1Ki').add(quantity('1')).asInteger()), \
            'sets': string(sets.equivalent([1, 2], [2, 1])), \
            'selector': string(authorizer.group('').resource('pods').labelSelector('a=b')\
                .fieldSelector('metadata.name=x').check('list').allowed()), \
            'quoted': strings.quote('a\"b')}}")]}),
            none(),
            plain(),
        ),
    ]
}

/// Policies that are refused.
pub fn bad_policies() -> Vec<Value> {
    let with = |changes: Value| {
        let mut spec = json!({"matchConstraints": constraints("bad"), "reinvocationPolicy": "Never",
            "mutations": [apply("Object{}")]});
        merge(&mut spec, changes);
        spec
    };
    let one = |mutation: Value| with(mutations(vec![mutation]));
    let rules = |operations: &[&str]| {
        json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "operations": operations, "resources": ["configmaps"]}]})
    };
    vec![
        json!({}),
        with(json!({"matchConstraints": {}})),
        with(json!({"mutations": []})),
        with(json!({"reinvocationPolicy": "Sometimes"})),
        with(json!({"failurePolicy": "Sometimes", "paramKind": {}})),
        with(json!({"matchConstraints": rules(&["CREATE", "DELETE"])})),
        with(json!({"matchConditions": [{"name": "made", "expression": "Object{} == Object{}"}]})),
        with(json!({"variables": [{"name": "made", "expression": "Object{}"}]})),
        with(json!({"variables": [{"name": "one", "expression": "1"}],
            "mutations": [apply("Object{x: variables.two}")]})),
        one(json!({})),
        one(json!({"patchType": "Strategic"})),
        one(json!({"patchType": "JSONPatch"})),
        one(json!({"patchType": "ApplyConfiguration", "jsonPatch": {"expression": "[]"}})),
        one(json!({"patchType": "JSONPatch", "jsonPatch": {"expression": " "},
            "applyConfiguration": {"expression": "Object{}"}})),
        one(apply(" ")),
        one(apply("{'a': 1}")),
        one(apply("Object.spec{}")),
        one(apply("Invalid{}")),
        one(apply("object{}")),
        one(apply("int{}")),
        one(apply("Object{a: 1 + 'x'}")),
        one(apply("Object{?a: 1}")),
        one(apply("Object{a: [Object.a{}, Object.b{}]}")),
        one(apply("Object{a: params.x}")),
        one(patch("[]")),
        one(patch("JSONPatch{op: 'add'}")),
        one(patch("[JSONPatch{op: 1, path: 'x'}]")),
        one(patch("[JSONPatch{op: 'add', path: true, from: 1.0}]")),
        one(patch("[JSONPatch{op: jsonpatch.escapeKey(1)}]")),
        one(patch("[Object{}]")),
    ]
}

/// Bindings that are refused.
pub fn bad_bindings() -> Vec<Value> {
    let rules = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "operations": ["DELETE"], "resources": ["configmaps"]}]});
    vec![
        json!({}),
        json!({"policyName": "Not A Name"}),
        json!({"policyName": "any", "paramRef": {"selector": {}, "name": "x"}}),
        json!({"policyName": "any", "matchResources": rules}),
    ]
}
