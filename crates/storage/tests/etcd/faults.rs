//! Members are lost while writers and watchers work: nothing acknowledged is lost, nothing happens
//! twice, and every watcher sees each commit once and in order.

use super::cluster::Cluster;
use super::history::Work;

/// Writes before and after each fault.
const WRITES: usize = 300;

/// A cluster of three with work that goes through the leader, or through a follower.
async fn begin(through_leader: bool) -> (Cluster, usize, Work) {
    let cluster = Cluster::start(3, false, &[]);
    cluster.connect(cluster.config(0)).await;
    let leader = cluster.leader();
    let used = if through_leader { leader } else { (leader + 1) % 3 };
    let storage = cluster.connect(cluster.config(used)).await;
    let work = Work::begin(storage).await;
    work.go_on(WRITES).await;
    (cluster, used, work)
}

async fn end(name: &str, work: Work) {
    work.go_on(WRITES).await;
    let (acknowledged, unknown) = work.check().await;
    println!("{name}: {acknowledged} acknowledged, {unknown} unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_member_loses_nothing() {
    let (mut cluster, member, work) = begin(false).await;
    cluster.kill(member);
    work.go_on(WRITES).await;
    cluster.restart(member);
    end("member killed", work).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_loses_nothing() {
    let (mut cluster, leader, work) = begin(true).await;
    cluster.kill(leader);
    work.go_on(WRITES).await;
    cluster.restart(leader);
    work.go_on(WRITES).await;
    // Once more, now that the work may go through a follower.
    let leader = cluster.leader();
    cluster.kill(leader);
    work.go_on(WRITES).await;
    cluster.restart(leader);
    end("leader killed twice", work).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_member_loses_nothing() {
    let (cluster, member, work) = begin(false).await;
    cluster.freeze(member);
    work.go_on(WRITES).await;
    cluster.thaw(member);
    end("member frozen", work).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_leader_loses_nothing() {
    let (cluster, leader, work) = begin(true).await;
    cluster.freeze(leader);
    work.go_on(WRITES).await;
    cluster.thaw(leader);
    end("leader frozen", work).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_a_majority_accepts_no_writes_and_recovers() {
    let (mut cluster, member, work) = begin(false).await;
    let others = [(member + 1) % 3, (member + 2) % 3];
    for other in others {
        cluster.kill(other);
    }
    work.wait_for_stop().await;
    for other in others {
        cluster.restart(other);
    }
    end("majority killed", work).await;
}
