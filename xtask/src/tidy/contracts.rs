//! What others may call has a contract: a doc comment on each public function, type and trait of a
//! library, and of the modules that its tests share.
//!
//! Programs without a library (`drover`, `xtask`) have no callers: the heads of their modules say
//! what each does.

use anyhow::{Context, Result};
use syn::{Attribute, ImplItem, Item, Meta, TraitItem, Visibility};

use super::{Complaint, Source, Tree};
use crate::workspace;

/// Fewer words than this repeat the name, unless they name code.
const WORDS_MIN: usize = 3;
/// Columns that a comment may have.
const COLUMNS_MAX: usize = 100;

/// Complains about public items without a doc, and about comments that are too wide.
///
/// # Errors
/// `cargo metadata` fails, or a file is no Rust.
pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let metadata = workspace::metadata(&tree.root, &["--no-deps", "--offline"])?;
    let root = tree.root.canonicalize().unwrap_or_else(|_| tree.root.clone());
    let mut complaints = Vec::new();
    for package in &metadata.packages {
        let folder = package.manifest_path.parent().context("a manifest is in a folder")?;
        let sources = folder.strip_prefix(&root).unwrap_or(folder).join("src");
        if !tree.root.join(&sources).join("lib.rs").is_file() {
            continue;
        }
        for source in tree.rust().filter(|one| one.path.starts_with(&sources)) {
            let file = syn::parse_file(&source.text)
                .with_context(|| format!("cannot read '{}'", source.path.display()))?;
            items(source, &file.items, &mut complaints);
        }
    }
    for source in tree.rust() {
        widths(source, &mut complaints);
    }
    Ok(complaints)
}

fn widths(source: &Source, complaints: &mut Vec<Complaint>) {
    for (number, line) in source.lines() {
        let columns = line.chars().count();
        let comment = line.trim_start();
        // Rows of tables cannot be folded.
        let is_row = comment.trim_start_matches(['/', '!']).trim_start().starts_with('|');
        let is_prose = comment.starts_with("//") && !is_row;
        if is_prose && columns > COLUMNS_MAX {
            let text = format!("a comment of {columns} columns; fold it at {COLUMNS_MAX}");
            complaints.push(source.complain(number, text));
        }
    }
}

fn items(source: &Source, items: &[Item], complaints: &mut Vec<Complaint>) {
    for item in items {
        match item {
            Item::Fn(one) => public(source, &one.vis, &one.attrs, &one.sig.ident, complaints),
            Item::Struct(one) => public(source, &one.vis, &one.attrs, &one.ident, complaints),
            Item::Enum(one) => public(source, &one.vis, &one.attrs, &one.ident, complaints),
            Item::Type(one) => public(source, &one.vis, &one.attrs, &one.ident, complaints),
            Item::Trait(one) => {
                public(source, &one.vis, &one.attrs, &one.ident, complaints);
                let is_public = matches!(one.vis, Visibility::Public(_));
                for item in one.items.iter().filter(|_| is_public) {
                    if let TraitItem::Fn(method) = item {
                        documented(source, &method.attrs, &method.sig.ident, complaints);
                    }
                }
            }
            Item::Impl(one) if one.trait_.is_none() && !is_for_tests(&one.attrs) => {
                for item in &one.items {
                    if let ImplItem::Fn(method) = item {
                        public(source, &method.vis, &method.attrs, &method.sig.ident, complaints);
                    }
                }
            }
            Item::Mod(module) if !is_for_tests(&module.attrs) => {
                let inside = module.content.as_ref().map(|(_, items)| items.as_slice());
                self::items(source, inside.unwrap_or_default(), complaints);
            }
            _ => {}
        }
    }
}

fn public(
    source: &Source,
    visibility: &Visibility,
    attributes: &[Attribute],
    name: &syn::Ident,
    complaints: &mut Vec<Complaint>,
) {
    if matches!(visibility, Visibility::Public(_)) && !is_for_tests(attributes) {
        documented(source, attributes, name, complaints);
    }
}

fn documented(
    source: &Source,
    attributes: &[Attribute],
    name: &syn::Ident,
    complaints: &mut Vec<Complaint>,
) {
    let text: Vec<String> = attributes.iter().filter_map(doc).collect();
    let line = name.span().start().line;
    match text.iter().flat_map(|line| line.split_whitespace()).count() {
        0 => {
            let text = format!("'{name}' is public and has no doc: effect, units, errors, source");
            complaints.push(source.complain(line, text));
        }
        words if words < WORDS_MIN && !text.iter().any(|line| line.contains('`')) => {
            let text = format!("the doc of '{name}' says no more than its name");
            complaints.push(source.complain(line, text));
        }
        _ => {}
    }
}

/// The text of a doc comment.
fn doc(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(literal) = &pair.value else { return None };
    match &literal.lit {
        syn::Lit::Str(text) if pair.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}

/// Whether an item is compiled into tests only.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && matches!(&attribute.meta, Meta::List(list) if list.tokens.to_string() == "test")
    })
}
