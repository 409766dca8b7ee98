//! Dependencies go down the house, never up, and features do not know one another.
//!
//! Floors are declared in each `Cargo.toml` (`[package.metadata.drover] floor`); edges come from
//! `cargo metadata`, so neither a renamed nor an inherited dependency hides one.

use anyhow::Result;

use super::{Complaint, Tree};
use crate::workspace::{self, Dependency, Package};

/// From the ground up.
const FLOORS: [&str; 5] = ["ground", "engine", "seam", "feature", "roof"];
const FEATURE: usize = 3;
/// Crates that hold tests only. Any crate's own tests may use them.
const TEST_ONLY: [&str; 4] = ["e2e", "fuzz", "history", "testbed"];

/// Who a rule is about.
#[derive(Clone, Copy)]
enum Who {
    Floor(&'static str),
    Crate(&'static str),
}

/// Edges that go down and are wrong all the same: who, may not depend on, because.
/// A name with a dash at the end stands for every crate that starts so.
const FORBIDDEN: [(Who, &[&str], &str); 11] = [
    (
        Who::Floor("ground"),
        &["axum", "hyper", "hyper-util", "rusqlite", "tokio", "tower"],
        "the ground floor does no I/O",
    ),
    (Who::Floor("engine"), &["api-management", "feature-"], "engines know no kind"),
    (
        Who::Floor("seam"),
        &["apiserver", "kubernetes-api", "axum", "hyper", "storage", "tunnel"],
        "the seam says what a feature is, not how it is served",
    ),
    (
        Who::Floor("feature"),
        &["apiserver", "kubernetes-api", "axum", "hyper", "storage", "tower"],
        "features meet the world through API objects and the seam",
    ),
    (Who::Crate("apiserver"), &["controller"], "the API server runs no controllers"),
    (
        Who::Crate("controller"),
        &["apiserver", "kubernetes-api", "axum", "storage"],
        "controllers only use the API",
    ),
    (
        Who::Crate("rest-view"),
        &["apiserver", "kubernetes-api", "storage"],
        "the REST view only uses the API",
    ),
    (
        Who::Crate("cluster-access"),
        &["apiserver", "kubernetes-api", "storage"],
        "it only knows connections",
    ),
    (Who::Crate("tunnel"), &["kube", "k8s-openapi"], "the tunnel carries bytes"),
    (
        Who::Crate("agent"),
        &["apiserver", "kubernetes-api", "feature-", "server", "storage"],
        "the agent links nothing of the server",
    ),
    (
        Who::Crate("cli"),
        &["apiserver", "kubernetes-api", "feature-", "server", "storage"],
        "the command line is a client without privileges",
    ),
];

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let metadata = workspace::metadata(&tree.root, &["--no-deps", "--offline"])?;
    let mut complaints = Vec::new();
    for package in &metadata.packages {
        let mut complain = |text: String| {
            let root = tree.root.canonicalize().unwrap_or_else(|_| tree.root.clone());
            let manifest = &package.manifest_path;
            let file = manifest.strip_prefix(&root).unwrap_or(manifest).to_owned();
            complaints.push(Complaint { file, line: 0, text });
        };
        let Some(floor) = floor_of(package) else {
            complain(format!(
                "'{}' must name its floor in [package.metadata.drover]: one of {}",
                package.name,
                FLOORS.join(", ")
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let target =
                metadata.packages.iter().find(|one| is_same(one, dependency)).and_then(floor_of);
            let breach = edge(&package.name, floor, dependency, target);
            breach.into_iter().for_each(&mut complain);
        }
    }
    Ok(complaints)
}

fn is_same(package: &Package, dependency: &Dependency) -> bool {
    dependency.path.is_some() && package.name == dependency.name
}

fn floor_of(package: &Package) -> Option<usize> {
    let name = package.metadata.as_ref()?.get("drover")?.get("floor")?.as_str()?;
    FLOORS.iter().position(|floor| *floor == name)
}

/// What is wrong with one edge. `target` is the floor of the dependency when it is ours.
fn edge(from: &str, floor: usize, to: &Dependency, target: Option<usize>) -> Option<String> {
    let for_tests = to.kind.as_deref() == Some("dev");
    if for_tests && TEST_ONLY.contains(&to.name.as_str()) {
        return None;
    }
    let name = &to.name;
    if let Some(target) = target {
        let (here, there) = (FLOORS[floor], FLOORS[target]);
        if target > floor {
            return Some(format!(
                "{here} '{from}' depends on {there} '{name}': dependencies may only go down"
            ));
        }
        if floor == FEATURE && target == FEATURE {
            return Some(format!(
                "feature '{from}' depends on feature '{name}': features meet through objects only"
            ));
        }
    }
    // Tests may drive a crate through whatever lies below it.
    if for_tests {
        return None;
    }
    FORBIDDEN.iter().find_map(|(who, names, reason)| {
        let concerned = match who {
            Who::Floor(concerned) => FLOORS[floor] == *concerned,
            Who::Crate(concerned) => from == *concerned,
        };
        let named = |pattern: &&str| {
            name == pattern || (pattern.ends_with('-') && name.starts_with(*pattern))
        };
        (concerned && names.iter().any(named))
            .then(|| format!("'{from}' may not depend on '{name}': {reason}"))
    })
}
