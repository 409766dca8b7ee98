//! FlowSchema and PriorityLevelConfiguration, the configuration of [`apiserver::flow_control`].

mod validate;

use apiserver::fields::{ensure, items, map, preset, str_of};
use apiserver::flow_control::GROUP;
use apiserver::kind::cells;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use serde_json::Value;

use super::status;

/// Default precedence of a FlowSchema.
const PRECEDENCE: i64 = 1000;
/// Default shares of a priority level.
const SHARES: i64 = 30;

/// The kind FlowSchema of the group `flowcontrol.apiserver.k8s.io`:
/// cluster-scoped, with the defaults, validation and columns of kube-apiserver.
pub fn flow_schema() -> Kind {
    let mut kind = Kind {
        columns: &[
            NAME,
            ("PriorityLevel", "string", "", 0),
            ("MatchingPrecedence", "string", "", 0),
            ("DistinguisherMethod", "string", "", 0),
            AGE,
            ("MissingPL", "string", "", 0),
        ],
        hooks: Hooks {
            default: |object| {
                let Some(object) = map(object) else { return };
                if let Some(spec) = ensure(object, "spec") {
                    if matches!(spec.get("matchingPrecedence"), None | Some(Value::Null)) {
                        spec.insert("matchingPrecedence".to_owned(), PRECEDENCE.into());
                    }
                    let level = ensure(spec, "priorityLevelConfiguration");
                    level.into_iter().for_each(|level| preset(level, "name", ""));
                }
                ensure(object, "status");
            },
            validate: |_, object, _| validate::flow_schema(object),
            validate_status: |object, _| {
                status::distinct_conditions(&object["status"]["conditions"])
            },
            cells: |object, now| {
                let spec = &object["spec"];
                let conditions = items(&object["status"]["conditions"]);
                let dangling = conditions.iter().find(|c| c["type"] == "Dangling");
                vec![
                    cells::name(object),
                    spec["priorityLevelConfiguration"]["name"].clone(),
                    spec["matchingPrecedence"].clone(),
                    cells::or_none(str_of(&spec["distinguisherMethod"]["type"])),
                    cells::age(object, now),
                    dangling.map_or("?".into(), |condition| condition["status"].clone()),
                ]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "flowschemas", "flowschema", "FlowSchema").with_status().counted()
    };
    kind.namespaced = false;
    kind
}

/// The kind PriorityLevelConfiguration of the group `flowcontrol.apiserver.k8s.io`:
/// cluster-scoped, with the defaults, validation and columns of kube-apiserver.
pub fn priority_level_configuration() -> Kind {
    let mut kind = Kind {
        columns: &[
            NAME,
            ("Type", "string", "", 0),
            ("NominalConcurrencyShares", "string", "", 0),
            ("Queues", "string", "", 0),
            ("HandSize", "string", "", 0),
            ("QueueLengthLimit", "string", "", 0),
            AGE,
        ],
        hooks: Hooks {
            default: default_level,
            validate: |_, object, _| validate::priority_level(object),
            validate_status: |object, _| {
                status::distinct_conditions(&object["status"]["conditions"])
            },
            cells: |object, now| {
                let limited = &object["spec"]["limited"];
                let queuing = &limited["limitResponse"]["queuing"];
                let number = |value: &Value| match value {
                    Value::Null => Value::from(cells::NONE),
                    number => number.clone(),
                };
                vec![
                    cells::name(object),
                    object["spec"]["type"].clone(),
                    number(&limited["nominalConcurrencyShares"]),
                    number(&queuing["queues"]),
                    number(&queuing["handSize"]),
                    number(&queuing["queueLengthLimit"]),
                    cells::age(object, now),
                ]
            },
            ..Hooks::default()
        },
        ..Kind::new(
            GROUP,
            "prioritylevelconfigurations",
            "prioritylevelconfiguration",
            "PriorityLevelConfiguration",
        )
        .with_status()
        .counted()
    };
    kind.namespaced = false;
    kind
}

fn default_level(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(spec) = ensure(object, "spec") {
        preset(spec, "type", "");
        if let Some(exempt) = spec.get_mut("exempt").and_then(Value::as_object_mut) {
            preset(exempt, "nominalConcurrencyShares", 0);
            preset(exempt, "lendablePercent", 0);
        }
        if let Some(limited) = spec.get_mut("limited").and_then(Value::as_object_mut) {
            preset(limited, "nominalConcurrencyShares", SHARES);
            preset(limited, "lendablePercent", 0);
            if let Some(response) = ensure(limited, "limitResponse") {
                preset(response, "type", "");
                if let Some(queuing) = response.get_mut("queuing").and_then(Value::as_object_mut) {
                    for (field, default) in
                        [("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)]
                    {
                        // Upstream does not distinguish zero from an absent value.
                        if queuing.get(field).is_none_or(|value| *value == 0 || value.is_null()) {
                            queuing.insert(field.to_owned(), default.into());
                        }
                    }
                }
            }
        }
    }
    ensure(object, "status");
}
