//! Checks licences, bans and sources of all linked crates against `deny.toml`.
//!
//! This is not cargo-deny: building that takes longer than all other checks together. `deny.toml`
//! has its format, so cargo-deny can be run as well, for security advisories.

use std::collections::HashSet;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::workspace::{self, Package};

#[derive(Deserialize)]
struct DenyRules {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Sources {
    unknown_registry: SourceDecision,
    unknown_git: SourceDecision,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum SourceDecision {
    Allow,
    Deny,
}

pub fn run() -> Result<()> {
    let root = workspace::root();
    let text = std::fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
    let rules: DenyRules = toml::from_str(&text).context("cannot parse deny.toml")?;
    let metadata = workspace::metadata(&root, &["--locked"])?;
    let linked = linked_packages()?;
    let packages = metadata
        .packages
        .iter()
        .filter(|one| linked.contains(&format!("{} v{}", one.name, one.version)));
    let complaints: Vec<String> =
        packages.flat_map(|package| complaints(&rules, package)).collect();
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    if !complaints.is_empty() {
        bail!("{} dependencies break deny.toml", complaints.len());
    }
    Ok(())
}

/// Name and version of all crates that are built on this platform.
///
/// The lock file and `cargo metadata` do not show this: both also contain crates of features that
/// are not enabled.
fn linked_packages() -> Result<HashSet<String>> {
    let output = workspace::cargo()
        .args(["tree", "--workspace", "--locked", "--edges", "normal,build,dev"])
        .args(["--prefix", "none", "--format", "{p}"])
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo tree failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let first_two = |line: &str| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    let linked: HashSet<String> = text.lines().filter_map(first_two).collect();
    // Output in another format would make every check pass.
    ensure!(
        linked.contains(concat!("xtask v", env!("CARGO_PKG_VERSION"))),
        "cargo tree does not list the workspace's own crates"
    );
    Ok(linked)
}

fn complaints(rules: &DenyRules, package: &Package) -> Vec<String> {
    let mut found = Vec::new();
    let who = format!("'{}' {}", package.name, package.version);
    if let Some(ban) = rules.bans.deny.iter().find(|ban| ban.name == package.name) {
        found.push(format!("{who} is banned: {}", ban.reason));
    }
    // Crates of the workspace have none.
    if let Some(source) = &package.source {
        if source.starts_with("registry+") {
            let known = source == "registry+https://github.com/rust-lang/crates.io-index";
            if !known && rules.sources.unknown_registry == SourceDecision::Deny {
                found.push(format!("{who} comes from an unknown registry, {source}"));
            }
        } else if rules.sources.unknown_git == SourceDecision::Deny {
            found.push(format!("{who} does not come from the registry but from {source}"));
        }
    }
    match &package.license {
        None => found.push(format!("{who} names no licence")),
        Some(expression) if !is_allowed(expression, &rules.licenses.allow) => {
            found.push(format!("the licence of {who} is not allowed: {expression}"));
        }
        Some(_) => {}
    }
    found
}

/// Whether `allow` alone satisfies an SPDX expression. AND binds stronger than OR; the slash
/// of old manifests means OR.
fn is_allowed(expression: &str, allow: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest, allow) && rest.is_empty()
}

fn either(rest: &mut &[&str], allow: &[String]) -> bool {
    let mut met = both(rest, allow);
    while let ["OR", after @ ..] = *rest {
        *rest = after;
        met |= both(rest, allow);
    }
    met
}

fn both(rest: &mut &[&str], allow: &[String]) -> bool {
    let mut met = term(rest, allow);
    while let ["AND", after @ ..] = *rest {
        *rest = after;
        met &= term(rest, allow);
    }
    met
}

fn term(rest: &mut &[&str], allow: &[String]) -> bool {
    let licence = match *rest {
        ["(", after @ ..] => {
            *rest = after;
            let met = either(rest, allow);
            let [")", after @ ..] = *rest else { return false };
            *rest = after;
            return met;
        }
        [name, "WITH", exception, after @ ..] => {
            *rest = after;
            format!("{name} WITH {exception}")
        }
        [name, after @ ..] => {
            *rest = after;
            (*name).to_owned()
        }
        [] => return false,
    };
    allow.contains(&licence)
}

#[cfg(test)]
mod tests;
