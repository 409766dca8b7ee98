//! Checksums, and the bill of a small workspace.

use serde_json::{Value, json};

use super::bill::{BillInput, bill};
use super::*;

fn input() -> BillInput {
    let package = |name: &str, source: Option<&str>, license: &str| json!({"id": name, "name": name, "version": "1.0.0", "source": source, "license": license});
    let edge = |to: &str, kind: Option<&str>| json!({"pkg": to, "dep_kinds": [{"kind": kind}]});
    let registry = Some("registry+x");
    let cargo = json!({
        "packages": [
            package("drover", None, "Apache-2.0"),
            package("agent", None, "Apache-2.0"),
            package("e2e", None, "Apache-2.0"),
            package("hyper", registry, "MIT"),
            package("cc", registry, "MIT/Apache-2.0"),
            package("proptest", registry, "MIT"),
        ],
        "resolve": {"nodes": [
            {"id": "drover", "deps": [edge("hyper", None), edge("proptest", Some("dev"))]},
            {"id": "agent", "deps": [edge("hyper", None), edge("cc", Some("build"))]},
            {"id": "e2e", "deps": [edge("proptest", None)]},
            {"id": "hyper", "deps": []},
            {"id": "cc", "deps": []},
            {"id": "proptest", "deps": []},
        ]},
    });
    let npm = json!({"packages": {
        "": {"version": "0.1.0"},
        "node_modules/react": {"version": "19.0.0", "license": "MIT"},
        "node_modules/@scope/part": {"version": "2.0.0", "license": "MIT"},
        "node_modules/vite": {"version": "7.0.0", "license": "MIT", "dev": true},
    }});
    BillInput {
        cargo: vec![serde_json::from_value(cargo).unwrap()],
        npm: serde_json::from_value(npm).unwrap(),
    }
}

#[test]
fn the_bill_has_the_dependencies_of_the_programs_and_none_of_the_tests() {
    let text = bill(&input()).unwrap();
    assert_eq!(text, bill(&input()).unwrap());
    let bill: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&json!("CycloneDX"), &json!("1.5")));
    let components = bill["components"].as_array().unwrap();
    let urls: Vec<&str> =
        components.iter().map(|component| component["purl"].as_str().unwrap()).collect();
    assert_eq!(
        urls,
        [
            "pkg:cargo/agent@1.0.0",
            "pkg:cargo/cc@1.0.0",
            "pkg:cargo/drover@1.0.0",
            "pkg:cargo/hyper@1.0.0",
            "pkg:npm/%40scope/part@2.0.0",
            "pkg:npm/react@19.0.0",
        ]
    );
    assert_eq!(components[1]["licenses"], json!([{"expression": "MIT OR Apache-2.0"}]));
    let agent = &bill["dependencies"][0];
    assert_eq!(agent["dependsOn"], json!(["pkg:cargo/cc@1.0.0", "pkg:cargo/hyper@1.0.0"]));
}

#[test]
fn the_bill_of_this_workspace_names_each_component_once_with_its_licence() {
    let target = binary::host_target().unwrap();
    let bill: Value =
        serde_json::from_str(&bill(&BillInput::read(&[target]).unwrap()).unwrap()).unwrap();
    let components = bill["components"].as_array().unwrap();
    let mut urls: Vec<&str> =
        components.iter().map(|component| component["bom-ref"].as_str().unwrap()).collect();
    let named = |start: &str| urls.iter().any(|url| url.starts_with(start));
    assert!(named("pkg:cargo/rustls@") && named("pkg:cargo/server@") && named("pkg:npm/react@"));
    assert!(!named("pkg:cargo/e2e@") && !named("pkg:npm/vitest@"));
    let without: Vec<&Value> =
        components.iter().filter(|component| component["licenses"].is_null()).collect();
    assert!(without.is_empty(), "{without:?}");
    let all = urls.len();
    urls.dedup();
    assert_eq!(urls.len(), all);
}

#[test]
fn checksums_are_those_of_the_files_by_name() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("b"), "").unwrap();
    fs::write(folder.path().join("a"), "abc").unwrap();
    fs::write(folder.path().join(SUMS), "of earlier").unwrap();
    assert_eq!(
        sums(folder.path()).unwrap(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
         e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
    );
}

#[test]
fn a_folder_with_other_files_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("precious"), "").unwrap();
    assert!(empty_folder(folder.path()).unwrap_err().to_string().contains("has other files"));
    assert!(folder.path().join("precious").exists());
    fs::write(folder.path().join(SUMS), "").unwrap();
    empty_folder(folder.path()).unwrap();
    assert!(!folder.path().join("precious").exists());
}
