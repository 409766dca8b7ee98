//! The definitions of our kinds in the management API, brought to the state that this release
//! wants.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use anyhow::Context;
use backoff::Backoff;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};

/// How long it may take until a definition that was accepted is served.
const SERVED_WITHIN: Duration = Duration::from_secs(30);
/// Pauses between checks whether they are served.
const SERVED_POLL: Backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(100));

/// Annotation: names the spec that was written last, so that the next start need not write it
/// again.
const WRITTEN: &str = "drover.io/definition";

/// Creates or updates each definition whose spec this release did not write before, and waits until
/// all are served.
pub async fn install(client: &Client, desired: &[CustomResourceDefinition]) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let known =
        api.list_metadata(&ListParams::default()).await.context("cannot list definitions")?;
    let written: BTreeSet<(String, String)> = known
        .items
        .into_iter()
        .filter_map(|found| {
            let written = found.annotations().get(WRITTEN)?.clone();
            Some((found.name_any(), written))
        })
        .collect();
    // Together, so that the storage commits them in groups.
    let puts = desired.iter().map(|definition| {
        let (api, written) = (api.clone(), &written);
        async move {
            let name = definition.name_any();
            let content = content_of(definition)?;
            if written.contains(&(name.clone(), content.clone())) {
                return Ok(());
            }
            let mut definition = definition.clone();
            definition.annotations_mut().insert(WRITTEN.to_owned(), content);
            put(&api, &definition).await.with_context(|| format!("definition \"{name}\""))
        }
    });
    futures::future::try_join_all(puts).await?;
    served(client, desired).await
}

/// Names the spec. Another release of the compiler may name it otherwise, and write it once more.
fn content_of(definition: &CustomResourceDefinition) -> anyhow::Result<String> {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(&definition.spec)?.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// Waits until discovery names every resource.
async fn served(client: &Client, desired: &[CustomResourceDefinition]) -> anyhow::Result<()> {
    let mut missing: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for definition in desired {
        for version in &definition.spec.versions {
            let group_version = format!("{}/{}", definition.spec.group, version.name);
            missing.entry(group_version).or_default().insert(&definition.spec.names.plural);
        }
    }
    let deadline = Instant::now() + SERVED_WITHIN;
    let mut checks = 0;
    loop {
        for (group_version, plurals) in &mut missing {
            // Unknown until the first of its resources is served.
            if let Ok(list) = client.list_api_group_resources(group_version).await {
                list.resources.iter().for_each(|resource| {
                    plurals.remove(resource.name.as_str());
                });
            }
        }
        missing.retain(|_, plurals| !plurals.is_empty());
        if missing.is_empty() {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < deadline, "definitions were not served: {missing:?}");
        checks += 1;
        tokio::time::sleep(SERVED_POLL.delay(checks)).await;
    }
}

async fn put(
    api: &Api<CustomResourceDefinition>,
    desired: &CustomResourceDefinition,
) -> kube::Result<()> {
    match api.create(&PostParams::default(), desired).await {
        Ok(_) => return Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(error),
    }
    let patch = Patch::Merge(serde_json::json!({
        "metadata": { "annotations": desired.metadata.annotations },
        "spec": desired.spec,
    }));
    api.patch(&desired.name_any(), &PatchParams::default(), &patch).await?;
    Ok(())
}
