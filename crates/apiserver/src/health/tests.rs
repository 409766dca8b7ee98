//! The checks in each phase of a server.

use std::sync::Arc;

use http_body_util::BodyExt;
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use tokio::sync::oneshot;

use super::*;
use crate::admission::AdmissionChain;
use crate::tasks::Tasks;

const TASK: &str = "poststarthook/some-controller";

struct World {
    registry: Arc<Registry>,
    storage: Arc<EmbeddedStorage>,
    tasks: Tasks,
    /// Ends the one task.
    end: Option<oneshot::Sender<()>>,
    _folder: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        let registry =
            Registry::start(storage.clone(), Arc::new(AdmissionChain::default())).await.unwrap();
        let (end, ended) = oneshot::channel();
        let mut tasks = Tasks::default();
        tasks.spawn(async move { drop(ended.await) });
        Self { registry, storage, tasks, end: Some(end), _folder: folder }
    }

    async fn try_get(
        &self,
        path: &str,
        query: &str,
        readiness: Readiness,
    ) -> Option<(u16, String)> {
        let tasks = [TaskCheck { name: TASK, tasks: self.tasks.watched() }];
        let health = Health { readiness, registry: &self.registry, tasks: &tasks };
        let response = health.respond(path, &Query::parse(Some(query))).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Some((status, String::from_utf8(body.to_vec()).unwrap()))
    }

    async fn get(&self, path: &str, query: &str, readiness: Readiness) -> (u16, String) {
        self.try_get(path, query, readiness).await.expect("a health path")
    }
}

fn ok() -> (u16, String) {
    (200, "ok".to_owned())
}

#[tokio::test]
async fn a_ready_server_returns_ok_and_lists_its_checks() {
    let world = World::start().await;
    let task = format!("/livez/{TASK}");
    let single =
        ["/livez/ping", "/healthz/etcd", "/readyz/informer-sync", "/readyz/startup", &task];
    for path in ["/healthz", "/livez", "/readyz"].into_iter().chain(single) {
        assert_eq!(world.get(path, "", Readiness::Ready).await, ok(), "{path}");
    }
    let verbose = format!(
        "[+]ping ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]informer-sync ok\n[+]{TASK} ok\n\
         [+]startup ok\n[+]shutdown ok\nreadyz check passed\n"
    );
    assert_eq!(world.get("/readyz", "verbose", Readiness::Ready).await, (200, verbose));
    let verbose = format!("[+]ping ok\n[+]etcd ok\n[+]{TASK} ok\nlivez check passed\n");
    assert_eq!(world.get("/livez", "verbose", Readiness::Ready).await, (200, verbose));
}

#[tokio::test]
async fn a_starting_server_is_alive_and_reports_what_is_missing() {
    let world = World::start().await;
    assert_eq!(world.get("/livez", "", Readiness::Starting).await, ok());
    let reason = "the server is still starting\n";
    let (code, whole) = world.get("/readyz", "", Readiness::Starting).await;
    assert_eq!(code, 500);
    let end = format!("[-]startup failed: {reason}[+]shutdown ok\nreadyz check failed\n");
    assert!(whole.starts_with("[+]ping ok\n[+]etcd ok\n") && whole.ends_with(&end), "{whole}");
    let single = world.get("/readyz/startup", "", Readiness::Starting).await;
    assert_eq!(single, (500, reason.to_owned()));
    assert_eq!(world.get("/readyz", "exclude=startup", Readiness::Starting).await, ok());
}

#[tokio::test]
async fn a_stopping_server_is_alive_and_not_ready() {
    let world = World::start().await;
    assert_eq!(world.get("/livez", "", Readiness::Ending).await, ok());
    let reason = "the server is shutting down\n".to_owned();
    assert_eq!(world.get("/readyz/shutdown", "", Readiness::Ending).await, (500, reason));
    assert_eq!(world.get("/readyz", "", Readiness::Ending).await.0, 500);
}

#[tokio::test]
async fn a_server_without_its_storage_is_neither_alive_nor_ready() {
    let world = World::start().await;
    world.storage.close();
    let reason = "the storage does not respond\n";
    for endpoint in ["/healthz", "/livez", "/readyz"] {
        let (code, whole) = world.get(endpoint, "", Readiness::Ready).await;
        assert!(whole.contains(&format!("[-]etcd failed: {reason}")), "{whole}");
        assert_eq!(code, 500);
        let single = world.get(&format!("{endpoint}/etcd"), "", Readiness::Ready).await;
        assert_eq!(single, (500, reason.to_owned()));
    }
    assert_eq!(world.get("/readyz/informer-sync", "", Readiness::Ready).await.0, 500);
    assert_eq!(world.get("/livez/ping", "", Readiness::Ready).await, ok());
    assert_eq!(world.get("/livez", "exclude=etcd", Readiness::Ready).await, ok());
}

#[tokio::test]
async fn an_ended_task_fails_the_check_of_its_name() {
    let mut world = World::start().await;
    drop(world.end.take());
    while world.tasks.watched().are_running() {
        tokio::task::yield_now().await;
    }
    for endpoint in ["healthz", "livez", "readyz"] {
        let (code, whole) = world.get(&format!("/{endpoint}"), "", Readiness::Ready).await;
        assert!(whole.contains(&format!("[-]{TASK} failed: it has ended")), "{whole}");
        assert_eq!(code, 500);
    }
}

#[tokio::test]
async fn unknown_checks_are_404_or_named_in_a_warning() {
    let world = World::start().await;
    let ready = Readiness::Ready;
    assert_eq!(world.get("/readyz/nosuch", "", ready).await.0, 404);
    assert_eq!(world.get("/livez/shutdown", "", ready).await.0, 404);
    assert_eq!(world.get("/healthz/", "", ready).await.0, 404);
    let warned = format!(
        "[+]ping excluded: ok\n[+]etcd ok\n[+]{TASK} ok\nwarn: some health checks cannot be \
         excluded: no matches for \"nosuch\"\nlivez check passed\n"
    );
    let response = world.get("/livez", "verbose&exclude=ping&exclude=nosuch", ready).await;
    assert_eq!(response, (200, warned));
    assert!(world.try_get("/version", "", ready).await.is_none());
}
