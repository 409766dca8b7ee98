//! Event, in its two versions over one storage: `v1`, which is stored, and `events.k8s.io/v1`.

use std::time::Duration;

use api_meta::names;
use api_meta::object::ObjectExt;
use api_meta::status::Cause;
use api_meta::time;
use apiserver::fields::{Object, child, ensure, map, preset, str_of, text};
use apiserver::kind::cells;
use apiserver::kind::{ColumnSpec, FieldSpec, Hooks, Kind};
use apiserver::strategy::{Operation, Write};
use serde_json::{Value, json};

use super::lease::{canonical_micros, micro_problem};

/// Time from the last write of an event to its deletion.
pub const TTL: Duration = Duration::from_hours(1);

const GROUP: &str = "events.k8s.io";

/// The names of each field in `v1` and in `events.k8s.io/v1`.
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// The reporter: the first of the two fields that is set.
const SOURCE: FieldSpec =
    FieldSpec { fallback: "reportingComponent", ..FieldSpec::named("source", "source.component") };

const COLUMNS: &[ColumnSpec] = &[
    ("Last Seen", "string", "", 0),
    ("Type", "string", "", 0),
    ("Reason", "string", "", 0),
    ("Object", "string", "", 0),
    ("Subobject", "string", "", 1),
    ("Source", "string", "", 1),
    ("Message", "string", "", 0),
    ("First Seen", "string", "", 1),
    ("Count", "string", "", 1),
    ("Name", "string", "name", 1),
];

/// The kind Event of the core group, `v1`.
pub fn core() -> Kind {
    let mut kind = Kind {
        short_names: &["ev"],
        prefix: "/registry/events/",
        columns: COLUMNS,
        // The same fields in the same order as in the other version: both share a cache.
        fields: vec![
            FieldSpec::text("involvedObject.kind"),
            FieldSpec::text("involvedObject.namespace"),
            FieldSpec::text("involvedObject.name"),
            FieldSpec::text("involvedObject.uid"),
            FieldSpec::text("involvedObject.apiVersion"),
            FieldSpec::text("involvedObject.resourceVersion"),
            FieldSpec::text("involvedObject.fieldPath"),
            FieldSpec::text("reason"),
            FieldSpec::text("reportingComponent"),
            FieldSpec::text("type"),
            SOURCE,
        ],
        hooks: Hooks {
            default: default_core,
            validate: validate_core,
            decode_problem,
            cells: row,
            on_convert: Some(to_core),
            ..Hooks::default()
        },
        ..Kind::new("", "events", "event", "Event").expiring(TTL)
    };
    kind.rules.create_on_update = true;
    kind
}

/// The kind Event of the group `events.k8s.io`.
pub fn events() -> Kind {
    let mut kind = Kind {
        short_names: &["ev"],
        prefix: "/registry/events/",
        columns: COLUMNS,
        fields: vec![
            FieldSpec::named("regarding.kind", "involvedObject.kind"),
            FieldSpec::named("regarding.namespace", "involvedObject.namespace"),
            FieldSpec::named("regarding.name", "involvedObject.name"),
            FieldSpec::named("regarding.uid", "involvedObject.uid"),
            FieldSpec::named("regarding.apiVersion", "involvedObject.apiVersion"),
            FieldSpec::named("regarding.resourceVersion", "involvedObject.resourceVersion"),
            FieldSpec::named("regarding.fieldPath", "involvedObject.fieldPath"),
            FieldSpec::text("reason"),
            FieldSpec::named("reportingController", "reportingComponent"),
            FieldSpec::text("type"),
            FieldSpec { offered: false, ..SOURCE },
        ],
        hooks: Hooks {
            default: default_core,
            prepare: |_, object, _| to_core(object),
            validate: validate_new,
            decode_problem,
            cells: |object, now| {
                let mut core = object.clone();
                to_core(&mut core);
                row(&core, now)
            },
            on_read: Some(to_new),
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "events", "event", "Event").expiring(TTL)
    };
    kind.rules.create_on_update = true;
    kind
}

/// Converts either version to the stored one.
fn to_core(object: &mut Value) {
    if let Some(object) = map(object) {
        object.insert("apiVersion".to_owned(), "v1".into());
        rename(object, |&(core, new)| (new, core));
    }
    default_core(object);
}

fn to_new(object: &mut Value) {
    if let Some(object) = map(object) {
        object.insert("apiVersion".to_owned(), format!("{GROUP}/v1").into());
        rename(object, |&(core, new)| (core, new));
        for field in ["reportingController", "reportingInstance"] {
            if text(object, field).is_empty() {
                object.remove(field);
            }
        }
    }
}

