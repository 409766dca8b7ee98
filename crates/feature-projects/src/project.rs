//! Project: [`initial_projects`] creates the first two of each cluster, [`initial`] defines these
//! and the namespaces that begin in them. [`namespace`] creates the namespace for the objects of a
//! project, [`namespaces`] reconciles which namespaces of the cluster are in it, [`secrets`] copies
//! its Secrets into them, [`roles`] binds the roles of its members there, [`quotas`] shares its
//! quota among them and limits their containers, [`isolation`] closes them to other projects where
//! their cluster wants that. [`admission`] protects the system project and
//! validates quotas, [`view`] is the type in the REST view.

pub mod admission;
pub mod initial;
pub mod initial_projects;
pub mod isolation;
pub mod namespace;
pub mod namespaces;
pub mod quotas;
pub mod roles;
pub mod secrets;
pub mod view;
