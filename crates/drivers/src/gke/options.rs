//! What users say of a cluster at GKE.

use anyhow::{Result, ensure};
use driver_sdk::Options;
use serde::{Deserialize, Serialize};

/// A cluster with one pool of nodes.
#[derive(Clone, Debug, Default, Options, Serialize, Deserialize)]
#[serde(default)]
pub struct GkeOptions {
    /// Name of the cluster in the project. The server sets it
    pub name: String,
    /// Name that users see. The server sets it
    pub display_name: String,
    /// Description of the cluster
    pub description: String,
    /// Id of the project
    #[flag(required)]
    pub project_id: String,
    /// Key of a service account, the JSON file as Google gives it
    #[flag(required, password)]
    pub credential: String,
    /// Zone of a zonal cluster, such as us-central1-a
    pub zone: String,
    /// Region of a regional cluster, such as us-central1
    pub region: String,

    /// Version of Kubernetes of the control plane
    pub master_version: String,
    /// Enable alpha features of Kubernetes. Google removes such clusters after 30 days
    pub enable_alpha_feature: bool,
    /// Enable authorization by attributes, beside that by roles
    pub enable_legacy_abac: bool,
    /// Enable the dashboard, which Google no longer offers
    pub kubernetes_dashboard: bool,
    /// Enable the dashboard, which Google no longer offers
    pub enable_kubernetes_dashboard: bool,
    /// Issue a client certificate
    pub issue_client_certificate: bool,
    /// Start of the daily maintenance, HH:MM in UTC
    pub maintenance_window: String,
    /// Labels of the cluster at Google, KEY=VALUE
    pub resource_labels: Vec<String>,
    /// Send logs to Cloud Logging
    #[flag(default = true)]
    pub enable_stackdriver_logging: Option<bool>,
    /// Send metrics to Cloud Monitoring
    #[flag(default = true)]
    pub enable_stackdriver_monitoring: Option<bool>,
    /// Enable scaling of pods by load
    #[flag(default = true)]
    pub enable_horizontal_pod_autoscaling: Option<bool>,
    /// Enable Google's load balancer for ingresses
    #[flag(default = true)]
    pub enable_http_load_balancing: Option<bool>,
    /// Enable network policies
    #[flag(default = true)]
    pub enable_network_policy_config: Option<bool>,
    /// Let only given networks reach the control plane
    pub enable_master_authorized_network: bool,
    /// These networks, such as 203.0.113.0/24
    pub master_authorized_network_cidr_blocks: Vec<String>,

    /// Number of nodes, in each zone
    #[flag(default = 3)]
    pub node_count: i64,
    /// Version of Kubernetes of the nodes
    pub node_version: String,
    /// Name of the pool of nodes
    pub node_pool: String,
    /// Machine type of the nodes, such as e2-standard-4
    pub machine_type: String,
    /// Image of the nodes, such as COS_CONTAINERD
    pub image_type: String,
    /// Size of the disk of each node, in GB
    #[flag(default = 100)]
    pub disk_size_gb: i64,
    /// Type of the disk, such as pd-ssd
    pub disk_type: String,
    /// Number of local SSDs of each node
    pub local_ssd_count: i64,
    /// Use machines that Google may take back
    pub preemptible: bool,
    /// Labels of the nodes, KEY=VALUE
    pub labels: Vec<String>,
    /// Taints of the nodes, EFFECT:KEY=VALUE
    pub taints: Vec<String>,
    /// Zones of the nodes
    pub locations: Vec<String>,
    /// Service account of the nodes
    pub service_account: String,
    /// Scopes of that account
    pub oauth_scopes: Vec<String>,
    /// Have Google repair nodes
    pub enable_auto_repair: bool,
    /// Have Google upgrade nodes
    pub enable_auto_upgrade: bool,
    /// Scale the pool by load
    pub enable_nodepool_autoscaling: bool,
    /// Least number of nodes when it scales
    pub min_node_count: i64,
    /// Largest number of nodes when it scales
    pub max_node_count: i64,

    /// Network of the cluster
    pub network: String,
    /// Subnetwork of the cluster
    pub sub_network: String,
    /// Addresses of pods
    pub cluster_ipv4_cidr: String,
    /// Reach the control plane by its private address only
    pub enable_private_endpoint: bool,
    /// Give nodes private addresses only
    pub enable_private_nodes: bool,
    /// Addresses of the control plane of a private cluster
    pub master_ipv4_cidr_block: String,
    /// Give pods addresses of the network
    pub use_ip_aliases: bool,
    /// Make a subnetwork for the cluster
    pub ip_policy_create_subnetwork: bool,
    /// Name of that subnetwork
    pub ip_policy_subnetwork_name: String,
    /// Range of the subnetwork for pods
    pub ip_policy_cluster_secondary_range_name: String,
    /// Range of the subnetwork for services
    pub ip_policy_services_secondary_range_name: String,
    /// Addresses of pods, with addresses of the network
    pub ip_policy_cluster_ipv4_cidr_block: String,
    /// Addresses of nodes
    pub ip_policy_node_ipv4_cidr_block: String,
    /// Addresses of services
    pub ip_policy_services_ipv4_cidr_block: String,
}

impl GkeOptions {
    /// The zone or the region.
    ///
    /// # Errors
    /// There is none, or both.
    pub fn location(&self) -> Result<&str> {
        let (zone, region) = (self.zone.as_str(), self.region.as_str());
        ensure!(
            zone.is_empty() != region.is_empty(),
            "give one of the options zone, for a zonal cluster, and region, for a regional one"
        );
        Ok(if zone.is_empty() { region } else { zone })
    }
}

/// What can change.
#[derive(Clone, Debug, Options)]
pub struct GkeChanges {
    /// Number of nodes, in each zone
    pub node_count: Option<i64>,
    /// Version of Kubernetes of the control plane
    pub master_version: Option<String>,
    /// Version of Kubernetes of the nodes
    pub node_version: Option<String>,
    /// Key of a service account, the JSON file as Google gives it
    #[flag(password)]
    pub credential: Option<String>,
}
