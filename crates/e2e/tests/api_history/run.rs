//! Simulated clusters in one process, and their clients and watchers.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::http::{Client, runtime};
use e2e::{Kubeconfig, Sim};
use http::Method;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::sync::watch::Sender;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::clients::{self, NAMESPACES, POLICIES, Scene};
use crate::record::{Entry, Mode, Operation, Recorder, Scope, version};
use crate::wait::pause_between_polls;
use crate::watchers::{wander, witness};
use crate::wire::{Bug, Line, Wire};

/// How many of the newest versions are retained at least.
pub const RETAINED: u64 = 60;
/// In one cluster.
const CLIENTS: u64 = 3;
const WATCHERS: u64 = 2;
/// Of each client in one life.
const STEPS: usize = 12;
/// Steps where a bug must show, and where nothing is killed.
const STEPS_PLANTED: usize = 100;
/// Longest wait for something that must happen.
const WAIT_MAX: Duration = Duration::from_secs(60);

pub struct Fleet {
    sim: Sim,
    clusters: Vec<Cluster>,
    random: StdRng,
}

struct Cluster {
    seed: u64,
    bug: Option<Bug>,
    recorder: Arc<Recorder>,
    scene: Option<Arc<Scene>>,
    /// The version up to which the watch of everything delivered.
    witnessed: Option<u64>,
}

impl Fleet {
    /// Starts a cluster for each seed, with the bugs, if any, planted one in each.
    pub fn start(seeds: Range<u64>, bugs: &[Bug]) -> Result<Self> {
        let (count, retained) = (seeds.clone().count().to_string(), RETAINED.to_string());
        let flags = ["--nodes", "0", "--clusters", &count, "--history-revisions", &retained];
        let sim = Sim::start(&flags)?;
        let random = StdRng::seed_from_u64(seeds.start);
        let mut bugs = bugs.iter().copied();
        let cluster = |seed| Cluster {
            seed,
            bug: bugs.next(),
            recorder: Arc::default(),
            scene: None,
            witnessed: None,
        };
        Ok(Self { sim, clusters: seeds.map(cluster).collect(), random })
    }

    /// One life of the process: clients work until it is killed, or until all have finished.
    pub fn live(&mut self, life: u64, is_killed: bool) -> Result<()> {
        for (index, cluster) in self.clusters.iter_mut().enumerate() {
            let name = match index {
                0 => "admin.kubeconfig".to_owned(),
                index => format!("admin-{index}.kubeconfig"),
            };
            let kubeconfig = Kubeconfig::read(&self.sim.data_dir().join(name))?;
            let known = cluster.scene.as_ref().map_or(0, |scene| scene.known());
            cluster.scene = Some(Arc::new(Scene {
                wire: Wire::new(Client::of(&kubeconfig)?, cluster.bug),
                recorder: Arc::clone(&cluster.recorder),
                known: AtomicU64::new(known),
                seed: cluster.seed,
                life,
            }));
        }
        let lines = self.lines();
        runtime().block_on(async {
            let mut works = JoinSet::new();
            for cluster in &self.clusters {
                let scene = Arc::clone(cluster.scene.as_ref().expect("it was made above"));
                let witnessed = cluster.witnessed;
                works.spawn(async move {
                    let done = work(Arc::clone(&scene), witnessed, is_killed);
                    done.await
                        .with_context(|| format!("cluster {}, life {}", scene.seed, scene.life))
                });
            }
            if is_killed {
                // Each cluster has some lines by then, and none is finished.
                let enough = lines + self.clusters.len() * self.random.random_range(15..45);
                let reached = async {
                    while self.lines() < enough {
                        if let Some(done) = works.try_join_next() {
                            done??;
                        }
                        pause_between_polls().await;
                    }
                    anyhow::Ok(())
                };
                timeout(WAIT_MAX, reached).await.context("the clusters respond")??;
                self.sim.kill();
                works.shutdown().await;
                return Ok(());
            }
            while let Some(done) = works.join_next().await {
                done??;
            }
            anyhow::Ok(())
        })?;
        if is_killed {
            for cluster in &mut self.clusters {
                cluster.recorder.kill();
                cluster.witnessed = cluster.recorder.witnessed();
            }
            self.sim.restart()?;
        }
        Ok(())
    }

