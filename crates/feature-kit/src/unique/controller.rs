//! Maintains: every unique name has a claim by the object that has it, and no claim outlives its
//! name.
//!
//! Watches the objects, and lists the claims periodically; the key is the name. Objects from
//! versions without claims get a claim; if several have one name, the oldest gets it. Owns no
//! condition.

use std::sync::Arc;
use std::time::Duration;

use controller::{
    Attempt, Change, Key, Outcome, Projection, Queue, Reconcile, ReconcileError, Reflector, Runner,
    Whole,
};
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};

use super::{Claim, Claims, LABEL, PENDING_TIME_MAX, UniqueName, UniquelyNamed, is_code, now};
use crate::{ManagementContext, ManagementSpec};

/// Delay until the watch has delivered what was just read.
const BEHIND_DELAY: Duration = Duration::from_millis(200);

/// The controller of one kind of names.
pub fn spec<K: UniquelyNamed>(unique: UniqueName<K>) -> ManagementSpec
where
    Whole<K>: Projection<Projected = K>,
{
    ManagementSpec::new(unique.identity(), move |context, client| run(unique, context, client))
}

async fn run<K: UniquelyNamed>(unique: UniqueName<K>, context: ManagementContext, client: Client)
where
    Whole<K>: Projection<Projected = K>,
{
    let scope = &context.scope;
    let objects = scope.reflectors.get::<Whole<K>>();
    // Before that, the oldest object of a name is not known.
    objects.synced().await;
    let claims = unique.claims(client.clone());
    let names = Names { claims: unique.claims(client), objects: objects.clone() };
    let runner = Runner::new(Arc::new(names));
    runner.watch(&objects, move |change| {
        let old = match change {
            Change::Applied { old, .. } => *old,
            Change::Deleted { .. } => None,
        };
        let names = [Some(change.object()), old].into_iter().flatten();
        let names = names.map(|object| (unique.name_of)(object).to_owned());
        names
            .filter(|name| !name.is_empty())
            .map(|name| Key::cluster_scoped(&name))
            .collect::<Vec<_>>()
    });
    let queue = runner.queue().clone();
    tokio::select! {
        () = runner.run("", &scope.controllers, scope.stop.clone()) => {}
        () = check_claims(&claims, &queue) => {}
    }
}

/// Claims without an object cause no event: their writes were refused or interrupted.
async fn check_claims<K: UniquelyNamed>(claims: &Claims<K>, queue: &Queue) {
    loop {
        let selected = ListParams::default().labels(&format!("{LABEL}={}", claims.unique.what));
        match claims.claims.list(&selected).await {
            Ok(found) => {
                for claim in found.items {
                    queue.add(Key::cluster_scoped(&Claim::of(&claim).name));
                }
            }
            Err(error) => {
                tracing::debug!(names = claims.unique.what, %error, "claims were not listed");
            }
        }
        tokio::time::sleep(PENDING_TIME_MAX).await;
    }
}

struct Names<K: UniquelyNamed>
where
    Whole<K>: Projection<Projected = K>,
{
    claims: Claims<K>,
    objects: Arc<Reflector<Whole<K>>>,
}

impl<K: UniquelyNamed> Names<K>
where
    Whole<K>: Projection<Projected = K>,
{
    async fn reconcile_claim(&self, name: &str) -> Result<Outcome, ReconcileError> {
        let Claims { unique, claims, .. } = &self.claims;
        let claim_name = super::claim_name(unique.what, name);
        let attempt = || format!("reconcile the claim to {} \"{name}\"", unique.what);
        let Some(found) = claims.get_opt(&claim_name).await.attempt(attempt)? else {
            return self.claim_for_oldest(name).await;
        };
        let claim = Claim::of(&found);
        if self.claims.has(&claim.holder, name).await.attempt(attempt)? {
            if claim.confirmed {
                return Ok(Outcome::Done);
            }
            let mut confirmed = Claim { confirmed: true, ..claim }.to_config_map(unique.what);
            confirmed.metadata.resource_version = found.metadata.resource_version;
            let replaced = claims.replace(&claim_name, &PostParams::default(), &confirmed).await;
            return write_outcome(replaced.map(drop)).attempt(attempt);
        }
        if let Some(rest) = claim.pending_for(now()) {
            return Ok(Outcome::RequeueAfter(rest));
        }
        let preconditions =
            Preconditions { uid: found.uid(), resource_version: found.resource_version() };
        let options =
            DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        write_outcome(claims.delete(&claim_name, &options).await.map(drop)).attempt(attempt)?;
        // Another object may have the name.
        Ok(Outcome::RequeueAfter(BEHIND_DELAY))
    }

    async fn claim_for_oldest(&self, name: &str) -> Result<Outcome, ReconcileError> {
        let mut oldest: Option<(Option<Time>, String)> = None;
        self.objects.for_each(|key, object| {
            if (self.claims.unique.name_of)(object) == name {
                let age = (object.meta().creation_timestamp.clone(), key.name.clone());
                if oldest.as_ref().is_none_or(|known| age < *known) {
                    oldest = Some(age);
                }
            }
        });
        let Some((_, holder)) = oldest else { return Ok(Outcome::Done) };
        let attempt = || format!("claim {} \"{name}\"", self.claims.unique.what);
        if !self.claims.has(&holder, name).await.attempt(attempt)? {
            return Ok(Outcome::RequeueAfter(BEHIND_DELAY));
        }
        let claim = Claim { name: name.to_owned(), holder, claimed_at: now(), confirmed: true };
        let claim = claim.to_config_map(self.claims.unique.what);
        let created = self.claims.claims.create(&PostParams::default(), &claim).await;
        write_outcome(created.map(drop)).attempt(attempt)
    }
}

/// A concurrent write causes an event of its own.
fn write_outcome(written: Result<(), kube::Error>) -> Result<Outcome, kube::Error> {
    match written {
        Err(error) if is_code(&error, 409) || is_code(&error, 404) => {
            Ok(Outcome::RequeueAfter(BEHIND_DELAY))
        }
        written => written.map(|()| Outcome::Done),
    }
}

impl<K: UniquelyNamed> Reconcile for Names<K>
where
    Whole<K>: Projection<Projected = K>,
{
    fn name(&self) -> &'static str {
        self.claims.unique.controller
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile_claim(&key.name))
    }
}
