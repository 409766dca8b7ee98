//! Provisioning: clusters that drivers make at a cloud, and what that needs.
//!
//! | Where | What |
//! | --- | --- |
//! | [`cloud_credential`] | keys of clouds |
//! | [`kontainer_driver`] | programs that make clusters: fetched, checked, and their options as types |
//! | [`cluster`] | the clusters: made, changed and removed by their drivers |

pub mod cloud_credential;
pub mod cluster;
pub mod kontainer_driver;

use std::sync::Arc;

use api_management::{DynamicSchema, KontainerDriver};
use feature_kit::view::ViewExtension;
use feature_kit::{
    AgentManifest, Feature, KindRules, ManagementContext, ManagementSpec, ViewSpec, table, unique,
};

use cluster::controller::Provisioner;
use kontainer_driver::admission::DriverRules;
use kontainer_driver::files::{DriverFiles, DriverSettings};

/// What provisioning adds to the server; `agents` makes the objects of agents. Must be called
/// inside a tokio runtime.
pub fn feature(
    context: &ManagementContext,
    settings: &DriverSettings,
    agents: Arc<dyn AgentManifest>,
) -> Feature {
    let files = Arc::new(DriverFiles::new(settings.clone()));
    let rules = KindRules::of::<KontainerDriver>();
    let provisioner = Arc::new(Provisioner::new(context, files.clone(), agents));
    let shown = provisioner.clone();
    Feature::new("provisioning")
        .kind_with(rules.admit_with(Arc::new(DriverRules::new(context))))
        .kind_with(KindRules::of::<DynamicSchema>().written_by_server())
        .management(unique::controller::spec(kontainer_driver::admission::URL))
        .management(ManagementSpec::new(
            kontainer_driver::controller::identity(),
            move |context, client| {
                kontainer_driver::controller::run(context, client, files.clone())
            },
        ))
        .management(ManagementSpec::new(cluster::controller::identity(), move |context, _| {
            cluster::controller::run(context, provisioner.clone())
        }))
        .view(ViewSpec::new(|_| {
            vec![
                cloud_credential::view(),
                kontainer_driver::view::view(),
                table::descriptor("dynamicSchema"),
            ]
        }))
        .extend_view(ViewExtension::new("cluster", move |found| {
            let found = cluster::view::extend(found, shown.clone());
            cluster::snapshots::extend(found, &shown)
        }))
}
