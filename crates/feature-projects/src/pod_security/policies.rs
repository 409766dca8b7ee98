//! Which template holds for a namespace, and the labels that it gives.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_management::pod_security_admission_configuration_template::LATEST;
use api_management::{
    Cluster, PodSecurityAdmissionConfigurationTemplate, PodSecurityPolicyTemplate,
    PodSecurityPolicyTemplateProjectBinding, Project, keys, setting,
};
use controller::{Reflector, Reflectors, Whole};
use feature_kit::Settings;

use super::level::{Level, level_of};
use crate::project::initial::Initial;

/// Labels of a namespace.
pub type Labels = BTreeMap<String, String>;

/// Templates, and who names which. Cheap to clone.
#[derive(Clone)]
pub struct Policies {
    pub clusters: Arc<Reflector<Whole<Cluster>>>,
    pub projects: Arc<Reflector<Whole<Project>>>,
    pub templates: Arc<Reflector<Whole<PodSecurityAdmissionConfigurationTemplate>>>,
    pub policy_templates: Arc<Reflector<Whole<PodSecurityPolicyTemplate>>>,
    pub bindings: Arc<Reflector<Whole<PodSecurityPolicyTemplateProjectBinding>>>,
    pub settings: Settings,
}

/// What holds in one cluster.
pub struct ClusterPolicies {
    policies: Policies,
    cluster: String,
    default: Option<Choice>,
    /// By name: what a project names or has bound, and whether it is System.
    projects: BTreeMap<String, (Option<Choice>, bool)>,
    /// The setting with the namespaces of the system.
    system: String,
}

/// What holds for a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelDecision {
    /// No template says anything.
    Free,
    /// Its labels follow a template.
    Governed(Governed),
    /// It should follow a template that does not exist; the text says which.
    Missing(String),
}

/// The labels that a template gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Governed {
    /// The template and who names it, for messages.
    pub source: String,
    pub labels: Labels,
}

/// What names a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    Template(String),
    PolicyTemplate(String),
}

impl Governed {
    /// Whether a namespace with these labels has all of it.
    pub fn holds_in(&self, labels: &Labels) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

impl Policies {
    /// From shared watches.
    pub fn new(reflectors: &Reflectors) -> Self {
        Self {
            clusters: reflectors.get(),
            projects: reflectors.get(),
            templates: reflectors.get(),
            policy_templates: reflectors.get(),
            bindings: reflectors.get(),
            settings: Settings::new(reflectors),
        }
    }

    /// Waits until all of it has been read once.
    pub async fn synced(&self) {
        tokio::join!(
            self.clusters.synced(),
            self.projects.synced(),
            self.templates.synced(),
            self.policy_templates.synced(),
            self.bindings.synced(),
            self.settings.synced()
        );
    }

    /// What holds in a cluster now; none if there is no such cluster.
    pub fn of_cluster(&self, cluster: &str) -> Option<ClusterPolicies> {
        let object = self.clusters.named(cluster)?;
        let mut bound: BTreeMap<String, Choice> = BTreeMap::new();
        for (project, template) in bound_in(&self.bindings, cluster) {
            bound.insert(project, Choice::PolicyTemplate(template));
        }
        let mut projects = BTreeMap::new();
        for (key, project) in self.projects.in_namespace(cluster) {
            let own = &project.spec.pod_security_admission_configuration_template_name;
            let own = Some(own).filter(|own| !own.is_empty());
            let choice = own.map(|own| Choice::Template(own.clone()));
            let choice = choice.or_else(|| bound.remove(&key.name));
            projects.insert(key.name, (choice, project.is_system()));
        }
        Some(ClusterPolicies {
            policies: self.clone(),
            cluster: cluster.to_owned(),
            default: default_of(&object),
            projects,
            system: self.settings.get(setting::SYSTEM_NAMESPACES),
        })
    }

    fn decide(&self, choice: &Choice, by: &str, namespace: &str) -> LevelDecision {
        let missing = |what: &str, name: &str| {
            LevelDecision::Missing(format!(
                "{by} names the {what} template \"{name}\", which does not exist"
            ))
        };
        let (name, labels) = match choice {
            Choice::Template(name) => match self.templates.named(name) {
                None => return missing("Pod Security", name),
                Some(template) if template.exempts(namespace) => return LevelDecision::Free,
                Some(template) => (name, labels_of(&template)),
            },
            Choice::PolicyTemplate(name) => match self.policy_templates.named(name) {
                None => return missing("pod security policy", name),
                Some(template) => (name, labels_of_level(level_of(&template.spec))),
            },
        };
        LevelDecision::Governed(Governed { source: format!("template \"{name}\" of {by}"), labels })
    }
}

impl ClusterPolicies {
    /// What holds for a namespace in `project`, or in none. Drover's own namespace is free; a
    /// default of the cluster leaves the namespaces of the system free, too.
    pub fn of(&self, project: Option<&str>, namespace: &str) -> LevelDecision {
        if namespace == keys::SYSTEM_NS {
            return LevelDecision::Free;
        }
        let project = project.and_then(|name| Some((name, self.projects.get(name)?)));
        if let Some((name, (Some(choice), _))) = project {
            let by = format!("project \"{}:{name}\"", self.cluster);
            return self.policies.decide(choice, &by, namespace);
        }
        let is_system = project.is_some_and(|(_, (_, is_system))| *is_system)
            || Initial::of_namespace(namespace, &self.system) == Some(Initial::System);
        match self.default.as_ref().filter(|_| !is_system) {
            Some(choice) => {
                let by = format!("cluster \"{}\"", self.cluster);
                self.policies.decide(choice, &by, namespace)
            }
            None => LevelDecision::Free,
        }
    }

