//! Validation of the status of a Job by any writer, with the messages and order of kube-apiserver
//! 1.36. Most rules check only what the write changes, so that a status that a change of the spec
//! invalidated can still be corrected.

use std::collections::HashSet;

use api_meta::status::Cause;
use api_meta::time;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::indexes;
use crate::kinds::template::not_negative;

/// Conditions that cannot become false again.
const TERMINAL: [&str; 3] = ["Failed", "Complete", "FailureTarget"];
const CONDITIONS: &str = "status.conditions";

/// Returns all causes to refuse the status of `object`. `old` is the object before the write.
pub fn validate(object: &Value, old: &Value) -> Vec<Cause> {
    let change =
        StatusChange { spec: &object["spec"], new: &object["status"], old: &old["status"] };
    let mut causes = Vec::new();
    amounts(change.new, &mut causes);
    uncounted_pods(change.new, &mut causes);
    change.ends_one_way(&mut causes);
    change.times(&mut causes);
    change.ends_as_announced(&mut causes);
    change.validate_finished(&mut causes);
    change.indexes(&mut causes);
    change.pods(&mut causes);
    change.success(&mut causes);
    change.validate_immutable(&mut causes);
    causes
}

struct StatusChange<'a> {
    spec: &'a Value,
    new: &'a Value,
    old: &'a Value,
}

impl StatusChange<'_> {
    fn differs(&self, fields: &[&str]) -> bool {
        fields.iter().any(|field| self.new[field] != self.old[field])
    }

    /// Whether the status of one of these conditions changes to or from true.
    fn changes_any(&self, conditions: &[&str]) -> bool {
        conditions.iter().any(|name| is(self.new, name) != is(self.old, name))
    }

    fn finishes(&self) -> bool {
        is_finished(self.new) != is_finished(self.old)
    }

    fn ends_one_way(&self, causes: &mut Vec<Cause>) {
        for other in ["Failed", "FailureTarget"] {
            if self.changes_any(&["Complete", other])
                && is(self.new, "Complete")
                && is(self.new, other)
            {
                let text = format!("cannot set Complete=True and {other}=true conditions");
                causes.push(of_conditions(&text));
            }
        }
    }

    fn times(&self, causes: &mut Vec<Cause>) {
        let field = "status.completionTime";
        let (started, ended) = (&self.new["startTime"], &self.new["completionTime"]);
        if self.changes_any(&["Complete"]) || self.differs(&["completionTime"]) {
            let is_complete = is(self.new, "Complete");
            if !ended.is_null() && !is_complete {
                let text = "cannot set completionTime when there is no Complete=True condition";
                causes.push(Cause::invalid(field, ended, text));
            }
            if ended.is_null() && is_complete {
                causes.push(Cause::required(field, "completionTime is required for Complete jobs"));
            }
        }
        let seconds = |at: &Value| time::parse_seconds(str_of(at));
        if self.differs(&["startTime", "completionTime"])
            && let (Some(started), Some(end)) = (seconds(started), seconds(ended))
            && end < started
        {
            causes.push(Cause::invalid(field, ended, "must be equal to or after `startTime`"));
        }
    }

    fn ends_as_announced(&self, causes: &mut Vec<Cause>) {
        let fails = self.changes_any(&["Failed"]) || self.differs(&["failedIndexes"]);
        let succeeds = self.changes_any(&["Complete", "SuccessCriteriaMet"]);
        for (asks, end, before) in
            [(fails, "Failed", "FailureTarget"), (succeeds, "Complete", "SuccessCriteriaMet")]
        {
            if asks && is(self.new, end) && !is(self.new, before) {
                let text =
                    format!("cannot set {end}=True condition without the {before}=true condition");
                causes.push(of_conditions(&text));
            }
        }
    }

    fn validate_finished(&self, causes: &mut Vec<Cause>) {
        if !is_finished(self.new) {
            return;
        }
        let (status, finishes) = (self.new, self.finishes());
        if (finishes || self.differs(&["active"])) && count(&status["active"]) > 0 {
            let text = "active>0 is invalid for finished job";
            causes.push(Cause::invalid("status.active", &status["active"], text));
        }
        // A suspended job without completions never started.
        let never_starts = self.spec["suspend"] == true && self.spec["completions"] == 0;
        if (finishes || self.differs(&["startTime"]))
            && !never_starts
            && status["startTime"].is_null()
        {
            let text = "startTime is required for finished job";
            causes.push(Cause::required("status.startTime", text));
        }
        let pods = &status["uncountedTerminatedPods"];
        let are_some = ["failed", "succeeded"].iter().any(|end| !items(&pods[end]).is_empty());
        if (finishes || self.differs(&["uncountedTerminatedPods"])) && are_some {
            // In the notation of upstream's internal type.
            let message = format!(
                r#"Invalid value: {{"Succeeded":{},"Failed":{}}}: must be empty for finished job"#,
                pods["succeeded"], pods["failed"]
            );
            let field = "status.uncountedTerminatedPods";
            causes.push(Cause::new("FieldValueInvalid", field, message));
        }
    }

    fn indexes(&self, causes: &mut Vec<Cause>) {
        let completions = self.spec["completions"].as_i64();
        let limited = !self.spec["backoffLimitPerIndex"].is_null();
        let (completed, failed) = (&self.new["completedIndexes"], &self.new["failedIndexes"]);
        let completes = str_of(&self.old["completedIndexes"]) != str_of(completed);
        let fails = self.differs(&["failedIndexes"]);
        for (asks, name, given) in [
            (completes, "completedIndexes", completed),
            (fails && limited, "failedIndexes", failed),
        ] {
            if asks
                && let Some(end) = completions
                && let Err(problem) = indexes::ascending(str_of(given), end)
            {
                let text = format!("error parsing {name}: {problem}");
                causes.push(Cause::invalid(format!("status.{name}"), given, &text));
            }
        }
        if completes && !str_of(completed).is_empty() && self.spec["completionMode"] != "Indexed" {
            let text = "cannot set non-empty completedIndexes when non-indexed completion mode";
            causes.push(Cause::invalid("status.completedIndexes", completed, text));
        }
        if fails && !limited && !failed.is_null() {
            let text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            causes.push(Cause::invalid("status.failedIndexes", failed, text));
        }
        if (fails || completes)
            && let Some(end) = completions
            && let Some(both) = indexes::first_shared(str_of(completed), str_of(failed), end)
        {
            let text = format!("failedIndexes and completedIndexes overlap at index: {both}");
            causes.push(Cause::invalid("status.failedIndexes", failed, &text));
        }
    }

    fn pods(&self, causes: &mut Vec<Cause>) {
        let (status, ready) = (self.new, &self.new["ready"]);
        if (self.finishes() || self.differs(&["terminating"]))
            && is_finished(status)
            && count(&status["terminating"]) > 0
        {
            let text = "terminating>0 is invalid for finished job";
            causes.push(Cause::invalid("status.terminating", &status["terminating"], text));
        }
        if self.differs(&["ready", "active"])
            && !ready.is_null()
            && count(ready) > count(&status["active"])
        {
            let text = "cannot set more ready pods than active";
            causes.push(Cause::invalid("status.ready", ready, text));
        }
    }

    fn success(&self, causes: &mut Vec<Cause>) {
        let is_met = is(self.new, "SuccessCriteriaMet");
        for other in ["Failed", "FailureTarget"] {
            if is_met && is(self.new, other) {
                let text =
                    format!("cannot set SuccessCriteriaMet=True and {other}=true conditions");
                causes.push(of_conditions(&text));
            }
        }
        if !self.spec["successPolicy"].is_null() && !is_met && is(self.new, "Complete") {
            causes.push(of_conditions(
                "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
            ));
        }
    }

    /// Fields that must not be reverted.
    fn validate_immutable(&self, causes: &mut Vec<Cause>) {
        let (new, old) = (self.new, self.old);
        for name in TERMINAL {
            if is(old, name) && !is(new, name) {
                let text = format!("cannot disable the terminal {name}=True condition");
                causes.push(of_conditions(&text));
            }
        }
        // A job that scales with its completions starts counting again.
        let shrinks = self.spec["completionMode"] == "Indexed"
            && self.spec["completions"] == self.spec["parallelism"];
        for (name, holds) in [("failed", true), ("succeeded", !shrinks)] {
            if holds && count(&new[name]) < count(&old[name]) {
                let text = format!("cannot decrease the {name} counter");
                causes.push(Cause::invalid(
                    format!("status.{name}"),
                    &count(&new[name]).into(),
                    &text,
                ));
            }
        }
        self.times_stay(causes);
        let (was_met, is_met) = (is(old, "SuccessCriteriaMet"), is(new, "SuccessCriteriaMet"));
        if was_met && !is_met {
            causes.push(of_conditions("cannot disable the SuccessCriteriaMet=True condition"));
        }
        if is(old, "Complete") && !was_met && is_met {
            causes.push(of_conditions(
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
            ));
        }
    }

    fn times_stay(&self, causes: &mut Vec<Cause>) {
        let (ended, had_ended) = (&self.new["completionTime"], &self.old["completionTime"]);
        if !ended.is_null() && !had_ended.is_null() && ended != had_ended {
            causes.push(Cause::invalid("status.completionTime", ended, "field is immutable"));
        }
        let (started, had_started) = (&self.new["startTime"], &self.old["startTime"]);
        let resumes = is(self.old, "Suspended") && has(self.new, "Suspended", "False");
        if !had_started.is_null()
            && started != had_started
            && self.spec["suspend"] != true
            && !resumes
        {
            let text = "field is immutable for unsuspended job once set";
            causes.push(Cause::invalid("status.startTime", started, text));
        }
    }
}

