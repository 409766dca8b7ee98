//! Pod Security labels in writes of namespaces through Drover: where a template holds nobody writes
//! others than it gives, and other labels are written by who has the verb `updatepsa` on the
//! project. Whoever may only change a namespace cannot open it.

use api_management::keys;
use feature_kit::access::VERB_UPDATE_POD_SECURITY;
use serde_json::Value;

use super::policies::{Labels, LevelDecision};

/// What a write needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    Nothing,
    /// The verb on the project.
    Right,
    /// It cannot be.
    Refused(String),
}

/// The Pod Security labels of an object.
pub fn labels_of(object: &Value) -> Labels {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let labels = labels.filter(|(key, _)| key.starts_with(keys::POD_SECURITY_PREFIX));
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// What it needs to make the labels `after` of `before` in a namespace where `decision` holds.
pub fn need(before: &Labels, after: &Labels, decision: &LevelDecision) -> Need {
    let keys = before.keys().chain(after.keys());
    let mut need = Need::Nothing;
    for key in keys.filter(|key| before.get(*key) != after.get(*key)) {
        let given = match decision {
            LevelDecision::Governed(governed) => governed.labels.get(key).map(|it| (governed, it)),
            LevelDecision::Free | LevelDecision::Missing(_) => None,
        };
        match given {
            Some((_, given)) if after.get(key) == Some(given) => {}
            Some((governed, given)) => {
                return Need::Refused(format!(
                    "its label \"{key}\" is \"{given}\" by {}: leave the label out; to have another level, \
                     change the template, name another one, or exempt the namespace there",
                    governed.source
                ));
            }
            None => need = Need::Right,
        }
    }
    need
}

/// Why somebody without the verb may not.
pub fn refusal() -> String {
    format!(
        "you may not change its labels \"{}*\": that needs the verb \"{VERB_UPDATE_POD_SECURITY}\" on its project, \
         which the owners of the project and of the cluster have",
        keys::POD_SECURITY_PREFIX
    )
}

#[cfg(test)]
mod tests {
    use super::super::policies::Governed;
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let key = |mode: &str| format!("{}{mode}", keys::POD_SECURITY_PREFIX);
        pairs.iter().map(|(mode, level)| (key(mode), (*level).to_owned())).collect()
    }

    #[test]
    fn labels_of_a_template_are_nobodys_and_all_others_need_the_verb() {
        let governed = LevelDecision::Governed(Governed {
            source: "template \"x\"".to_owned(),
            labels: labels(&[("enforce", "baseline")]),
        });
        let (none, baseline) = (labels(&[]), labels(&[("enforce", "baseline")]));
        let open = labels(&[("enforce", "privileged")]);
        for (before, after, decision, expected) in [
            (&none, &none, &governed, Some(Need::Nothing)),
            (&none, &baseline, &governed, Some(Need::Nothing)),
            (&open, &open, &governed, Some(Need::Nothing)),
            (&baseline, &open, &governed, None),
            (&baseline, &none, &governed, None),
            (&none, &open, &governed, None),
            (&none, &open, &LevelDecision::Free, Some(Need::Right)),
            (&open, &none, &LevelDecision::Free, Some(Need::Right)),
            (&none, &labels(&[("warn", "baseline")]), &governed, Some(Need::Right)),
        ] {
            let need = need(before, after, decision);
            match expected {
                Some(expected) => assert_eq!(need, expected, "{before:?} {after:?}"),
                None => assert!(matches!(need, Need::Refused(_)), "{before:?} {after:?}"),
            }
        }
    }
}
