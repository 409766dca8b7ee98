//! The definitions of our kinds in the management API, brought to the state that this release wants.

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};

/// Creates or updates each definition, and waits until all are served.
pub async fn install(client: &Client, wanted: &[CustomResourceDefinition]) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    // Together, so that the storage commits them in groups.
    let puts = wanted.iter().map(|definition| {
        let api = api.clone();
        async move {
            let name = definition.name_any();
            put(&api, definition).await.with_context(|| format!("definition \"{name}\""))
        }
    });
    futures::future::try_join_all(puts).await?;
    for definition in wanted {
        let name = definition.name_any();
        let established = kube::runtime::conditions::is_crd_established();
        kube::runtime::wait::await_condition(api.clone(), &name, established)
            .await
            .with_context(|| format!("definition \"{name}\" was not served"))?;
    }
    Ok(())
}

async fn put(
    api: &Api<CustomResourceDefinition>,
    wanted: &CustomResourceDefinition,
) -> kube::Result<()> {
    match api.create(&PostParams::default(), wanted).await {
        Ok(_) => return Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(error),
    }
    let patch = Patch::Merge(serde_json::json!({ "spec": wanted.spec }));
    api.patch(&wanted.name_any(), &PatchParams::default(), &patch).await?;
    Ok(())
}
