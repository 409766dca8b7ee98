//! Validation of a CronJob: its schedule, and the template of its Jobs.

use api_meta::object::ObjectExt;
use api_meta::status::Cause;
use apiserver::fields::str_of;
use serde_json::Value;

use super::{schedule, time_zone, validate};
use crate::kinds::template::{not_negative, whole_selector};

/// Names of Jobs have 63 characters. 11 of them encode the time.
const NAME_LENGTH_MAX: usize = 52;
const CONCURRENCY_POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];

/// Returns all causes to refuse a new object, or its change from `old`.
pub fn problems(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    when(spec, old.map(|old| &old["spec"]), &mut causes);
    let policy = &spec["concurrencyPolicy"];
    if !CONCURRENCY_POLICIES.contains(&str_of(policy)) {
        let field = "spec.concurrencyPolicy";
        causes.push(Cause::not_supported(field, policy, &CONCURRENCY_POLICIES));
    }
    job(&spec["jobTemplate"]["spec"], &mut causes);
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        causes.extend(not_negative(&format!("spec.{field}"), &spec[field]));
    }
    if old.is_none() && object.name().len() > NAME_LENGTH_MAX {
        let text = format!("must be no more than {NAME_LENGTH_MAX} characters");
        causes.push(Cause::invalid("metadata.name", &object.name().into(), &text));
    }
    causes
}

fn when(spec: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let (field, given) = ("spec.schedule", &spec["schedule"]);
    match str_of(given) {
        "" => causes.push(Cause::required(field, "")),
        text => {
            let problem = schedule::problem(text);
            causes.extend(problem.map(|problem| Cause::invalid(field, given, &problem)));
            let had_zone = old.is_some_and(|old| names_zone(str_of(&old["schedule"])));
            if names_zone(text) && !had_zone {
                let text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
                causes.push(Cause::invalid(field, given, text));
            } else if names_zone(text) && !spec["timeZone"].is_null() {
                let text = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
                causes.push(Cause::invalid(field, given, text));
            }
        }
    }
    let deadline = &spec["startingDeadlineSeconds"];
    causes.extend(not_negative("spec.startingDeadlineSeconds", deadline));
    if old.is_none_or(|old| old["timeZone"] != spec["timeZone"]) {
        causes.extend(time_zone::validate("spec.timeZone", &spec["timeZone"]));
    }
}

fn names_zone(schedule: &str) -> bool {
    schedule.contains("TZ")
}

/// Each Job gets its selector when it is created.
fn job(spec: &Value, causes: &mut Vec<Cause>) {
    let field = "spec.jobTemplate.spec";
    validate::without_selector(field, spec, causes);
    let selector = &spec["selector"];
    if !selector.is_null() {
        let text = ": `selector` will be auto-generated";
        causes.push(whole_selector(&format!("{field}.selector"), selector, text));
    }
    if spec["manualSelector"] == true {
        let path = format!("{field}.manualSelector");
        causes.push(Cause::not_supported(path, &spec["manualSelector"], &["nil", "false"]));
    }
}
