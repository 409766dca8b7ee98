//! The versions of a definition, served or not: what clients are shown of them, and how objects merge
//! in them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use crate::schemas;
use crate::strategy::PublishedSchema;

/// All versions of a definition by their API versions, shared by the served ones: fields may have
/// owners in each.
pub struct Versions(BTreeMap<String, Version>);

struct Version {
    published: PublishedSchema,
    /// Made at the first write that needs it.
    merge_schema: OnceLock<structured_merge::Schema>,
}

impl Versions {
    pub fn of(crd: &Value) -> Self {
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        let versions = versions.map(|version| {
            let name = version["name"].as_str().unwrap_or_default();
            let published = PublishedSchema::new(&version["schema"]["openAPIV3Schema"]);
            (format!("{group}/{name}"), Version { published, merge_schema: OnceLock::new() })
        });
        Self(versions.collect())
    }

    /// What clients are shown; `None` when there is no such version.
    pub fn published(&self, api_version: &str) -> Option<&PublishedSchema> {
        self.0.get(api_version).map(|version| &version.published)
    }

    /// How objects merge and which parts have owners; `None` when there is no such version.
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
