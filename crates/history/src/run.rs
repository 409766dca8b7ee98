//! Clients and watchers at work on one storage, until they are done or it ends.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use storage::{Revision, Storage};
use tokio::sync::watch::Sender;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::record::Recorder;
use crate::watchers::{wander, witness};
use crate::work::{Client, Scene};

/// Longest wait for something that must happen.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How much work.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub seed: u64,
    /// Which life of the storage this is: values are named after it.
    pub epoch: u64,
    pub clients: u64,
    /// Of each client.
    pub steps: usize,
    /// Besides the one of everything.
    pub watchers: u64,
}

/// Something that should have happened by now.
#[derive(Debug, thiserror::Error)]
#[error("not within {WAIT_MAX:?}: {0}")]
pub struct Stuck(&'static str);

/// Work under way.
pub struct Running {
    scene: Arc<Scene>,
    clients: JoinSet<()>,
    watchers: JoinSet<()>,
    until: Sender<Option<Revision>>,
}

impl Running {
    /// Begins. Everything up to `witnessed` was delivered to a watch of everything in a former
    /// life.
    pub fn begin(
        storage: Arc<dyn Storage>,
        recorder: Arc<Recorder>,
        witnessed: Revision,
        load: Load,
    ) -> Self {
        let witnessed_now = AtomicU64::new(witnessed);
        let scene = Arc::new(Scene { storage, recorder, witnessed: witnessed_now });
        let until = Sender::new(None);
        let mut watchers = JoinSet::new();
        watchers.spawn(witness(Arc::clone(&scene), witnessed, until.subscribe()));
        let seed = load.seed.wrapping_add(load.epoch << 32);
        for number in 0..load.watchers {
            let number = 1000 + number;
            watchers.spawn(wander(Arc::clone(&scene), seed, number, until.subscribe()));
        }
        let mut clients = JoinSet::new();
        for number in 0..load.clients {
            let name = format!("e{}c{number}", load.epoch);
            let client = Client::new(Arc::clone(&scene), name, seed, number);
            clients.spawn(client.work(load.steps));
        }
        Self { scene, clients, watchers, until }
    }

    /// Waits until the history has so many lines, or the clients are done before.
    pub async fn reach(&mut self, lines: usize) {
        while self.scene.recorder.len() < lines {
            // Looks again after each turn of the others.
            tokio::select! {
                done = self.clients.join_next() => match done {
                    Some(done) => done.expect("no client panics"),
                    None => return,
                },
                () = tokio::time::sleep(Duration::from_micros(200)) => {}
            }
        }
    }

    /// Lets the clients do all their work and the watchers see all of it.
    ///
    /// # Errors
    /// `Stuck` when that does not come to its end.
    pub async fn finish(mut self) -> Result<(), Stuck> {
        let clients = async {
            while let Some(done) = self.clients.join_next().await {
                done.expect("no client panics");
            }
        };
        timeout(WAIT_MAX, clients).await.map_err(|_| Stuck("every client is answered"))?;
        let newest = async {
            loop {
                if let Ok(newest) = self.scene.storage.revision().await {
                    return newest;
                }
            }
        };
        let newest = timeout(WAIT_MAX, newest).await.map_err(|_| Stuck("the storage answers"))?;
        self.until.send_replace(Some(newest));
        let watchers = async {
            while let Some(done) = self.watchers.join_next().await {
                done.expect("no watcher panics");
            }
        };
        timeout(WAIT_MAX, watchers).await.map_err(|_| Stuck("every watch reaches the newest"))
    }

    /// What is written down.
    pub fn recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.scene.recorder)
    }

    /// Ends everybody where they are.
    pub async fn abandon(mut self) {
        self.clients.shutdown().await;
        self.watchers.shutdown().await;
    }
}
