//! The tables that are there, and lines that are wrong.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Row, RowLocation, nested, parse};
use crate::types;

/// Types of fields that are no nested types.
const PLAIN: [&str; 13] = [
    "string",
    "password",
    "dnsLabel",
    "dnsLabelRestricted",
    "hostname",
    "int",
    "float",
    "boolean",
    "json",
    "base64",
    "intOrString",
    "date",
    "enum",
];

/// Types inside clusters and projects, which have no tables yet.
const INSIDE: [&str; 4] = ["namespace", "ingress", "pod", "service"];

fn innermost(kind: &str) -> &str {
    let inside = ["array[", "map["].iter().find_map(|start| kind.strip_prefix(start));
    inside.and_then(|inside| inside.strip_suffix(']')).map_or(kind, innermost)
}

#[test]
fn every_type_that_a_table_names_is_described() {
    let tables: Vec<_> = types::tables().collect();
    let shared: Vec<_> = types::shared_types().collect();
    let nested = || shared.iter().chain(tables.iter().flat_map(|table| &table.nested));
    let mut known: BTreeSet<&str> = tables.iter().map(|table| table.id).collect();
    assert_eq!(known.len(), tables.len(), "a type is described twice");
    for one in nested() {
        assert!(known.insert(one.id), "{} is described twice", one.id);
    }
    let rows = tables.iter().map(|table| (table.id, &table.fields));
    for (id, fields) in rows.chain(nested().map(|one| (one.id, &one.fields))) {
        let names: BTreeSet<&str> = fields.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), fields.len(), "{id} has a field twice");
        for Row { name, kind, options, .. } in fields {
            let kind = innermost(kind);
            let refers = kind.strip_prefix("reference[").and_then(|kind| kind.strip_suffix(']'));
            // What is named by a path is a type inside projects.
            let elsewhere = refers.is_some_and(|to| INSIDE.contains(&to) || to.contains('/'));
            let described = PLAIN.contains(&kind) || known.contains(refers.unwrap_or(kind));
            assert!(described || elsewhere, "{id}.{name}: {kind}");
            assert!(kind != "enum" || !options.is_empty(), "{id}.{name} has no options");
        }
    }
}

#[test]
fn a_table_is_found_by_its_id_and_by_its_kind() {
    for table in types::tables() {
        assert_eq!(types::table(table.id).map(|found| found.plural), Some(table.plural));
    }
    assert!(types::table("nothing").is_none());
    let providers = types::tables_of_kind("AuthConfig");
    assert!(providers.len() > 10 && types::tables_of_kind("Auth").is_empty());
}

#[test]
fn fields_are_stored_where_the_table_says() {
    let table = parse(
        "type a as\nkind A as\n[spec]\nclusterId reference[cluster] CRN\nn int CU min=1 @m = 3\n\
         b boolean CU\nc int ?\nfooIds array[reference[foo]] CUN\nkey string N @annotation:x/y\n\
         far string N @status.some.where\nown string - hidden\n[status]\nd string ?",
    );
    let table = table.unwrap();
    let row = |name: &str| table.fields.iter().find(|row| row.name == name).unwrap().clone();
    let path = |text: &str| RowLocation::Path(text.to_owned());
    assert_eq!(row("clusterId").location, path("spec.clusterName"));
    assert_eq!((row("n").location, row("n").default), (path("spec.m"), Some(json!(3))));
    assert_eq!((row("b").default, row("c").default), (Some(json!(false)), None));
    assert!(row("c").access.update && !row("d").access.update);
    assert_eq!(row("fooIds").location, path("spec.fooNames"));
    assert_eq!(row("key").location, RowLocation::Annotation("x/y"));
    assert_eq!(row("far").location, path("status.some.where"));
    assert!(row("own").is_hidden && row("own").location == path("spec.own"));
}

#[test]
fn a_wrong_line_is_named() {
    for (text, line) in [
        ("type a as\nscope everywhere", 2),
        ("methods list patch", 1),
        ("[nowhere]", 1),
        ("[spec]\na string", 2),
        ("[spec]\na string X", 2),
        ("[spec]\na int CU most=3", 2),
        ("[spec]\na int CU = many", 2),
        ("struct s\na string N min=x", 2),
    ] {
        assert_eq!(parse(text).map(drop).unwrap_err().line, line, "{text}");
    }
    assert!(nested("struct a\nb string N\n# c\n\nstruct d").is_ok_and(|types| types.len() == 2));
}
