//! ClusterRoleTemplateBinding: who has which role in a cluster.
//!
//! [`admission`]: a role can be given only by who has it. [`management`]: members see their cluster
//! in the management API; what they may do in its projects is reconciled in
//! [`crate::project_role_template_binding`]. [`creator`]: who makes a cluster owns it. [`view`]:
//! its place in the REST view.

pub mod admission;
pub mod creator;
pub mod management;
pub mod view;
