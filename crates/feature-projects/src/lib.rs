//! Projects: namespaces of a cluster that belong together.
//!
//! [`project`] gives every cluster its two first projects. Assigning downstream namespaces to
//! projects, and what members may do in them, is not here yet.

pub mod project;

use std::sync::Arc;

use api_management::Project;
use feature_kit::{Feature, KindRules, ManagementContext, ManagementSpec, ViewSpec};

/// The feature.
pub fn feature(_: &ManagementContext) -> Feature {
    let rules = KindRules::of::<Project>().admit_with(Arc::new(project::admission::ProjectRules));
    Feature::new("projects")
        .kind_with(rules)
        .management(ManagementSpec::new(project::management::identity(), project::management::run))
        .management(ManagementSpec::new(project::namespace::identity(), project::namespace::run))
        .view(ViewSpec::new(|_| vec![project::view::view()]))
}

#[cfg(test)]
mod tests;
