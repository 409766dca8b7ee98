//! Finding the places of kinds, and missing ones.

use super::*;

/// A workspace with a kind that has a struct, a type of tables only, and one that is not offered.
const LAMPS: [(&str, &str); 12] = [
    ("crates/api-management/src/lib.rs", "    (Lamp::KIND, Lamp::crd),"),
    ("crates/api-management/src/lamp.rs", "kind!(Lamp, \"lamps\", \"lamp\","),
    ("crates/api-management/src/types.rs", "    \"lamp\"\n    \"lamp_shade\"\n    \"wire\""),
    ("crates/api-management/types/lamp.txt", "# A lamp.\ntype lamp lamps\nkind Lamp lamps\n"),
    ("crates/api-management/types/lamp_shade.txt", "type lampShade lampShades\n"),
    ("crates/api-management/types/wire.txt", "type wire wires\nmethods none\n"),
    ("crates/feature-lamps/Cargo.toml", "floor = \"feature\""),
    ("crates/feature-lamps/src/lib.rs", "\n    .kind::<Lamp>()\n    types::tables()"),
    ("crates/feature-lamps/src/lamp/admission.rs", "impl Admit for LampRules {"),
    ("crates/cli/src/commands/light.rs", "    let all = api.list(\"lamps\", &[]).await?;"),
    ("ui/src/features/rooms/LampsPage.tsx", ""),
    ("docs/reference/permissions.md", "| lamp | a role |\n| lamp | lg |\n| lampShade | lg |\n"),
];

fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// The problems after `path` got another text.
fn problems_with(path: &str, text: &str) -> Vec<String> {
    let mut files = LAMPS.to_vec();
    files.retain(|(known, _)| *known != path);
    files.push((path, text));
    let problems = problems(written(&files).path()).unwrap();
    problems.into_iter().map(|(file, problem)| format!("{file}: {problem}")).collect()
}

#[test]
fn the_listing_names_the_files_and_lines_of_a_kind() {
    let folder = written(&LAMPS);
    let files = Files::read(folder.path()).unwrap();
    let kinds = files.kinds();
    let stems: Vec<&str> = kinds.iter().map(|kind| kind.stem.as_str()).collect();
    assert_eq!(stems, ["lamp", "lamp_shade", "wire"]);
    let expected = "\
schema      crates/api-management/src/lamp.rs
            crates/api-management/types/lamp.txt
feature     crates/feature-lamps/src/lib.rs:2
            crates/feature-lamps/src/lamp/admission.rs
admission   crates/feature-lamps/src/lamp/admission.rs
view        none
reconcilers none
tests       none
commands    crates/cli/src/commands/light.rs
pages       ui/src/features/rooms/LampsPage.tsx
docs        none
rights      docs/reference/permissions.md:2
";
    assert_eq!(listing(&files, &kinds[0]), expected);
    let table = table(&files, &kinds);
    let shade = table.lines().find(|line| line.starts_with("lamp_shade")).unwrap();
    let cells: Vec<&str> = shade.split_whitespace().collect();
    assert_eq!(cells[..4], ["lamp_shade", "1", "1", "none"], "{table}");
    assert!(problems(folder.path()).unwrap().is_empty());
}

#[test]
fn a_kind_is_found_by_any_spelling_of_its_name() {
    let mut kind = Kind::default();
    "azure_ad_config".clone_into(&mut kind.stem);
    for name in ["azure_ad_config", "azure-ad-config", "AzureADConfig", "azureADConfig"] {
        assert!(kind.is_named(name), "{name}");
    }
    assert!(!kind.is_named("azure"));
}

#[test]
fn a_kind_without_a_feature_or_a_definition_is_named_with_the_place_to_add_it() {
    assert_eq!(
        problems_with("crates/feature-lamps/src/lib.rs", "types::tables()"),
        ["crates/api-management/types/lamp.txt: kind 'lamp' has no feature: add \
            `KindRules::of::<Lamp>()` to the `feature()` of a crate feature-*"]
    );
    assert_eq!(
        problems_with("crates/api-management/src/lib.rs", ""),
        ["crates/api-management/types/lamp.txt: kind 'lamp' is not listed: add 'Lamp' to STRUCTS \
            in crates/api-management/src/lib.rs"]
    );
}

#[test]
fn a_type_without_a_feature_a_list_or_rights_is_named_with_the_place_to_add_it() {
    let problems = problems_with("crates/feature-lamps/src/lib.rs", ".kind::<Lamp>()");
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("kind 'lamp_shade' has no feature: add a module 'lamp_shade.rs'"));
    let problems = problems_with("crates/api-management/src/types.rs", "\"lamp\" \"wire\"");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("add 'lamp_shade' to TYPES in crates/api-management/src/types"));
    let problems =
        problems_with("docs/reference/permissions.md", "| lamp | lg |\n| lampShade | a role |\n");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("'lamp_shade' has no row in docs/reference/permissions.md"));
}

/// Else a moved folder would show as "none" for all kinds.
#[test]
fn every_sort_of_places_is_found_in_this_repository() {
    let files = Files::read(&workspace::root()).unwrap();
    let kinds = files.kinds();
    assert!(kinds.len() > 50, "{} kinds", kinds.len());
    let cluster = kinds.iter().find(|kind| kind.is_named("cluster")).unwrap();
    let text = listing(&files, cluster);
    assert!(!text.contains(NONE), "{text}");
}
