//! Parses changes of labels, annotations and taints, with the syntax of kubectl. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::error::{CliError, Failure};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// New values by key; none removes the key.
#[derive(Debug, PartialEq)]
pub struct Map(pub BTreeMap<String, Option<String>>);

impl Map {
    /// Reads `KEY=VALUE` and `KEY-`.
    ///
    /// # Errors
    /// A usage error for anything else, and for a key that is given twice.
    pub fn parse(changes: &[String]) -> Result<Self, CliError> {
        let mut map = BTreeMap::new();
        for change in changes {
            let (key, value) = match (change.split_once('='), change.strip_suffix('-')) {
                (Some((key, value)), _) => (key, Some(value.to_owned())),
                (None, Some(key)) => (key, None),
                (None, None) => ("", None),
            };
            if key.is_empty() {
                let text = format!("\"{change}\" is not a change");
                return Err(CliError::usage(text).hint("use KEY=VALUE to set, KEY- to remove"));
            }
            if map.insert(key.to_owned(), value).is_some() {
                let text = format!("\"{key}\" is given twice");
                return Err(CliError::usage(text).hint("give each key once"));
            }
        }
        Ok(Self(map))
    }

    /// Refuses to replace existing values. `field`: `labels` or `annotations`, for the message.
    pub fn check(&self, stored: &Value, field: &str) -> Result<(), CliError> {
        for (key, value) in &self.0 {
            let old = stored[key].as_str();
            if let (Some(new), Some(old)) = (value, old)
                && new != old
            {
                let text = format!("\"{key}\" of the {field} is \"{old}\" already");
                return Err(overwrite_error(text));
            }
        }
        Ok(())
    }
}

/// Changes of taints. Taints are identified by key and effect.
#[derive(Debug, PartialEq)]
pub struct Taints(Vec<Taint>);

#[derive(Debug, PartialEq)]
struct Taint {
    key: String,
    value: String,
    /// `None`: any effect; only for removals.
    effect: Option<String>,
    removes: bool,
}

impl Taint {
    fn parse(change: &str) -> Result<Self, CliError> {
        let wrong = |why: &str| {
            let text = format!("\"{change}\" is not a taint: {why}");
            CliError::usage(text).hint("use KEY=VALUE:EFFECT, KEY:EFFECT, KEY:EFFECT- or KEY-")
        };
        let (text, removes) = match change.strip_suffix('-') {
            Some(text) => (text, true),
            None => (change, false),
        };
        let (named, effect) = match text.rsplit_once(':') {
            Some((named, effect)) => (named, Some(effect.to_owned())),
            None => (text, None),
        };
        let (key, value) = named.split_once('=').unwrap_or((named, ""));
        match &effect {
            Some(effect) if !EFFECTS.contains(&effect.as_str()) => {
                return Err(wrong(&format!("the effect must be one of {}", EFFECTS.join(", "))));
            }
            None if !removes => return Err(wrong("it has no effect")),
            _ if key.is_empty() => return Err(wrong("it has no key")),
            _ => {}
        }
        Ok(Self { key: key.to_owned(), value: value.to_owned(), effect, removes })
    }

    fn is(&self, stored: &Value) -> bool {
        let same_effect = self.effect.as_ref().is_none_or(|effect| stored["effect"] == **effect);
        stored["key"] == *self.key && same_effect
    }
}

impl Taints {
    /// Reads `KEY=VALUE:EFFECT`, `KEY:EFFECT`, `KEY:EFFECT-` and `KEY-`.
    ///
    /// # Errors
    /// A usage error for anything else.
    pub fn parse(changes: &[String]) -> Result<Self, CliError> {
        changes.iter().map(|change| Taint::parse(change)).collect::<Result<_, _>>().map(Self)
    }

    /// The list after the changes. Other taints stay unchanged.
    pub fn apply_to(&self, stored: &Value, overwrite: bool) -> Result<Vec<Value>, CliError> {
        let mut list: Vec<Value> = stored.as_array().cloned().unwrap_or_default();
        for taint in &self.0 {
            let Taint { key, value, effect, removes } = taint;
            let name = effect.as_ref().map_or(key.clone(), |effect| format!("{key}:{effect}"));
            let there = list.iter().find(|stored| taint.is(stored));
            match there {
                None if *removes => {
                    let text = format!("the node has no taint \"{name}\"");
                    let hint = "\"drover kubectl describe node\" shows its taints";
                    return Err(CliError::new(Failure::NotFound, text).hint(hint));
                }
                Some(there) if !removes && !overwrite => {
                    if there["value"].as_str().unwrap_or_default() == value {
                        continue;
                    }
                    return Err(overwrite_error(format!(
                        "the node has a taint \"{name}\" already"
                    )));
                }
                _ => {}
            }
            list.retain(|stored| !taint.is(stored));
            if !removes {
                let mut new = json!({"key": key, "effect": effect});
                if !value.is_empty() {
                    new["value"] = value.as_str().into();
                }
                list.push(new);
            }
        }
        Ok(list)
    }
}

fn overwrite_error(text: String) -> CliError {
    CliError::new(Failure::Conflict, text).hint("replace it with --overwrite")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn labels_are_replaced_only_with_overwrite() {
        let map = Map::parse(&words("tier=b example.com/x= old-")).unwrap();
        let expected = json!({"tier": "b", "example.com/x": "", "old": null});
        assert_eq!(json!(map.0), expected);
        assert!(map.check(&json!({"tier": "b", "old": "1"}), "labels").is_ok());
        assert_eq!(
            map.check(&json!({"tier": "a"}), "labels").unwrap_err().failure,
            Failure::Conflict
        );
        for wrong in ["tier", "=x", "-", "a=1 a-"] {
            assert!(Map::parse(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn taints_are_identified_by_key_and_effect() {
        let stored = json!([
            {"key": "a", "value": "1", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"},
            {"key": "b", "effect": "NoSchedule"},
        ]);
        let apply_to = |text: &str, overwrite| {
            let taints = Taints::parse(&words(text)).unwrap();
            taints.apply_to(&stored, overwrite).map(|list| json!(list))
        };
        let b = json!({"key": "b", "effect": "NoSchedule"});
        assert_eq!(apply_to("a-", false).unwrap(), json!([b]));
        let first = json!({"key": "a", "value": "1", "effect": "NoSchedule"});
        let new = json!({"key": "c", "value": "2", "effect": "NoExecute"});
        assert_eq!(apply_to("a:NoExecute- c=2:NoExecute", false).unwrap(), json!([first, b, new]));
        assert_eq!(apply_to("a=1:NoSchedule", false).unwrap(), stored);
        assert_eq!(apply_to("a=2:NoSchedule", false).unwrap_err().failure, Failure::Conflict);
        assert_eq!(apply_to("a=2:NoSchedule", true).unwrap()[2]["value"], "2");
        assert_eq!(apply_to("z-", false).unwrap_err().failure, Failure::NotFound);
        for wrong in ["a", "a=1", "a:Never", ":NoSchedule", "-"] {
            assert!(Taints::parse(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
