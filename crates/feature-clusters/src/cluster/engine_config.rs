//! The options of a cluster that a driver makes. Under `/v3` they are a field of the driver's own,
//! such as `exampleEngineConfig`; stored is one field for all drivers, with the name of the driver.
//!
//! The fields come with the types of drivers ([`feature_kit::view`]), and are all at the same place
//! of the stored object. This mapper shows the one of the cluster's driver, and writes down which
//! driver a field belongs to.

use std::sync::Arc;

use api_management::cluster::{DRIVER_NAME, ENGINE_CONFIG};
use api_management::kind::Kind as _;
use api_management::{Cluster, DynamicSchema, KontainerDriver};
use controller::{Reflector, Whole};
use feature_kit::ManagementContext;
use rest_view::Mapper;
use serde_json::{Map, Value};

/// See the module.
pub struct EngineConfigs {
    schemas: Arc<Reflector<Whole<DynamicSchema>>>,
}

impl EngineConfigs {
    /// Of the drivers that are active.
    pub fn new(context: &ManagementContext) -> Self {
        Self { schemas: context.scope.reflectors.get() }
    }

    /// Calls `each` with the field and the object name of every driver that has a field in
    /// clusters.
    fn for_each(&self, mut each: impl FnMut(&str, &str)) {
        self.schemas.for_each(|_, schema| {
            let mut owners = schema.metadata.owner_references.iter().flatten();
            let driver = owners.find(|owner| owner.kind == KontainerDriver::KIND);
            let Some(driver) = driver.filter(|_| schema.is_embedded_in(Cluster::SINGULAR)) else {
                return;
            };
            schema.field_names().for_each(|field| each(field, &driver.name));
        });
    }
}

impl Mapper for EngineConfigs {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>) {
        let own = &stored["spec"][ENGINE_CONFIG][DRIVER_NAME];
        self.for_each(|field, driver| {
            if own != driver {
                fields.remove(field);
            }
        });
    }

    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        self.for_each(|field, driver| {
            if input.get(field).is_some_and(Value::is_object) {
                stored["spec"][ENGINE_CONFIG][DRIVER_NAME] = driver.into();
            }
        });
    }
}
