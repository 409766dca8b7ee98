//! Clients and watchers that work on one storage, until they are done or the storage is stopped.

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
    /// Number of this run of the storage process: values begin with it.
    pub epoch: u64,
    pub clients: u64,
    /// Of each client.
    pub steps: usize,
    /// Besides the watcher of everything.
    pub watchers: u64,
}

/// Something did not happen in time.
#[derive(Debug, thiserror::Error)]
#[error("not within {WAIT_MAX:?}: {0}")]
pub struct Stuck(&'static str);

/// Clients and watchers that are running.
pub struct Running {
    scene: Arc<Scene>,
    clients: JoinSet<()>,
    watchers: JoinSet<()>,
    until: Sender<Option<Revision>>,
}

impl Running {
    /// Starts the work. Everything up to `witnessed` was delivered to a watch of everything in
    /// earlier runs.
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

    /// Waits until the history has `lines` lines, or until the clients are done.
    pub async fn reach(&mut self, lines: usize) {
        while self.scene.recorder.len() < lines {
            // Polls: a recorder sends no notification.
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
    /// `Stuck` when that does not end in time.
    pub async fn finish(mut self) -> Result<(), Stuck> {
        let clients = async {
            while let Some(done) = self.clients.join_next().await {
                done.expect("no client panics");
            }
        };
        timeout(WAIT_MAX, clients).await.map_err(|_| Stuck("every client gets its response"))?;
        let newest = async {
            loop {
                if let Ok(newest) = self.scene.storage.revision().await {
                    return newest;
                }
            }
        };
        let newest = timeout(WAIT_MAX, newest).await.map_err(|_| Stuck("the storage responds"))?;
        self.until.send_replace(Some(newest));
        let watchers = async {
            while let Some(done) = self.watchers.join_next().await {
                done.expect("no watcher panics");
            }
        };
        timeout(WAIT_MAX, watchers).await.map_err(|_| Stuck("every watch reaches the newest"))
    }

    /// The recorder of the history.
    pub fn recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.scene.recorder)
    }

    /// Cancels all clients and watchers at once.
    pub async fn abandon(mut self) {
        self.clients.shutdown().await;
        self.watchers.shutdown().await;
    }
}