    fn lines(&self) -> usize {
        self.clusters.iter().map(|cluster| cluster.recorder.len()).sum()
    }

    /// By seed.
    pub fn histories(self) -> impl Iterator<Item = (u64, Vec<Entry>)> {
        self.clusters.into_iter().map(|cluster| (cluster.seed, cluster.recorder.take()))
    }

    /// The history of each bug, and how often it showed.
    pub fn planted(self) -> impl Iterator<Item = (Vec<Entry>, usize)> {
        self.clusters.into_iter().map(|cluster| {
            let shown = cluster.scene.map_or(0, |scene| scene.wire.shown());
            (cluster.recorder.take(), shown)
        })
    }
}

/// The work of all clients and watchers of one cluster. With a kill it does not finish.
async fn work(scene: Arc<Scene>, witnessed: Option<u64>, is_killed: bool) -> Result<()> {
    let after = furnish(&scene, witnessed).await?;
    let until = Sender::new(None);
    let mut watchers = JoinSet::new();
    let witness = watchers.spawn(witness(Arc::clone(&scene), after, until.subscribe()));
    for number in 0..WATCHERS {
        watchers.spawn(wander(Arc::clone(&scene), 1000 + number));
    }
    let steps = match (is_killed, scene.wire.is_sound()) {
        (true, _) => usize::MAX,
        (false, true) => STEPS,
        (false, false) => STEPS_PLANTED,
    };
    let clients = (0..CLIENTS).map(|number| clients::Client::new(&scene, number).work(steps));
    let clients = futures::future::try_join_all(clients);
    futures::future::try_join(clients, scene.delete_namespace()).await?;
    settle(&scene).await?;
    // The last commit: a watcher that received it received all before.
    let last = clients::Client::new(&scene, 901).last().await?;
    until.send_replace(Some(last));
    let seen = async {
        while let Some(done) = watchers.join_next_with_id().await {
            match done {
                Ok((id, done)) if id == witness.id() => return done,
                done => done.map(|(_, done)| done)??,
            }
        }
        anyhow::Ok(())
    };
    match timeout(scene.wire.patience(WAIT_MAX), seen).await {
        Ok(done) => done?,
        Err(_) => ensure!(!scene.wire.is_sound(), "the watch of everything does not reach {last}"),
    }
    clients::list(&scene, &mut Line::default(), Scope::ALL, Mode::Latest).await.map(drop)
}

/// Creates the initial objects. Returns the version at which the watch of everything begins.
async fn furnish(scene: &Scene, witnessed: Option<u64>) -> Result<u64> {
    if let Some(after) = witnessed {
        return Ok(after);
    }
    let mut line = Line::default();
    for name in NAMESPACES {
        let namespace = json!({"metadata": {"name": name}});
        let path = "/api/v1/namespaces";
        let (status, response) =
            scene.wire.call(&mut line, Method::POST, path, Some(&namespace)).await?;
        // It exists already when a kill came before the first client began.
        ensure!(matches!(status, 201 | 409), "{response}");
    }
    let (_, list) = scene.wire.call(&mut line, Method::GET, POLICIES, None).await?;
    ensure!(list["items"].as_array().is_some_and(Vec::is_empty), "{list}");
    let after = version(&list)?;
    scene.record_invocation(Operation::Watch { scope: Scope::ALL, after, witness: true });
    Ok(after)
}

/// Waits until the deletion of the namespaces has finished.
async fn settle(scene: &Scene) -> Result<()> {
    let finished = async {
        let mut line = Line::default();
        for life in 0..=scene.life {
            let name = format!("deleted-{life}");
            let path = format!("/api/v1/namespaces/{name}");
            if scene.wire.call(&mut line, Method::GET, &path, None).await?.0 == 404 {
                continue;
            }
            // The request may have been lost by a kill.
            scene.record_invocation(Operation::DeleteNamespace { name });
            scene.wire.call(&mut line, Method::DELETE, &path, None).await?;
            while scene.wire.call(&mut line, Method::GET, &path, None).await?.0 == 200 {
                pause_between_polls().await;
            }
        }
        anyhow::Ok(())
    };
    timeout(WAIT_MAX, finished).await.context("the deletion of the namespaces finishes")?
}
