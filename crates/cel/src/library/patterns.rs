//! Regular expressions.

use std::rc::Rc;

use regex::Regex;

use crate::eval::Evaluator;
use crate::value::{EvalFailure, EvalResult, Value, fail};

pub(super) fn call<'a>(
    evaluator: &mut Evaluator<'a>,
    function: &str,
    args: &[Value<'a>],
) -> Option<EvalResult<'a>> {
    let (text, pattern, most) = match args {
        [Value::Text(text), Value::Text(pattern)] => (text, pattern, -1),
        [Value::Text(text), Value::Text(pattern), Value::Int(most)] => (text, pattern, *most),
        _ => return None,
    };
    Some(match function {
        "matches" => match compile_pattern(evaluator, text, pattern) {
            Ok(regex) => Ok(Value::Bool(regex.is_match(text))),
            Err(error) => Err(error),
        },
        "find" => find_with(evaluator, text, pattern, |regex, text| {
            Value::text(regex.find(text).map_or("", |found| found.as_str()))
        }),
        "findAll" => find_with(evaluator, text, pattern, |regex, text| {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let all = regex.find_iter(text).take(most);
            Value::list(all.map(|found| Value::text(found.as_str())).collect())
        }),
        _ => return None,
    })
}

fn compile_pattern(
    evaluator: &mut Evaluator<'_>,
    text: &str,
    pattern: &str,
) -> Result<Rc<Regex>, EvalFailure> {
    evaluator.work.add((text.len() as u64).saturating_mul(10))?;
    match evaluator.pattern(pattern) {
        Ok(regex) => Ok(regex),
        Err(error) => {
            // The last line of the error is the reason.
            let error = error.to_string();
            let what = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            fail(format!("error parsing regexp: {what}"))
        }
    }
}

fn find_with<'a>(
    evaluator: &mut Evaluator<'a>,
    text: &str,
    pattern: &str,
    find: impl Fn(&Regex, &str) -> Value<'a>,
) -> EvalResult<'a> {
    match compile_pattern(evaluator, text, pattern) {
        Ok(regex) => Ok(find(&regex, text)),
        Err(EvalFailure::Error(text)) => fail(format!("Illegal regex: {text}")),
        Err(failure) => Err(failure),
    }
}
