//! RoleTemplate: a named set of rights.
//!
//! [`rules`] says which of its rules hold where (pure), [`downstream`] applies its ClusterRole and
//! binding in each cluster where it is used, [`admission`] rejects changes of what is in use;
//! [`closure`] has what a role inherits, [`view`] its form in the REST view.

pub mod admission;
pub mod downstream;
mod inheritance;
pub mod rules;
pub mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_management::RoleTemplate;
use controller::{Reflector, Whole};

pub(crate) use inheritance::{closure, paths};

/// All role templates that were observed, by name.
pub(crate) fn by_name(
    templates: &Reflector<Whole<RoleTemplate>>,
) -> BTreeMap<String, Arc<RoleTemplate>> {
    templates.all().into_iter().map(|(key, template)| (key.name, template)).collect()
}

/// The role templates that exist among `used` and all that they inherit, by name. Pure.
pub(crate) fn with_inherited(
    used: impl IntoIterator<Item = String>,
    known: &BTreeMap<String, Arc<RoleTemplate>>,
) -> BTreeMap<&str, &RoleTemplate> {
    let inherited_by = |name: &str| {
        let template = known.get(name);
        template.into_iter().flat_map(|template| template.role_template_names.clone())
    };
    let names: BTreeSet<String> = closure(used, inherited_by);
    let found = names.iter().filter_map(|name| known.get_key_value(name));
    found.map(|(name, template)| (name.as_str(), &**template)).collect()
}
