//! Pod Security: the namespaces of a cluster have the levels that a template says.
//!
//! A template is a PodSecurityAdmissionConfigurationTemplate, or a PodSecurityPolicyTemplate of
//! earlier days, for which a level stands ([`level`]). A project names one or has one bound, and a
//! cluster has one for the namespaces of all other projects; [`policies`] says what that comes to
//! for one namespace. [`controller`] writes the labels that the cluster enforces and puts them back
//! when they are changed there, [`check`] refuses other labels to writes through Drover.
//! [`templates`] are the types in the REST view and the templates that are there from the start,
//! [`assign`] is the action that binds one to a project, [`bound`] shows it there.

pub mod assign;
pub mod bound;
pub mod check;
pub mod controller;
pub mod level;
pub mod policies;
pub mod templates;
