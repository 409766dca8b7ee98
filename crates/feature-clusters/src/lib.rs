//! Clusters: import, registration, agents, nodes, health, removal.
//!
//! | Where | What |
//! | --- | --- |
//! | [`cluster`] | lifecycle, health, removal, what we keep in order downstream |
//! | [`cluster_registration_token`] | tokens and commands, the manifest and the path that serves it |
//! | [`node`] | downstream nodes as objects of the management cluster, capacity and requests |
//! | [`registrar`] | which agents the tunnel lets in |
//! | [`connections`] | which clusters can be reached now |
//! | [`shell`] | a terminal with kubectl in a pod of the cluster |
//! | [`index_reader`] | what the indexes of `/v1` may read in clusters |
//!
//! A cluster's way: somebody creates it ([`cluster::lifecycle`] makes its namespace and a token) →
//! its agent registers a key ([`registrar`]) → [`cluster::health`] finds its API well → active.

pub mod cluster;
pub mod cluster_registration_token;
pub mod connections;
pub mod index_reader;
mod kubeconfig;
pub mod node;
pub mod registrar;
pub mod shell;

use std::sync::Arc;

use api_management::{Cluster, ClusterRegistrationToken, Node, ids, keys};
use controller::Whole;
use feature_kit::view::with_namespace;
use feature_kit::{
    DownstreamSpec, Feature, KindRules, ManagementContext, ManagementSpec, Route, Seed, SeedMode,
    ViewSpec, unique,
};

use cluster::engine_config::EngineConfigs;
pub use cluster_registration_token::agent_objects::AgentObjects;
pub use connections::{Connections, DownstreamClients, TunnelClients};
pub use index_reader::IndexReader;
pub use registrar::AgentRegistrar;

/// The feature. Must be called inside a tokio runtime.
pub fn feature(context: &ManagementContext, connections: &Arc<Connections>) -> Feature {
    let import = cluster_registration_token::import::ImportRoute::new(context);
    let check = cluster::import_check::ImportCheck::new(context, connections.clone());
    let cluster_rules = KindRules::of::<Cluster>()
        .finalizers(&[keys::CLUSTER_FINALIZER])
        .admit_with(Arc::new(cluster::admission::ClusterRules::new(context)));
    let health = connections.clone();
    let shells = Arc::<shell::Shells>::default();
    let (open, left, left_tokens) = (shells.clone(), shells.clone(), shells);
    let history = Arc::<cluster::usage_history::UsageHistory>::default();
    let noted = history.clone();
    let tunnels = connections.clone();
    let drains = Arc::<node::drain::Drains>::default();
    let recovered = drains.clone();
    Feature::new("clusters")
        .kind_with(cluster_rules)
        .kind::<ClusterRegistrationToken>()
        .kind::<Node>()
        .identity(registrar::identity())
        .identity(shell::identity())
        // Removal reports are stored in it.
        .seed([Seed::system_namespace(keys::SYSTEM_NS), unique::seed(), local_cluster()])
        .management(unique::controller::spec(cluster::admission::DISPLAY_NAME))
        .management(ManagementSpec::new(cluster::lifecycle::identity(), cluster::lifecycle::run))
        .management(ManagementSpec::new(cluster::health::identity(), move |context, client| {
            cluster::health::run(context, client, health.clone())
        }))
        .management(ManagementSpec::new(cluster::removal::identity(), cluster::removal::run))
        .management(ManagementSpec::new(
            cluster_registration_token::management::identity(),
            cluster_registration_token::management::run,
        ))
        .management(ManagementSpec::new(node::drain::identity(), move |context, client| {
            node::drain::recover(context, client, recovered.clone())
        }))
        .management(cluster::usage_history::spec(history.clone()))
        .downstream(DownstreamSpec::new(node::sync::identity(), move |context, client| {
            node::sync::build(context, client, noted.clone())
        }))
        .downstream(cluster::node_metrics::spec(history.clone()))
        .downstream(DownstreamSpec::new(cluster::ownership::identity(), cluster::ownership::build))
        .management(ManagementSpec::new(shell::leftovers::identity(), move |context, client| {
            shell::leftovers::run(context, client, left_tokens.clone())
        }))
        .downstream(
            DownstreamSpec::new(shell::leftovers::downstream_identity(), move |_, _| {
                shell::leftovers::build(left.clone())
            })
            .except_local(),
        )
        .route(Route::public("/v3/import/", Arc::new(import)))
        .route(Route::authenticated(cluster::import_check::PATH, Arc::new(check)))
        .view(ViewSpec::new(|_| vec![cluster_registration_token::view::view()]))
        .view(ViewSpec::acting_as(node::drain::identity(), move |context, client| {
            let drainer = node::drain::Drainer::new(context, client, drains.clone());
            let store = node::store::NodeStore::default();
            let actions = node::actions::actions(&store, &drainer);
            vec![node::view::view(store, actions)]
        }))
        .view(ViewSpec::acting_as(cluster::actions::identity(), move |context, client| {
            let kubeconfig = cluster::actions::GenerateKubeconfig::new(context, client);
            let acting = context.clients.controller(&shell::identity());
            let shell = shell::socket(context, acting, tunnels.clone(), open.clone());
            let view = cluster::view::view(kubeconfig, EngineConfigs::new(context))
                .socket(shell)
                .link(cluster::usage_history::link(history.clone()));
            vec![with_namespace::<Whole<Cluster>>(view, context, |it| &it.status.conditions)]
        }))
}

/// The cluster that is the management API itself.
fn local_cluster() -> Seed {
    let mut cluster = Cluster::default();
    cluster.metadata.name = Some(ids::LOCAL_CLUSTER.to_owned());
    cluster.spec.display_name = ids::LOCAL_CLUSTER.to_owned();
    cluster.spec.internal = true;
    Seed::cluster_scoped(SeedMode::Create, cluster)
}

#[cfg(test)]
mod tests;
