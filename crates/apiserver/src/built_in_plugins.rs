//! Which of kube-apiserver's built-in admission plugins are enabled, with its names and its
//! defaults.

use std::str::FromStr;

/// An admission plugin that can be enabled and disabled. The Kubernetes documentation describes
/// each by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switchable {
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    DefaultIngressClass,
    DefaultStorageClass,
    DefaultTolerationSeconds,
    LimitRanger,
    MutatingAdmissionPolicy,
    MutatingAdmissionWebhook,
    NamespaceLifecycle,
    OwnerReferencesPermissionEnforcement,
    PersistentVolumeClaimResize,
    PodSecurity,
    PodTopologyLabels,
    Priority,
    ResourceQuota,
    RuntimeClass,
    ServiceAccount,
    StorageObjectInUseProtection,
    TaintNodesByCondition,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionWebhook,
}

impl Switchable {
    const ALL: [Self; 22] = [
        Self::CertificateApproval,
        Self::CertificateSigning,
        Self::CertificateSubjectRestriction,
        Self::DefaultIngressClass,
        Self::DefaultStorageClass,
        Self::DefaultTolerationSeconds,
        Self::LimitRanger,
        Self::MutatingAdmissionPolicy,
        Self::MutatingAdmissionWebhook,
        Self::NamespaceLifecycle,
        Self::OwnerReferencesPermissionEnforcement,
        Self::PersistentVolumeClaimResize,
        Self::PodSecurity,
        Self::PodTopologyLabels,
        Self::Priority,
        Self::ResourceQuota,
        Self::RuntimeClass,
        Self::ServiceAccount,
        Self::StorageObjectInUseProtection,
        Self::TaintNodesByCondition,
        Self::ValidatingAdmissionPolicy,
        Self::ValidatingAdmissionWebhook,
    ];
}

/// The name of no supported plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown plugin \"{name}\"; there are {}", Switchable::ALL.map(|plugin| format!("{plugin:?}")).join(", "))]
pub struct UnknownPlugin {
    name: String,
}

impl FromStr for Switchable {
    type Err = UnknownPlugin;

    fn from_str(name: &str) -> Result<Self, UnknownPlugin> {
        let found = Self::ALL.into_iter().find(|plugin| format!("{plugin:?}") == name);
        found.ok_or_else(|| UnknownPlugin { name: name.to_owned() })
    }
}

/// The enabled plugins, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltInPlugins(u32);

impl Default for BuiltInPlugins {
    /// The defaults of kube-apiserver.
    fn default() -> Self {
        let all = Switchable::ALL.into_iter().fold(Self(0), Self::with);
        all.without(Switchable::OwnerReferencesPermissionEnforcement)
    }
}

impl BuiltInPlugins {
    /// Enables a plugin.
    #[must_use]
    pub const fn with(self, plugin: Switchable) -> Self {
        Self(self.0 | 1 << plugin as u32)
    }

    /// Disables a plugin.
    #[must_use]
    pub const fn without(self, plugin: Switchable) -> Self {
        Self(self.0 & !(1 << plugin as u32))
    }

    /// Whether a plugin is enabled.
    #[must_use]
    pub const fn has(self, plugin: Switchable) -> bool {
        self.0 & 1 << plugin as u32 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kubernetes_and_one_is_off_by_default() {
        for plugin in Switchable::ALL {
            assert_eq!(format!("{plugin:?}").parse(), Ok(plugin));
            let is_on = plugin != Switchable::OwnerReferencesPermissionEnforcement;
            assert_eq!(BuiltInPlugins::default().has(plugin), is_on, "{plugin:?}");
            assert!(!BuiltInPlugins::default().without(plugin).has(plugin), "{plugin:?}");
            assert!(BuiltInPlugins::default().with(plugin).has(plugin), "{plugin:?}");
        }
        let unknown = "serviceaccount".parse::<Switchable>().unwrap_err().to_string();
        assert!(
            unknown.starts_with("unknown plugin \"serviceaccount\"; there are Cert"),
            "{unknown}"
        );
    }
}
