//! The way out of a cluster that a driver made: its driver removes it, however often that must be
//! tried. Only people give up on it, since what is left costs money; then the report says so.

use std::sync::atomic::Ordering;

use api_management::{Cluster, KontainerDriver, ProvisioningStage};
use controller::{Outcome, ReconcileError};
use kube::ResourceExt;
use serde_json::Value;

use super::controller::{BUSY_INTERVAL, FINISHED, Provisioner, WorkError};
use super::options;
use super::record::{RecordStatus, StoredCluster};
use super::work::{CallError, DROVER, DriverRun};

impl Provisioner {
    pub(super) async fn remove(&self, cluster: &Cluster) -> Result<Outcome, ReconcileError> {
        let name = cluster.name_any();
        let Some(reported) = &cluster.status.provisioning else {
            // Nothing was begun, and nothing begins any more.
            return Ok(Outcome::Done);
        };
        if reported.stage.is_final() {
            // The object must say so before the record goes.
            self.records.delete(&name).await?;
            return Ok(Outcome::Done);
        }
        let loaded = self.records.load(&name).await;
        if matches!(loaded, Ok(None)) {
            return self.finish(cluster, ProvisioningStage::Removed, "").await;
        }
        // These two need no record: whoever gives up may do so because it cannot be read.
        if cluster.is_detached() {
            return self.finish(cluster, ProvisioningStage::Detached, "").await;
        }
        if cluster.is_removal_forced() {
            let driver = cluster.driver_name().unwrap_or_default();
            let message = format!(
                "removal was forced, and the provider of the driver \"{driver}\" may still have what \
                 was made for cluster {name}"
            );
            return self.finish(cluster, ProvisioningStage::Abandoned, &message).await;
        }
        let Some(stored) = loaded? else { return Ok(Outcome::Done) };
        let failed = ProvisioningStage::RemoveFailed;
        let driver = match self.driver(cluster) {
            Ok(driver) => driver,
            Err(why) => {
                self.reporter.report(cluster, failed, &why).await?;
                return Ok(Outcome::WaitingFor(why));
            }
        };
        if let Some(wait) = self.wait_after_failure(&name, &Value::Null) {
            return Ok(Outcome::RequeueAfter(wait));
        }
        let shown = &driver.status.display_name;
        let message = format!("the driver \"{shown}\" removes the cluster");
        self.reporter.report(cluster, ProvisioningStage::Removing, &message).await?;
        let stage = ProvisioningStage::Removing;
        let Some(context) = self.work_if_idle(cluster, stage, message) else {
            return Ok(Outcome::RequeueAfter(BUSY_INTERVAL));
        };
        let worked = self.with_driver(&driver, context, async |run| {
            self.call_remove(run, cluster, &driver, stored).await
        });
        match worked.await {
            Ok(()) => {
                FINISHED.fetch_add(1, Ordering::Relaxed);
                self.finish(cluster, ProvisioningStage::Removed, "").await
            }
            // The object says why: it was forced, or is to be let go.
            Err(WorkError::Call(CallError::Cancelled(_))) => {
                Ok(Outcome::WaitingFor("the change that cancelled it".to_owned()))
            }
            Err(error) => {
                let (message, wait) = self.note_failure(&name, &Value::Null, &error);
                self.reporter.report(cluster, failed, &message).await?;
                Ok(Outcome::RequeueAfter(wait))
            }
        }
    }

    async fn finish(
        &self,
        cluster: &Cluster,
        stage: ProvisioningStage,
        message: &str,
    ) -> Result<Outcome, ReconcileError> {
        self.reporter.report(cluster, stage, message).await?;
        self.records.delete(&cluster.name_any()).await?;
        Ok(Outcome::Done)
    }

    async fn call_remove(
        &self,
        run: &mut DriverRun<'_>,
        cluster: &Cluster,
        driver: &KontainerDriver,
        mut stored: StoredCluster,
    ) -> Result<(), WorkError> {
        let config = self.config(cluster).await?;
        let options = options::of_cluster(&config, cluster);
        let passwords = run.passwords().await;
        run.hide(options::secrets(&options, &passwords));
        let is_unknown = stored.record.status == RecordStatus::Creating;
        if is_unknown && stored.record.metadata.is_empty() {
            let text = "what an interrupted attempt to create left is not known: it is completed, \
                        so that it can be removed";
            self.logs.add(&cluster.name_any(), DROVER, text, &[]);
            let created = self.create(run, cluster, &mut stored, &config, options).await;
            match created {
                Ok(()) => {}
                // With what it returned, if anything.
                Err(WorkError::Call(CallError::Failed(why))) => run.note(&why),
                Err(error) => return Err(error),
            }
        }
        let mut client = run.client();
        let removed = run.call("Remove", client.remove(stored.record.to_info())).await;
        match removed {
            Ok(_) => Ok(()),
            Err(CallError::NotSupported(_)) => {
                let name = &driver.status.display_name;
                let text = format!("the driver \"{name}\" cannot remove clusters");
                Err(CallError::Failed(text).into())
            }
            Err(error) => Err(error.into()),
        }
    }
}
