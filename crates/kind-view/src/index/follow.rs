//! Reads all objects of a kind in a cluster, and follows their changes.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use kube::Client;
use kube::api::WatchEvent;
use rest_view::urls::encode;
use rest_view::{ApiError, Key, KubeResource};
use serde_json::Value;
use tokio::time::{Interval, interval};

use super::packed::Packing;
use super::table::KindTable;
use super::{IndexState, Indexed, KindIndexes, Refused, in_background};
use crate::table::{self, Table};

/// Objects of one request while all are read.
const CHUNK_OBJECTS: usize = 1_000;
/// Pause before a watch that ended is resumed, and before a list is tried again.
const RESUME_PAUSE: Duration = Duration::from_millis(200);
/// Tries to read all objects: rights that were just given may not be effective yet.
const READ_TRIES: u32 = 10;
/// Bytes that are read for one index, as JSON: a cluster could go on for ever.
const READ_BYTES_MAX: usize = 4 * 1024 * 1024 * 1024;
/// Interval of checks whether anybody still uses the index.
const IDLE_CHECK: Duration = Duration::from_secs(15);

/// Why the objects are no longer followed.
enum Ended {
    /// Changes may have been missed: all has to be read again.
    Missed,
    /// The connection was lost, or the API server ended the watch with an error.
    Broken(ApiError),
    /// Nobody has used the index for a while.
    Idle,
    /// There is no more room.
    Full,
}

/// Follows the kind for as long as somebody uses the index. Returns why it ended.
pub async fn follow(
    indexes: &KindIndexes,
    indexed: &Arc<Indexed>,
    cluster: &str,
    resource: &KubeResource,
) -> Refused {
    let mut idle = interval(IDLE_CHECK);
    loop {
        let client = match indexes.client(cluster, resource).await {
            Ok(client) => client,
            Err(refused) => return refused,
        };
        let mut version = match read_all(indexes, indexed, &client, resource).await {
            Ok(version) => version,
            Err(refused) => return refused,
        };
        loop {
            match watch(indexes, indexed, &client, resource, &mut version, &mut idle).await {
                // API servers end every watch after some time.
                Ok(()) => {}
                Err(Ended::Missed) => break,
                Err(Ended::Idle) => return Refused::Idle,
                Err(Ended::Full) => return Refused::Full,
                Err(Ended::Broken(error)) => {
                    tracing::debug!(cluster, kind = resource.kind, %error, "index is behind");
                    indexed.set_state(IndexState::Behind);
                }
            }
            tokio::time::sleep(RESUME_PAUSE).await;
            if !indexes.may_read(cluster, resource) {
                return Refused::Away;
            }
        }
        indexed.set_state(IndexState::Behind);
        tokio::time::sleep(RESUME_PAUSE).await;
    }
}

/// Reads all objects into the index. Returns the version from which changes are followed.
async fn read_all(
    indexes: &KindIndexes,
    indexed: &Arc<Indexed>,
    client: &Client,
    resource: &KubeResource,
) -> Result<String, Refused> {
    let mut tries = 0;
    loop {
        match read_once(indexes, indexed, client, resource).await {
            Ok(version) => return Ok(version),
            Err(ReadError::Refused(refused)) => return Err(refused),
            Err(ReadError::Api(error)) if tries < READ_TRIES => {
                tracing::debug!(kind = resource.kind, %error, "cannot read a kind; trying again");
                tries += 1;
                tokio::time::sleep(RESUME_PAUSE * tries).await;
            }
            Err(ReadError::Api(error)) => return Err(Refused::Failed(error.message)),
        }
    }
}

enum ReadError {
    Api(ApiError),
    Refused(Refused),
}

impl From<ApiError> for ReadError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

