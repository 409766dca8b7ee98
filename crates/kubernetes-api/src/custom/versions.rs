//! The versions of a definition, served or not: their published schemas, and how objects merge in
//! them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use apiserver::schemas;
use apiserver::strategy::PublishedSchema;
use serde_json::Value;

/// All versions of a definition by API version. The served ones share it, since fields may have
/// owners in each.
pub struct Versions(BTreeMap<String, DefinitionVersion>);

struct DefinitionVersion {
    published: PublishedSchema,
    /// Created by the first write that needs it.
    merge_schema: OnceLock<structured_merge::Schema>,
}

impl Versions {
    /// Creates the versions of a definition.
    pub fn of(crd: &Value) -> Self {
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        let versions = versions.map(|version| {
            let name = version["name"].as_str().unwrap_or_default();
            let published = PublishedSchema::new(&version["schema"]["openAPIV3Schema"]);
            (
                format!("{group}/{name}"),
                DefinitionVersion { published, merge_schema: OnceLock::new() },
            )
        });
        Self(versions.collect())
    }

    /// The schema that clients receive; `None` when there is no such version.
    pub fn published_schema(&self, api_version: &str) -> Option<&PublishedSchema> {
        self.0.get(api_version).map(|version| &version.published)
    }

    /// The merge schema, which says how objects merge and which parts have owners; `None` when
    /// there is no such version. A schema that cannot be used is logged, and objects then merge by
    /// their values alone.
    pub fn merge_schema(&self, api_version: &str) -> Option<&structured_merge::Schema> {
        let version = self.0.get(api_version)?;
        Some(version.merge_schema.get_or_init(|| {
            schemas::merge_schema(&version.published).unwrap_or_else(|error| {
                tracing::error!(api_version, %error, "objects merge without their schema");
                structured_merge::Schema::deduced()
            })
        }))
    }
}
