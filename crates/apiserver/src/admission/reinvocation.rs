//! Which webhooks and policies are called a second time, when the object changed after their call.
//!
//! Admission changes an object in one round or in two. When anything changed it in the first round,
//! those with `reinvocationPolicy: IfNeeded` are called again with the changed object. Policies and
//! webhooks are tracked separately.

use std::collections::BTreeSet;

use serde_json::Value;

/// Tracks the calls of one write. `K` identifies the callee.
pub struct Reinvocation<K> {
    /// The reinvocable callees that were called since the last change.
    called: BTreeSet<K>,
    /// The callees that are due for a second call.
    due: BTreeSet<K>,
    is_second: bool,
    /// The object as the first round left it.
    last_object: Option<Value>,
}

impl<K> Default for Reinvocation<K> {
    fn default() -> Self {
        Self { called: BTreeSet::new(), due: BTreeSet::new(), is_second: false, last_object: None }
    }
}

impl<K: Ord> Reinvocation<K> {
    /// Begins the second round with the current object. If others changed it since the first round,
    /// all reinvocable callees are due.
    pub fn begin_second(&mut self, object: Option<&Value>) {
        self.is_second = true;
        if self.last_object.as_ref() != object {
            self.mark_changed();
        }
    }

    /// Ends a round. The first one remembers the object.
    pub fn end(&mut self, object: Option<&Value>) {
        if !self.is_second && !self.called.is_empty() {
            self.last_object = object.cloned();
        }
    }

    /// Whether to call `callee` in this round.
    pub fn should_invoke(&self, callee: &K) -> bool {
        !self.is_second || self.due.contains(callee)
    }

    /// Records that the object changed: the callees that were called before are due again.
    pub fn mark_changed(&mut self) {
        self.due.append(&mut self.called);
    }

    /// Records the call of a reinvocable callee.
    pub fn record(&mut self, callee: K) {
        self.called.insert(callee);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn callees_that_saw_an_older_object_are_called_again() {
        let (first, last) = (json!({"round": 1}), json!({"round": 2}));
        for (object, expected) in [(&first, [true, false, false]), (&last, [true, true, false])] {
            let mut rounds = Reinvocation::default();
            assert!(["before", "after", "never"].iter().all(|callee| rounds.should_invoke(callee)));
            rounds.record("before");
            rounds.mark_changed();
            rounds.record("after");
            rounds.end(Some(&first));
            rounds.begin_second(Some(object));
            assert_eq!(
                ["before", "after", "never"].map(|callee| rounds.should_invoke(&callee)),
                expected
            );
        }
    }
}
