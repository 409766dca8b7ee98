//! ProjectRoleTemplateBinding: who has which role in a project.
//!
//! [`admission`]: a role can be given only by who has it, or owns the project. [`management`]:
//! members see their project in the management API, and use what belongs to it. [`creator`]: who
//! makes a project owns it. [`view`]: the type in the REST view. In the namespaces of the project
//! downstream the roles are bound by `feature-projects` (`project/roles.rs`).

pub mod admission;
pub mod creator;
pub mod management;
pub mod view;
