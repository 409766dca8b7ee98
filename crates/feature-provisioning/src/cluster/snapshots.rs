//! Snapshots of etcd, where the driver makes them: the actions `backupEtcd` and
//! `restoreFromEtcdBackup` of a cluster under `/v3`. A driver that makes none says so itself, and
//! that is what the caller gets.

use std::sync::Arc;

use api_management::{Cluster, ProvisioningStage};
use controller::Key;
use driver_contract::types::{RestoreEtcdSnapshotRequest, SaveEtcdSnapshotRequest};
use feature_kit::view::resource_of;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::ResourceExt;
use rest_view::store::may;
use rest_view::{
    Action, ActionHandler, ActionRequest, ActionResponse, ApiError, Descriptor, Field, StructType,
};
use serde_json::{Map, Value};

use super::controller::{Provisioner, WorkError};
use super::options;
use super::record::RecordStatus;

const INPUT: &str = "restoreFromEtcdBackupInput";
/// Field of the input with the name of the snapshot, or the id of an object that is called so.
const BACKUP: &str = "etcdBackupId";
/// Type of what a backup returns: the name of the snapshot.
const OUTPUT: &str = "etcdSnapshot";

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SnapshotCall {
    Save,
    Restore,
}

/// Adds the actions to the type `cluster`.
pub fn extend(cluster: Descriptor, provisioner: &Arc<Provisioner>) -> Descriptor {
    let is_made = |stored: &Value, _: &rest_view::Caller| {
        stored["status"]["provisioning"]["stage"] == "Provisioned"
    };
    let handler = |call| SnapshotAction { provisioner: provisioner.clone(), call };
    let input = StructType::writable(
        INPUT,
        vec![
            Field::reference(BACKUP, "etcdBackup").nullable(false),
            // Of clusters that the server itself installs on nodes.
            Field::string("restoreRkeConfig").nullable(false),
        ],
    );
    cluster
        .types([input])
        .action(
            Action::new("backupEtcd", handler(SnapshotCall::Save))
                .needs_update()
                .available_when(is_made),
        )
        .action(
            Action::new("restoreFromEtcdBackup", handler(SnapshotCall::Restore))
                .input(INPUT)
                .needs_update()
                .available_when(is_made),
        )
}

struct SnapshotAction {
    provisioner: Arc<Provisioner>,
    call: SnapshotCall,
}

impl SnapshotAction {
    async fn act(&self, request: ActionRequest<'_>) -> Result<ActionResponse, ApiError> {
        let object = request.object.ok_or_else(ApiError::no_such_id)?;
        let key = rest_view::Key::of(object);
        if !may(request.context, "update", &resource_of::<Cluster>(), &key).await? {
            let text = "only those who may change the cluster save and restore its etcd";
            return Err(ApiError::permission_denied(text));
        }
        let name = match self.call {
            SnapshotCall::Save => {
                format!("{}-{}", key.name, Timestamp::now().strftime("%Y%m%d-%H%M%S"))
            }
            SnapshotCall::Restore => {
                let id = request.input.get(BACKUP).and_then(Value::as_str).unwrap_or_default();
                let name = id.rsplit(':').next().unwrap_or_default();
                if name.is_empty() {
                    let text = "name the snapshot that is restored";
                    return Err(ApiError::invalid_field("MissingRequired", BACKUP, text));
                }
                name.to_owned()
            }
        };
        let (provisioner, call, snapshot) = (self.provisioner.clone(), self.call, name.clone());
        // Not ended in the middle by a caller who goes away.
        let task =
            tokio::spawn(async move { provisioner.snapshot(&key.name, call, snapshot).await });
        task.await.map_err(ApiError::server_error)??;
        let fields = [("name".to_owned(), Value::from(name))];
        Ok(ActionResponse::value(OUTPUT, Map::from_iter(fields)))
    }
}

impl ActionHandler for SnapshotAction {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(self.act(request))
    }
}

impl Provisioner {
    async fn snapshot(
        &self,
        name: &str,
        call: SnapshotCall,
        snapshot: String,
    ) -> Result<(), ApiError> {
        let cluster = self.clusters.get(&Key::cluster_scoped(name));
        let cluster = cluster.ok_or_else(ApiError::no_such_id)?;
        let refused = |text: String| ApiError::new(422, "InvalidState", text);
        let driver = self.driver(&cluster).map_err(refused)?;
        let failed = |error: controller::ReconcileError| ApiError::server_error(error.chain());
        let stored = self.records.load(name).await.map_err(failed)?;
        let is_idle = |record: RecordStatus| record == RecordStatus::Running;
        let Some(mut stored) = stored.filter(|stored| is_idle(stored.record.status)) else {
            return Err(refused("the driver changes the cluster now".to_owned()));
        };
        let config = self.config(&cluster).await.map_err(failed)?;
        let doing = match call {
            SnapshotCall::Save => "saves the snapshot",
            SnapshotCall::Restore => "restores the snapshot",
        };
        let stage = ProvisioningStage::Provisioned;
        let shown = &driver.status.display_name;
        let message = format!("the driver \"{shown}\" {doing} {snapshot}");
        let Some(context) = self.work_if_idle(&cluster, stage, message) else {
            return Err(refused("the driver is at work; try again when it is done".to_owned()));
        };
        let worked = self.with_driver(&driver, context, async |run| {
            let mut options = options::of_cluster(&config, &cluster);
            let passwords = run.passwords().await;
            run.hide(options::secrets(&options, &passwords));
            options::add_for_update(&mut options, &stored.record.metadata);
            let (info, driver_options) = (Some(stored.record.to_info()), Some(options));
            let mut client = run.client();
            match call {
                SnapshotCall::Save => {
                    let request =
                        SaveEtcdSnapshotRequest { info, driver_options, snapshot_name: snapshot };
                    run.call("ETCDSave", client.etcd_save(request)).await?;
                }
                SnapshotCall::Restore => {
                    let request = RestoreEtcdSnapshotRequest {
                        info,
                        driver_options,
                        snapshot_name: snapshot,
                    };
                    let info = run.call("ETCDRestore", client.etcd_restore(request)).await?;
                    stored.record.take(info);
                    self.post_check(run, &mut stored).await?;
                    self.records.store(&cluster.name_any(), &stored).await?;
                }
            }
            Ok(())
        });
        worked.await.map_err(|error| match error {
            WorkError::Call(error) => ApiError::new(422, "DriverFailed", error.to_string()),
            error => ApiError::server_error(error),
        })
    }
}
