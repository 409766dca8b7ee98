//! `Warning` headers of responses, within limits.

use std::collections::BTreeSet;

use http::header::WARNING;
use http::{HeaderMap, HeaderValue};

/// Characters of all warnings together. Above it, each warning is cut.
const TOTAL_LENGTH_MAX: usize = 4 * 1024;
/// Characters of a warning that is cut.
const CUT_LENGTH: usize = 256;
/// Warnings in one response, so that they fit into headers that clients accept.
const COUNT_MAX: usize = 64;

/// Adds one `Warning` header for each distinct text. When all together are too long, each is cut,
/// and those that still do not fit are dropped, like in kube-apiserver.
pub fn add(headers: &mut HeaderMap, texts: &[String]) {
    for text in fit_warnings(texts) {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{}\"", quote(&text))) {
            headers.append(WARNING, value);
        }
    }
}

fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for character in text.chars().filter(|character| !character.is_control()) {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted
}

fn fit_warnings(texts: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let different: Vec<&String> = texts
        .iter()
        .filter(|text| !text.is_empty() && seen.insert(*text))
        .take(COUNT_MAX)
        .collect();
    let total: usize = different.iter().map(|text| text.chars().count()).sum();
    if total <= TOTAL_LENGTH_MAX {
        return different.into_iter().cloned().collect();
    }
    let mut total = 0;
    let mut fitted = Vec::new();
    for text in different {
        if total >= TOTAL_LENGTH_MAX {
            break;
        }
        let cut: String = text.chars().take(CUT_LENGTH).collect();
        total += cut.chars().count();
        fitted.push(cut);
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_whole_until_they_are_too_long_together() {
        let long = "ä".repeat(1000);
        let few = [long.clone(), "short".to_owned(), long.clone()];
        assert_eq!(fit_warnings(&few), [long.clone(), "short".to_owned()]);

        let many: Vec<String> = (0..60).map(|n| format!("{n:03}{long}")).collect();
        let fitted = fit_warnings(&many);
        assert_eq!(fitted.len(), 16);
        assert!(fitted.iter().all(|text| text.chars().count() == 256));
        assert!(fitted[15].starts_with("015"));
    }

    #[test]
    fn headers_quote_and_hold_no_control_characters() {
        let mut headers = HeaderMap::new();
        add(&mut headers, &["say \"a\\b\"\r\n".to_owned()]);
        assert_eq!(headers[WARNING], r#"299 - "say \"a\\b\"""#);
    }
}
