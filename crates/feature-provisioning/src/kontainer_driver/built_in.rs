//! Drivers that are part of Drover. Their objects are there from the first start on; users can
//! deactivate them. Their options are known without a process.

use std::sync::Arc;

use api_management::KontainerDriver;
use api_management::kontainer_driver::KontainerDriverSpec;
use controller::{ReconcileError, ensure};
use driver_contract::types::DriverFlags;
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};

/// One of them.
#[derive(Clone, Debug)]
pub struct BuiltInDriver {
    /// Its name, of which the names of its types are made.
    pub name: &'static str,
    /// The options of its clusters.
    pub options: DriverFlags,
}

impl BuiltInDriver {
    /// The name of its object.
    pub fn object_name(&self) -> String {
        self.name.to_lowercase()
    }

    /// The one that an object stands for.
    pub fn of<'a>(all: &'a [Self], driver: &KontainerDriver) -> Option<&'a Self> {
        let name = driver.name_any();
        all.iter().find(|one| driver.spec.built_in && one.object_name() == name)
    }
}

/// Creates the objects that do not exist.
///
/// # Errors
/// A request fails.
pub async fn create_missing(
    client: &Client,
    all: &Arc<[BuiltInDriver]>,
) -> Result<(), ReconcileError> {
    let drivers: Api<KontainerDriver> = Api::all(client.clone());
    for one in all.iter() {
        let name = Some(one.object_name());
        let spec = KontainerDriverSpec { built_in: true, active: true, ..Default::default() };
        let metadata = ObjectMeta { name, ..ObjectMeta::default() };
        let driver = KontainerDriver { metadata, spec, ..KontainerDriver::default() };
        ensure::created(&drivers, &driver).await?;
    }
    Ok(())
}
