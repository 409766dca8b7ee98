//! What users say of a cluster at AKS.

use driver_sdk::Options;
use serde::{Deserialize, Serialize};

/// A cluster with one pool of nodes.
#[derive(Clone, Debug, Default, Options, Serialize, Deserialize)]
#[serde(default)]
pub struct AksOptions {
    /// Name of the cluster in its resource group. The server sets it
    pub name: String,
    /// Name that users see. The server sets it
    pub display_name: String,
    /// Id of the subscription
    #[flag(required)]
    pub subscription_id: String,
    /// Resource group of the cluster. It is made if it does not exist
    #[flag(required)]
    pub resource_group: String,
    /// Region
    #[flag(default = "eastus")]
    pub location: String,
    /// Id of the tenant
    #[flag(required)]
    pub tenant_id: String,
    /// Id of the application that makes the cluster, and that the cluster uses
    #[flag(required)]
    pub client_id: String,
    /// Secret of that application
    #[flag(required, password)]
    pub client_secret: String,
    /// Address of Azure Resource Manager, for clouds other than the public one
    #[flag(default = "https://management.azure.com/")]
    pub base_url: String,
    /// Address of Microsoft's login, for clouds other than the public one
    #[flag(default = "https://login.microsoftonline.com/")]
    pub auth_base_url: String,

    /// Id of the application as which users log in
    pub aad_client_app_id: String,
    /// Id of the application that looks users up
    pub aad_server_app_id: String,
    /// Secret of the application that looks users up
    #[flag(password)]
    pub aad_server_app_secret: String,
    /// Tenant of the users, if it is another
    pub aad_tenant_id: String,

    /// Version of Kubernetes. Without it the newest that Azure recommends
    pub kubernetes_version: String,
    /// Begin of the host name of the cluster
    pub master_dns_prefix: String,
    /// Tags of the cluster at Azure, KEY=VALUE
    pub tags: Vec<String>,
    /// Kind of the load balancer: standard or basic
    pub load_balancer_sku: String,
    /// Enable Azure's add-on for ingresses
    #[flag(default = false)]
    pub enable_http_application_routing: Option<bool>,
    /// Send logs and metrics to Azure Monitor
    #[flag(default = true)]
    pub enable_monitoring: Option<bool>,
    /// Resource group of the workspace, if it is another
    pub log_analytics_workspace_resource_group: String,
    /// Workspace for logs and metrics. Without it one is made for the cluster
    pub log_analytics_workspace: String,

    /// Number of nodes
    #[flag(default = 1)]
    pub count: i64,
    /// Largest number of pods of a node
    #[flag(default = 110)]
    pub max_pods: i64,
    /// Name of the pool of nodes
    #[flag(default = "agentpool0")]
    pub agent_pool_name: String,
    /// Size of the disk of each node, in GB. 0: as the machine has it
    pub agent_osdisk_size: i64,
    /// Machine type of the nodes
    #[flag(default = "Standard_D2s_v3")]
    pub agent_vm_size: String,
    /// Name of the user of the nodes
    #[flag(default = "azureuser")]
    pub admin_username: String,
    /// Public SSH key of that user
    #[flag(required)]
    pub ssh_public_key_contents: String,

    /// Resource group of the network, if it is another
    pub virtual_network_resource_group: String,
    /// Network of the cluster. Without it one is made
    pub virtual_network: String,
    /// Subnet of the nodes
    pub subnet: String,
    /// Network plugin: azure or kubenet
    #[flag(default = "azure")]
    pub network_plugin: String,
    /// Network policies: azure or calico. Without it there are none
    pub network_policy: String,
    /// Addresses of pods, with the plugin kubenet
    #[flag(default = "172.244.0.0/16")]
    pub pod_cidr: String,
    /// Addresses of services
    #[flag(default = "10.0.0.0/16")]
    pub service_cidr: String,
    /// Address of the name server in the cluster
    #[flag(default = "10.0.0.10")]
    pub dns_service_ip: String,
    /// Addresses of Docker, which Azure no longer uses
    #[flag(default = "172.17.0.1/16")]
    pub docker_bridge_cidr: String,
}

/// What can change.
#[derive(Clone, Debug, Options)]
pub struct AksChanges {
    /// Number of nodes
    pub count: Option<i64>,
    /// Version of Kubernetes
    pub kubernetes_version: Option<String>,
    /// Tags of the cluster at Azure, KEY=VALUE
    pub tags: Option<Vec<String>>,
    /// Enable Azure's add-on for ingresses
    pub enable_http_application_routing: Option<bool>,
    /// Send logs and metrics to Azure Monitor
    pub enable_monitoring: Option<bool>,
    /// Resource group of the workspace, if it is another
    pub log_analytics_workspace_resource_group: Option<String>,
    /// Workspace for logs and metrics
    pub log_analytics_workspace: Option<String>,
    /// Id of the application that makes the cluster, and that the cluster uses
    pub client_id: Option<String>,
    /// Secret of that application
    #[flag(password)]
    pub client_secret: Option<String>,
}

impl AksChanges {
    /// Puts what a request has into the options. Empty texts change nothing.
    pub fn apply(self, options: &mut AksOptions) {
        let texts = [
            (self.kubernetes_version, &mut options.kubernetes_version),
            (
                self.log_analytics_workspace_resource_group,
                &mut options.log_analytics_workspace_resource_group,
            ),
            (self.log_analytics_workspace, &mut options.log_analytics_workspace),
            (self.client_id, &mut options.client_id),
            (self.client_secret, &mut options.client_secret),
        ];
        for (new, old) in texts {
            if let Some(new) = new.filter(|new| !new.is_empty()) {
                *old = new;
            }
        }
        let switches = [
            (self.enable_http_application_routing, &mut options.enable_http_application_routing),
            (self.enable_monitoring, &mut options.enable_monitoring),
        ];
        for (new, old) in switches {
            *old = new.or(*old);
        }
        options.count = self.count.unwrap_or(options.count);
        if let Some(tags) = self.tags {
            options.tags = tags;
        }
    }
}
