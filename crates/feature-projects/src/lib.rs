//! Projects: namespaces of a cluster that belong together.
//!
//! [`project`] gives every cluster its two first projects, keeps which namespace is in which,
//! copies the Secrets of projects into their namespaces, binds the roles of their members there,
//! shares their quotas among them, and closes them to other projects. [`pod_security`] gives
//! namespaces the Pod Security levels of their project or cluster.

pub mod own_role;
pub mod pod_security;
pub mod project;
mod rights;
mod whole_cluster;
mod writes;

use std::sync::Arc;

use api_management::{
    NamespaceAssignment, PodSecurityAdmissionConfigurationTemplate, PodSecurityPolicyTemplate,
    PodSecurityPolicyTemplateProjectBinding, Project,
};
use controller::Whole;
use feature_kit::view::with_namespace;
use feature_kit::{
    DownstreamSpec, Feature, KindRules, ManagementContext, ManagementSpec, ViewSpec,
};

/// The feature, with its controllers and the check of namespaces.
pub fn feature(context: &ManagementContext) -> Feature {
    use project::namespaces::{check, controller};
    let check_identity = check::identity();
    let client = context.clients.controller(&check_identity);
    let check =
        check::NamespaceCheck::new(client, &context.scope.reflectors, context.connections.clone());
    let rules_identity = project::admission::identity();
    let admission = project::admission::ProjectRules {
        client: context.clients.controller(&rules_identity),
        projects: context.scope.reflectors.get(),
        assignments: context.scope.reflectors.get(),
    };
    let rules = KindRules::of::<Project>().admit_with(Arc::new(admission));
    let quotas = DownstreamSpec::new(project::quotas::identity(), project::quotas::build);
    let isolation = DownstreamSpec::new(project::isolation::identity(), project::isolation::build);
    let roles = DownstreamSpec::new(project::roles::identity(), project::roles::build);
    let pod_security =
        DownstreamSpec::new(pod_security::controller::identity(), pod_security::controller::build);
    Feature::new("projects")
        .kind_with(rules)
        .kind_with(KindRules::of::<NamespaceAssignment>().written_by_server())
        .kind_with(KindRules::of::<PodSecurityAdmissionConfigurationTemplate>())
        .kind_with(KindRules::of::<PodSecurityPolicyTemplate>())
        .kind_with(KindRules::of::<PodSecurityPolicyTemplateProjectBinding>())
        .seed(pod_security::templates::seeds())
        .identity(check_identity)
        .identity(rules_identity)
        .write_check(Arc::new(check))
        .management(ManagementSpec::new(
            project::initial_projects::identity(),
            project::initial_projects::run,
        ))
        .management(ManagementSpec::new(project::namespace::identity(), project::namespace::run))
        .management(ManagementSpec::new(pod_security::bound::identity(), pod_security::bound::run))
        .downstream(DownstreamSpec::new(controller::identity(), controller::build))
        .downstream(DownstreamSpec::new(project::secrets::identity(), project::secrets::build))
        // The namespaces of `local` contain the server's own data.
        .downstream(quotas.except_local())
        .downstream(isolation.except_local())
        .downstream(roles.except_local())
        .downstream(pod_security.except_local())
        .view(ViewSpec::new(|_| pod_security::templates::views()))
        .view(ViewSpec::new(|context| {
            let view = project::view::view();
            vec![with_namespace::<Whole<Project>>(view, context, |it| &it.status.conditions)]
        }))
}

#[cfg(test)]
mod tests;
