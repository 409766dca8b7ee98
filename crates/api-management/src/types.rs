//! The tables of all types of the management API. Parsed on request: only the text stays in memory.

use crate::table::{Nested, Stored, TypeTable, definition, nested, parse};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

macro_rules! embedded {
    ($folder:literal: $($name:literal)*) => {
        &[$(include_str!(concat!("../types/", $folder, $name, ".txt"))),*]
    };
}

/// One table each.
const TYPES: &[&str] = embedded!("":
    "active_directory_config"
    "adfs_config"
    "auth_config"
    "azure_ad_config"
    "catalog"
    "catalog_template"
    "catalog_template_version"
    "cis_benchmark_version"
    "cis_config"
    "cloud_credential"
    "cluster"
    "cluster_alert"
    "cluster_alert_group"
    "cluster_alert_rule"
    "cluster_catalog"
    "cluster_logging"
    "cluster_monitor_graph"
    "cluster_registration_token"
    "cluster_role_template_binding"
    "cluster_scan"
    "cluster_template"
    "cluster_template_revision"
    "compose_config"
    "dynamic_schema"
    "etcd_backup"
    "feature"
    "fleet_workspace"
    "free_ipa_config"
    "github_config"
    "global_dns"
    "global_dns_provider"
    "global_role"
    "global_role_binding"
    "google_oauth_config"
    "group"
    "group_member"
    "key_cloak_config"
    "key_cloak_oidc_config"
    "kontainer_driver"
    "ldap_config"
    "local_config"
    "management_secret"
    "monitor_metric"
    "multi_cluster_app"
    "multi_cluster_app_revision"
    "node"
    "node_driver"
    "node_pool"
    "node_template"
    "notifier"
    "oidc_config"
    "okta_config"
    "open_ldap_config"
    "ping_config"
    "pod_security_admission_configuration_template"
    "pod_security_policy_template"
    "pod_security_policy_template_project_binding"
    "preference"
    "principal"
    "project"
    "project_alert"
    "project_alert_group"
    "project_alert_rule"
    "project_catalog"
    "project_logging"
    "project_monitor_graph"
    "project_network_policy"
    "project_role_template_binding"
    "rancher_user_notification"
    "rke_addon"
    "rke_k8s_service_option"
    "rke_k8s_system_image"
    "role_template"
    "saml_token"
    "setting"
    "shibboleth_config"
    "template"
    "template_content"
    "template_version"
    "token"
    "user"
);

/// Nested types that several types use, by area.
const NESTED: &[&str] = embedded!("nested/":
    "access"
    "apps"
    "clusters"
    "monitoring"
    "nodes"
    "shared"
);

/// The tables of all types, parsed on each call.
pub fn tables() -> impl Iterator<Item = TypeTable> {
    TYPES.iter().map(|text| read(text))
}

/// The table of the type `id`.
pub fn table(id: &str) -> Option<TypeTable> {
    let mut found = TYPES.iter().filter(|text| type_line(text).is_some_and(|line| line.0 == id));
    found.next().map(|text| read(text))
}

/// The tables whose objects are of `kind`.
pub fn tables_of_kind(kind: &str) -> Vec<TypeTable> {
    let named = format!("\nkind {kind} ");
    TYPES.iter().filter(|text| text.contains(&named)).map(|text| read(text)).collect()
}

/// Nested types that several types use. A nested type of one type is in its table.
pub fn shared_types() -> impl Iterator<Item = Nested> {
    NESTED.iter().flat_map(|text| nested(text).expect("a test reads every file"))
}

/// The definitions of the kinds without a struct.
pub fn crds(has_struct: impl Fn(&str) -> bool) -> Vec<CustomResourceDefinition> {
    let mut kinds: Vec<(&str, Vec<TypeTable>)> = Vec::new();
    for table in tables() {
        let Stored::Kind { kind, .. } = table.stored else { continue };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, tables)) => tables.push(table),
            None => kinds.push((kind, vec![table])),
        }
    }
    let without = kinds.into_iter().filter(|(kind, _)| !has_struct(kind));
    without.filter_map(|(_, tables)| definition::crd(&tables)).collect()
}

fn read(text: &'static str) -> TypeTable {
    parse(text).expect("a test reads every table")
}

fn type_line(text: &'static str) -> Option<(&'static str, &'static str)> {
    let line = text.lines().find_map(|line| line.strip_prefix("type "))?;
    line.split_once(' ')
}
