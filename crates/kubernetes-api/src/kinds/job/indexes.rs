//! Lists of indexes in the status of a Job: `1,3-5,7`, parsed like kube-apiserver.

/// Checks that a list of indexes is ascending and below `end`.
///
/// # Errors
/// The message of kube-apiserver about the list.
pub fn ascending(text: &str, end: i64) -> Result<(), String> {
    let mut last = None;
    for interval in intervals(text) {
        let (first, until) = parse(interval, end)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(not_increasing(last, first));
        }
        last = Some(until);
    }
    Ok(())
}

/// The first index that is in both lists, as far as they can be parsed.
pub fn first_shared(one: &str, other: &str, end: i64) -> Option<i64> {
    let readable = |text| intervals(text).filter_map(|interval| parse(interval, end).ok());
    let (mut ones, mut others) = (readable(one).peekable(), readable(other).peekable());
    while let (Some((from, until)), Some((start, stop))) = (ones.peek(), others.peek()) {
        if from <= stop && start <= until {
            return Some(*from.max(start));
        }
        if from <= start {
            ones.next();
        } else {
            others.next();
        }
    }
    None
}

fn intervals(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(move |_| !text.is_empty())
}

/// The first and the last index of one interval.
fn parse(interval: &str, end: i64) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = interval.split('-').collect();
    let index = |text: &str| match text.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: {text:?}")),
        Ok(index) if index >= end => Err(format!("too large index: {text:?}")),
        Ok(index) => Ok(index),
    };
    match limits[..] {
        [only] => index(only).map(|index| (index, index)),
        [first, last] => {
            let (first, last) = (index(first)?, index(last)?);
            if first >= last { Err(not_increasing(first, last)) } else { Ok((first, last)) }
        }
        _ => Err(format!(
            "the fragment {interval:?} violates the requirement that an index interval can have at \
             most two parts separated by '-'"
        )),
    }
}

fn not_increasing(previous: i64, current: i64) -> String {
    format!("non-increasing order, previous: {previous}, current: {current}")
}
