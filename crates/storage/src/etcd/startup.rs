//! Checks an etcd before it is used: it must be reachable, new enough, one cluster, and without
//! alarms.

use std::time::Duration;

use futures::future::join_all;

use super::client::Client;
use super::{failed, wire};
use crate::StorageError;

/// Longest wait for a member's status.
const STATUS_WAIT_MAX: Duration = Duration::from_secs(5);
/// Older ones report a watch's progress before its events; see docs/adr.
const VERSION_MIN: [u32; 3] = [3, 5, 13];

/// Checks all members.
///
/// # Errors
/// `Failed` with what is wrong and what to do.
pub(super) async fn check(client: &Client) -> Result<(), StorageError> {
    let names: Vec<_> = client.names().map(str::to_owned).collect();
    let requests = (0..names.len()).map(|member| {
        client.attempt(member, wire::STATUS, wire::StatusRequest {}, STATUS_WAIT_MAX)
    });
    let statuses: Vec<Result<wire::StatusResponse, _>> = join_all(requests).await;
    let mut cluster = None;
    let mut silent = Vec::new();
    for (name, status) in names.iter().zip(statuses) {
        let status = match status {
            Ok(status) => status,
            Err(error) => {
                silent.push(format!("{name} ({error})"));
                continue;
            }
        };
        if version(&status.version).is_none_or(|version| version < VERSION_MIN) {
            let [major, minor, patch] = VERSION_MIN;
            return Err(failed(format!(
                "etcd at {name} has version \"{}\", which reports a watch's progress too early; \
                 upgrade it to {major}.{minor}.{patch} or newer",
                status.version
            )));
        }
        let id = status.header.map_or(0, |header| header.cluster_id);
        match &cluster {
            None => cluster = Some((id, name)),
            Some((other, first)) if *other != id => {
                return Err(failed(format!(
                    "etcd at {first} and at {name} are members of different clusters; name only \
                     members of one"
                )));
            }
            Some(_) => {}
        }
    }
    if cluster.is_none() {
        return Err(failed(format!(
            "etcd cannot be reached at {}; check that it runs, that the addresses are right, and \
             that the CA and the client certificate, if it requires them, are right",
            silent.join(", ")
        )));
    }
    if !silent.is_empty() {
        tracing::warn!(members = silent.join(", "), "etcd members do not respond");
    }
    check_alarms(client).await
}

async fn check_alarms(client: &Client) -> Result<(), StorageError> {
    let response: wire::AlarmResponse = client.read(wire::ALARM, wire::AlarmRequest {}).await?;
    match response.alarms.iter().map(|member| member.alarm).max() {
        None => Ok(()),
        Some(1) => Err(failed(
            "etcd has raised the alarm NOSPACE and takes no writes; compact and defragment it, or \
             raise --quota-backend-bytes, then disarm the alarm (etcdctl alarm disarm)",
        )),
        Some(_) => Err(failed(
            "etcd has raised the alarm CORRUPT: its members differ; restore the damaged member, \
             then disarm the alarm (etcdctl alarm disarm)",
        )),
    }
}

fn version(text: &str) -> Option<[u32; 3]> {
    let (numbers, _) = text.split_once('-').unwrap_or((text, ""));
    let mut parts = numbers.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

#[cfg(test)]
mod tests {
    use super::{VERSION_MIN, version};

    #[test]
    fn versions_are_compared_as_numbers() {
        let new_enough = |text| version(text).is_some_and(|version| version >= VERSION_MIN);
        for text in ["3.5.13", "3.5.100", "3.6.0", "4.0.0", "3.7.0-alpha.0"] {
            assert!(new_enough(text), "{text}");
        }
        for text in ["3.5.12", "3.4.40", "2.3.8", "", "new", "3.6"] {
            assert!(!new_enough(text), "{text}");
        }
    }
}
