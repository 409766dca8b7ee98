//! What is known of a cluster that a driver makes, as it is stored: a Secret `c-<cluster>` in
//! `cattle-system`, whose key `cluster` has the record in the form that Rancher uses.
//!
//! A record exists from before the first call of the driver until after the last: it says what was
//! begun, and has what the driver needs to find the cluster again.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use api_management::keys;
use controller::error::is_code;
use controller::{Attempt, ReconcileError, ensure};
use driver_contract::types::ClusterInfo;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const RECORD: &str = "cluster";
const APPLIED: &str = "appliedOptions";
const AGENT: &str = "agentChecksum";
/// Attempts to store what a driver returned: it is nowhere else.
const STORE_ATTEMPTS_MAX: u32 = 60;
const STORE_RETRY_DELAY: Duration = Duration::from_secs(5);

/// The step that was begun last, in the words of Rancher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordStatus {
    /// The options are built. Drover begins with the next one.
    #[serde(rename = "Pre-Creating")]
    PreCreating,
    /// The driver is asked to create.
    #[default]
    Creating,
    /// The driver created or changed the cluster, and is asked for its credentials.
    #[serde(rename = "Post-Checking")]
    PostChecking,
    /// All is done.
    Running,
    /// Create failed.
    Error,
    /// The driver is asked to change the cluster.
    Updating,
}

/// What is known of a cluster, with what its driver needs to find it again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterRecord {
    pub driver_name: String,
    pub name: String,
    pub status: RecordStatus,
    pub version: String,
    pub service_account_token: String,
    pub endpoint: String,
    pub username: String,
    pub password: String,
    #[serde(rename = "rootCACert")]
    pub root_ca_cert: String,
    pub client_certificate: String,
    pub client_key: String,
    pub node_count: i64,
    pub metadata: HashMap<String, String>,
}

impl ClusterRecord {
    /// As drivers get it.
    pub fn to_info(&self) -> ClusterInfo {
        let status = serde_json::to_value(self.status).unwrap_or_default();
        ClusterInfo {
            version: self.version.clone(),
            service_account_token: self.service_account_token.clone(),
            endpoint: self.endpoint.clone(),
            username: self.username.clone(),
            password: self.password.clone(),
            root_ca_certificate: self.root_ca_cert.clone(),
            client_certificate: self.client_certificate.clone(),
            client_key: self.client_key.clone(),
            node_count: self.node_count,
            metadata: self.metadata.clone(),
            status: status.as_str().unwrap_or_default().to_owned(),
            create_error: String::new(),
        }
    }

    /// Takes what a driver returned. What it leaves out stays: an incomplete reply must not make a
    /// cluster forgotten. The status is ours, whatever the driver writes there.
    pub fn take(&mut self, info: ClusterInfo) {
        let replace = |known: &mut String, new: String| {
            if !new.is_empty() {
                *known = new;
            }
        };
        replace(&mut self.version, info.version);
        replace(&mut self.service_account_token, info.service_account_token);
        replace(&mut self.endpoint, info.endpoint);
        replace(&mut self.username, info.username);
        replace(&mut self.password, info.password);
        replace(&mut self.root_ca_cert, info.root_ca_certificate);
        replace(&mut self.client_certificate, info.client_certificate);
        replace(&mut self.client_key, info.client_key);
        if info.node_count != 0 {
            self.node_count = info.node_count;
        }
        if !info.metadata.is_empty() {
            self.metadata = info.metadata;
        }
    }
}

/// A record, with what Drover stores beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredCluster {
    pub record: ClusterRecord,
    /// The options that the driver was given last and took, with their credentials.
    pub applied: Option<Value>,
    /// Of the agent's objects that were applied in the cluster last.
    pub agent_checksum: String,
}

/// What is to be done for a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvisioningStep {
    Create,
    Update,
    /// The driver did its work, and what followed was interrupted.
    PostCheck,
    Nothing,
}

