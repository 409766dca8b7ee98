//! Semantic versions.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::value::{EvalResult, Value, fail};

/// A version of semver 2.0.0, without its build metadata.
#[derive(Debug, PartialEq, Eq)]
pub struct SemanticVersion {
    numbers: [u64; 3],
    pre: Vec<PreRelease>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PreRelease {
    Number(u64),
    Text(String),
}

impl SemanticVersion {
    /// `normalize`: a leading `v`, missing parts and leading zeros are allowed.
    fn parse(text: &str, normalize: bool) -> Option<Self> {
        let text = if normalize { text.strip_prefix('v').unwrap_or(text) } else { text };
        let (text, build) = text.split_once('+').map_or((text, None), |(a, b)| (a, Some(b)));
        let (core, pre) = text.split_once('-').map_or((text, None), |(a, b)| (a, Some(b)));
        let is_name = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        if build.is_some_and(|build| !build.split('.').all(is_name)) {
            return None;
        }
        let parts: Vec<&str> = core.split('.').collect();
        if parts.len() > 3 || (parts.len() < 3 && !(normalize && pre.is_none() && build.is_none()))
        {
            return None;
        }
        let mut numbers = [0; 3];
        for (number, part) in numbers.iter_mut().zip(parts) {
            *number = digits(part, normalize)?;
        }
        let mut found = Vec::new();
        for part in pre.into_iter().flat_map(|pre| pre.split('.')) {
            let numeric = part.bytes().all(|byte| byte.is_ascii_digit());
            found.push(match numeric {
                true => PreRelease::Number(digits(part, false)?),
                false if is_name(part) => PreRelease::Text(part.to_owned()),
                false => return None,
            });
        }
        Some(Self { numbers, pre: found })
    }
}

fn digits(text: &str, zeros: bool) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let leading = text.len() > 1 && text.starts_with('0');
    (plain && (zeros || !leading)).then(|| text.parse().ok())?
}

impl PartialOrd for SemanticVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SemanticVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        // A version is greater than its pre-releases.
        let pre = match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.pre.cmp(&other.pre),
        };
        self.numbers.cmp(&other.numbers).then(pre)
    }
}

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Option<EvalResult<'a>> {
    let number = |version: &SemanticVersion, index: usize| {
        Value::Int(i64::try_from(version.numbers[index]).unwrap_or(i64::MAX))
    };
    Some(Ok(match (function, args) {
        ("semver" | "isSemver", [Value::Text(text), rest @ ..]) => {
            let normalize = match rest {
                [] => false,
                [Value::Bool(normalize)] => *normalize,
                _ => return None,
            };
            match (function, SemanticVersion::parse(text, normalize)) {
                ("isSemver", version) => Value::Bool(version.is_some()),
                (_, Some(version)) => Value::Semver(Rc::new(version)),
                (_, None) => {
                    return Some(fail(format!("{:?} is not a semantic version", &**text)));
                }
            }
        }
        ("isGreaterThan", [Value::Semver(a), Value::Semver(b)]) => Value::Bool(a > b),
        ("isLessThan", [Value::Semver(a), Value::Semver(b)]) => Value::Bool(a < b),
        ("compareTo", [Value::Semver(a), Value::Semver(b)]) => Value::Int(a.cmp(b) as i64),
        ("major", [Value::Semver(version)]) => number(version, 0),
        ("minor", [Value::Semver(version)]) => number(version, 1),
        ("patch", [Value::Semver(version)]) => number(version, 2),
        _ => return None,
    }))
}