    /// Whether anything in the cluster names a template.
    pub fn is_any(&self) -> bool {
        self.default.is_some() || self.projects.values().any(|(choice, _)| choice.is_some())
    }

    /// The PodSecurityPolicyTemplate that holds by default.
    pub fn default_policy_template(&self) -> Option<&str> {
        match &self.default {
            Some(Choice::PolicyTemplate(name)) => Some(name),
            _ => None,
        }
    }
}

/// Names of the projects of a cluster and of the PodSecurityPolicyTemplate that is bound to each.
/// Of several, which only direct writes make, the one whose binding is first by name.
fn bound_in(
    bindings: &Reflector<Whole<PodSecurityPolicyTemplateProjectBinding>>,
    cluster: &str,
) -> BTreeMap<String, String> {
    let mut all = bindings.in_namespace(cluster);
    all.sort_by(|(one, _), (other, _)| other.name.cmp(&one.name));
    let of = |binding: &PodSecurityPolicyTemplateProjectBinding| {
        let (_, project) = binding.project().filter(|(of, _)| *of == cluster)?;
        Some((project.to_owned(), binding.pod_security_policy_template_name.clone()))
    };
    // The last one of a project holds.
    all.iter().filter_map(|(_, binding)| of(binding)).collect()
}

/// Name of the PodSecurityPolicyTemplate that is bound to a project.
pub fn bound_to(
    bindings: &Reflector<Whole<PodSecurityPolicyTemplateProjectBinding>>,
    cluster: &str,
    project: &str,
) -> Option<String> {
    bound_in(bindings, cluster).remove(project)
}

fn default_of(cluster: &Cluster) -> Option<Choice> {
    let spec = &cluster.spec;
    let own = &spec.default_pod_security_admission_configuration_template_name;
    let policy = &spec.default_pod_security_policy_template_name;
    if !own.is_empty() {
        return Some(Choice::Template(own.clone()));
    }
    Some(policy).filter(|policy| !policy.is_empty()).cloned().map(Choice::PolicyTemplate)
}

fn labels_of(template: &PodSecurityAdmissionConfigurationTemplate) -> Labels {
    let modes = template.configuration.defaults.modes();
    modes.flat_map(|(mode, level, version)| labels_of_mode(mode, level, version)).collect()
}

fn labels_of_level(level: Level) -> Labels {
    let modes = ["enforce", "audit", "warn"];
    modes.into_iter().flat_map(|mode| labels_of_mode(mode, level.name(), LATEST)).collect()
}

fn labels_of_mode(mode: &str, level: &str, version: &str) -> [(String, String); 2] {
    let key = format!("{}{mode}", keys::POD_SECURITY_PREFIX);
    [(format!("{key}-version"), version.to_owned()), (key, level.to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_of_its_own_kind_wins_over_one_of_policies() {
        let mut cluster = Cluster::default();
        assert_eq!(default_of(&cluster), None);
        cluster.spec.default_pod_security_policy_template_name = "old".to_owned();
        assert_eq!(default_of(&cluster), Some(Choice::PolicyTemplate("old".to_owned())));
        cluster.spec.default_pod_security_admission_configuration_template_name = "new".to_owned();
        assert_eq!(default_of(&cluster), Some(Choice::Template("new".to_owned())));
    }

    #[test]
    fn only_modes_with_a_level_become_labels() {
        let mut template = PodSecurityAdmissionConfigurationTemplate::default();
        template.configuration.defaults.enforce = "baseline".to_owned();
        template.configuration.defaults.enforce_version = "v1.31".to_owned();
        let labels = labels_of(&template);
        let key = |suffix: &str| format!("pod-security.kubernetes.io/{suffix}");
        let expected =
            [(key("enforce"), "baseline".to_owned()), (key("enforce-version"), "v1.31".to_owned())];
        assert_eq!(labels, Labels::from(expected));
        assert_eq!(labels_of_level(Level::Restricted).len(), 6);
    }
}
