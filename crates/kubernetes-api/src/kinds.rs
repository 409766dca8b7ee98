//! Kubernetes' own kinds, as far as they are served: names, columns, defaults and rules. RBAC
//! kinds, CustomResourceDefinitions and reviews have their own modules.
//!
//! [`management_profile`] has the kinds that a management plane needs; [`full_profile`] adds
//! workloads and all related kinds. One kind is one [`Kind`] value in the file of its name. Clients
//! read the same fields and values as from kube-apiserver.

mod api_service;
mod autoscaling;
mod certificate_signing_request;
mod config_map;
mod daemon_set;
mod deployment;
mod device;
mod endpoint_slice;
mod endpoints;
mod event;
mod flow_control;
mod ingress;
mod ip;
mod job;
mod lease;
pub(crate) mod namespace;
mod networking;
mod node;
mod old_annotations;
mod pod;
mod policy;
mod prefixed_path;
mod replica_set;
mod replication_controller;
mod revision;
mod scale;
mod secret;
mod service;
mod service_account;
mod service_range;
mod stateful_set;
mod status;
mod storage_driver;
mod template;
#[cfg(test)]
mod tests;
mod volume;
mod webhook_configuration;

use std::sync::Arc;

use apiserver::kind::Kind;
use apiserver::resource::Resource;

pub use pod::{SCHEDULER, add_endpoints};
pub use scale::add_scale;
pub use service::Addresses;
pub use service::addresses::follow::{AddressFollower, start as follow_addresses};

/// Kubernetes' own kinds that a management plane serves.
pub fn management_profile() -> Vec<Resource> {
    management_kinds().into_iter().map(Kind::into_resource).collect()
}

/// The kinds of the management profile, workloads and related kinds: a whole cluster's API.
///
/// Services get addresses from `addresses`, which are those of one cluster. [`follow_addresses`]
/// releases them.
pub fn full_profile(addresses: &Arc<Addresses>) -> Vec<Resource> {
    let mut kinds = management_kinds();
    kinds.extend([
        autoscaling::horizontal_pod_autoscaler(),
        autoscaling::horizontal_pod_autoscaler_v1(),
        certificate_signing_request::kind(),
        daemon_set::kind(),
        deployment::kind(),
        device::device_class(),
        device::resource_claim(),
        device::resource_claim_template(),
        device::resource_slice(),
        endpoints::endpoints(),
        endpoint_slice::kind(),
        job::cron_job(),
        job::job(),
        ingress::kind(),
        networking::ingress_class(),
        networking::network_policy(),
        node::kind(),
        pod::kind(),
        policy::limit_range(),
        policy::pod_disruption_budget(),
        policy::priority_class(),
        policy::resource_quota(),
        policy::runtime_class(),
        replica_set::kind(),
        replication_controller::kind(),
        revision::controller_revision(),
        revision::pod_template(),
        service::kind(addresses),
        service_range::ip_address(),
        service_range::service_cidr(),
        stateful_set::kind(),
        storage_driver::csi_driver(),
        storage_driver::csi_node(),
        storage_driver::csi_storage_capacity(),
        storage_driver::volume_attachment(),
        storage_driver::volume_attributes_class(),
        volume::persistent_volume(),
        volume::persistent_volume_claim(),
        volume::storage_class(),
    ]);
    kinds.into_iter().map(Kind::into_resource).collect()
}

fn management_kinds() -> Vec<Kind> {
    vec![
        api_service::kind(),
        config_map::kind(),
        event::core(),
        event::events(),
        flow_control::flow_schema(),
        flow_control::priority_level_configuration(),
        lease::kind(),
        namespace::kind(),
        secret::kind(),
        service_account::kind(),
        webhook_configuration::mutating(),
        webhook_configuration::validating(),
    ]
}
