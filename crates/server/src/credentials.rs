//! Moves credentials that an earlier version stored in objects to where they are now.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use api_management::{GROUP, credentials, keys};
use apiserver::Registry;
use apiserver::registry::{Update, WriteTarget};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

/// Annotation of the Secrets' namespace: no earlier state of an object has a credential.
const HISTORY_FORGOTTEN: &str = "drover.io/history-forgotten";

/// Takes the credentials out of every object that still has one. Before anybody is served.
///
/// An object is written after its Secret, and only if it has such a value: a start that is cut
/// short leaves the rest to the next one. Whoever may read an object can list it as it was earlier,
/// so history is forgotten too. An object that cannot be written stays as it is, and the log names
/// it.
///
/// # Errors
/// History cannot be forgotten: nobody may be served.
pub async fn migrate(registry: &Arc<Registry>, client: &Client) -> anyhow::Result<()> {
    let begun = Instant::now();
    let catalog = registry.catalog();
    let (mut seen, mut moved, mut failed) = (0, 0, 0);
    for resource in catalog.all().filter(|resource| resource.group == GROUP) {
        if !credentials::concerns(&resource.kind) {
            continue;
        }
        let Some(Update::Reset(objects)) = registry.subscribe(resource).next().await else {
            continue;
        };
        for object in objects {
            seen += 1;
            if !credentials::has_plain(&resource.kind, &object.value()) {
                continue;
            }
            let (namespace, name) = (&*object.namespace, &*object.name);
            let target = WriteTarget { resource, namespace, name };
            match registry.take_out_of_stored(&target).await {
                Ok(_) => moved += 1,
                // Removed meanwhile.
                Err(status) if status.code == 404 => {}
                // One object must not keep the server from all others.
                Err(status) => {
                    failed += 1;
                    tracing::error!(
                        kind = resource.kind,
                        namespace,
                        name,
                        error = status.message,
                        "credentials are still in the object, and whoever may read it reads them; write them \
                         again, or delete the object"
                    );
                }
            }
        }
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces.get(keys::CREDENTIALS_NS).await?;
    if moved > 0 || !namespace.annotations().contains_key(HISTORY_FORGOTTEN) {
        registry
            .forget_history()
            .await
            .map_err(|status| anyhow::anyhow!(status.message))
            .context("cannot forget earlier states of objects, which may have credentials")?;
        let patch = json!({"metadata": {"annotations": {HISTORY_FORGOTTEN: "true"}}});
        let params = PatchParams::default();
        namespaces.patch(keys::CREDENTIALS_NS, &params, &Patch::Merge(patch)).await?;
    }
    if moved + failed > 0 {
        let took = begun.elapsed();
        tracing::info!(seen, moved, failed, ?took, "moved credentials from objects to Secrets");
    }
    Ok(())
}
