//! The projects that every cluster begins with, and the namespaces that belong to them from the
//! start. Pure.

use api_management::{Cluster, Project, ids, keys, project};
use kube::ResourceExt;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    Default,
    System,
}

impl Initial {
    pub const ALL: [Self; 2] = [Self::Default, Self::System];

    /// The project of a namespace that nobody has assigned yet. `system_namespaces`: the value of
    /// the setting `system-namespaces`, names with commas between them.
    pub fn of_namespace(namespace: &str, system_namespaces: &str) -> Option<Self> {
        if namespace == "default" {
            return Some(Self::Default);
        }
        let is_system = system_namespaces.split(',').any(|name| name.trim() == namespace);
        is_system.then_some(Self::System)
    }

    /// The display name of the project.
    pub fn display_name(self) -> &'static str {
        match self {
            Self::Default => project::DEFAULT_DISPLAY_NAME,
            Self::System => project::SYSTEM_DISPLAY_NAME,
        }
    }

    /// The label that marks it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Default => keys::DEFAULT_PROJECT,
            Self::System => keys::SYSTEM_PROJECT,
        }
    }

    /// Its name in a cluster. Made of the cluster's uid: a second attempt finds the first one's
    /// project, and no label makes another project this one.
    pub fn project_name(self, cluster: &Cluster) -> String {
        let offset = match self {
            Self::Default => 0,
            Self::System => ids::SUFFIX_LEN,
        };
        let digits = digits(&cluster.uid().unwrap_or_default());
        let random = digits.get(offset..offset + ids::SUFFIX_LEN).unwrap_or(&[0; ids::SUFFIX_LEN]);
        ids::from_random(ids::PROJECT_PREFIX, random)
    }

    /// Whether `project` is this one of `cluster`.
    pub fn is(self, project: &Project, cluster: &Cluster) -> bool {
        let labels = project.metadata.labels.as_ref();
        labels.is_some_and(|all| all.get(self.label()).is_some_and(|value| value == "true"))
            && project.metadata.name.as_deref() == Some(&self.project_name(cluster))
    }
}

/// The bytes that a uid's hexadecimal digits stand for, without those that the format fixes.
fn digits(uid: &str) -> Vec<u8> {
    let hex: Vec<u8> =
        uid.chars().filter_map(|c| c.to_digit(16)).filter_map(|d| u8::try_from(d).ok()).collect();
    let bytes: Vec<u8> = hex.chunks_exact(2).map(|pair| pair[0] * 16 + pair[1]).collect();
    // Bytes 6 and 8 carry the version and the variant.
    let free = bytes.iter().enumerate().filter(|(at, _)| *at != 6 && *at != 8);
    free.map(|(_, byte)| *byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_and_the_listed_namespaces_begin_in_a_project() {
        let list = "kube-system, cattle-system,ingress-nginx";
        for (namespace, initial) in [
            ("default", Some(Initial::Default)),
            ("kube-system", Some(Initial::System)),
            ("cattle-system", Some(Initial::System)),
            ("kube", None),
            ("shop", None),
            ("", None),
        ] {
            assert_eq!(Initial::of_namespace(namespace, list), initial, "{namespace}");
        }
        assert_eq!(Initial::of_namespace("kube-system", ""), None);
    }

    #[test]
    fn a_label_alone_makes_no_project_an_initial_one() {
        let mut cluster = Cluster::default();
        cluster.metadata.uid = Some("1f0a9c37-5d2e-4b61-8c3f-7a9e0d1b2c4f".to_owned());
        let mut project = Project::default();
        project.metadata.labels =
            Some([(keys::SYSTEM_PROJECT.to_owned(), "true".to_owned())].into());
        project.metadata.name = Some("p-other".to_owned());
        assert!(!Initial::System.is(&project, &cluster));
        project.metadata.name = Some(Initial::System.project_name(&cluster));
        assert!(Initial::System.is(&project, &cluster));
        assert!(!Initial::Default.is(&project, &cluster));
    }
}
