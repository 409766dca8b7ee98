//! What clusters say of their driver: `status.provisioning`. The controllers of clusters make their
//! conditions of it.

use std::sync::atomic::{AtomicBool, Ordering};

use api_management::{Cluster, Provisioning, ProvisioningStage};
use controller::{ReconcileError, StatusPatch, StatusTarget};
use kube::{Client, ResourceExt};

/// Writes how far the driver of a cluster came.
#[derive(Clone)]
pub struct Reporter {
    client: Client,
}

impl Reporter {
    /// `client` may patch the status of clusters.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Says that the driver begins; returns false if the cluster is under deletion by now. From
    /// then on a deletion waits for the driver.
    ///
    /// # Errors
    /// The API refused.
    pub async fn begin(
        &self,
        cluster: &Cluster,
        stage: ProvisioningStage,
        message: &str,
    ) -> Result<bool, ReconcileError> {
        let is_going = AtomicBool::new(false);
        let (patch, target) = (patch(cluster, stage, message), target(cluster));
        let write = patch.write_if(&self.client, &target, |stored| {
            let going = stored["metadata"]["deletionTimestamp"].is_string();
            is_going.store(going, Ordering::Relaxed);
            !going
        });
        write.await?;
        Ok(!is_going.load(Ordering::Relaxed))
    }

    /// Says how far it came.
    ///
    /// # Errors
    /// The API refused.
    pub async fn report(
        &self,
        cluster: &Cluster,
        stage: ProvisioningStage,
        message: &str,
    ) -> Result<(), ReconcileError> {
        self.write(cluster, patch(cluster, stage, message)).await
    }

    /// Writes further fields of the status.
    ///
    /// # Errors
    /// The API refused.
    pub async fn write(&self, cluster: &Cluster, patch: StatusPatch) -> Result<(), ReconcileError> {
        patch.write(&self.client, &target(cluster)).await.map(drop)
    }
}

fn target(cluster: &Cluster) -> StatusTarget {
    StatusTarget::of::<Cluster>("", &cluster.name_any())
}

fn patch(cluster: &Cluster, stage: ProvisioningStage, message: &str) -> StatusPatch {
    let generation = cluster.metadata.generation.unwrap_or_default();
    let reported = Provisioning { stage, message: message.to_owned(), generation };
    let reported = serde_json::to_value(reported).expect("a report serialises");
    StatusPatch::new().field("provisioning", reported)
}
