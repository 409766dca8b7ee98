//! When an indexed job succeeds before all of its indexes do: `successPolicy`.

use api_meta::go_text;
use api_meta::status::Cause;
use apiserver::fields::items;
use serde_json::Value;

use crate::kinds::template::not_negative;

const RULES_MAX: usize = 20;
/// Size of the text that lists indexes, in bytes.
const INDEXES_MAX: usize = 64 * 1024;

/// Validates the policy at `field` of a job with `completions`; appends a cause for each problem.
pub fn validate(field: &str, policy: &Value, completions: i64, causes: &mut Vec<Cause>) {
    let rules_field = format!("{field}.rules");
    let rules = items(&policy["rules"]);
    if rules.is_empty() {
        let text = "at least one rules must be specified when the successPolicy is specified";
        causes.push(Cause::required(&rules_field, text));
    }
    causes.extend(Cause::too_many(&rules_field, rules.len(), RULES_MAX));
    for (index, one) in rules.iter().enumerate() {
        rule(&format!("{rules_field}[{index}]"), one, completions, causes);
    }
}

fn rule(path: &str, rule: &Value, completions: i64, causes: &mut Vec<Cause>) {
    let (count, indexes) = (&rule["succeededCount"], &rule["succeededIndexes"]);
    if count.is_null() && indexes.is_null() {
        let text = "at least one of succeededCount or succeededIndexes must be specified";
        causes.push(Cause::required(path, text));
    }
    let total = indexes.as_str().map(|text| {
        let path = format!("{path}.succeededIndexes");
        if text.len() > INDEXES_MAX {
            causes.push(Cause::too_long(&path, INDEXES_MAX));
        }
        count_indexes(text, completions).unwrap_or_else(|problem| {
            let text = format!("error parsing succeededIndexes: {problem}");
            causes.push(Cause::invalid(path, indexes, &text));
            0
        })
    });
    let Some(required) = count.as_i64() else { return };
    let path = format!("{path}.succeededCount");
    causes.extend(not_negative(&path, count));
    let mut at_most = |limit: i64, what: &str| {
        if required > limit {
            let text = format!("must be less than or equal to {limit} (the number of {what})");
            causes.push(Cause::invalid(&path, count, &text));
        }
    };
    at_most(completions, "specified completions");
    if let Some(total) = total {
        at_most(total, "indexes in the specified succeededIndexes field");
    }
}

/// Number of indexes in a text such as `0,3-5`, all of them below `completions`.
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let (mut before, mut total) = (None, 0);
    if text.is_empty() {
        return Ok(total);
    }
    for interval in text.split(',') {
        let (first, last) = ends(interval, completions)?;
        if let Some(before) = before.filter(|before| *before >= first) {
            return Err(not_increasing(before, first));
        }
        total += last - first + 1;
        before = Some(last);
    }
    Ok(total)
}

fn ends(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let parts: Vec<&str> = interval.split('-').collect();
    let index = |text: &str| {
        let quoted = go_text::quoted(text);
        let problem = |_| format!("cannot convert string to integer for index: {quoted}");
        let index: i64 = text.parse().map_err(problem)?;
        if index < completions { Ok(index) } else { Err(format!("too large index: {quoted}")) }
    };
    match parts.as_slice() {
        [one] => index(one).map(|index| (index, index)),
        [first, last] => {
            let (first, last) = (index(first)?, index(last)?);
            if first < last { Ok((first, last)) } else { Err(not_increasing(first, last)) }
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two \
             parts separated by '-'",
            go_text::quoted(interval)
        )),
    }
}

fn not_increasing(before: i64, index: i64) -> String {
    format!("non-increasing order, previous: {before}, current: {index}")
}

/// The policy in the notation in which upstream prints its own struct.
pub fn format_policy(policy: &Value) -> String {
    if policy.is_null() {
        return "null".to_owned();
    }
    let rule = |rule: &Value| {
        let (indexes, count) = (&rule["succeededIndexes"], &rule["succeededCount"]);
        format!("{{\"SucceededIndexes\":{indexes},\"SucceededCount\":{count}}}")
    };
    let rules: Vec<String> = items(&policy["rules"]).iter().map(rule).collect();
    let rules = if rules.is_empty() { "null".to_owned() } else { format!("[{}]", rules.join(",")) };
    format!("{{\"Rules\":{rules}}}")
}
