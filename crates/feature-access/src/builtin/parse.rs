//! The format of the files of built-in roles, which each explain it at their top. Pure.

use std::collections::HashMap;

use api_management::PolicyRule;
use feature_kit::roles::READ;

/// A role as its file has it.
#[derive(Debug, PartialEq)]
pub(super) struct RoleEntry {
    pub name: String,
    pub display_name: String,
    /// The words behind the display name.
    pub marks: Vec<String>,
    pub rules: Vec<PolicyRule>,
}

impl RoleEntry {
    /// Whether the role has the mark.
    pub fn has(&self, mark: &str) -> bool {
        self.marks.iter().any(|own| own == mark)
    }
}

/// The roles of a file, in its order.
///
/// # Errors
/// A line that is none of the format.
pub(super) fn entries(text: &str) -> Result<Vec<RoleEntry>, String> {
    let mut entries: Vec<RoleEntry> = Vec::new();
    let mut lists: HashMap<String, Vec<String>> = HashMap::new();
    for line in joined(text) {
        if let Some(list) = line.strip_prefix("let ") {
            let mut words = list.split_whitespace().map(str::to_owned);
            let name = words.next().ok_or_else(|| format!("a list without a name: {line:?}"))?;
            lists.insert(name, words.collect());
        } else if let Some(line) = line.strip_prefix(' ') {
            let entry = entries.last_mut().ok_or_else(|| format!("no role has {line:?}"))?;
            entry.rules.push(rule(line, &lists)?);
        } else {
            entries.push(head(&line)?);
        }
    }
    Ok(entries)
}

/// The lines without comments, each with those that continue it: the items of a list, and what is
/// indented more than a rule.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let indent = line.len() - line.trim_start().len();
        match lines.last_mut() {
            Some(last) if indent > 4 || indent > 0 && last.starts_with("let ") => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ if indent > 0 => lines.push(format!(" {}", line.trim())),
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

fn head(line: &str) -> Result<RoleEntry, String> {
    let parts: Vec<&str> = line.split('"').collect();
    let [name, display_name, marks] = parts[..] else {
        return Err(format!("not `id \"name\" marks`: {line:?}"));
    };
    Ok(RoleEntry {
        name: name.trim().to_owned(),
        display_name: display_name.to_owned(),
        marks: marks.split_whitespace().map(str::to_owned).collect(),
        rules: Vec::new(),
    })
}

fn rule(line: &str, lists: &HashMap<String, Vec<String>>) -> Result<PolicyRule, String> {
    let (what, verbs) =
        line.rsplit_once(": ").ok_or_else(|| format!("a rule without verbs: {line:?}"))?;
    let (verbs, names) = verbs.split_once(" named ").unwrap_or((verbs, ""));
    let (group, resources) =
        what.split_once(' ').ok_or_else(|| format!("a rule without resources: {line:?}"))?;
    let mut resolved = Vec::new();
    for word in resources.split_whitespace() {
        match word.strip_prefix('$') {
            Some(list) => {
                let words = lists.get(list).ok_or_else(|| format!("no list {word:?}"))?;
                resolved.extend(words.iter().cloned());
            }
            None => resolved.push(word.to_owned()),
        }
    }
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let rule = PolicyRule {
        verbs: if verbs == "read" { words(&READ.join(" ")) } else { words(verbs) },
        resource_names: words(names),
        ..PolicyRule::default()
    };
    Ok(match group {
        "url" => PolicyRule { non_resource_urls: resolved, ..rule },
        group => {
            let group = if group == "core" { "" } else { group };
            PolicyRule { api_groups: vec![group.to_owned()], resources: resolved, ..rule }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_its_marks_and_rules() {
        let text = "\
# A comment.
let fruits
    apples
    pears

eater \"Who eats\" project hidden inherits=view
    core $fruits
        plums: read
    url /metrics: get
    shop.example baskets: get update named mine
";
        let entries = entries(text).unwrap();
        let [eater] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!((eater.name.as_str(), eater.display_name.as_str()), ("eater", "Who eats"));
        assert!(eater.has("hidden") && eater.has("inherits=view") && !eater.has("external"));
        let [fruits, metrics, basket] = &eater.rules[..] else { panic!("{:?}", eater.rules) };
        assert_eq!(fruits.api_groups, [""]);
        assert_eq!(fruits.resources, ["apples", "pears", "plums"]);
        assert_eq!(fruits.verbs, READ);
        assert_eq!(metrics.non_resource_urls, ["/metrics"]);
        assert_eq!(basket.resource_names, ["mine"]);
        assert_eq!(basket.verbs, ["get", "update"]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, said) in [
            ("    core pods: get\n", "no role has"),
            ("eater Who eats\n", "not `id"),
            ("eater \"E\"\n    core pods\n", "without verbs"),
            ("eater \"E\"\n    core: get\n", "without resources"),
            ("eater \"E\"\n    core $fruits: get\n", "no list"),
        ] {
            let error = entries(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
