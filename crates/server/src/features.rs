//! The closed list of features: what the product does.

use std::sync::Arc;

use feature_access::RoleGraph;
use feature_clusters::{AgentObjects, Connections};
use feature_identity::Directory;
use feature_kit::{Feature, ManagementContext};
use feature_provisioning::kontainer_driver::files::DriverSettings;
use feature_settings::SettingsConfig;

/// What features get from the server because they cannot make it themselves.
pub struct FeatureParts {
    pub settings: SettingsConfig,
    pub connections: Arc<Connections>,
    pub directory: Arc<Directory>,
    pub graph: Arc<RoleGraph>,
    pub drivers: DriverSettings,
}

/// All features. Must be called inside a tokio runtime.
pub fn features(context: &ManagementContext, parts: &FeatureParts) -> Vec<Feature> {
    vec![
        feature_settings::feature(&parts.settings),
        feature_identity::feature(context, &parts.directory, parts.graph.clone()),
        feature_access::feature(context, &parts.graph),
        feature_clusters::feature(context, &parts.connections),
        feature_projects::feature(context),
        feature_downstream::feature(context),
        feature_workloads::feature(context),
        feature_provisioning::feature(
            context,
            &parts.drivers,
            Arc::new(AgentObjects::new(context)),
        ),
        feature_tables::feature(),
    ]
}
