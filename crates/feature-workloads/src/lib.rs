//! Workloads of downstream clusters in the REST view.
//!
//! The view shows a Deployment, a DaemonSet, a Job or a Pod in one flattened representation, alone
//! and together as `workload`. The cluster stores Kubernetes' own objects, which are read and
//! written there as the caller (`feature_kit::downstream`); [`workload`] maps in both directions.
//!
//! Not here: Services for the ports of workloads, and annotations that controllers write on them.

pub mod workload;

use std::sync::Arc;

use feature_kit::downstream::ProjectStore;
use feature_kit::{Feature, ManagementContext, ViewSpec};
use rest_view::{Descriptor, Store};

use workload::kind::WorkloadKind;
use workload::store::Stores;

/// The feature: types only, without controllers and admission.
pub fn feature(_: &ManagementContext) -> Feature {
    Feature::new("workloads").view(ViewSpec::new(|_| descriptors()))
}

/// Every type, over the objects in the namespaces of a project.
pub fn descriptors() -> Vec<Descriptor> {
    let stores: Stores = WorkloadKind::ALL
        .into_iter()
        .map(|kind| {
            let store: Arc<dyn Store> = Arc::new(ProjectStore::new(kind.resource()));
            (kind, store)
        })
        .collect();
    workload::view::views(&stores)
}
