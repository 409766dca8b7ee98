//! Role templates with the rules that they have in the management API.
//!
//! An external role template has no rules of its own: downstream it is a ClusterRole of the
//! cluster. Here its rules are those of the ClusterRole with its name in the management API, which
//! has the default roles `admin`, `edit` and `view` like every API server.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_management::RoleTemplate;
use controller::{Key, Reflector, Reflectors, Runner, Whole};
use feature_kit::roles::by_name;
use k8s_openapi::api::rbac::v1::ClusterRole;

use super::rules::of_kube;
use crate::cluster_role_template_binding::management::MEMBERSHIP;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct EffectiveTemplates {
    templates: Arc<Reflector<Whole<RoleTemplate>>>,
    /// All but those that this feature makes for members.
    roles: Arc<Reflector<Whole<ClusterRole>>>,
}

impl EffectiveTemplates {
    /// Must be called inside a tokio runtime.
    pub fn new(reflectors: &Reflectors) -> Self {
        let roles = reflectors.selected(&format!("!{MEMBERSHIP}"));
        Self { templates: reflectors.get(), roles }
    }

    /// Waits until all of them were read once.
    pub async fn synced(&self) {
        tokio::join!(self.templates.synced(), self.roles.synced());
    }

    /// All role templates, by name.
    pub fn by_name(&self) -> BTreeMap<String, Arc<RoleTemplate>> {
        let mut known = by_name(&self.templates);
        for (name, template) in known.iter_mut().filter(|(_, template)| template.external) {
            if let Some(role) = self.roles.named(name) {
                *template = Arc::new(with_rules_of(template, &role));
            }
        }
        known
    }

    /// Queues the keys that `keys` returns whenever the rules of a role template may have changed.
    pub fn watch(&self, runner: &Runner, keys: impl Fn() -> Vec<Key> + Send + Sync + 'static) {
        let keys = Arc::new(keys);
        let all = keys.clone();
        runner.watch(&self.templates, move |_| all());
        let templates = self.templates.clone();
        runner.watch(&self.roles, move |change| {
            let template = templates.named(&change.key().name);
            if template.is_some_and(|template| template.external) { keys() } else { Vec::new() }
        });
    }
}

/// An external role template with the rules of its ClusterRole. Pure.
pub(crate) fn with_rules_of(template: &RoleTemplate, role: &ClusterRole) -> RoleTemplate {
    let rules = role.rules.iter().flatten().map(of_kube).collect();
    RoleTemplate { rules, ..template.clone() }
}
