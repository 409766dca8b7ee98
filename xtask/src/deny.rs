//! Licences, bans and sources of everything that is linked, as `deny.toml` has them.
//!
//! Not cargo-deny itself: building it takes longer than all other checks together. `deny.toml` keeps
//! its form, so it can be run as well; security advisories are its part.

use std::collections::HashSet;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::workspace::{self, Package};

#[derive(Deserialize)]
struct Rules {
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
    unknown_registry: Verdict,
    unknown_git: Verdict,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Allow,
    Deny,
}

pub fn run() -> Result<()> {
    let root = workspace::root();
    let text = std::fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
    let rules: Rules = toml::from_str(&text).context("cannot understand deny.toml")?;
    let metadata = workspace::metadata(&root, &["--locked"])?;
    let linked = linked()?;
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

/// Name and version of everything that is built on this platform.
///
/// Neither the lock file nor `cargo metadata` can tell: both also name crates behind features that
/// nobody turned on.
fn linked() -> Result<HashSet<String>> {
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
    // A tree in another form would let everything pass.
    ensure!(
        linked.contains(concat!("xtask v", env!("CARGO_PKG_VERSION"))),
        "cargo tree does not list the workspace's own crates"
    );
    Ok(linked)
}

fn complaints(rules: &Rules, package: &Package) -> Vec<String> {
    let mut found = Vec::new();
    let who = format!("'{}' {}", package.name, package.version);
    if let Some(ban) = rules.bans.deny.iter().find(|ban| ban.name == package.name) {
        found.push(format!("{who} is banned: {}", ban.reason));
    }
    // Ours have none.
    if let Some(source) = &package.source {
        if source.starts_with("registry+") {
            let known = source == "registry+https://github.com/rust-lang/crates.io-index";
            if !known && rules.sources.unknown_registry == Verdict::Deny {
                found.push(format!("{who} comes from an unknown registry, {source}"));
            }
        } else if rules.sources.unknown_git == Verdict::Deny {
            found.push(format!("{who} does not come from the registry but from {source}"));
        }
    }
    match &package.license {
        None => found.push(format!("{who} names no licence")),
        Some(expression) if !allowed(expression, &rules.licenses.allow) => {
            found.push(format!("the licence of {who} is not allowed: {expression}"));
        }
        Some(_) => {}
    }
    found
}

/// Whether an SPDX expression can be met with `allow` alone. AND binds stronger than OR; the slash
/// of old manifests means OR.
fn allowed(expression: &str, allow: &[String]) -> bool {
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
