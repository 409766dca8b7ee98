//! Objects between the versions of their kind.

use api_meta::status::Status;
use serde_json::Value;

use super::write::bring_to_version;
use crate::registry::Registry;
use crate::resource::Resource;

impl Registry {
    /// Brings an object of any version of `resource` into the version that `resource` is.
    pub(crate) async fn convert(
        &self,
        resource: &Resource,
        object: &mut Value,
    ) -> Result<(), Status> {
        bring_to_version(resource, object);
        Ok(())
    }
}