fn amounts(status: &Value, causes: &mut Vec<Cause>) {
    for name in ["active", "succeeded", "failed", "ready", "terminating"] {
        causes.extend(not_negative(&format!("status.{name}"), &status[name]));
    }
}

/// Each pod is once in one of the two lists.
fn uncounted_pods(status: &Value, causes: &mut Vec<Cause>) {
    let mut seen = HashSet::new();
    for end in ["succeeded", "failed"] {
        for (at, pod) in items(&status["uncountedTerminatedPods"][end]).iter().enumerate() {
            let field = format!("status.uncountedTerminatedPods.{end}[{at}]");
            match str_of(pod) {
                "" => causes.push(Cause::invalid(field, &"".into(), "must not be empty")),
                uid if !seen.insert(uid) => causes.push(Cause::duplicate(field, pod)),
                _ => {}
            }
        }
    }
}

fn of_conditions(text: &str) -> Cause {
    Cause::new("FieldValueInvalid", CONDITIONS, format!("Invalid value: {text}"))
}

fn is(status: &Value, condition: &str) -> bool {
    has(status, condition, "True")
}

fn has(status: &Value, condition: &str, value: &str) -> bool {
    items(&status["conditions"])
        .iter()
        .any(|one| one["type"] == condition && one["status"] == value)
}

fn is_finished(status: &Value) -> bool {
    is(status, "Complete") || is(status, "Failed")
}

fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}
