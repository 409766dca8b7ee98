//! Selectors in query parameters.

use std::collections::BTreeMap;

use api_meta::fields::FieldSelector;
use api_meta::labels::LabelSelector;

use super::parts;

/// A selector on the first line, `key=value` on the others. The printed selector is equivalent to
/// the parsed one.
pub fn label_selector(input: &[u8]) {
    let Some([selector, labels]) = parts::<2>(input) else { return };
    let Ok(selector) = std::str::from_utf8(selector) else { return };
    let Ok(selector) = LabelSelector::parse(selector) else { return };
    let printed = selector.to_string();
    let again = LabelSelector::parse(&printed);
    let again = again.unwrap_or_else(|error| panic!("'{printed}': {error}"));
    assert_eq!(again, selector, "'{printed}'");
    let labels = String::from_utf8_lossy(labels);
    let labels: BTreeMap<&str, &str> =
        labels.lines().filter_map(|line| line.split_once('=')).collect();
    let all = selector.requirements().iter();
    let mut each = all.map(|one| LabelSelector::new(vec![one.clone()]).matches_labels(&labels));
    assert_eq!(selector.matches_labels(&labels), each.all(|one| one));
}

/// The same for field selectors, on all lines.
pub fn field_selector(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(selector) = FieldSelector::parse(text) else { return };
    let printed = selector.to_string();
    let again = FieldSelector::parse(&printed);
    let again = again.unwrap_or_else(|error| panic!("'{printed}': {error}"));
    assert_eq!(again, selector, "'{printed}'");
    // An object with every requested value matches, unless two values of one field are requested.
    let required: BTreeMap<&str, &str> = selector
        .terms()
        .iter()
        .filter(|term| term.equal)
        .map(|term| (&*term.field, &*term.value))
        .collect();
    let lookup = |field: &str| required.get(field).copied().unwrap_or_default();
    let holds =
        selector.terms().iter().all(|term| (lookup(&term.field) == term.value) == term.equal);
    assert_eq!(selector.matches(lookup), holds);
}
