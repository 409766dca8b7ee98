//! The cluster addresses of a service, and their families. The cluster has one family.

use std::collections::HashSet;
use std::net::IpAddr;

use api_meta::status::Cause;
use apiserver::fields::{Object, items, preset, str_of, text};
use serde_json::{Value, json};

use super::{HEADLESS, is_named};
use crate::kinds::ip;

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
/// The family of the cluster's addresses.
const SERVED: &str = FAMILIES[0];
const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const ADDRESSES_MAX: usize = 2;
const SET_ONCE: &str = "may not change once set";

fn family(address: &str) -> &'static str {
    let is_newer = matches!(ip::read(address), Some(IpAddr::V6(_)));
    FAMILIES[usize::from(is_newer)]
}

/// Whether the service is headless.
pub fn is_headless(spec: &Value) -> bool {
    matches!(items(&spec["clusterIPs"]), [one] if one == HEADLESS)
}

/// Without address and selector the families are those of its endpoints.
fn is_bare(address: &str, selector: Option<&Value>) -> bool {
    let selects = selector.and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    address == HEADLESS && !selects
}

/// Derives the list of addresses from the first address when it is not set or was not updated.
pub fn follow_address(spec: &mut Object, old: &Value) {
    let listed = |spec: &Object| spec.get("clusterIPs").cloned().unwrap_or_default();
    let (address, list) = (text(spec, "clusterIP").to_owned(), listed(spec));
    let before = str_of(&old["clusterIP"]);
    let is_stale = address != before && !before.is_empty() && list == old["clusterIPs"];
    if !address.is_empty() && (items(&list).is_empty() || is_stale) {
        spec.insert("clusterIPs".to_owned(), json!([address]));
    } else if address.is_empty() && is_stale {
        spec.remove("clusterIPs");
    }
}

/// Sets families and policy that are not set. Invalid values are left to validation.
pub fn fill(spec: &mut Object, old: &Value) {
    let is_bare = is_bare(text(spec, "clusterIP"), spec.get("selector"));
    let policy = match &old["ipFamilyPolicy"] {
        Value::Null if is_bare => "RequireDualStack".into(),
        Value::Null => "SingleStack".into(),
        before => before.clone(),
    };
    preset(spec, "ipFamilyPolicy", policy);
    let addresses = spec.get("clusterIPs").map(items).unwrap_or_default();
    let foreign = addresses.iter().map(str_of).any(|one| one != HEADLESS && family(one) != SERVED);
    let mut families = spec.get("ipFamilies").map(items).unwrap_or_default().to_vec();
    if families.is_empty() && !foreign {
        families.push(SERVED.into());
    }
    if is_bare && families.len() == 1 && text(spec, "ipFamilyPolicy") != "SingleStack" {
        let other = usize::from(families[0] == FAMILIES[0]);
        families.push(FAMILIES[other].into());
    }
    if !families.is_empty() {
        spec.insert("ipFamilies".to_owned(), families.into());
    }
}

/// Causes that prevent the allocation of addresses. They are reported alone, before all other
/// rules.
pub fn problems(spec: &Value, old: Option<&Value>) -> Vec<Cause> {
    let causes = validate_consistency(spec, old);
    if !causes.is_empty() {
        return causes;
    }
    let causes = against_policy(spec, old);
    if !causes.is_empty() || is_bare(str_of(&spec["clusterIP"]), Some(&spec["selector"])) {
        return causes;
    }
    unserved_families(spec)
}

/// Whether addresses, families and policy are consistent.
fn validate_consistency(spec: &Value, old: Option<&Value>) -> Vec<Cause> {
    let (field, list) = ("spec.clusterIPs", &spec["clusterIPs"]);
    let invalid = |why: &str| Cause::invalid(field, list, why);
    let mut causes = Vec::new();
    match (str_of(&spec["clusterIP"]), items(list).first()) {
        ("", Some(_)) => causes.push(invalid("must be empty when `clusterIP` is not specified")),
        (one, Some(first)) if first != one => {
            causes.push(invalid("first value must match `clusterIP`"));
        }
        _ => {}
    }
    causes.extend(validate_known(spec));
    let of_addresses = addresses(list, old);
    let are_bad = !of_addresses.is_empty();
    causes.extend(of_addresses);
    if items(list).len() > ADDRESSES_MAX {
        causes.push(invalid("may only hold up to 2 values"));
    }
    if are_bad {
        return causes;
    }
    let of_families: HashSet<_> = items(list).iter().map(|one| family(str_of(one))).collect();
    if items(list).len() > 1 && of_families.len() < 2 {
        causes.push(invalid("may specify no more than one IP for each IP family"));
    }
    if !is_headless(spec) {
        causes.extend(unlike(spec));
    }
    causes
}