/// What brings the cluster to these options. Pure.
pub fn next_step(stored: Option<&StoredCluster>, options: &Value) -> ProvisioningStep {
    let Some(stored) = stored else { return ProvisioningStep::Create };
    let is_applied = stored.applied.as_ref() == Some(options);
    match stored.record.status {
        RecordStatus::PreCreating | RecordStatus::Creating | RecordStatus::Error => {
            ProvisioningStep::Create
        }
        RecordStatus::PostChecking if is_applied => ProvisioningStep::PostCheck,
        RecordStatus::Running if is_applied => ProvisioningStep::Nothing,
        RecordStatus::PostChecking | RecordStatus::Running | RecordStatus::Updating => {
            ProvisioningStep::Update
        }
    }
}

/// The records of all clusters.
#[derive(Clone)]
pub struct Records {
    secrets: Api<Secret>,
}

impl Records {
    /// `client` may read and write Secrets in `cattle-system`.
    pub fn new(client: &Client) -> Self {
        Self { secrets: Api::namespaced(client.clone(), keys::SYSTEM_NS) }
    }

    /// The record of a cluster, if its driver was ever called.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub async fn load(&self, cluster: &str) -> Result<Option<StoredCluster>, ReconcileError> {
        let name = secret_name(cluster);
        let attempt = || format!("read the record of cluster \"{cluster}\"");
        let Some(secret) = self.secrets.get_opt(&name).await.attempt(attempt)? else {
            return Ok(None);
        };
        let data = secret.data.unwrap_or_default();
        let bytes = |key: &str| data.get(key).map(|value| value.0.as_slice()).unwrap_or_default();
        let record = serde_json::from_slice(bytes(RECORD));
        let record = record.map_err(|error| ReconcileError::other(attempt(), error))?;
        Ok(Some(StoredCluster {
            record,
            applied: serde_json::from_slice(bytes(APPLIED)).ok(),
            agent_checksum: String::from_utf8_lossy(bytes(AGENT)).into_owned(),
        }))
    }

    /// Stores a record, and tries for minutes: what a driver returned is nowhere else.
    ///
    /// # Errors
    /// It cannot be stored.
    pub async fn store(&self, cluster: &str, stored: &StoredCluster) -> Result<(), ReconcileError> {
        let secret = secret(cluster, stored)?;
        let mut attempts = 1;
        loop {
            match ensure::like(&self.secrets, &secret).await {
                Ok(_) => return Ok(()),
                Err(error) if attempts == STORE_ATTEMPTS_MAX => return Err(error),
                Err(error) => {
                    tracing::error!(cluster, error = error.chain(), "record not stored; again");
                }
            }
            attempts += 1;
            tokio::time::sleep(STORE_RETRY_DELAY).await;
        }
    }

    /// Forgets a cluster.
    ///
    /// # Errors
    /// The API refused.
    pub async fn delete(&self, cluster: &str) -> Result<(), ReconcileError> {
        let deleted = self.secrets.delete(&secret_name(cluster), &Default::default()).await;
        match deleted {
            Err(error) if !is_code(&error, 404) => {
                Err(error).attempt(|| format!("delete the record of cluster \"{cluster}\""))
            }
            _ => Ok(()),
        }
    }
}

fn secret_name(cluster: &str) -> String {
    format!("c-{cluster}")
}

fn secret(cluster: &str, stored: &StoredCluster) -> Result<Secret, ReconcileError> {
    let failed = |error| ReconcileError::other("encode the record of a cluster", error);
    let mut data = BTreeMap::new();
    let mut put = |key: &str, bytes: Vec<u8>| data.insert(key.to_owned(), ByteString(bytes));
    put(RECORD, serde_json::to_vec(&stored.record).map_err(failed)?);
    if let Some(applied) = &stored.applied {
        put(APPLIED, serde_json::to_vec(applied).map_err(failed)?);
    }
    put(AGENT, stored.agent_checksum.clone().into_bytes());
    let labels = BTreeMap::from([(keys::CLUSTER_ID.to_owned(), cluster.to_owned())]);
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(secret_name(cluster)),
            namespace: Some(keys::SYSTEM_NS.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        data: Some(data),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    })
}
