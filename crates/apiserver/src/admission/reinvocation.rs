//! Who is asked a second time, when an object changed after they had seen it.
//!
//! Admission changes an object in one round, or in two: when anything changed it in the first, those
//! who want that are asked again, and what came of the object since is shown to them. Policies and
//! webhooks each keep their own account of it.

use std::collections::BTreeSet;

use serde_json::Value;

/// The account of one write. `K` names who is asked.
pub struct Reinvocation<K> {
    /// Those who want to be asked again and have been asked, since the last change.
    asked: BTreeSet<K>,
    /// Those who have reason to.
    again: BTreeSet<K>,
    is_second: bool,
    /// The object as the first round left it.
    left: Option<Value>,
}

impl<K> Default for Reinvocation<K> {
    fn default() -> Self {
        Self { asked: BTreeSet::new(), again: BTreeSet::new(), is_second: false, left: None }
    }
}

impl<K: Ord> Reinvocation<K> {
    /// Begins the second round, with the object as others left it.
    pub fn begin_second(&mut self, object: Option<&Value>) {
        self.is_second = true;
        if self.left.as_ref() != object {
            self.changed();
        }
    }

    /// Ends a round.
    pub fn end(&mut self, object: Option<&Value>) {
        if !self.is_second && !self.asked.is_empty() {
            self.left = object.cloned();
        }
    }

    /// Whether to ask at all in this round.
    pub fn wants(&self, who: &K) -> bool {
        !self.is_second || self.again.contains(who)
    }

    /// The object is not any more what those asked so far have seen.
    pub fn changed(&mut self) {
        self.again.append(&mut self.asked);
    }

    /// Somebody was asked who wants to be asked again when the object changes.
    pub fn asked(&mut self, who: K) {
        self.asked.insert(who);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_has_seen_another_object_is_asked_again() {
        let (first, last) = (json!({"round": 1}), json!({"round": 2}));
        for (object, wanted) in [(&first, [true, false, false]), (&last, [true, true, false])] {
            let mut rounds = Reinvocation::default();
            assert!(["before", "after", "never"].iter().all(|who| rounds.wants(who)));
            rounds.asked("before");
            rounds.changed();
            rounds.asked("after");
            rounds.end(Some(&first));
            rounds.begin_second(Some(object));
            assert_eq!(["before", "after", "never"].map(|who| rounds.wants(&who)), wanted);
        }
    }
}
