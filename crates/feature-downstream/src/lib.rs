//! Objects inside clusters in the REST view: Kubernetes' own objects of a downstream cluster, read
//! and written there as the caller (`feature_kit::downstream`). Nothing is stored here.
//!
//! Each type is a table in `types/cluster/` or `types/project/`; what a table cannot express is in
//! the module of the type:
//!
//! | Where | What |
//! | --- | --- |
//! | [`namespace`] | assigns namespaces to projects |
//! | [`host_path`] | a field of persistent volumes that has two names |
//! | [`service`] | Services as they are, and as names for something else |
//! | [`ingress`] | rules, whose services and certificates are named by their ids |
//! | [`horizontal_pod_autoscaler`] | the workload by its id, metrics in one form |
//! | [`secret`] | Secrets of one namespace and of whole projects, one type for each kind |
//! | [`app`] | installed charts, of which there are none |
//!
//! Secrets of whole projects are the exception: they are in the management API. Not here: workloads
//! and pods; how Secrets of projects come into namespaces.

pub mod app;
pub mod horizontal_pod_autoscaler;
pub mod host_path;
pub mod ingress;
pub mod namespace;
pub mod secret;
pub mod service;

use std::sync::Arc;

use api_management::table::{TypeTable, nested, parse};
use feature_kit::downstream::{ClusterStore, ProjectStore};
use feature_kit::{Feature, ManagementContext, ViewSpec, table};
use rest_view::{Action, Descriptor, KubeResource, Store};

/// Paths of the versions of the REST view.
const IN_CLUSTER: &str = "/v3/cluster";
const IN_PROJECT: &str = "/v3/project";

const CLUSTER_TYPES: [&str; 4] = [
    include_str!("../types/cluster/api_service.txt"),
    include_str!("../types/cluster/namespace.txt"),
    include_str!("../types/cluster/persistent_volume.txt"),
    include_str!("../types/cluster/storage_class.txt"),
];
const CLUSTER_NESTED: &str = include_str!("../types/cluster/nested.txt");

const PROJECT_TYPES: [&str; 19] = [
    include_str!("../types/project/app.txt"),
    include_str!("../types/project/basic_auth.txt"),
    include_str!("../types/project/certificate.txt"),
    include_str!("../types/project/config_map.txt"),
    include_str!("../types/project/dns_record.txt"),
    include_str!("../types/project/docker_credential.txt"),
    include_str!("../types/project/horizontal_pod_autoscaler.txt"),
    include_str!("../types/project/ingress.txt"),
    include_str!("../types/project/namespaced_basic_auth.txt"),
    include_str!("../types/project/namespaced_certificate.txt"),
    include_str!("../types/project/namespaced_docker_credential.txt"),
    include_str!("../types/project/namespaced_secret.txt"),
    include_str!("../types/project/namespaced_service_account_token.txt"),
    include_str!("../types/project/namespaced_ssh_auth.txt"),
    include_str!("../types/project/persistent_volume_claim.txt"),
    include_str!("../types/project/secret.txt"),
    include_str!("../types/project/service.txt"),
    include_str!("../types/project/service_account_token.txt"),
    include_str!("../types/project/ssh_auth.txt"),
];
const PROJECT_NESTED: &str = include_str!("../types/project/nested.txt");

/// The feature: types only, without controllers and admission.
pub fn feature(_: &ManagementContext) -> Feature {
    Feature::new("downstream").view(ViewSpec::new(|_| descriptors()))
}

/// Every type, with the nested types that it needs.
pub fn descriptors() -> Vec<Descriptor> {
    let in_cluster = CLUSTER_TYPES.map(|text| {
        let (table, resource) = read(text);
        cluster_type(&table, resource)
    });
    let in_project = PROJECT_TYPES.map(|text| {
        let (table, resource) = read(text);
        project_type(&table, resource)
    });
    in_cluster.into_iter().chain(in_project).collect()
}

fn cluster_type(table: &TypeTable, resource: KubeResource) -> Descriptor {
    let store = ClusterStore::new(resource);
    let descriptor = described(table, IN_CLUSTER, CLUSTER_NESTED);
    match table.id {
        namespace::TYPE => {
            let action = Action::new("move", namespace::Move(store.clone()));
            let store = Arc::new(namespace::NamespaceStore::new(store));
            descriptor.store(store).action(action.input(namespace::MOVE_INPUT))
        }
        "persistentVolume" => descriptor.store(Arc::new(store)).mapper(host_path::HostPathKind),
        _ => descriptor.store(Arc::new(store)),
    }
}

fn project_type(table: &TypeTable, resource: KubeResource) -> Descriptor {
    let descriptor = described(table, IN_PROJECT, PROJECT_NESTED);
    if table.id == app::TYPE {
        return descriptor.store(Arc::new(app::NoApps));
    }
    if let Some(kind) = table.id.strip_prefix("namespaced") {
        return secret_type(descriptor, &lower_first(kind), ProjectStore::new(resource));
    }
    if table.id == secret::ANY || secret::type_of(table.id).is_some() {
        let descriptor = descriptor.validator(secret::project_wide::check);
        return secret_type(descriptor, table.id, secret::ProjectSecrets::new(resource));
    }
    let descriptor = descriptor.store(Arc::new(ProjectStore::new(resource)));
    match table.id {
        service::SERVICE => descriptor.validator(service::check_service),
        service::DNS_RECORD => descriptor.validator(service::check_record).mapper(service::Record),
        ingress::TYPE => {
            let descriptor = descriptor.validator(ingress::check).mapper(ingress::IngressRules);
            descriptor.formatter(ingress::format)
        }
        horizontal_pod_autoscaler::TYPE => {
            let check = horizontal_pod_autoscaler::check;
            descriptor.validator(check).mapper(horizontal_pod_autoscaler::Scaling)
        }
        _ => descriptor,
    }
}

/// A type of Secrets: all that are in the store, or those of one kind.
fn secret_type(descriptor: Descriptor, kind: &str, secrets: impl Store) -> Descriptor {
    let Some(stored) = secret::type_of(kind) else {
        return descriptor.store(Arc::new(secrets)).mapper(secret::SecretKind);
    };
    let descriptor = descriptor.store(Arc::new(secret::OfKind::new(secrets, stored)));
    match kind {
        "basicAuth" => descriptor.mapper(secret::BasicAuth),
        "certificate" => descriptor.mapper(secret::Certificate),
        "dockerCredential" => descriptor.mapper(secret::DockerCredential),
        "serviceAccountToken" => descriptor.mapper(secret::ServiceAccountToken),
        "sshAuth" => descriptor.mapper(secret::SshAuth),
        _ => descriptor,
    }
}

fn lower_first(text: &str) -> String {
    let (first, rest) = text.split_at(text.len().min(1));
    first.to_ascii_lowercase() + rest
}

/// # Panics
/// When a table is not one of a Kubernetes resource; a test reads all of them.
fn read(text: &'static str) -> (TypeTable, KubeResource) {
    let table = parse(text).unwrap_or_else(|error| panic!("a table cannot be read: {error}"));
    let resource = table::resource_of(&table).expect("the table names a Kubernetes resource");
    (table, resource)
}

fn described(table: &TypeTable, version: &str, shared: &'static str) -> Descriptor {
    let shared = nested(shared).unwrap_or_else(|error| panic!("nested types: {error}"));
    let descriptor = table::of_table(table).expect("the table names a Kubernetes resource");
    descriptor.version(version).types(shared.iter().map(table::struct_type))
}

#[cfg(test)]
mod tests;
