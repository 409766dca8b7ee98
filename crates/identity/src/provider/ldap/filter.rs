//! Search filters. Everything that a user typed goes through [`equals`] or [`begins`], which escape
//! it; what an administrator configured is checked when it is read.

use ldap3::ldap_escape;

/// Longest filter that is parsed, in bytes.
const FILTER_BYTES_MAX: usize = 4096;
/// Deepest nesting of a configured filter, since parsing it takes that much stack.
const DEPTH_MAX: usize = 16;

/// `(attribute=value)`.
pub fn equals(attribute: &str, value: &str) -> String {
    format!("({attribute}={})", ldap_escape(value))
}

/// `(attribute=start*)`.
pub fn begins(attribute: &str, start: &str) -> String {
    format!("({attribute}={}*)", ldap_escape(start))
}

/// All of them hold; empty ones are left out.
pub fn all<'a>(filters: impl IntoIterator<Item = &'a str>) -> String {
    join('&', filters)
}

/// Any of them holds.
pub fn any<'a>(filters: impl IntoIterator<Item = &'a str>) -> String {
    join('|', filters)
}

fn join<'a>(operator: char, filters: impl IntoIterator<Item = &'a str>) -> String {
    let filters: String = filters.into_iter().collect();
    format!("({operator}{filters})")
}

/// The filter as configured, in parentheses.
pub fn configured(filter: &str) -> String {
    let filter = filter.trim();
    if filter.is_empty() || filter.starts_with('(') {
        filter.to_owned()
    } else {
        format!("({filter})")
    }
}

/// Whether it is the name of an attribute, by text or as an object identifier.
pub fn is_attribute(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ';' | '.');
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(fits)
}

/// Whether a configured filter is one, complete in itself.
pub fn is_filter(filter: &str) -> bool {
    let filter = configured(filter);
    filter.len() <= FILTER_BYTES_MAX
        && filter.matches('(').count() <= DEPTH_MAX
        && ldap3::parse_filter(&filter).is_ok()
}
