//! Project: [`initial_projects`] creates the first two of each cluster, [`initial`] defines these
//! and the namespaces that begin in them. [`namespace`] creates the namespace for the objects of a
//! project, [`namespaces`] reconciles which namespaces of the cluster are in it, [`secrets`] copies
//! its Secrets into them, [`roles`] binds the roles of its members there. [`admission`] protects
//! the system project and validates quotas with [`quota`], [`view`] is the type in the REST view.

pub mod admission;
pub mod initial;
pub mod initial_projects;
pub mod namespace;
pub mod namespaces;
pub mod quota;
pub mod roles;
pub mod secrets;
pub mod view;
