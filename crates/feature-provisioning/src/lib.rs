//! Provisioning: what the server needs to create clusters and machines at a cloud.
//!
//! [`cloud_credential`] has the keys of clouds. Nothing creates clusters yet.

pub mod cloud_credential;

use feature_kit::{Feature, ViewSpec};

/// What provisioning adds to the server: the type `cloudCredential` under `/v3`.
pub fn feature() -> Feature {
    Feature::new("provisioning").view(ViewSpec::new(|_| vec![cloud_credential::view()]))
}
