//! Projects: namespaces of a cluster that belong together.
//!
//! [`project`] gives every cluster its two first projects, and copies the Secrets of projects into their
//! namespaces. What members of a project may do is not here yet.

pub mod project;

use std::sync::Arc;

use api_management::project::BACKING_NAMESPACE_CREATED;
use api_management::{Project, condition};
use controller::Whole;
use feature_kit::view::with_namespace;
use feature_kit::{
    DownstreamSpec, Feature, KindRules, ManagementContext, ManagementSpec, ViewSpec,
};

/// The feature.
pub fn feature(_: &ManagementContext) -> Feature {
    let rules = KindRules::of::<Project>().admit_with(Arc::new(project::admission::ProjectRules));
    Feature::new("projects")
        .kind_with(rules)
        .management(ManagementSpec::new(project::management::identity(), project::management::run))
        .management(ManagementSpec::new(project::namespace::identity(), project::namespace::run))
        .downstream(DownstreamSpec::new(project::secrets::identity(), project::secrets::build))
        .view(ViewSpec::new(|context| {
            let has_namespace = |project: &Project| {
                condition::is_true(&project.status.conditions, BACKING_NAMESPACE_CREATED)
            };
            vec![with_namespace::<Whole<Project>>(project::view::view(), context, has_namespace)]
        }))
}

#[cfg(test)]
mod tests;
