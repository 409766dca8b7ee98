//! The cost of a page: pages of a recent snapshot need no read of the storage, those of an older
//! one need one read each.

use std::sync::Arc;

use apiserver::Registry;
use apiserver::admission::AdmissionChain;
use apiserver::registry::ListQuery;
use prometheus_parse::{Scrape, Value};
use serde_json::json;
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use storage::{Expect, Storage};

const OBJECTS: usize = 1_000;
const PAGE: usize = 10;

/// Number of reads of the storage for lists of ConfigMaps.
fn reads(registry: &Registry) -> usize {
    let text = registry.metrics_text();
    let scrape = Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap();
    let is_list = |sample: &&prometheus_parse::Sample| {
        sample.metric == "etcd_request_duration_seconds"
            && sample.labels.get("operation") == Some("list")
            && sample.labels.get("resource") == Some("configmaps")
    };
    match &scrape.samples.iter().find(is_list).unwrap().value {
        Value::Histogram(buckets) => buckets.last().unwrap().count as usize,
        other => panic!("{other:?}"),
    }
}

async fn start(storage: &Arc<EmbeddedStorage>) -> Arc<Registry> {
    let registry =
        Registry::start(storage.clone(), Arc::new(AdmissionChain::default())).await.unwrap();
    registry.install(vec![super::config_maps()]).await.unwrap();
    assert_eq!(reads(&registry), 1, "the cache has been filled");
    registry
}

async fn put(storage: &EmbeddedStorage, name: &str) {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "uid": name},
    });
    let key = format!("/registry/configmaps/default/{name}");
    storage.put(&key, object.to_string().into(), Expect::Absent, None).await.unwrap();
}

/// Reads the following pages, which must be full.
async fn pages_from(registry: &Registry, mut next: Option<String>) -> usize {
    let mut pages = 0;
    while let Some(token) = next {
        let query = ListQuery {
            limit: Some(PAGE),
            continue_token: Some(token),
            ..ListQuery::all("default")
        };
        let page = registry.list(&super::config_maps(), &query).await.unwrap();
        assert_eq!(page.items.len(), PAGE);
        next = page.continue_token;
        pages += 1;
    }
    pages
}

#[tokio::test]
async fn a_page_is_read_from_memory_or_at_once_from_storage() {
    let folder = tempfile::tempdir().unwrap();
    let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
    let names: Vec<String> = (0..OBJECTS).map(|number| format!("map-{number:04}")).collect();
    futures::future::join_all(names.iter().map(|name| put(&storage, name))).await;

    let registry = start(&storage).await;
    let first = ListQuery { limit: Some(PAGE), ..ListQuery::all("default") };
    let page = registry.list(&super::config_maps(), &first).await.unwrap();
    assert_eq!((page.items.len(), page.remaining), (PAGE, Some((OBJECTS - PAGE) as u64)));
    // Objects that are shared with the cache are not copied.
    let again = registry.list(&super::config_maps(), &first).await.unwrap();
    assert!(Arc::ptr_eq(&page.items[0], &again.items[0]));

    put(&storage, "map-later").await;
    registry.fresh().await.unwrap();
    let left = OBJECTS / PAGE - 1;
    assert_eq!(pages_from(&registry, page.continue_token.clone()).await, left);
    assert_eq!(reads(&registry), 1, "a recent snapshot is in memory");

    // The cache of this server begins after the snapshot.
    let registry = start(&storage).await;
    assert_eq!(pages_from(&registry, page.continue_token).await, left);
    assert_eq!(reads(&registry), 1 + left);
}
