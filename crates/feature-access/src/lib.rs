//! Access: who may do what in which cluster.
//!
//! People get roles by bindings here; nothing is written per person anywhere else. Downstream each
//! role is one ClusterRole, bound to one group ([`role_template::downstream`]); who is in which
//! group says the [`graph`], from memory, at each request. In the management API the members of a
//! cluster and of its projects see it by the same groups
//! ([`cluster_role_template_binding::management`]), and use what belongs to projects
//! ([`project_role_template_binding::management`]). [`explain`] answers why somebody may do
//! something, and who may.

pub mod cluster_role_template_binding;
pub mod explain;
pub mod grants;
pub mod graph;
mod local_principal;
pub mod project_role_template_binding;
pub mod role_template;
pub mod roles;

use std::sync::Arc;

use api_management::kind::Kind;
use api_management::{
    ClusterRoleTemplateBinding, GlobalRole, GlobalRoleBinding, ProjectRoleTemplateBinding,
    RoleTemplate,
};
use feature_kit::{
    DownstreamSpec, Feature, KindRules, ManagementContext, ManagementSpec, Route, ViewSpec, table,
};

pub use graph::RoleGraph;
use kube::Api;
use rest_view::Descriptor;

/// The feature. `graph` also resolves groups for the server.
pub fn feature(context: &ManagementContext, graph: &Arc<RoleGraph>) -> Feature {
    use cluster_role_template_binding::{admission, creator, management};
    use project_role_template_binding as in_project;
    let reader = context.clients.controller(&feature_kit::rbac::reflector_identity());
    let bindings = KindRules::of::<ClusterRoleTemplateBinding>()
        .admit_with(Arc::new(admission::BindingRules::new(Api::all(reader.clone()))));
    let templates = KindRules::of::<RoleTemplate>().admit_with(Arc::new(
        role_template::admission::TemplateRules::new(graph.clone(), reader.clone()),
    ));
    let project_bindings = KindRules::of::<ProjectRoleTemplateBinding>()
        .admit_with(Arc::new(in_project::admission::BindingRules::new(graph.clone(), reader)));
    Feature::new("access")
        .kind_with(templates)
        .kind_with(bindings)
        .kind_with(KindRules::of::<GlobalRole>().admit_with(global::<GlobalRole>()))
        .kind_with(KindRules::of::<GlobalRoleBinding>().admit_with(global::<GlobalRoleBinding>()))
        .kind_with(project_bindings)
        .seed(roles::seeds())
        .identity(explain::identity())
        .route(Route::authenticated(explain::PREFIX, explain::handler(context, graph, views())))
        .management(ManagementSpec::new(management::identity(), management::run))
        .management(ManagementSpec::new(creator::identity(), creator::run))
        .management(ManagementSpec::new(
            in_project::management::identity(),
            in_project::management::run,
        ))
        .management(ManagementSpec::new(in_project::creator::identity(), in_project::creator::run))
        .downstream(DownstreamSpec::new(
            role_template::downstream::identity(),
            role_template::downstream::build,
        ))
        .view(ViewSpec::new(|_| views()))
}

/// The types that grant rights.
fn views() -> Vec<Descriptor> {
    vec![
        role_template::view::view(),
        cluster_role_template_binding::view::view(),
        table::descriptor("globalRole"),
        table::descriptor("globalRoleBinding"),
        project_role_template_binding::view::view(),
    ]
}

fn global<K: Kind>() -> Arc<grants::GlobalRules> {
    Arc::new(grants::GlobalRules { plural: K::PLURAL })
}

#[cfg(test)]
mod tests;
