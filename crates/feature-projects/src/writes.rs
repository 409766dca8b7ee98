//! Many writes in one cluster: several at once, and none that stops the others.

use std::collections::BTreeSet;

use controller::ensure::{self, Object};
use controller::error::is_code;
use controller::{Attempt, Key, Projection, ReconcileError, Reflector};
use feature_kit::ownership::is_owned_by;
use futures::StreamExt;
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::PostParams;
use kube::{Api, ResourceExt};

/// Objects of one cluster that are written at once.
const WRITES_AT_ONCE: usize = 8;

/// One write of an object.
pub(crate) type Write<'a> = BoxFuture<'a, Result<(), ReconcileError>>;

/// Deletes the present objects that are not desired, except those that `is_left` names.
///
/// # Errors
/// The first failure.
pub(crate) async fn delete_others<K: Object, P: Projection>(
    present: &Reflector<P>,
    desired: &[K],
    api: &impl Fn(&str) -> Api<K>,
    is_left: &impl Fn(&Key) -> bool,
) -> Result<(), ReconcileError> {
    let desired: BTreeSet<Key> = desired.iter().map(Key::of).collect();
    let others = present.all().into_iter().map(|(key, _)| key);
    let mut deletes: Vec<Write<'_>> = Vec::new();
    for key in others.filter(|key| !desired.contains(key) && !is_left(key)) {
        let api = api(&key.namespace);
        let delete = async move { ensure::absent(&api, &key.name).await.map(drop) };
        deletes.push(Box::pin(delete));
    }
    all(deletes).await
}

/// Does all of it, several at once. An object that the cluster refuses is no obstacle to others.
///
/// # Errors
/// The first failure.
pub(crate) async fn all(writes: Vec<Write<'_>>) -> Result<(), ReconcileError> {
    let done: Vec<_> =
        futures::stream::iter(writes).buffer_unordered(WRITES_AT_ONCE).collect().await;
    done.into_iter().collect()
}

/// Makes an object what it should be, owned by `owner`: others may have changed it. Nothing is
/// written when `is_same` accepts the known one, and in a namespace that is being deleted.
///
/// # Errors
/// The cluster refused.
pub(crate) async fn put<K, P>(
    api: Api<K>,
    object: &K,
    present: &Reflector<P>,
    owner: &OwnerReference,
    is_same: impl Fn(&K) -> bool,
) -> Result<(), ReconcileError>
where
    K: Object,
    P: Projection<Projected = K>,
{
    let mut object = object.clone();
    let labels = object.labels().clone();
    let known = present.get(&Key::of(&object));
    let is_done = |known: &K| {
        is_same(known)
            && is_owned_by(known.meta(), Some(&owner.uid))
            && labels.iter().all(|(key, value)| known.labels().get(key) == Some(value))
    };
    if known.as_deref().is_some_and(is_done) {
        return Ok(());
    }
    object.meta_mut().owner_references = Some(vec![owner.clone()]);
    let (name, options) = (object.name_any(), PostParams::default());
    let written = match api.replace(&name, &options, &object).await {
        Err(error) if is_code(&error, 404) => api.create(&options, &object).await,
        written => written,
    };
    match written {
        // The namespace is being deleted, or has been.
        Err(kube::Error::Api(status)) if status.code == 404 || is_terminating(&status) => Ok(()),
        written => {
            let kind = K::kind(&()).to_lowercase();
            let place = namespace_of(&object);
            written
                .attempt(|| format!("write {kind} \"{name}\" in namespace \"{place}\""))
                .map(drop)
        }
    }
}

/// The namespace of an object; empty without one.
pub(crate) fn namespace_of(object: &impl Object) -> String {
    object.namespace().unwrap_or_default()
}

fn is_terminating(status: &kube::core::Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}
