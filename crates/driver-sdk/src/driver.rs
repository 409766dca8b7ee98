//! What a driver does: the trait, with defaults for what many drivers leave out.

use std::future::Future;

use anyhow::Result;
use driver_contract::Capability;
use driver_contract::types::{ClusterInfo, K8sCapabilities};

use crate::options::Options;

/// A cluster at one provider, as a request describes it.
#[derive(Clone, Debug)]
pub struct ClusterRequest<O> {
    /// Unique in the manager, and the same in every request: make the cluster findable by it.
    pub name: String,
    /// The name that users gave it.
    pub display_name: String,
    /// The options of the driver.
    pub options: O,
}

/// The driver cannot do this, which is no fault of the request.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("this driver does not support {0}")]
pub struct NotSupported(pub &'static str);

/// A driver of clusters at one provider.
///
/// The manager starts the program anew for every operation, and may end it at any time: nothing
/// outlives a call but what is in [`ClusterInfo`]. What a method has written there is stored, also
/// when it then fails in [`Driver::create`]; use [`crate::state`] for what the other calls need.
///
/// The text of an error is shown to users: say what failed, at which object, and what helps.
pub trait Driver: Send + Sync + 'static {
    /// The options of a new cluster. They become the form and the fields of the API.
    type CreateOptions: Options;
    /// The options that can change. They become the flags of the command line; through the API
    /// all options of a new cluster come again. Use `Option` to see which a request has.
    type UpdateOptions: Options;

    /// Makes the cluster, and returns when its API can be reached.
    ///
    /// It is called again with the same name after a failure or a crash, with what is known of the
    /// attempt before, or with an empty `info`: find what already exists, and go on from there.
    fn create(
        &self,
        request: ClusterRequest<Self::CreateOptions>,
        info: &mut ClusterInfo,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Changes the cluster into what the request describes. A request without changes is normal.
    fn update(
        &self,
        request: ClusterRequest<Self::UpdateOptions>,
        info: &mut ClusterInfo,
    ) -> impl Future<Output = Result<()>> + Send;

    /// After [`Driver::create`] and [`Driver::update`]: fills in the endpoint, the certificate
    /// authority and a token with which the manager may do everything in the cluster
    /// ([`crate::service_account`]).
    fn post_check(&self, info: &mut ClusterInfo) -> impl Future<Output = Result<()>> + Send;

    /// Removes the cluster and all that was made for it. A cluster that no longer exists is
    /// removed.
    fn remove(&self, info: &ClusterInfo) -> impl Future<Output = Result<()>> + Send;

    /// What the driver can do beside that.
    fn capabilities(&self) -> Vec<Capability> {
        Vec::new()
    }

    /// What clusters of these options offer to their users.
    fn kubernetes_capabilities(
        &self,
        options: Self::CreateOptions,
    ) -> impl Future<Output = Result<K8sCapabilities>> + Send {
        let _ = options;
        async { Ok(K8sCapabilities::default()) }
    }

    /// The version of Kubernetes, such as `v1.36.3`.
    fn version(&self, info: &ClusterInfo) -> impl Future<Output = Result<String>> + Send {
        let _ = info;
        async { Err(NotSupported("reading the version").into()) }
    }

    /// Changes the version of Kubernetes.
    fn set_version(
        &self,
        info: &ClusterInfo,
        version: String,
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (info, version);
        async { Err(NotSupported("changing the version").into()) }
    }

    /// The number of nodes.
    fn node_count(&self, info: &ClusterInfo) -> impl Future<Output = Result<i64>> + Send {
        let _ = info;
        async { Err(NotSupported("reading the number of nodes").into()) }
    }

    /// Changes the number of nodes.
    fn set_node_count(
        &self,
        info: &ClusterInfo,
        count: i64,
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (info, count);
        async { Err(NotSupported("changing the number of nodes").into()) }
    }

    /// Deletes the service account that versions of the driver before 2019 made. Drivers without
    /// such a past have nothing to do.
    fn remove_legacy_service_account(
        &self,
        info: &ClusterInfo,
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = info;
        async { Ok(()) }
    }

    /// Saves etcd under the name.
    fn save_snapshot(
        &self,
        request: ClusterRequest<Self::UpdateOptions>,
        info: &ClusterInfo,
        snapshot: String,
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (request, info, snapshot);
        async { Err(NotSupported("snapshots of etcd").into()) }
    }

    /// Restores etcd from the snapshot.
    fn restore_snapshot(
        &self,
        request: ClusterRequest<Self::UpdateOptions>,
        info: &mut ClusterInfo,
        snapshot: String,
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (request, info, snapshot);
        async { Err(NotSupported("snapshots of etcd").into()) }
    }

    /// Removes the snapshot.
    fn remove_snapshot(
        &self,
        request: ClusterRequest<Self::UpdateOptions>,
        info: &ClusterInfo,
        snapshot: String,
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (request, info, snapshot);
        async { Err(NotSupported("snapshots of etcd").into()) }
    }
}
