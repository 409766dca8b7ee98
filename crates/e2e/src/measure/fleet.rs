//! Many simulated clusters, each with a real agent process: the time to import them, the server's
//! resources, and the time until they are back after the server was killed.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{Row, Samples, Target, settled_memory};
use crate::wait::LOOK_INTERVAL;
use crate::{Cli, Client, Server, Sim, poll_until};

const CLUSTERS: usize = 100;
/// Concurrent imports.
const HANDS: usize = 4;
const IMPORT_MAX_SECONDS: f64 = 5.0;
const MEMORY_MAX_MEGABYTES: f64 = 100.0;
const BACK_TIMEOUT: Duration = Duration::from_secs(120);
const BACK_MAX_SECONDS: f64 = 15.0;

/// One simulated cluster.
///
/// # Errors
/// The import fails.
pub fn single_import() -> Result<Vec<Row>> {
    let server = Server::start()?;
    let cli = Cli::admin(&server)?;
    let sim = Sim::start(&[])?;
    let took = import(&cli, "simulated", &sim.kubeconfig())?.as_secs_f64();
    Ok(vec![
        Row::new(
            "import to active, simulated cluster",
            took,
            "s",
            Target::AtMost(IMPORT_MAX_SECONDS),
        )
        .note("whole run of `drover cluster import`"),
    ])
}

/// A hundred clusters.
///
/// # Errors
/// An import fails, or not all are active.
pub fn measure() -> Result<Vec<Row>> {
    let mut server = Server::start()?;
    let cli = Cli::admin(&server)?;
    let number = CLUSTERS.to_string();
    let sim = Sim::start(&["--clusters", &number])?;
    let kubeconfigs = sim.kubeconfigs()?;
    ensure!(kubeconfigs.len() == CLUSTERS, "{} kubeconfigs", kubeconfigs.len());
    let since = Instant::now();
    let imports = import_all(&cli, "simulated", &kubeconfigs)?;
    let all = since.elapsed().as_secs_f64();
    poll_until(BACK_TIMEOUT, LOOK_INTERVAL, || are_active(&server, CLUSTERS))?;
    let memory = settled_memory(server.process_id().unwrap_or_default())?;
    let simulator = settled_memory(sim.process_id())?;

    let ids = ids(&server)?;
    let since = Instant::now();
    server.restart()?;
    // The stored status is active at once; a response needs a tunnel that is connected again.
    let mut waiting = ids;
    poll_until(BACK_TIMEOUT, LOOK_INTERVAL, || {
        let admin = server.admin()?;
        waiting.retain(|id| !responses(&admin, id));
        ensure!(waiting.is_empty(), "{} of {CLUSTERS} do not respond", waiting.len());
        are_active(&server, CLUSTERS)
    })?;
    let back = since.elapsed().as_secs_f64();
    let after = settled_memory(server.process_id().unwrap_or_default())?;
    let what = |text: &str| format!("{text}, {CLUSTERS} simulated clusters");
    Ok(vec![
        Row::new(what("server memory"), memory, "MB", Target::AtMost(MEMORY_MAX_MEGABYTES))
            .note("resident, settled, all active, one real agent process each"),
        Row::new(what("server memory after a restart"), after, "MB", Target::Context),
        Row::new(what("all back after kill -9"), back, "s", Target::AtMost(BACK_MAX_SECONDS))
            .note("from the kill until each responds through Drover; the target is for 1,000"),
        Row::new(what("all imported"), all, "s", Target::Context).note(format!(
            "{HANDS} at a time; one takes {:.1} s at the median, {:.1} s at worst",
            imports.median() / 1e3,
            imports.percentile(100) / 1e3
        )),
        Row::new(what("simulator memory"), simulator, "MB", Target::Context),
    ])
}

fn import(cli: &Cli, name: &str, kubeconfig: &Path) -> Result<Duration> {
    let file = kubeconfig.to_str().context("a path that is no text")?;
    let since = Instant::now();
    cli.succeed(&["cluster", "import", name, "--kubeconfig", file])?;
    Ok(since.elapsed())
}

/// Imports clusters under names that begin with `prefix`.
pub(super) fn import_all(cli: &Cli, prefix: &str, kubeconfigs: &[PathBuf]) -> Result<Samples> {
    let next = Mutex::new(kubeconfigs.iter().enumerate());
    let work = || -> Result<Vec<Duration>> {
        let mut took = Vec::new();
        loop {
            let one = next.lock().expect("no holder of the list panics").next();
            let Some((index, kubeconfig)) = one else { return Ok(took) };
            took.push(import(cli, &format!("{prefix}-{index}"), kubeconfig)?);
        }
    };
    std::thread::scope(|scope| {
        let hands: Vec<_> = (0..HANDS).map(|_| scope.spawn(work)).collect();
        let mut samples = Samples::default();
        for hand in hands {
            let took = hand.join().map_err(|_| anyhow::anyhow!("an import panicked"))??;
            took.into_iter().for_each(|one| samples.push(one));
        }
        Ok(samples)
    })
}

pub(super) fn ids(server: &Server) -> Result<Vec<String>> {
    let list = server.admin()?.get("/v3/clusters?limit=-1")?.success()?;
    let all = list["data"].as_array().context("no data")?;
    let ids = all.iter().filter_map(|cluster| cluster["id"].as_str());
    Ok(ids.filter(|id| *id != "local").map(str::to_owned).collect())
}

fn responses(admin: &Client, id: &str) -> bool {
    let response = admin.get(&format!("/k8s/clusters/{id}/api/v1/namespaces/default"));
    response.is_ok_and(|response| response.status.is_success())
}

fn are_active(server: &Server, number: usize) -> Result<()> {
    let list = server.admin()?.get("/v3/clusters?limit=-1")?.success()?;
    let all = list["data"].as_array().context("no data")?;
    let imported = all.iter().filter(|cluster| cluster["id"] != "local");
    let active = imported.filter(|cluster| cluster["state"] == "active").count();
    ensure!(active == number, "{active} of {number} are active");
    Ok(())
}
