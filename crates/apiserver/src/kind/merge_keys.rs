//! Which lists of the built-in kinds a strategic merge patch merges, and by which field.

use api_meta::patch::{ListStrategy, MergeKeys};

/// The merge keys of one kind. Most lists are the same in all kinds and are identified by their
/// path.
pub fn merge_keys(group: &str, kind: &str) -> &'static dyn MergeKeys {
    match (group, kind) {
        ("", "Service") => &SERVICE,
        ("", "Node") => &NODE,
        ("apiextensions.k8s.io", _) => &NO_CONDITIONS,
        _ => &COMMON,
    }
}

struct Lists {
    service_ports: bool,
    addresses: bool,
    conditions: bool,
}

static COMMON: Lists = Lists { service_ports: false, addresses: false, conditions: true };
static SERVICE: Lists = Lists { service_ports: true, addresses: false, conditions: true };
static NODE: Lists = Lists { service_ports: false, addresses: true, conditions: true };
static NO_CONDITIONS: Lists = Lists { service_ports: false, addresses: false, conditions: false };

impl MergeKeys for Lists {
    fn list(&self, path: &[&str]) -> ListStrategy {
        use ListStrategy::{MergeBy, Replace, Set};
        let container = |parent: &str| {
            matches!(parent, "containers" | "ephemeralContainers" | "initContainers")
        };
        match path {
            ["spec", "ports"] if self.service_ports => MergeBy("port"),
            ["status", "addresses"] if self.addresses => MergeBy("type"),
            ["status", "conditions"] if self.conditions => MergeBy("type"),
            ["secrets" | "imagePullSecrets" | "webhooks"] => MergeBy("name"),
            [.., "metadata", "finalizers"] | ["spec", "podCIDRs"] => Set,
            [.., "metadata", "ownerReferences"] => MergeBy("uid"),
            [.., parent, "ports"] if container(parent) => MergeBy("containerPort"),
            [.., parent, "env"] if container(parent) => MergeBy("name"),
            [.., parent, "volumeDevices"] if container(parent) => MergeBy("devicePath"),
            [.., parent, "volumeMounts"] if container(parent) || parent.ends_with("Statuses") => {
                MergeBy("mountPath")
            }
            [.., "spec", last] => match *last {
                "containers"
                | "drivers"
                | "ephemeralContainers"
                | "imagePullSecrets"
                | "initContainers"
                | "matchConditions"
                | "resourceClaims"
                | "schedulingGates"
                | "variables"
                | "volumes" => MergeBy("name"),
                "hostAliases" => MergeBy("ip"),
                "topologySpreadConstraints" => MergeBy("topologyKey"),
                _ => Replace,
            },
            ["status", "hostIPs" | "podIPs"] => MergeBy("ip"),
            ["status", "resourceClaimStatuses"] => MergeBy("name"),
            ["webhooks", "matchConditions"] => MergeBy("name"),
            _ => Replace,
        }
    }
}
