//! Licence expressions, bans and sources.

use super::*;

fn rules() -> DenyRules {
    toml::from_str(
        r#"
        licenses = { allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"] }
        bans = { deny = [{ crate = "ring", reason = "one provider" }] }
        sources = { unknown-registry = "deny", unknown-git = "deny" }
        "#,
    )
    .unwrap()
}

fn package(name: &str, license: Option<&str>, source: Option<&str>) -> Package {
    Package {
        id: name.to_owned(),
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        license: license.map(str::to_owned),
        source: source.map(str::to_owned),
        manifest_path: "Cargo.toml".into(),
        dependencies: Vec::new(),
        metadata: None,
    }
}

#[test]
fn a_licence_expression_is_satisfied_by_allowed_licences_only() {
    let allow = rules().licenses.allow;
    for met in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0-only OR MIT",
        "(GPL-3.0-only OR MIT) AND Apache-2.0",
        "Apache-2.0 WITH LLVM-exception OR Zlib",
    ] {
        assert!(is_allowed(met, &allow), "{met}");
    }
    for unmet in [
        "",
        "GPL-3.0-only",
        "MIT AND GPL-3.0-only",
        "GPL-3.0-only OR MIT AND Zlib",
        "MIT WITH LLVM-exception",
        "(MIT",
        "MIT Apache-2.0",
    ] {
        assert!(!is_allowed(unmet, &allow), "{unmet}");
    }
}

#[test]
fn a_banned_crate_an_unknown_source_and_a_missing_licence_are_reported() {
    let registry = Some("registry+https://github.com/rust-lang/crates.io-index");
    let found = |package: &Package| complaints(&rules(), package);
    assert!(found(&package("fine", Some("MIT"), registry)).is_empty());
    assert_eq!(
        found(&package("ring", Some("MIT"), registry)),
        ["'ring' 1.0.0 is banned: one provider"]
    );
    let git = found(&package("fork", Some("MIT"), Some("git+https://example.org/fork#abc")));
    assert!(git[0].contains("does not come from the registry"), "{git:?}");
    let other = found(&package("other", Some("MIT"), Some("registry+https://example.org")));
    assert!(other[0].contains("unknown registry"), "{other:?}");
    assert_eq!(found(&package("bare", None, registry)), ["'bare' 1.0.0 names no licence"]);
}
