//! The ranges of Services' addresses: ServiceCIDR and IPAddress.
//!
//! They are stored for clients that read them. [`Addresses`](super::Addresses) allocates addresses
//! from the one range that every server has; other ranges are not used.

use std::net::{IpAddr, Ipv6Addr};

use api_meta::names::{self, NameCheck};
use api_meta::status::Cause;
use apiserver::fields::{child, ensure, items, map, str_of};
use apiserver::kind::cells;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use apiserver::strategy::Write;
use serde_json::{Value, json};

use super::ip;

const GROUP: &str = "networking.k8s.io";
const IMMUTABLE: &str = "field is immutable";
/// One of each address family.
const RANGES_MAX: usize = 2;

/// The kind IPAddress of the group `networking.k8s.io`: cluster-scoped, with the defaults,
/// validation and columns of kube-apiserver.
pub fn ip_address() -> Kind {
    Kind {
        namespaced: false,
        short_names: &["ip"],
        name_rule: names::NameRule::PathSegment,
        columns: &[NAME, ("ParentRef", "string", "", 0)],
        hooks: Hooks {
            default: |object| {
                let spec = map(object).and_then(|object| ensure(object, "spec"));
                let Some(parent) = spec.and_then(|spec| child(spec, "parentRef")) else { return };
                parent.retain(|_, value| *value != "");
            },
            validate: validate_address,
            cells: |object, now| {
                let parent = &object["spec"]["parentRef"];
                let text = |field: &str| str_of(&parent[field]);
                let mut parts = vec![text("resource").to_owned()];
                if !text("group").is_empty() {
                    parts[0] = format!("{}.{}", text("resource"), text("group"));
                }
                let place = [text("namespace"), text("name")];
                let place = place.into_iter().filter(|part| !part.is_empty());
                parts.extend(place.map(str::to_owned));
                vec![cells::name(object), parts.join("/").into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "ipaddresses", "ipaddress", "IPAddress")
    }
}

fn validate_address(_: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let name = str_of(&object["metadata"]["name"]);
    let parent = &object["spec"]["parentRef"];
    let mut causes: Vec<Cause> = address_problem(name)
        .map(|text| Cause::invalid("metadata.name", &name.into(), &text))
        .into_iter()
        .collect();
    if parent.is_null() {
        causes.push(Cause::required("spec.parentRef", ""));
        return causes;
    }
    let checks: [(&str, bool, NameCheck); 4] = [
        ("group", false, names::dns1123_subdomain),
        ("resource", true, segment),
        ("name", true, segment),
        ("namespace", false, segment),
    ];
    for (field, required, check) in checks {
        let text = str_of(&parent[field]);
        let field = format!("spec.parentRef.{field}");
        if text.is_empty() && required {
            causes.push(Cause::required(field, ""));
        } else if !text.is_empty() {
            let problems = check(text);
            causes.extend(
                problems.iter().map(|problem| Cause::invalid(&*field, &text.into(), problem)),
            );
        }
    }
    if old.is_some_and(|old| old["spec"]["parentRef"] != *parent) {
        let text = |field: &str| json!(str_of(&parent[field]));
        let shown = format!(
            "{{\"Group\":{},\"Resource\":{},\"Namespace\":{},\"Name\":{}}}",
            text("group"),
            text("resource"),
            text("namespace"),
            text("name"),
        );
        let text = format!("Invalid value: {shown}: {IMMUTABLE}");
        causes.push(Cause::new("FieldValueInvalid", "spec.parentRef", text));
    }
    causes
}

fn segment(text: &str) -> Vec<String> {
    names::path_segment(text, false)
}

/// The message about a name that is no address in canonical representation; `None` for a valid one.
fn address_problem(name: &str) -> Option<String> {
    let Ok(address) = name.parse::<IpAddr>() else {
        let padded = name.split('.').any(|part| part.len() > 1 && part.starts_with('0'));
        return Some(match padded && name.parse::<Ipv6Addr>().is_err() {
            true => "must not have leading 0s".to_owned(),
            false => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned(),
        });
    };
    let canonical = address.to_string();
    (canonical != name).then(|| format!("must be in canonical form (\"{canonical}\")"))
}

/// The kind ServiceCIDR of the group `networking.k8s.io`: cluster-scoped, with the defaults,
/// validation and columns of kube-apiserver.
pub fn service_cidr() -> Kind {
    Kind {
        namespaced: false,
        columns: &[NAME, ("CIDRs", "string", "", 0), AGE],
        hooks: Hooks {
            default: |object| {
                let Some(object) = map(object) else { return };
                ensure(object, "spec");
                ensure(object, "status");
            },
            validate: |_, object, old| validate_range(object, old),
            cells: |object, now| {
                let ranges = items(&object["spec"]["cidrs"]).iter().map(str_of);
                let ranges = ranges.collect::<Vec<_>>().join(",");
                vec![cells::name(object), ranges.into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "servicecidrs", "servicecidr", "ServiceCIDR").with_status()
    }
}

fn validate_range(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let ranges = items(&object["spec"]["cidrs"]);
    let mut causes = Vec::new();
    if ranges.is_empty() {
        return vec![Cause::required("spec.cidrs", "at least one CIDR required")];
    }
    let before = old.map(|old| items(&old["spec"]["cidrs"]));
    for (index, range) in before.unwrap_or_default().iter().enumerate() {
        let now = ranges.get(index).unwrap_or(&Value::Null);
        if now != range {
            causes.push(Cause::invalid(format!("spec.cidrs[{index}]"), now, IMMUTABLE));
        }
    }
    if ranges.len() > RANGES_MAX {
        let shown = format!("{{\"CIDRs\":{}}}", object["spec"]["cidrs"]);
        let text = format!("Invalid value: {shown}: may only hold up to {RANGES_MAX} values");
        return vec![Cause::new("FieldValueInvalid", "spec.cidrs", text)];
    }
    let families: Vec<bool> = ranges.iter().map(|range| str_of(range).contains(':')).collect();
    let problems: Vec<Option<&str>> =
        ranges.iter().map(|range| ip::range_problem(str_of(range))).collect();
    if let [first, second] = families[..]
        && first == second
        && problems.iter().all(Option::is_none)
    {
        let text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                    2001:db8::/64";
        causes.push(Cause::invalid("spec.cidrs", &object["spec"]["cidrs"], text));
    }
    for (index, problem) in problems.into_iter().enumerate() {
        if let Some(text) = problem {
            causes.push(Cause::invalid(format!("spec.cidrs[{index}]"), &ranges[index], text));
        }
    }
    causes
}
