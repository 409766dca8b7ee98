//! Rooms of a large crate, which are the modules at its top, have an order: none uses, by whatever
//! way, a room that uses it. What no crate boundary checks is checked here.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

use super::{Complaint, Source, Tree};

/// Crates whose rooms have an order.
const ORDERED: [&str; 3] = ["apiserver", "kubernetes-api", "rest-view"];

/// A use of one room by another: where.
type Uses<'a> = BTreeMap<(String, String), (&'a Source, usize)>;

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    for name in ORDERED {
        let mut uses = Uses::new();
        let mut rooms = BTreeSet::new();
        let folder = format!("crates/{name}/src");
        for source in tree.rust().filter(|one| one.path.starts_with(&folder) && !one.is_test()) {
            let Some(room) = room_of(source, &folder) else { continue };
            let depth = source.path.components().count() - folder.split('/').count();
            let tokens = source.tokens()?;
            for used in used_rooms(tokens, depth) {
                let line = used.span().start().line;
                let edge = (room.clone(), used.to_string());
                uses.entry(edge).or_insert((source, line));
            }
            rooms.insert(room);
        }
        uses.retain(|(from, to), _| from != to && rooms.contains(to));
        complaints.extend(cycles(&uses, &rooms));
    }
    Ok(complaints)
}

/// The first folder or file below the crate's sources; none for the crate's own file.
fn room_of(source: &Source, folder: &str) -> Option<String> {
    let below = source.path.strip_prefix(folder).ok()?;
    let first = below.components().next()?.as_os_str().to_str()?;
    let room = first.strip_suffix(".rs").unwrap_or(first);
    (room != "lib" && room != "main").then(|| room.to_owned())
}

/// Names after `crate::`, and after as many `super::` as lead to the top from a file so deep.
/// Modules of tests are left out.
fn used_rooms(tokens: TokenStream, depth: usize) -> Vec<Ident> {
    let mut found = Vec::new();
    let tokens: Vec<TokenTree> = without_tests(tokens);
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => found.extend(used_rooms(group.stream(), depth)),
            TokenTree::Ident(name) if name == "crate" => {
                found.extend(names_after(&tokens[index + 1..]));
            }
            TokenTree::Ident(name) if name == "super" && !is_path_before(&tokens[..index]) => {
                let mut rest = &tokens[index + 1..];
                let mut ups = 1;
                while let [TokenTree::Punct(_), TokenTree::Punct(_), TokenTree::Ident(next), ..] =
                    rest
                    && next == "super"
                {
                    ups += 1;
                    rest = &rest[3..];
                }
                if ups == depth {
                    found.extend(names_after(rest));
                }
            }
            _ => {}
        }
    }
    found
}

fn is_path_before(tokens: &[TokenTree]) -> bool {
    matches!(tokens.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':')
}

/// `::name…` or `::{name…, name…}`.
fn names_after(tokens: &[TokenTree]) -> Vec<Ident> {
    let [TokenTree::Punct(one), TokenTree::Punct(two), next, ..] = tokens else {
        return Vec::new();
    };
    if (one.as_char(), two.as_char()) != (':', ':') {
        return Vec::new();
    }
    match next {
        TokenTree::Ident(name) => vec![name.clone()],
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let mut names = Vec::new();
            let mut is_first = true;
            for token in group.stream() {
                match token {
                    TokenTree::Ident(name) if is_first => {
                        names.push(name);
                        is_first = false;
                    }
                    TokenTree::Punct(punct) if punct.as_char() == ',' => is_first = true,
                    _ => {}
                }
            }
            names
        }
        _ => Vec::new(),
    }
}

/// The tokens without `#[cfg(test)] mod … { … }`.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut is_test = false;
    for token in tokens {
        if let TokenTree::Group(group) = &token {
            match group.delimiter() {
                Delimiter::Bracket => {
                    is_test |= group.stream().to_string().replace(' ', "") == "cfg(test)";
                }
                Delimiter::Brace if is_test => {
                    is_test = false;
                    continue;
                }
                _ => {}
            }
        }
        if matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ';') {
            is_test = false;
        }
        kept.push(token);
    }
    kept
}

/// One complaint for each use that is part of a cycle.
fn cycles(uses: &Uses<'_>, rooms: &BTreeSet<String>) -> Vec<Complaint> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        rooms.iter().map(|room| (room, reachable(uses, room))).collect();
    let is_cyclic =
        |from: &String, to: &String| reached.get(to).is_some_and(|rooms| rooms.contains(from));
    let cyclic = uses.iter().filter(|((from, to), _)| is_cyclic(from, to));
    cyclic
        .map(|((from, to), (source, line))| {
            let text = format!("room '{from}' uses '{to}', which uses '{from}' in turn");
            source.complain(*line, text)
        })
        .collect()
}

/// The rooms that `from` uses, by whatever way.
fn reachable<'a>(uses: &'a Uses<'_>, from: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(room) = open.pop() {
        for ((_, to), _) in uses.iter().filter(|((user, _), _)| user == room) {
            if found.insert(to) {
                open.push(to);
            }
        }
    }
    found
}
