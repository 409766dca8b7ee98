//! What users say of a cluster at EKS.

use anyhow::{Result, ensure};
use driver_sdk::Options;
use serde::{Deserialize, Serialize};

/// A cluster with one group of nodes.
#[derive(Clone, Debug, Default, Options, Serialize, Deserialize)]
#[serde(default)]
pub struct EksOptions {
    /// Name of the cluster in the region. The server sets it
    pub name: String,
    /// Name that users see. The server sets it
    pub display_name: String,
    /// Id of an access key of the account
    #[flag(required)]
    pub access_key: String,
    /// Secret of the access key
    #[flag(required, password)]
    pub secret_key: String,
    /// Token of a session, for access keys that are valid for a time
    pub session_token: String,
    /// Region
    #[flag(default = "us-west-2")]
    pub region: String,
    /// Name or ARN of the role of the control plane. Without it one is made
    pub service_role: String,

    /// Version of Kubernetes, such as 1.35. Without it the newest that AWS recommends
    pub kubernetes_version: String,
    /// Id of the network (VPC). Without it one is made
    pub virtual_network: String,
    /// Ids of the subnets, of at least two zones
    pub subnets: Vec<String>,
    /// Ids of the security groups of the control plane
    pub security_groups: Vec<String>,

    /// Machine type of the nodes
    #[flag(default = "t2.medium")]
    pub instance_type: String,
    /// Least number of nodes
    #[flag(default = 1)]
    pub minimum_nodes: i64,
    /// Largest number of nodes
    #[flag(default = 3)]
    pub maximum_nodes: i64,
    /// Number of nodes
    #[flag(default = 3)]
    pub desired_nodes: i64,
    /// Size of the disk of each node, in GB
    #[flag(default = 20)]
    pub node_volume_size: Option<i64>,
    /// Id of the image of the nodes. Without it that of AWS
    pub ami: String,
    /// Give nodes public addresses
    #[flag(default = true)]
    pub associate_worker_node_public_ip: Option<bool>,
    /// Script that nodes run when they start; ${ClusterName} and ${BootstrapArguments} are replaced
    pub user_data: String,
    /// Name of the key pair with which users log in at the nodes
    #[flag(name = "keyPairName")]
    pub key_pair_name: String,
    /// Encrypt the disks of the nodes
    #[flag(default = false)]
    pub ebs_encryption: bool,
}

impl EksOptions {
    /// # Errors
    /// Options do not fit together.
    pub fn check(&self) -> Result<()> {
        let (least, most, count) = (self.minimum_nodes, self.maximum_nodes, self.desired_nodes);
        ensure!(
            0 < most && 0 <= least && least <= count && count <= most,
            "desired-nodes ({count}) has to be between minimum-nodes ({least}) and maximum-nodes \
             ({most})"
        );
        let network = [
            self.virtual_network.is_empty(),
            self.subnets.is_empty(),
            self.security_groups.is_empty(),
        ];
        ensure!(
            network == [network[0]; 3],
            "give all of the options virtual-network, subnets and security-groups, or none of them"
        );
        let is_region =
            |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
        ensure!(
            !self.region.is_empty() && self.region.chars().all(is_region),
            "\"{}\" is no region; regions are called as us-west-2 is",
            self.region
        );
        Ok(())
    }
}

/// What can change.
#[derive(Clone, Debug, Options)]
pub struct EksChanges {
    /// Version of Kubernetes, at most one minor version newer
    pub kubernetes_version: Option<String>,
    /// Least number of nodes
    pub minimum_nodes: Option<i64>,
    /// Largest number of nodes
    pub maximum_nodes: Option<i64>,
    /// Number of nodes
    pub desired_nodes: Option<i64>,
    /// Id of an access key of the account
    pub access_key: Option<String>,
    /// Secret of the access key
    #[flag(password)]
    pub secret_key: Option<String>,
    /// Token of a session, for access keys that are valid for a time
    pub session_token: Option<String>,
}

impl EksChanges {
    /// Puts what a request has into the options. Empty texts change nothing, but for the token of a
    /// session, which goes when there is another key.
    pub fn apply(self, options: &mut EksOptions) {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(version) = given(self.kubernetes_version) {
            options.kubernetes_version = version;
        }
        options.minimum_nodes = self.minimum_nodes.unwrap_or(options.minimum_nodes);
        options.maximum_nodes = self.maximum_nodes.unwrap_or(options.maximum_nodes);
        options.desired_nodes = self.desired_nodes.unwrap_or(options.desired_nodes);
        let token = given(self.session_token);
        if let Some(key) = given(self.access_key).filter(|key| *key != options.access_key) {
            options.access_key = key;
            options.session_token = token.clone().unwrap_or_default();
        }
        if let Some(secret) = given(self.secret_key) {
            options.secret_key = secret;
        }
        if let Some(token) = token {
            options.session_token = token;
        }
    }
}
