//! Workloads of downstream clusters in the REST view.
//!
//! The view shows a Deployment, a DaemonSet, a Job or a Pod in one flattened form, alone and together
//! as `workload`. What a cluster stores stays Kubernetes' own object, read and written there as the
//! caller (`feature_kit::downstream`); [`workload`] maps both ways.
//!
//! Not here: Services for the ports of workloads, and what controllers note on them.

pub mod workload;

use std::sync::Arc;

use feature_kit::downstream::ProjectStore;
use feature_kit::{Feature, ManagementContext, ViewSpec};
use rest_view::{Descriptor, Store};

use workload::kind::Kind;
use workload::store::Stores;

/// The feature.
pub fn feature(_: &ManagementContext) -> Feature {
    Feature::new("workloads").view(ViewSpec::new(|_| descriptors()))
}

/// Every type, over the objects in the namespaces of a project.
pub fn descriptors() -> Vec<Descriptor> {
    let stores: Stores = Kind::ALL
        .into_iter()
        .map(|kind| {
            let store: Arc<dyn Store> = Arc::new(ProjectStore::new(kind.resource()));
            (kind, store)
        })
        .collect();
    workload::view::views(&stores)
}