fn rename(
    object: &mut Object,
    pair: fn(&(&'static str, &'static str)) -> (&'static str, &'static str),
) {
    for (from, to) in RENAMED.iter().map(pair) {
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
}

/// Only for the stored version; the other one is converted before it is stored.
fn default_core(object: &mut Value) {
    let core = object.api_version() == "v1";
    let Some(object) = map(object) else { return };
    canonical_micros(object, &["eventTime"]);
    if let Some(series) = child(object, "series") {
        canonical_micros(series, &["lastObservedTime"]);
    }
    if !core {
        return;
    }
    for field in ["firstTimestamp", "lastTimestamp"] {
        let canonical = time::canonical(text(object, field));
        object.insert(field.to_owned(), canonical.map_or(Value::Null, Value::from));
    }
    preset(object, "eventTime", Value::Null);
    preset(object, "reportingComponent", "");
    preset(object, "reportingInstance", "");
    ensure(object, "source");
    ensure(object, "involvedObject");
}

fn decode_problem(object: &Value) -> Option<String> {
    micro_problem(&object["eventTime"])
        .or_else(|| micro_problem(&object["series"]["lastObservedTime"]))
}

/// An event is in the namespace of its object. Events of cluster-scoped objects are in `default`.
fn validate_core(write: &Write<'_>, object: &Value, _old: Option<&Value>) -> Vec<Cause> {
    let involved = &object["involvedObject"]["namespace"];
    let fits = match str_of(involved) {
        "" => matches!(write.namespace, "" | "default"),
        namespace => namespace == write.namespace,
    };
    if fits {
        return Vec::new();
    }
    let shown = Value::from(str_of(involved));
    vec![Cause::invalid("involvedObject.namespace", &shown, "does not match event.namespace")]
}

/// Validates the stored version, like upstream: messages have the old names of fields.
fn validate_new(write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = validate_core(write, object, None);
    if write.operation != Operation::Create {
        if let Some(old) = old {
            let mut old = old.clone();
            to_core(&mut old);
            causes.extend(changes(object, &old));
        }
        return causes;
    }
    if object["eventTime"].is_null() {
        causes.push(Cause::required("eventTime", ""));
    } else {
        causes.extend(required_of_new(object));
    }
    let kind = str_of(&object["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        let text = format!("has invalid value: {kind}");
        causes.push(Cause::invalid("type", &"".into(), &text));
    }
    causes
}

fn required_of_new(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let controller = str_of(&object["reportingComponent"]);
    if controller.is_empty() {
        causes.push(Cause::required("reportingController", ""));
    }
    for problem in names::qualified_name(controller) {
        causes.push(Cause::invalid("reportingController", &controller.into(), &problem));
    }
    for field in ["reportingInstance", "action", "reason"] {
        if str_of(&object[field]).is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    causes
}

fn changes(object: &Value, old: &Value) -> Vec<Cause> {
    let fields = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reportingComponent",
        "reportingInstance",
        "action",
        "related",
        "type",
        "eventTime",
    ];
    fields
        .into_iter()
        .filter(|field| object[*field] != old[*field])
        .map(|field| Cause::invalid(field, &object[field], "field is immutable"))
        .collect()
}

fn row(object: &Value, now: i64) -> Vec<Value> {
    let first = match str_of(&object["firstTimestamp"]) {
        "" => str_of(&object["eventTime"]),
        first => first,
    };
    let series = &object["series"];
    let last = match (str_of(&series["lastObservedTime"]), str_of(&object["lastTimestamp"])) {
        ("", "") => first,
        ("", last) => last,
        (observed, _) => observed,
    };
    let count = series["count"].as_i64().or(object["count"].as_i64()).unwrap_or(1).max(1);
    let involved = &object["involvedObject"];
    let target =
        format!("{}/{}", str_of(&involved["kind"]).to_lowercase(), str_of(&involved["name"]));
    let source = &object["source"];
    let (component, place) = match str_of(&source["component"]) {
        "" => (str_of(&object["reportingComponent"]), str_of(&object["reportingInstance"])),
        component => (component, str_of(&source["host"])),
    };
    let source = match place {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    };
    let message = str_of(&object["message"]).trim();
    let seen = |at: &str| Value::from(cells::since(at, now));
    vec![
        seen(last),
        object["type"].as_str().unwrap_or_default().into(),
        str_of(&object["reason"]).into(),
        target.into(),
        str_of(&involved["fieldPath"]).into(),
        source.into(),
        message.into(),
        seen(first),
        count.into(),
        json!(object.name()),
    ]
}
