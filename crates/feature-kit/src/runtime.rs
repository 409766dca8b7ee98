//! Starts features: writes their seeds, grants the rights of their identities, runs their
//! controllers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use controller::ensure;
use controller::{DownstreamSets, ReconcileError};
use futures::StreamExt;
use futures::future::BoxFuture;
use kube::{Api, Client};
use tokio::sync::broadcast;
use tokio::task::JoinSet;

use crate::context::ManagementContext;
use crate::controller::ControllerIdentity;
use crate::feature::Feature;
use crate::rbac;

/// Pause before a controller that ended by itself is started again.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// Objects that are written concurrently at the start.
const SEEDS_AT_ONCE: usize = 32;

/// All identities of the features, each once, with all its rules.
pub fn identities(features: &[Feature]) -> Vec<ControllerIdentity> {
    let mut all: BTreeMap<&str, ControllerIdentity> = BTreeMap::new();
    let management = features.iter().flat_map(|f| f.management.iter().map(|spec| &spec.identity));
    let downstream = features.iter().flat_map(|f| f.downstream.iter().map(|spec| &spec.identity));
    let views = features.iter().flat_map(|f| f.views.iter().filter_map(|v| v.identity.as_ref()));
    let others = features.iter().flat_map(|feature| &feature.identities);
    let watching = [rbac::reflector_identity(), rbac::feed_identity()];
    let named = management.chain(downstream).chain(views).chain(others).chain(&watching);
    for identity in named {
        let new = || ControllerIdentity::new(identity.name, Vec::new());
        let merged = all.entry(identity.name).or_insert_with(new);
        for rule in &identity.rules {
            if !merged.rules.contains(rule) {
                merged.rules.push(rule.clone());
            }
        }
        for rule in &identity.rules_within {
            if !merged.rules_within.contains(rule) {
                merged.rules_within.push(rule.clone());
            }
        }
    }
    all.into_values().collect()
}

/// Grants the identity that watches for all controllers its rights. Call it before the first watch
/// begins, which otherwise fails and is retried late.
///
/// # Errors
/// The API refused; the server cannot start.
pub async fn allow_watching(client: &Client) -> Result<(), ReconcileError> {
    let (role, binding) = rbac::controller_objects(&rbac::reflector_identity());
    ensure::like(&Api::all(client.clone()), &role).await?;
    ensure::like(&Api::all(client.clone()), &binding).await.map(drop)
}

/// Writes the rights of all identities and the seeds of all features: namespaces, then rights, then
/// the rest, whose admission may need those rights. The kinds must be served. Idempotent. `client`
/// must have all rights.
///
/// # Errors
/// The first object that could not be written, by name.
pub async fn seed(features: &[Feature], client: &Client) -> Result<(), ReconcileError> {
    type Put<'a> = BoxFuture<'a, Result<(), ReconcileError>>;
    let identities = identities(features);
    let mut puts: Vec<Put<'_>> = Vec::new();
    for identity in &identities {
        let (role, binding) = rbac::controller_objects(identity);
        puts.push(Box::pin(async move {
            ensure::like(&Api::all(client.clone()), &role).await?;
            ensure::like(&Api::all(client.clone()), &binding).await.map(drop)
        }));
    }
    let seeds = || features.iter().flat_map(|feature| &feature.seeds);
    for seed in seeds().filter(|seed| seed.is_namespace) {
        puts.push(Box::pin(async move { seed.put(client).await.map(drop) }));
    }
    put_all(puts).await?;
    let mut inside: Vec<Put<'_>> = Vec::new();
    for (role, binding) in identities.iter().flat_map(rbac::namespaced_objects) {
        let namespace = role.metadata.namespace.clone().unwrap_or_default();
        inside.push(Box::pin(async move {
            ensure::like(&Api::namespaced(client.clone(), &namespace), &role).await?;
            ensure::like(&Api::namespaced(client.clone(), &namespace), &binding).await.map(drop)
        }));
    }
    put_all(inside).await?;
    let others = seeds().filter(|seed| !seed.is_namespace);
    put_all(
        others
            .map(|seed| -> Put<'_> { Box::pin(async move { seed.put(client).await.map(drop) }) })
            .collect(),
    )
    .await
}

/// Writes many objects concurrently, so that a storage with group commit can use it.
async fn put_all(
    puts: Vec<BoxFuture<'_, Result<(), ReconcileError>>>,
) -> Result<(), ReconcileError> {
    let mut running = futures::stream::iter(puts).buffer_unordered(SEEDS_AT_ONCE);
    while let Some(result) = running.next().await {
        result?;
    }
    Ok(())
}

/// Runs the controllers of all features until `context.scope.stop` is cancelled. A controller that
/// ends or panics is started again.
pub async fn run(features: &[Feature], context: ManagementContext) {
    let mut tasks = JoinSet::new();
    for spec in features.iter().flat_map(|feature| &feature.management) {
        let (spec, context) = (spec.clone(), context.clone());
        tasks.spawn(async move {
            let stop = context.scope.stop.clone();
            while !stop.is_cancelled() {
                let client = context.clients.controller(&spec.identity);
                let run = tokio::spawn((spec.start)(context.clone(), client));
                if let Err(error) = run.await
                    && error.is_panic()
                {
                    tracing::error!(controller = spec.identity.name, "controller panicked");
                }
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(RESTART_DELAY) => {}
                }
            }
        });
    }
    let members = features.iter().flat_map(|feature| &feature.downstream);
    let members: Vec<_> = members
        .map(|spec| (spec.build)(&context, context.clients.controller(&spec.identity)))
        .collect();
    let scope = &context.scope;
    let sets = DownstreamSets::new(members, scope.controllers.clone(), scope.stop.clone());
    tasks.spawn(follow_connections(context, Arc::new(sets)));
    while tasks.join_next().await.is_some() {}
}

/// Runs one set of downstream controllers for each connected cluster.
async fn follow_connections(context: ManagementContext, sets: Arc<DownstreamSets>) {
    let clusters = context.scope.reflectors.get::<ClusterNames>();
    let mut events = context.connections.events();
    clusters.synced().await;
    // A client outlives changes of its endpoint: a report or a second session is no reason to
    // restart.
    let check = |cluster: &str| match context.connections.client(cluster) {
        Some(client) if !sets.is_running(cluster) => sets.start(cluster, &client),
        Some(_) => {}
        None => sets.stop(cluster),
    };
    clusters.for_each(|key, _| check(&key.name));
    loop {
        let event = tokio::select! {
            () = context.scope.stop.cancelled() => return,
            event = events.recv() => event,
        };
        match event {
            Ok(event) => check(&event.cluster),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                clusters.for_each(|key, _| check(&key.name));
            }
            Err(broadcast::error::RecvError::Closed) => {
                context.scope.stop.cancelled().await;
                return;
            }
        }
    }
}

type ClusterNames = controller::Whole<api_management::Cluster>;
