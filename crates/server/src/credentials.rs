//! Moves credentials that an earlier version stored in objects to where they are now.

use std::sync::Arc;
use std::time::Instant;

use api_management::{GROUP, credentials};
use apiserver::Registry;
use apiserver::registry::{Target, Update, WriteOptions};

/// Has admission take the credentials out of every object that still has one. Before anybody is served.
///
/// An object is written after its Secret, and only if it has such a value: a start that is cut short leaves the
/// rest to the next one. What admission refuses for another reason stays as it is, and the log names it.
pub async fn migrate(registry: &Arc<Registry>) {
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
            let target = Target { resource, namespace, name };
            match registry.rewrite(&target, &WriteOptions::system()).await {
                Ok(_) => moved += 1,
                // Removed meanwhile.
                Err(status) if status.code == 404 => {}
                Err(status) => {
                    failed += 1;
                    tracing::error!(
                        kind = resource.kind,
                        namespace,
                        name,
                        error = status.message,
                        "credentials are still in the object; whoever may read it reads them: correct the object, then \
                         start the server again"
                    );
                }
            }
        }
    }
    if moved + failed > 0 {
        let took = begun.elapsed();
        tracing::info!(seen, moved, failed, ?took, "moved credentials from objects to Secrets");
    }
}