/// Whether families and policies are known.
fn validate_known(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen = HashSet::new();
    for (index, one) in items(&spec["ipFamilies"]).iter().enumerate() {
        let field = format!("spec.ipFamilies[{index}]");
        if !FAMILIES.contains(&str_of(one)) {
            causes.push(Cause::not_supported(&*field, one, &FAMILIES));
        }
        if !seen.insert(one) {
            causes.push(Cause::duplicate(field, one));
        }
    }
    let policy = &spec["ipFamilyPolicy"];
    if policy.is_string() && !POLICIES.contains(&str_of(policy)) {
        causes.push(Cause::not_supported("spec.ipFamilyPolicy", policy, &POLICIES));
    }
    causes
}

fn addresses(list: &Value, old: Option<&Value>) -> Vec<Cause> {
    let before = old.map(|old| items(&old["clusterIPs"]).iter().map(str_of).collect());
    let before = before.unwrap_or_default();
    let mut causes = Vec::new();
    for (index, address) in items(list).iter().enumerate() {
        if index == 0 && address == HEADLESS {
            if items(list).len() > 1 {
                let why = "'None' must be the first and only value";
                causes.push(Cause::invalid("spec.clusterIPs", list, why));
            }
            continue;
        }
        causes.extend(ip::new_address(&format!("spec.clusterIPs[{index}]"), address, &before));
    }
    causes
}

/// Addresses that are not of the declared family.
fn unlike(spec: &Value) -> Vec<Cause> {
    let pairs = items(&spec["clusterIPs"]).iter().zip(items(&spec["ipFamilies"])).enumerate();
    let unlike = pairs.filter(|(_, (address, said))| {
        FAMILIES.contains(&str_of(said)) && family(str_of(address)) != str_of(said)
    });
    unlike
        .map(|(index, (address, said))| {
            let why =
                format!("expected an {} value as indicated by `ipFamilies[{index}]`", str_of(said));
            Cause::invalid(format!("spec.clusterIPs[{index}]"), address, &why)
        })
        .collect()
}

/// Whether the numbers of addresses and families agree with the policy.
fn against_policy(spec: &Value, old: Option<&Value>) -> Vec<Cause> {
    let policy = &spec["ipFamilyPolicy"];
    let invalid = |why: String| Cause::invalid("spec.ipFamilyPolicy", policy, &why);
    let count = |spec: &Value, field: &str| items(&spec[field]).len();
    let mut causes = Vec::new();
    let counted =
        [("clusterIPs", "cluster IPs", "cluster IP"), ("ipFamilies", "IP families", "IP family")];
    for (field, many, one) in counted {
        let (now, before) = (count(spec, field), old.map_or(0, |old| count(old, field)));
        if policy == "SingleStack" && now == 2 {
            causes.push(invalid(format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {many} are specified"
            )));
        } else if policy != "SingleStack" && before == 2 && now == 1 {
            causes.push(invalid(format!("must be 'SingleStack' to release the secondary {one}")));
        }
    }
    let list = items(&spec["clusterIPs"]);
    for (index, address) in list.iter().enumerate().skip(count(spec, "ipFamilies")) {
        if address != HEADLESS && family(str_of(address)) != SERVED {
            let why = format!("{} is not configured on this cluster", family(str_of(address)));
            let field = format!("spec.clusterIPs[{index}]");
            causes.push(Cause::invalid(field, &spec["clusterIPs"], &why));
        }
    }
    causes
}

/// Families that the cluster does not have.
fn unserved_families(spec: &Value) -> Vec<Cause> {
    let policy = &spec["ipFamilyPolicy"];
    let why = "this cluster is not configured for dual-stack services";
    let both =
        (policy == "RequireDualStack").then(|| Cause::invalid("spec.ipFamilyPolicy", policy, why));
    let listed = items(&spec["ipFamilies"]).iter().enumerate();
    let unserved = listed.filter(|(_, family)| *family != SERVED).map(|(index, family)| {
        let field = format!("spec.ipFamilies[{index}]");
        Cause::invalid(field, family, "not configured on this cluster")
    });
    both.into_iter().chain(unserved).collect()
}

/// Causes for a change: the first address and the first family are immutable, unless one of the two
/// specs has none.
pub fn validate_change(spec: &Value, old: &Value) -> Vec<Cause> {
    let headless = [is_headless(spec), is_headless(old)];
    if is_named(spec) || is_named(old) || headless == [true, true] {
        return Vec::new();
    }
    let mut causes = Vec::new();
    let fields = ["clusterIPs", "ipFamilies"];
    let judged = if headless.contains(&true) { &fields[..1] } else { &fields[..] };
    for &field in judged {
        let (now, before) = (items(&spec[field]), items(&old[field]));
        let compared = if now.len() == before.len() { now.len() } else { 1 };
        for (index, (now, before)) in now.iter().zip(before).take(compared).enumerate() {
            // For families, upstream always reports the first.
            let index = if field == "clusterIPs" { index } else { 0 };
            if now != before {
                let path = format!("spec.{field}[{index}]");
                causes.push(Cause::invalid(path, &spec[field], SET_ONCE));
            }
        }
    }
    causes
}
