//! Names in the field's words: STYLE.md has the glossary, and these are its words that no
//! identifier may contain. Also: a type's name that says of what it is.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use proc_macro2::{Ident, TokenStream, TokenTree};

use super::{Complaint, Source, Tree};

/// Refused as segments of identifiers: `told_now` and `Told`, not `task` or `outstanding`.
const REFUSED: [(&str, &str); 11] = [
    ("ask", "request, query"),
    ("asked", "requested, queried"),
    ("judge", "validate, evaluate"),
    ("news", "event, pending change"),
    ("standing", "revocation, status, probe result"),
    ("tell", "report, notify, return"),
    ("told", "reported, returned"),
    ("verdict", "decision, result"),
    ("wanted", "desired, requested"),
    ("wish", "desired state, apply configuration"),
    ("wishes", "desired state, apply configuration"),
];
/// How many types outside tests may have one name.
const NAMESAKES_MAX: usize = 3;
/// Names that mean the same in every module that has them.
const SHARED_NAMES: [&str; 2] = ["Arguments", "Error"];
/// Crates that only tests use.
const TEST_CRATES: [&str; 5] = ["e2e", "fuzz", "history", "test-kit", "testbed"];

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    let mut types: BTreeMap<String, Vec<(&Source, usize)>> = BTreeMap::new();
    for source in tree.rust() {
        let tokens = flat(source.tokens()?);
        for (index, token) in tokens.iter().enumerate() {
            let Token::Name(name) = token else { continue };
            identifier(source, name, &mut complaints);
            if name == "keep" && is_keyword(&tokens, index, &["fn"]) {
                let text = "'keep' is no name of a function: reconcile, store, retain";
                complaints.push(source.complain(line(name), text));
            }
        }
        if !source.is_test() && !is_in_test_crate(source) {
            let file = syn::parse_file(&source.text)
                .with_context(|| format!("cannot read '{}'", source.path.display()))?;
            for (name, line) in named_types(&file.items) {
                types.entry(name).or_default().push((source, line));
            }
        }
    }
    for (name, places) in types {
        if places.len() > NAMESAKES_MAX && !SHARED_NAMES.contains(&name.as_str()) {
            let text = format!(
                "{} types are called '{name}'; a name that so many have says of what it is, such as \
                 TokenPath",
                places.len()
            );
            complaints.extend(places.iter().map(|(source, line)| source.complain(*line, &text)));
        }
    }
    Ok(complaints)
}

fn is_in_test_crate(source: &Source) -> bool {
    let mut parts = source.path.components().map(|part| part.as_os_str());
    parts.next().is_some_and(|part| part == "crates")
        && parts.next().is_some_and(|part| TEST_CRATES.iter().any(|name| part == *name))
}

/// What the checks look at of a token.
enum Token {
    Name(Ident),
    Other,
}

fn flat(tokens: TokenStream) -> Vec<Token> {
    let each = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) => {
            let mut inside = flat(group.stream());
            inside.insert(0, Token::Other);
            inside.push(Token::Other);
            inside
        }
        TokenTree::Ident(name) => vec![Token::Name(name)],
        TokenTree::Punct(_) | TokenTree::Literal(_) => vec![Token::Other],
    });
    each.collect()
}

fn line(name: &Ident) -> usize {
    name.span().start().line
}

fn is_keyword(tokens: &[Token], index: usize, keywords: &[&str]) -> bool {
    let before = index.checked_sub(1).and_then(|before| tokens.get(before));
    matches!(before, Some(Token::Name(name)) if keywords.iter().any(|keyword| name == keyword))
}

fn identifier(source: &Source, name: &Ident, complaints: &mut Vec<Complaint>) {
    let text = name.to_string();
    for segment in segments(&text) {
        if let Some((refused, instead)) = REFUSED.iter().find(|(word, _)| segment == *word) {
            let text = format!("'{text}': the field does not say '{refused}', but {instead}");
            complaints.push(source.complain(line(name), text));
        }
    }
}

/// The words of a name in snake or camel case, in lower case.
fn segments(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split('_') {
        let mut word = String::new();
        let letters: Vec<char> = part.chars().collect();
        for (index, letter) in letters.iter().enumerate() {
            let begins = letter.is_uppercase()
                && index > 0
                && (letters[index - 1].is_lowercase()
                    || letters.get(index + 1).is_some_and(|next| next.is_lowercase()));
            if begins && !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            word.extend(letter.to_lowercase());
        }
        words.push(word);
    }
    words
}

/// Types that items define, modules inside included; those of tests are left out.
fn named_types(items: &[syn::Item]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for item in items {
        let ident = match item {
            syn::Item::Struct(item) => &item.ident,
            syn::Item::Enum(item) => &item.ident,
            syn::Item::Trait(item) => &item.ident,
            syn::Item::Type(item) => &item.ident,
            syn::Item::Union(item) => &item.ident,
            syn::Item::Mod(module) if !super::contracts::is_for_tests(&module.attrs) => {
                let inside = module.content.iter().flat_map(|(_, items)| named_types(items));
                found.extend(inside);
                continue;
            }
            _ => continue,
        };
        found.push((ident.to_string(), line(ident)));
    }
    found
}
