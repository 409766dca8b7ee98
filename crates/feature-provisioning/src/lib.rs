//! Provisioning: what the server needs to create clusters and machines at a cloud.
//!
//! | Where | What |
//! | --- | --- |
//! | [`cloud_credential`] | keys of clouds |
//! | [`kontainer_driver`] | programs that make clusters: fetched, checked, and their options as types |
//!
//! Nothing creates clusters yet.

pub mod cloud_credential;
pub mod kontainer_driver;

use std::sync::Arc;

use api_management::{DynamicSchema, KontainerDriver};
use feature_kit::{Feature, KindRules, ManagementContext, ManagementSpec, ViewSpec, table, unique};

use kontainer_driver::admission::DriverRules;
use kontainer_driver::files::{DriverFiles, DriverSettings};

/// What provisioning adds to the server. Must be called inside a tokio runtime.
pub fn feature(context: &ManagementContext, settings: &DriverSettings) -> Feature {
    let files = Arc::new(DriverFiles::new(settings.clone()));
    let rules = KindRules::of::<KontainerDriver>();
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
        .view(ViewSpec::new(|_| {
            vec![
                cloud_credential::view(),
                kontainer_driver::view::view(),
                table::descriptor("dynamicSchema"),
            ]
        }))
}
