//! Writes the objects of a server's management API to files, for the analysis of a failed test.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{Client, Kubeconfig};

/// The resources that are written: all of Drover's groups, and those of Kubernetes that explain
/// failures. Secrets are not written.
const GROUPS: [&str; 3] =
    ["/apis/management.cattle.io/v3", "/apis/project.cattle.io/v3", "/apis/drover.io/v1"];
const CORE: [&str; 3] =
    ["/api/v1/namespaces", "/api/v1/events", "/apis/coordination.k8s.io/v1/leases"];

/// Writes every list of the management API that `kubeconfig` reaches into a folder of its own below
/// `folder`, and why one could not be read into `unreadable.txt`.
pub fn write(kubeconfig: &Path, folder: &Path) {
    // A test may have several servers.
    let mut folders = (1..).map(|number| folder.join(format!("objects-{number}")));
    let Some(folder) = folders.find(|one| !one.exists()) else { return };
    // Evidence is best effort: the server may be broken.
    let made = fs::create_dir_all(&folder).context("cannot create the folder");
    if let Err(cause) = made.and_then(|()| try_write(kubeconfig, &folder)) {
        let _ = fs::write(folder.join("unreadable.txt"), format!("{cause:#}\n"));
    }
}

fn try_write(kubeconfig: &Path, folder: &Path) -> Result<()> {
    let client = Client::of(&Kubeconfig::read(kubeconfig)?)?;
    let mut paths: Vec<String> = CORE.iter().map(|&path| path.to_owned()).collect();
    for group in GROUPS {
        let resources = client.get(group)?;
        if !resources.status.is_success() {
            continue;
        }
        let resources = resources.json()["resources"].take();
        let names = resources.as_array().into_iter().flatten().filter_map(listed);
        paths.extend(names.map(|name| format!("{group}/{name}")));
    }
    for path in paths {
        let list = client.get(&path).with_context(|| format!("cannot list '{path}'"))?.json();
        let is_empty = list["items"].as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            let name = path.rsplit('/').next().unwrap_or(&path);
            fs::write(folder.join(format!("{name}.json")), format!("{list:#}\n"))?;
        }
    }
    Ok(())
}

/// The name of a resource that can be listed.
fn listed(resource: &Value) -> Option<&str> {
    let verbs = resource["verbs"].as_array()?;
    verbs.iter().any(|verb| verb == "list").then(|| resource["name"].as_str())?
}
