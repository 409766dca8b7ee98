//! DynamicSchema: a type of the REST view, or fields of one, that comes and goes while the server
//! runs. Cluster-scoped. Written by the server for cluster drivers.

use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kind::{ApiVersion, KindName, ObjectRules, kind};
use crate::schema;

/// A type of the REST view, or fields of one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DynamicSchema {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The type, as the REST view reads it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "schema::open_object")]
    pub spec: Map<String, Value>,
}

kind!(DynamicSchema, "dynamicschemas", "dynamicschema", Cluster, ClusterResourceScope,
    status: true, short: [], columns: [
    ("Type", "string", ".spec.schemaName", false),
    ("Embedded in", "string", ".spec.embedType", false),
]);

impl DynamicSchema {
    /// Whether its fields are added to the type with this id.
    pub fn is_embedded_in(&self, id: &str) -> bool {
        self.spec.get("embed") == Some(&true.into())
            && self.spec.get("embedType") == Some(&id.into())
    }

    /// Names of its fields.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        let fields = self.spec.get("resourceFields").and_then(Value::as_object);
        fields.into_iter().flat_map(Map::keys).map(String::as_str)
    }
}

impl ObjectRules for DynamicSchema {}
