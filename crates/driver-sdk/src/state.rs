//! What a driver remembers of a cluster: a value of its own, as JSON in the cluster's metadata.
//! Managers store it as it is, and hand it to every later call.

use anyhow::{Context, Result};
use driver_contract::types::ClusterInfo;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The key in the metadata that all drivers use.
const KEY: &str = "state";

/// What [`store`] put there.
///
/// # Errors
/// There is no state, or one of another driver.
pub fn load<T: DeserializeOwned>(info: &ClusterInfo) -> Result<T> {
    let text = info.metadata.get(KEY).context("the cluster has no state of this driver")?;
    serde_json::from_str(text).context("the state of the cluster cannot be read")
}

/// Like [`load`]; nothing if there is no state yet.
///
/// # Errors
/// The state is one of another driver.
pub fn load_if_present<T: DeserializeOwned>(info: &ClusterInfo) -> Result<Option<T>> {
    info.metadata.contains_key(KEY).then(|| load(info)).transpose()
}

/// Remembers `state` in the place of what was there. Do so before each step that costs money: if
/// the step fails, the manager still stores it.
///
/// # Errors
/// The value cannot be JSON.
pub fn store<T: Serialize>(info: &mut ClusterInfo, state: &T) -> Result<()> {
    let text = serde_json::to_string(state).context("the state cannot be JSON")?;
    info.metadata.insert(KEY.to_owned(), text);
    Ok(())
}
