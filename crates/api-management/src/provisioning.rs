//! How far the driver of a cluster came: a part of the status of clusters that a driver makes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a driver did last for a cluster, or does now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProvisioningStage {
    /// The driver makes the cluster. From here on there can be something to remove.
    #[default]
    Creating,
    /// It could not. It is tried again.
    CreateFailed,
    /// The cluster is as its options describe it.
    Provisioned,
    /// The driver changes the cluster.
    Updating,
    /// It could not. The cluster exists, and the change is tried again.
    UpdateFailed,
    /// The driver removes the cluster.
    Removing,
    /// It could not. It is tried again.
    RemoveFailed,
    /// The driver removed the cluster.
    Removed,
    /// Removal was forced while the provider may still have the cluster.
    Abandoned,
    /// The cluster was let go and goes on at the provider.
    Detached,
}

/// What the server reports of the driver's work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Provisioning {
    /// What happens, or happened last.
    pub stage: ProvisioningStage,
    /// For people: what the driver does now, or why it failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Generation of the cluster that the stage is about.
    pub generation: i64,
}

impl ProvisioningStage {
    /// Whether the provider made the cluster, as far as is known.
    pub fn has_cluster(self) -> bool {
        !matches!(self, Self::Creating | Self::CreateFailed | Self::Removed)
    }

    /// Whether the driver has nothing more to do, so that the object can go.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Removed | Self::Abandoned | Self::Detached)
    }
}