async fn read_once(
    indexes: &KindIndexes,
    indexed: &Arc<Indexed>,
    client: &Client,
    resource: &KubeResource,
) -> Result<String, ReadError> {
    let path = format!("{}?limit={CHUNK_OBJECTS}", resource.collection_path(""));
    let first = table::read(client, &path).await?;
    if prints_times(&first.columns) {
        return Err(ReadError::Refused(Refused::PrintsTimes));
    }
    let samples = first.rows.iter().map(|row| &row.0);
    let mut all = KindTable::new(Packing::new(&first.columns, samples));
    let (version, columns) = (first.revision.clone(), first.columns.clone());
    let (mut chunk, mut bytes) = (first, 0);
    loop {
        let rest = std::mem::take(&mut chunk.rest);
        bytes += chunk.bytes;
        all = fill(all, chunk).await?;
        // The table that it replaces is counted until then.
        if !indexes.has_room_for(all.size()) || bytes > READ_BYTES_MAX {
            return Err(ReadError::Refused(Refused::Full));
        }
        if rest.is_empty() {
            break;
        }
        chunk = table::read(client, &format!("{path}&continue={}", encode(&rest))).await?;
    }
    let (own, indexed, seen) = (indexes.clone(), indexed.clone(), version.clone());
    in_background(move || own.publish(&indexed, all, columns, &seen)).await?;
    Ok(version)
}

async fn fill(mut all: KindTable, chunk: Table) -> Result<KindTable, ApiError> {
    in_background(move || {
        chunk.rows.iter().for_each(|row| all.set(&row.0));
        all
    })
    .await
}

/// Whether cells say how long ago something was, other than that the object was made: they would be
/// wrong a moment later.
fn prints_times(columns: &[Value]) -> bool {
    columns.iter().any(|column| column["type"] == "date" && column["name"] != "Age")
}

/// Follows changes until the API server ends the watch.
async fn watch(
    indexes: &KindIndexes,
    indexed: &Arc<Indexed>,
    client: &Client,
    resource: &KubeResource,
    version: &mut String,
    idle: &mut Interval,
) -> Result<(), Ended> {
    let path = format!(
        "{}?watch=true&allowWatchBookmarks=true&resourceVersion={}",
        resource.collection_path(""),
        encode(version)
    );
    let request = table::request(&path).map_err(Ended::Broken)?;
    let events =
        client.request_events::<Value>(request).await.map_err(|error| ended_by(error.into()))?;
    indexed.set_state(IndexState::Current);
    let mut events = std::pin::pin!(events);
    loop {
        let event = tokio::select! {
            event = events.try_next() => event.map_err(|error| ended_by(error.into()))?,
            _ = idle.tick() => match indexed.is_idle() {
                true => return Err(Ended::Idle),
                false => continue,
            },
        };
        let (object, is_removed) = match event {
            None => return Ok(()),
            Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, false),
            Some(WatchEvent::Deleted(object)) => (object, true),
            Some(WatchEvent::Bookmark(mark)) => {
                version.clone_from(&mark.metadata.resource_version);
                indexed.saw(version);
                continue;
            }
            Some(WatchEvent::Error(status)) => {
                return Err(ended_by(kube::Error::Api(status).into()));
            }
        };
        for row in table::of_response(object).rows {
            if let Some(seen) = row.0["metadata"]["resourceVersion"].as_str() {
                seen.clone_into(version);
            }
            let change = match is_removed {
                true => Change::Removed(Key::of(&row.0)),
                false => Change::Set(row.0),
            };
            let (own, indexed) = (indexes.clone(), indexed.clone());
            let applied = in_background(move || own.apply(&indexed, change)).await;
            applied.map_err(Ended::Broken)?;
        }
        indexed.saw(version);
        if !indexes.has_room_for(0) {
            return Err(Ended::Full);
        }
    }
}

/// A change of an object.
pub enum Change {
    Set(Value),
    Removed(Key),
}

fn ended_by(error: ApiError) -> Ended {
    match error.status {
        410 => Ended::Missed,
        _ => Ended::Broken(error),
    }
}
