//! How far a drain is. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::{PodName, named};

/// What a pod that is still there waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Its eviction was accepted; it has its grace period to end.
    Ending,
    /// A disruption budget allows no eviction now, in its own words.
    Budget(String),
    /// The cluster's answer, which may be another one the next time.
    Error(String),
}

/// Pods by what has become of them.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Uids of all pods that were to be evicted.
    seen: BTreeSet<String>,
    left: BTreeMap<PodName, Waiting>,
    /// Why the cluster could not be read, if so.
    silence: Option<String>,
}

impl Progress {
    /// After a round in which the cluster answered: uids of the pods that were still to go, and
    /// what those that are left wait for.
    pub fn round(&mut self, uids: impl Iterator<Item = String>, left: BTreeMap<PodName, Waiting>) {
        self.seen.extend(uids);
        self.left = left;
        self.silence = None;
    }
    /// After a round in which the cluster did not answer.
    pub fn silent(&mut self, why: String) {
        self.silence = Some(why);
    }
    /// Pods that have ended.
    pub fn ended(&self) -> usize {
        self.seen.len().saturating_sub(self.left.len())
    }
    /// In one line, without a period.
    pub fn text(&self) -> String {
        if let Some(why) = &self.silence {
            return format!("the cluster does not answer: {why}");
        }
        if self.seen.is_empty() {
            return "looking for pods".to_owned();
        }
        let waiting = |(pod, waiting): (&PodName, &Waiting)| match waiting {
            Waiting::Ending => format!("{pod} (ending)"),
            Waiting::Budget(text) | Waiting::Error(text) => {
                format!("{pod} ({})", text.trim_end_matches('.'))
            }
        };
        // What needs a look comes first.
        let (ending, stuck): (Vec<_>, Vec<_>) =
            self.left.iter().partition(|(_, waiting)| **waiting == Waiting::Ending);
        let left = named(stuck.into_iter().chain(ending).map(waiting));
        let (ended, all) = (self.ended(), self.seen.len());
        match left.is_empty() {
            true => format!("{ended} of {all} pods have ended"),
            false => format!("{ended} of {all} pods have ended; left: {left}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_counts_and_names_what_is_stuck_first() {
        let mut progress = Progress::default();
        assert_eq!(progress.text(), "looking for pods");
        let pod = |name: &str| PodName { namespace: "web".to_owned(), name: name.to_owned() };
        let left = BTreeMap::from([
            (pod("a"), Waiting::Ending),
            (pod("b"), Waiting::Budget("needs 2, has 2.".to_owned())),
        ]);
        progress.round(["1", "2", "3"].map(str::to_owned).into_iter(), left);
        let text = "1 of 3 pods have ended; left: web/b (needs 2, has 2), web/a (ending)";
        assert_eq!(progress.text(), text);
        progress.silent("no agent".to_owned());
        assert_eq!(progress.text(), "the cluster does not answer: no agent");
        progress.round(std::iter::empty(), BTreeMap::new());
        assert_eq!((progress.text().as_str(), progress.ended()), ("3 of 3 pods have ended", 3));
    }
}
