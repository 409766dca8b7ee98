//! Cluster: the controllers that keep it true, by concern. Their order in a cluster's life:
//!
//! | File | Conditions it owns | Keeps true |
//! | --- | --- | --- |
//! | [`admission`] | – | names are unique, `local` stays |
//! | [`lifecycle`] | Pending, Provisioned, BackingNamespaceCreated, Updated | namespace, first token, appliedSpec |
//! | [`health`] | Connected, AgentDeployed, Waiting, Ready | whether the API can be reached and is well |
//! | [`ownership`] | – | one downstream namespace owns all that is ours there |
//! | [`removal`] | Removed | a deleted cluster goes, here and downstream, within a deadline |
//!
//! [`uid`] says which cluster an entry is for; an import checks by [`import_check`]. How clusters
//! look in the REST view is in [`view`]; [`actions`] makes kubeconfigs; [`usage_history`] has the
//! last hour for charts, with what [`node_metrics`] reads. `DefaultProjectCreated` and
//! `SystemProjectCreated` belong to the projects feature.

pub mod actions;
pub mod admission;
pub mod engine_config;
pub mod health;
pub mod import_check;
pub mod lifecycle;
pub mod node_metrics;
pub mod ownership;
pub mod removal;
pub mod uid;
pub mod usage_history;
pub mod view;
