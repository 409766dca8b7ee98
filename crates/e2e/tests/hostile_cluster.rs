//! Clusters with hostile API servers, behind Drover's own agents: the server's memory is bounded,
//! it reports their errors, and other clusters are not affected.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::hostile_cluster::Manner;
use e2e::measure::flood::{condition, join_all, watch};
use e2e::measure::settled_memory;
use e2e::wait::pace;
use e2e::{Cli, Guarantee, Server, Sim, eventually, journey, no_second_try};

/// Duration of the measured requests to the healthy cluster.
const TIME: Duration = Duration::from_secs(8);

/// For numbers, run `cargo xtask bench hostile`.
#[test]
fn hostile_clusters_fill_no_memory_and_slow_no_other_cluster_down() {
    no_second_try(Guarantee::Rights);
    let server = Server::start().unwrap();
    let process = server.process_id().unwrap();
    let cli = Cli::admin(&server).unwrap();
    let sim = Sim::start(&[]).unwrap();
    let target = journey::ImportTarget::reached_by(&sim.kubeconfig(), server.folder()).unwrap();
    let well = journey::import(&server, &cli, "well", &target).unwrap();
    let path = format!("/k8s/clusters/{}/api/v1/namespaces", well.id);
    let admin = server.admin().unwrap();
    let before = settled_memory(process).unwrap();
    let idle = watch(&admin, &path, process, TIME).unwrap();
    let hostile = join_all(&server).unwrap();
    let beside = watch(&admin, &path, process, TIME).unwrap();
    for one in &hostile {
        let words: &[&str] = match one.manner {
            Manner::EndlessBody | Manner::HugeList => {
                &["sent a response of over", "sent a list of over"]
            }
            Manner::Redirect => &["redirect"],
            Manner::EndlessHeaders | Manner::Garbage => &["was lost"],
            Manner::Trickle => &["no answer within"],
        };
        eventually("the cluster says what is wrong with it", || -> Result<()> {
            let ready = condition(&server, &one.id).with_context(|| one.agent.log_tail())?;
            let message = ready["message"].as_str().unwrap_or_default();
            ensure!(ready["status"] == "False", "{:?}: {ready}", one.manner);
            ensure!(words.iter().any(|word| message.contains(word)), "{:?}: {ready}", one.manner);
            Ok(())
        });
    }
    let request_count =
        |manner| hostile.iter().find(|one| one.manner == manner).unwrap().cluster.requests();
    let flooding = [Manner::EndlessBody, Manner::HugeList, Manner::Redirect];
    let counts = flooding.map(request_count);
    e2e::http::runtime().block_on(pace(Duration::from_secs(5)));
    assert_eq!(
        flooding.map(request_count),
        counts,
        "a flooding cluster is not requested again at once"
    );
    let after = settled_memory(process).unwrap();
    let (p99, idle) = (beside.samples.percentile(99), idle.samples.percentile(99));
    println!(
        "{before:.0} MB before, {:.0} at most, {after:.0} after; p99 {p99:.1} ms, idle {idle:.1}; {counts:?}",
        beside.most
    );
    // Debug builds need more memory.
    assert!(after - before < 60.0, "{before} MB before, {after} after");
    // During the flood, each may have 16 MiB buffered, and as much in the windows of its streams.
    assert!(beside.most - before < 256.0, "{before} MB before, {} at most", beside.most);
    assert!(p99 < idle * 20.0 + 500.0, "{p99} ms, idle {idle} ms");
    admin.get(&path).unwrap().success().unwrap();
    assert!(!server.log().contains("panicked"));
}
