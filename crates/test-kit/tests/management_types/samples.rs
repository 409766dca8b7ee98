//! Bodies for a POST of every type, generated from the tables.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use api_management::keys::{GLOBAL_DATA_NS, NODE_TEMPLATES_NS};
use api_management::table::{Row, TypeTable};
use api_management::types;
use kube::Client;
use serde_json::{Map, Value, json};

pub const PASSWORD: &str = "a password";
/// Fields whose value depends on other objects or the environment.
const MEANS_MORE: [(&str, &str); 21] = [
    ("cluster", "agentImageOverride"),
    ("cluster", "desiredAgentImage"),
    ("cluster", "desiredAuthImage"),
    ("clusterRoleTemplateBinding", "groupId"),
    ("clusterRoleTemplateBinding", "groupPrincipalId"),
    ("clusterRoleTemplateBinding", "userPrincipalId"),
    ("globalRole", "rules"),
    ("globalRoleBinding", "groupPrincipalId"),
    ("kontainerDriver", "active"),
    ("kontainerDriver", "builtIn"),
    ("managementSecret", "immutable"),
    ("managementSecret", "type"),
    ("podSecurityPolicyTemplateProjectBinding", "namespaceId"),
    ("preference", "namespaceId"),
    ("project", "podSecurityAdmissionConfigurationTemplateName"),
    ("projectRoleTemplateBinding", "groupId"),
    ("projectRoleTemplateBinding", "groupPrincipalId"),
    ("projectRoleTemplateBinding", "serviceAccount"),
    ("projectRoleTemplateBinding", "userPrincipalId"),
    ("roleTemplate", "roleTemplateIds"),
    ("roleTemplate", "rules"),
];

/// Name of objects that others must reference.
const NEEDED: &str = "x-1";
/// Drivers that were described.
static DRIVERS: AtomicUsize = AtomicUsize::new(0);
/// A role template for projects.
const PROJECT_ROLE: &str = "of-projects";

/// Creates the objects without which some bodies are refused.
pub async fn make_needed(client: &Client) {
    for (namespace, plural, kind) in [
        (NODE_TEMPLATES_NS, "nodetemplates", "NodeTemplate"),
        (GLOBAL_DATA_NS, "catalogtemplateversions", "CatalogTemplateVersion"),
    ] {
        let path = format!("/apis/management.cattle.io/v3/namespaces/{namespace}/{plural}");
        let object = json!({
            "apiVersion": "management.cattle.io/v3", "kind": kind,
            "metadata": {"name": NEEDED, "namespace": namespace},
        });
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        let _: Value = client.request(request).await.unwrap();
    }
    let role = json!({
        "apiVersion": "management.cattle.io/v3", "kind": "RoleTemplate", "context": "project",
        "metadata": {"name": PROJECT_ROLE},
    });
    let request = http::Request::post("/apis/management.cattle.io/v3/roletemplates");
    let request = request.header("content-type", "application/json");
    let request = request.body(role.to_string().into_bytes()).unwrap();
    let _: Value = client.request(request).await.unwrap();
}

/// Generates bodies.
pub struct Samples {
    structs: BTreeMap<&'static str, Vec<Row>>,
    cluster: String,
    project: String,
}

impl Samples {
    /// References to clusters and projects are to these; a project is named `cluster:project`.
    pub fn of(cluster: &str, project: &str) -> Self {
        let own = types::tables().flat_map(|table| table.nested);
        let all = types::shared_types().chain(own);
        Self {
            structs: all.map(|nested| (nested.id, nested.fields)).collect(),
            cluster: cluster.to_owned(),
            project: project.to_owned(),
        }
    }

    /// A valid value of the field.
    fn of_field(&self, row: &Row) -> Value {
        match (row.kind, row.min) {
            ("int", Some(min)) => (min + 1).into(),
            (kind, _) => match row.options.last() {
                Some(option) => (*option).into(),
                None => self.of_type(kind),
            },
        }
    }

    fn of_type(&self, kind: &str) -> Value {
        let inside = |start: &str| kind.strip_prefix(start)?.strip_suffix(']');
        if let Some(of) = inside("array[") {
            return json!([self.of_type(of)]);
        }
        if let Some(of) = inside("map[") {
            return json!({"k": self.of_type(of)});
        }
        match kind {
            "int" => json!(7),
            "float" => json!(0.5),
            "boolean" => json!(true),
            "hostname" => json!("a.example"),
            "base64" => json!("YQ=="),
            "password" => json!(PASSWORD),
            "date" => json!("2024-01-01T00:00:00Z"),
            "reference[cluster]" | "reference[namespace]" => json!(self.cluster),
            "reference[project]" => json!(self.project),
            "reference[nodeTemplate]" => json!(format!("{NODE_TEMPLATES_NS}:{NEEDED}")),
            "reference[templateVersion]" => json!(format!("{GLOBAL_DATA_NS}:{NEEDED}")),
            "reference[globalRole]" => json!("user-base"),
            "reference[podSecurityAdmissionConfigurationTemplate]" => json!("rancher-restricted"),
            "reference[podSecurityPolicyTemplate]" => json!("restricted"),
            "reference[roleTemplate]" => json!("cluster-member"),
            reference if reference.starts_with("reference[") => json!("x-1"),
            "podSecurityAdmissionConfigurationTemplateSpec" => {
                json!({"defaults": {"enforce": "baseline"}})
            }
            "fsGroupStrategyOptions"
            | "runAsUserStrategyOptions"
            | "seLinuxStrategyOptions"
            | "supplementalGroupsStrategyOptions" => json!({"rule": "RunAsAny"}),
            nested => match self.structs.get(nested) {
                Some(fields) => {
                    let required = fields.iter().filter(|row| row.access.required);
                    required
                        .map(|row| (row.name.to_owned(), self.of_field(row)))
                        .collect::<Map<_, _>>()
                        .into()
                }
                None => json!("value"),
            },
        }
    }

    /// A body with every writable field, except those that have effects on other objects.
    pub fn body(&self, table: &TypeTable) -> Value {
        let mut body = json!({});
        for row in table.fields.iter().filter(|row| row.access.create) {
            let sample = self.of_field(row);
            if !MEANS_MORE.contains(&(table.id, row.name)) {
                body[row.name] = sample;
            }
        }
        if table.id == "projectRoleTemplateBinding" {
            body["roleTemplateId"] = PROJECT_ROLE.into();
        }
        if table.id == "kontainerDriver" {
            // No two come from the same URL.
            let number = DRIVERS.fetch_add(1, Ordering::Relaxed);
            body["url"] = format!("https://a.example/driver-{number}").into();
            body["uiUrl"] = "https://a.example/component.js".into();
            body["checksum"] = "0".repeat(64).into();
        }
        body["name"] = format!("{}-sample", table.id.to_lowercase()).into();
        if table.namespaced && table.namespace.is_none() && table.parent.is_none() {
            body["namespaceId"] = self.cluster.clone().into();
        }
        body
    }
}
