//! Access: who may do what in which cluster.
//!
//! People get roles by bindings here; nothing is written per person anywhere else. [`builtin`] has
//! the roles that ship with the server. A global role is one ClusterRole of the management API,
//! bound to one group ([`global_role::management`]). Downstream each role is one ClusterRole, bound
//! to one group ([`role_template::downstream`]); who is in which group says the [`graph`], from
//! memory, at each request. In the management API the members of a cluster and of its projects see
//! it by the same groups ([`cluster_role_template_binding::management`]), and use what belongs to
//! projects ([`project_role_template_binding::management`]). [`user_bindings`] deletes what was
//! given to users who are gone. [`explain`] answers why somebody may do something, and who may.

pub mod builtin;
pub mod cluster_role_template_binding;
pub mod explain;
pub mod global_role;
pub mod global_role_binding;
pub mod graph;
mod local_principal;
pub mod project_role_template_binding;
pub mod role_template;
pub mod user_bindings;

use std::sync::Arc;

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
    let project_bindings = KindRules::of::<ProjectRoleTemplateBinding>().admit_with(Arc::new(
        in_project::admission::BindingRules::new(graph.clone(), reader.clone()),
    ));
    let held = Arc::new(global_role::admission::HeldRights::new(reader.clone()));
    let global_roles = KindRules::of::<GlobalRole>()
        .admit_with(Arc::new(global_role::admission::RoleRules::new(held.clone(), reader)));
    let global_bindings = KindRules::of::<GlobalRoleBinding>()
        .admit_with(Arc::new(global_role_binding::admission::BindingRules::new(held)));
    let roles_in_clusters = DownstreamSpec::new(
        role_template::downstream::identity(),
        role_template::downstream::build,
    );
    Feature::new("access")
        .kind_with(templates)
        .kind_with(bindings)
        .kind_with(global_roles)
        .kind_with(global_bindings)
        .kind_with(project_bindings)
        .seed(builtin::seeds())
        .seed(vec![global_role_binding::migration::seed()])
        .identity(explain::identity())
        .route(Route::authenticated(explain::PREFIX, explain::handler(context, graph, views())))
        .management(ManagementSpec::new(
            global_role::management::identity(),
            global_role::management::run,
        ))
        .management(ManagementSpec::new(user_bindings::identity(), user_bindings::run))
        .management(ManagementSpec::new(management::identity(), management::run))
        .management(ManagementSpec::new(creator::identity(), creator::run))
        .management(ManagementSpec::new(
            in_project::management::identity(),
            in_project::management::run,
        ))
        .management(ManagementSpec::new(in_project::creator::identity(), in_project::creator::run))
        // Rights on the management API itself are reconciled by `management`.
        .downstream(roles_in_clusters.except_local())
        .view(ViewSpec::new(|_| views()))
}

/// The types that grant rights.
fn views() -> Vec<Descriptor> {
    vec![
        role_template::view::view(),
        cluster_role_template_binding::view::view(),
        global_role::view(),
        table::descriptor("globalRoleBinding"),
        project_role_template_binding::view::view(),
    ]
}

#[cfg(test)]
mod tests;
