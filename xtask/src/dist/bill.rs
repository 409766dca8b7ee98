//! The bill of materials: every library in server, agent and web interface, in the format of
//! CycloneDX 1.5.
//!
//! Crates are the dependencies of the programs that cargo resolves for the platforms, without those
//! of tests. npm packages are those of `ui/package-lock.json` that are not for development. The
//! output does not depend on the machine or the time.
//!
//! Source: <https://cyclonedx.org/docs/1.5/json/>, and the package URLs of
//! <https://github.com/package-url/purl-spec>.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::image::{AGENT, SERVER};
use crate::workspace;

/// The input of the bill.
pub struct BillInput {
    /// `cargo metadata`, for each platform.
    pub cargo: Vec<CargoMetadata>,
    /// `ui/package-lock.json`.
    pub npm: NpmLock,
}

#[derive(Deserialize)]
pub struct CargoMetadata {
    packages: Vec<Crate>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Crate {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// None for crates of the workspace.
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<PackageNode>,
}

#[derive(Deserialize)]
struct PackageNode {
    id: String,
    deps: Vec<DependencyEdge>,
}

#[derive(Deserialize)]
struct DependencyEdge {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `dev`, `build`, or none for a normal one.
    kind: Option<String>,
}

#[derive(Deserialize)]
pub struct NpmLock {
    packages: BTreeMap<String, NpmPackage>,
}

#[derive(Deserialize)]
struct NpmPackage {
    #[serde(default)]
    version: String,
    license: Option<String>,
    #[serde(default)]
    dev: bool,
}

impl BillInput {
    /// Runs `cargo metadata`, and reads the lock file of the web interface.
    pub fn read(targets: &[String]) -> Result<Self> {
        let cargo = targets.iter().map(|target| metadata(target)).collect::<Result<_>>()?;
        let lock = workspace::root().join("ui/package-lock.json");
        let text = fs::read_to_string(&lock)
            .with_context(|| format!("cannot read '{}'", lock.display()))?;
        let npm = serde_json::from_str(&text).context("cannot read ui/package-lock.json")?;
        Ok(Self { cargo, npm })
    }
}

fn metadata(target: &str) -> Result<CargoMetadata> {
    let output = workspace::cargo()
        .args(["metadata", "--locked", "--format-version", "1", "--filter-platform", target])
        .output()
        .context("cannot run cargo")?;
    anyhow::ensure!(
        output.status.success(),
        "cargo metadata failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).context("cannot read the output of cargo metadata")
}

/// The bill as JSON, the same for the same input.
pub fn bill(input: &BillInput) -> Result<String> {
    let mut components = BTreeMap::new();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for metadata in &input.cargo {
        crates(metadata, &mut components, &mut edges);
    }
    packages(&input.npm, &mut components);
    let version = env!("CARGO_PKG_VERSION");
    let dependencies: Vec<Value> = edges
        .into_iter()
        .map(|(from, to)| json!({"ref": from, "dependsOn": to.into_iter().collect::<Vec<_>>()}))
        .collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": "drover",
            "name": "drover",
            "version": version,
            "licenses": [{"expression": "Apache-2.0"}],
        }},
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies,
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&bill)?))
}

/// Adds the programs with their normal and build dependencies, transitively.
fn crates(
    metadata: &CargoMetadata,
    components: &mut BTreeMap<String, Value>,
    edges: &mut BTreeMap<String, BTreeSet<String>>,
) {
    let known: BTreeMap<&str, &Crate> =
        metadata.packages.iter().map(|one| (one.id.as_str(), one)).collect();
    let nodes: BTreeMap<&str, &PackageNode> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let programs = [SERVER.package, AGENT.package];
    let is_program = |one: &&Crate| one.source.is_none() && programs.contains(&one.name.as_str());
    let mut open: Vec<&str> =
        metadata.packages.iter().filter(is_program).map(|one| one.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        let (Some(package), Some(node)) = (known.get(id), nodes.get(id)) else { continue };
        if !seen.insert(id) {
            continue;
        }
        let url = crate_url(package);
        components.insert(
            url.clone(),
            component(&url, &package.name, &package.version, package.license.as_deref()),
        );
        let needed = node
            .deps
            .iter()
            .filter(|edge| edge.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev")));
        let to = edges.entry(url).or_default();
        for edge in needed {
            open.push(&edge.pkg);
            to.extend(known.get(edge.pkg.as_str()).map(|package| crate_url(package)));
        }
    }
}

fn packages(lock: &NpmLock, components: &mut BTreeMap<String, Value>) {
    /// Prefix of the name of a package; nested packages have it twice.
    const FOLDER: &str = "node_modules/";
    for (path, package) in &lock.packages {
        let Some((_, name)) = path.rsplit_once(FOLDER).filter(|_| !package.dev) else { continue };
        let url = format!("pkg:npm/{}@{}", name.replace('@', "%40"), package.version);
        let component = component(&url, name, &package.version, package.license.as_deref());
        components.insert(url, component);
    }
}

fn crate_url(package: &Crate) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

fn component(url: &str, name: &str, version: &str, license: Option<&str>) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": url,
        "name": name,
        "version": version,
        "purl": url,
    });
    if let Some(license) = license {
        // The syntax of old manifests, before SPDX expressions.
        let expression = license.replace('/', " OR ");
        component["licenses"] = json!([{"expression": expression}]);
    }
    component
}
