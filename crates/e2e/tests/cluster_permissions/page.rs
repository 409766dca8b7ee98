//! The committed page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::resources::{RESOURCES, VERBS, Verb};
use super::rules::Role;
use super::{Place, Rights};

const FILE: &str = "../../docs/reference/cluster-permissions.md";
/// The line of [`FILE`] after which this test writes everything.
const HEAD: &str = "<!-- From here on written by the test: see above. -->\n";
/// Variable that makes the test write the page again.
const WRITE_ENV: &str = "DROVER_WRITE_PERMISSIONS";

fn letters(verbs: &[Verb]) -> String {
    if verbs == VERBS {
        return "all".to_owned();
    }
    let letter = |verb: &Verb| match verb {
        Verb::Get => 'g',
        Verb::List => 'l',
        Verb::Watch => 'w',
        Verb::Create => 'c',
        Verb::Update => 'u',
        Verb::Patch => 'p',
        Verb::Delete => 'd',
        Verb::DeleteCollection => 'D',
    };
    VERBS.iter().filter(|verb| verbs.contains(verb)).map(letter).collect()
}

fn title(place: Place) -> &'static str {
    match place {
        Place::Cluster => "cluster",
        Place::Project => "namespaces of the project",
        Place::OtherProject => "other namespaces",
        Place::OtherCluster => "other clusters",
    }
}

/// Resources with the same rights in one entry: `**gl** pods, services`.
fn cell(place: Place, rights: &Rights) -> Option<String> {
    let mut by_letters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut possible = 0;
    let mut full = 0;
    for (number, resource) in RESOURCES.iter().enumerate() {
        let all = resource.verbs(place);
        if all.is_empty() {
            continue;
        }
        possible += 1;
        let Some(verbs) = rights.get(&(place, number)) else { continue };
        full += usize::from(*verbs == all);
        by_letters.entry(letters(verbs)).or_default().push(resource.name());
    }
    if by_letters.is_empty() {
        return None;
    }
    if full == possible {
        return Some("everything".to_owned());
    }
    let parts = by_letters.iter().map(|(verbs, names)| format!("**{verbs}** {}", names.join(", ")));
    Some(parts.collect::<Vec<_>>().join("; "))
}

/// A line for each role and place where it gives something.
pub fn table<'a>(roles: &[Role], rows: impl Iterator<Item = (&'a str, &'a Rights)>) -> String {
    let mut text = "\n| Role | In | May |\n|---|---|---|\n".to_owned();
    for (name, rights) in rows {
        let is_of_projects = roles.iter().any(|role| role.name == name && role.is_of_projects());
        let places: &[Place] = if is_of_projects {
            &[Place::Cluster, Place::Project, Place::OtherProject, Place::OtherCluster]
        } else {
            // A role in a cluster holds in all of its namespaces alike.
            let own = (Place::Project, Place::OtherProject);
            let of = |place| cell(place, rights);
            assert_eq!(of(own.0), of(own.1), "{name}");
            &[Place::Cluster, Place::Project, Place::OtherCluster]
        };
        let mut lines = 0;
        for place in places {
            let Some(may) = cell(*place, rights) else { continue };
            let place = match place {
                Place::Project if !is_of_projects => "all namespaces",
                place => title(*place),
            };
            writeln!(text, "| {name} | {place} | {may} |").unwrap();
            lines += 1;
        }
        if lines == 0 {
            writeln!(text, "| {name} | - | nothing |").unwrap();
        }
    }
    text
}

/// Compares with the page, or writes it.
pub fn compare(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, committed) = page.split_once(HEAD).unwrap();
    if std::env::var_os(WRITE_ENV).is_some() {
        std::fs::write(&path, format!("{head}{HEAD}{table}")).unwrap();
        return;
    }
    assert_eq!(committed, table, "see {FILE} for how to write it again");
}
