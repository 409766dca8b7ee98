//! Cluster in the REST view.

use api_management::cluster::DOCKER_ROOT_DIR;
use api_management::{Cluster, Condition, state};
use feature_kit::view::{resource_of, schema_of};
use rest_view::{
    Action, ActionHandler, ApiError, Descriptor, Field, FieldType, Presentation, Resource,
    StructType,
};
use serde_json::{Map, Value};

/// Fields by which clusters are made in ways that are not there yet.
const NOT_YET: &[&str] = &["rancherKubernetesEngineConfig", "eksConfig", "gkeConfig", "aksConfig"];

/// `kubeconfig`: runs the action `generateKubeconfig`.
pub fn view(kubeconfig: impl ActionHandler) -> Descriptor {
    let schema = schema_of::<Cluster>();
    let spec = &schema["properties"]["spec"];
    Descriptor::new("cluster", "clusters", resource_of::<Cluster>())
        .display_name(
            Field::new("name", FieldType::DnsLabel).create_update().at("spec.displayName"),
        )
        // The namespace that holds what belongs to the cluster has the cluster's id.
        .root([Field::reference("namespaceId", "namespace").at("metadata.name")])
        .spec(spec_fields())
        .status(status_fields())
        .hide(&["spec.genericEngineConfig", "spec.answers", "spec.questions"])
        .hide(&["status.agentIdentity"])
        .derive_fields(&schema)
        .types(types())
        .types(StructType::derived("clusterSpec", spec))
        .with_state()
        .action(Action::new("generateKubeconfig", kubeconfig).output("generateKubeConfigOutput"))
        .validator(validate)
        .formatter(format)
}

fn spec_fields() -> Vec<Field> {
    let optional = |name: &str, to: &str| Field::reference(name, to).create_update();
    let mut fields = vec![
        Field::string("description").create_update(),
        Field::boolean("internal"),
        Field::array("agentEnvVars", FieldType::of("envVar")).create_update(),
        optional("defaultClusterRoleForProjectMembers", "roleTemplate"),
        optional("defaultPodSecurityPolicyTemplateId", "podSecurityPolicyTemplate")
            .at("spec.defaultPodSecurityPolicyTemplateName"),
        Field::string("dockerRootDir").create_update().default(DOCKER_ROOT_DIR),
        Field::boolean("enableClusterAlerting").create_update(),
        Field::boolean("enableClusterMonitoring").create_update(),
        Field::boolean("enableNetworkPolicy").create_update().nullable(true),
        Field::boolean("windowsPreferedCluster").create(),
        Field::reference("clusterTemplateId", "clusterTemplate").at("spec.clusterTemplateName"),
        optional("clusterTemplateRevisionId", "clusterTemplateRevision")
            .at("spec.clusterTemplateRevisionName"),
        Field::of("localClusterAuthEndpoint", "localClusterAuthEndpoint").create_update(),
        Field::of("importedConfig", "importedConfig"),
    ];
    let json = FieldType::map(FieldType::Json);
    fields.extend(NOT_YET.iter().map(|name| Field::new(name, json.clone()).create_update()));
    fields
}

fn status_fields() -> Vec<Field> {
    vec![
        Field::of("appliedSpec", "clusterSpec"),
        Field::of("failedSpec", "clusterSpec"),
        Field::array("conditions", FieldType::of("clusterCondition")),
        Field::array("componentStatuses", FieldType::of("clusterComponentStatus")),
        Field::of("version", "info"),
        Field::int("nodeCount"),
        Field::boolean("appliedEnableNetworkPolicy"),
    ]
}

fn types() -> Vec<StructType> {
    let text = |names: &[&str]| names.iter().map(|&name| Field::string(name)).collect::<Vec<_>>();
    let version = [
        "buildDate",
        "compiler",
        "gitCommit",
        "gitTreeState",
        "gitVersion",
        "goVersion",
        "major",
        "minor",
        "platform",
    ];
    vec![
        StructType::condition("clusterCondition"),
        StructType::new("componentCondition", text(&["error", "message", "status", "type"])),
        StructType::new(
            "clusterComponentStatus",
            vec![
                Field::array("conditions", FieldType::of("componentCondition")),
                Field::string("name"),
            ],
        ),
        StructType::new("info", text(&version)),
        StructType::writable("envVar", text(&["name", "value"])),
        StructType::writable(
            "localClusterAuthEndpoint",
            vec![Field::string("caCerts"), Field::boolean("enabled"), Field::string("fqdn")],
        ),
        StructType::new("importedConfig", vec![Field::new("kubeConfig", FieldType::Password)]),
        StructType::new("generateKubeConfigOutput", text(&["config"])),
    ]
}

fn validate(
    _: &Presentation<'_>,
    input: &Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), ApiError> {
    for name in NOT_YET {
        if input.get(*name).is_some_and(|value| !value.is_null()) {
            let text = format!("\"{name}\": only importing clusters is available yet");
            return Err(ApiError::invalid_field("InvalidOption", name, text));
        }
    }
    Ok(())
}

/// The state is the one that all parts of the server know.
fn format(_: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let conditions: Vec<Condition> =
        serde_json::from_value(stored["status"]["conditions"].clone()).unwrap_or_default();
    let terminating = stored["metadata"]["deletionTimestamp"].is_string();
    let summary = state::of_cluster(&conditions, terminating);
    let fields = &mut resource.fields;
    fields.insert("state".to_owned(), summary.state.into());
    fields.insert("transitioning".to_owned(), summary.transitioning.into());
    fields.insert("transitioningMessage".to_owned(), summary.message.into());
    if stored["spec"]["internal"] == true {
        // The management API itself stays.
        resource.links.remove("remove");
    }
}

#[cfg(test)]
mod tests;
