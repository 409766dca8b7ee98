//! The types of templates and of their bindings in the REST view, and the templates that are there
//! from the start, under the names that Rancher gives them.

use api_management::pod_security_admission_configuration_template::{
    LATEST, PodSecurityConfiguration, PodSecurityDefaults, PodSecurityExemptions,
};
use api_management::pod_security_policy_template::PodSecurityPolicySpec;
use api_management::{
    PodSecurityAdmissionConfigurationTemplate, PodSecurityPolicyTemplate,
    PodSecurityPolicyTemplateProjectBinding,
};
use feature_kit::view::in_clusters;
use feature_kit::{Seed, SeedMode, table};
use kube::api::ObjectMeta;
use rest_view::{ApiError, Descriptor, Field, FieldType, Presentation, Resource};
use serde_json::{Map, Value, json};

use super::level::{Level, level_of, not_covered};

/// The fields with the rules that a PodSecurityPolicy must have.
const RULE_FIELDS: [&str; 4] = ["fsGroup", "runAsUser", "seLinux", "supplementalGroups"];
/// Fields that the server computes: the level that stands for a template, and what it demands
/// beyond.
const LEVEL: &str = "podSecurityLevel";
const NOT_COVERED: &str = "podSecurityNotCovered";
/// Namespaces of parts of clusters that need more than the level restricted.
const SYSTEM_NAMESPACES: [&str; 18] = [
    "calico-apiserver",
    "calico-system",
    "cattle-fleet-system",
    "cattle-logging-system",
    "cattle-monitoring-system",
    "cattle-system",
    "cert-manager",
    "cis-operator-system",
    "ingress-nginx",
    "istio-system",
    "kube-flannel",
    "kube-node-lease",
    "kube-public",
    "kube-system",
    "longhorn-system",
    "metallb-system",
    "security-scan",
    "tigera-operator",
];

/// The types in the REST view.
pub fn views() -> Vec<Descriptor> {
    let policy = table::descriptor("podSecurityPolicyTemplate")
        .root([
            Field::string(LEVEL).computed(),
            Field::array(NOT_COVERED, FieldType::String).computed(),
        ])
        .validator(has_rules)
        .formatter(with_level)
        .personal(&[]);
    let bindings = in_clusters::<PodSecurityPolicyTemplateProjectBinding>();
    vec![
        table::descriptor("podSecurityAdmissionConfigurationTemplate"),
        policy,
        table::descriptor("podSecurityPolicyTemplateProjectBinding").store(bindings),
    ]
}

fn has_rules(
    _: &Presentation<'_>,
    input: &Map<String, Value>,
    stored: Option<&Value>,
) -> Result<(), ApiError> {
    let has_rule = |field: &str| {
        let rule = input.get(field).map(|given| &given["rule"]);
        let known = stored.map(|stored| &stored["spec"][field]["rule"]);
        rule.or(known).and_then(Value::as_str).is_some_and(|rule| !rule.is_empty())
    };
    match RULE_FIELDS.into_iter().find(|field| !has_rule(field)) {
        None => Ok(()),
        Some(field) => {
            let text = format!("{field} needs a rule, such as RunAsAny");
            Err(ApiError::invalid_field("MissingRequired", field, text))
        }
    }
}

fn with_level(_: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let Ok(spec) = serde_json::from_value::<PodSecurityPolicySpec>(stored["spec"].clone()) else {
        return;
    };
    resource.fields.insert(LEVEL.to_owned(), level_of(&spec).name().into());
    resource.fields.insert(NOT_COVERED.to_owned(), not_covered(&spec).into());
}

/// The templates that are there from the start. They can be changed.
pub fn seeds() -> Vec<Seed> {
    vec![
        Seed::cluster_scoped(SeedMode::Create, template("rancher-privileged", Level::Privileged)),
        Seed::cluster_scoped(SeedMode::Create, template("rancher-restricted", Level::Restricted)),
        Seed::cluster_scoped(SeedMode::Create, policy_template("restricted", restricted())),
        Seed::cluster_scoped(SeedMode::Create, policy_template("unrestricted", unrestricted())),
    ]
}

fn template(name: &str, level: Level) -> PodSecurityAdmissionConfigurationTemplate {
    let (level_name, version) = (level.name().to_owned(), LATEST.to_owned());
    let defaults = PodSecurityDefaults {
        enforce: level_name.clone(),
        enforce_version: version.clone(),
        audit: level_name.clone(),
        audit_version: version.clone(),
        warn: level_name,
        warn_version: version,
    };
    let exempt: &[&str] = if level == Level::Privileged { &[] } else { &SYSTEM_NAMESPACES };
    let namespaces = exempt.iter().map(|name| (*name).to_owned()).collect();
    let exemptions = PodSecurityExemptions { namespaces, ..PodSecurityExemptions::default() };
    PodSecurityAdmissionConfigurationTemplate {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        description: format!(
            "The level {} for all namespaces that are not the system's",
            level.name()
        ),
        configuration: PodSecurityConfiguration { defaults, exemptions },
        ..PodSecurityAdmissionConfigurationTemplate::default()
    }
}

fn policy_template(name: &str, spec: Value) -> PodSecurityPolicyTemplate {
    PodSecurityPolicyTemplate {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: serde_json::from_value(spec).expect("the policies below are policies"),
        ..PodSecurityPolicyTemplate::default()
    }
}

fn restricted() -> Value {
    let some_group = json!({"rule": "MustRunAs", "ranges": [{"min": 1, "max": 65535}]});
    json!({
        "allowPrivilegeEscalation": false,
        "fsGroup": some_group,
        "requiredDropCapabilities": ["ALL"],
        "runAsUser": {"rule": "MustRunAsNonRoot"},
        "seLinux": {"rule": "RunAsAny"},
        "supplementalGroups": some_group,
        "volumes": [
            "configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret",
        ],
    })
}

fn unrestricted() -> Value {
    let any = json!({"rule": "RunAsAny"});
    json!({
        "privileged": true, "allowPrivilegeEscalation": true, "allowedCapabilities": ["*"],
        "hostIPC": true, "hostNetwork": true, "hostPID": true,
        "hostPorts": [{"min": 0, "max": 65535}], "volumes": ["*"],
        "fsGroup": any, "runAsUser": any, "seLinux": any, "supplementalGroups": any,
    })
}

#[cfg(test)]
mod tests {
    use api_management::kind::ObjectRules;

    use super::*;

    #[test]
    fn the_first_templates_are_what_their_names_say() {
        let spec = |value: Value| serde_json::from_value::<PodSecurityPolicySpec>(value).unwrap();
        assert_eq!(level_of(&spec(restricted())), Level::Restricted);
        let lost = not_covered(&spec(restricted()));
        assert_eq!(lost, ["volumes", "fsGroup", "supplementalGroups"]);
        let open = spec(unrestricted());
        assert_eq!((level_of(&open), not_covered(&open)), (Level::Privileged, vec![]));
        for level in [Level::Privileged, Level::Restricted] {
            let causes = template("x", level).validate(None);
            assert!(causes.is_empty(), "{causes:?}");
        }
        assert!(template("x", Level::Restricted).exempts("kube-system"));
    }
}
