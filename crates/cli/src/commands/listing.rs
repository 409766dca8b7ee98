//! The common part of all `ls` commands: formats, `--quiet` and `--watch`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::api::{self, id};
use crate::args::{ListArgs, OutputFormat};
use crate::error::{CliError, Failure};
use crate::output::{self, Columns, Printer};

/// Poll interval of `--watch`.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Prints what `read` returns, with `--watch` until the process or the reader of stdout ends.
pub async fn show(
    args: &ListArgs,
    columns: impl Into<Columns>,
    read: impl AsyncFn() -> Result<Vec<Value>, CliError>,
) -> Result<(), CliError> {
    let columns = columns.into();
    let items = read().await?;
    if args.watch {
        watch(args.format(), columns, items, read).await
    } else {
        output::list(args.format(), columns, &items)
    }
}

/// Prints a list, then each object that is new or displayed differently, and the names of deleted
/// ones.
async fn watch(
    format: OutputFormat,
    columns: Columns,
    first: Vec<Value>,
    read: impl AsyncFn() -> Result<Vec<Value>, CliError>,
) -> Result<(), CliError> {
    let mut printer = Printer::new(format, columns);
    let mut seen = Seen::default();
    let mut is_reachable = true;
    let mut is_read =
        printer.print(&seen.changes(first, |item| printer.displayed_value(item)).changed)?;
    while is_read {
        sleep(WATCH_EVERY).await;
        let now = match read().await {
            Ok(now) => now,
            Err(error) if error.failure == Failure::Unreachable => {
                if std::mem::take(&mut is_reachable) {
                    notify!("warning: {error}; trying again");
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        is_reachable = true;
        let changes = seen.changes(now, |item| printer.displayed_value(item));
        for name in &changes.removed {
            notify!("deleted: {name}");
        }
        if !changes.changed.is_empty() {
            is_read = printer.print(&changes.changed)?;
        }
    }
    Ok(())
}

/// The objects of the last read by id: their names and displayed values.
#[derive(Default)]
struct Seen(BTreeMap<String, (String, Value)>);

/// What differs between two reads.
#[derive(Debug, Default, PartialEq)]
struct Changes {
    changed: Vec<Value>,
    /// Names.
    removed: Vec<String>,
}

impl Seen {
    fn changes(&mut self, now: Vec<Value>, shown: impl Fn(&Value) -> Value) -> Changes {
        let mut before = std::mem::take(&mut self.0);
        let mut changes = Changes::default();
        for item in now {
            let shown = shown(&item);
            let last = before.remove(id(&item)).map(|(_, shown)| shown);
            self.0.insert(id(&item).to_owned(), (api::name(&item).to_owned(), shown.clone()));
            if last != Some(shown) {
                changes.changed.push(item);
            }
        }
        changes.removed = before.into_values().map(|(name, _)| name).collect();
        changes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_watch_prints_new_and_changed_objects_once_and_names_those_deleted() {
        let object = |id: &str, state: &str| json!({"id": id, "name": id, "state": state});
        let mut seen = Seen::default();
        let mut changes = |now: &[Value]| {
            let changes = seen.changes(now.to_vec(), |item| item["state"].clone());
            let ids: Vec<String> = changes.changed.iter().map(|item| id(item).to_owned()).collect();
            (ids.join(" "), changes.removed.join(" "))
        };
        let none = String::new;
        let (a, b) = (object("a", "active"), object("b", "waiting"));
        assert_eq!(changes(&[a.clone(), b.clone()]), ("a b".to_owned(), none()));
        let mut touched = a.clone();
        touched["heartbeat"] = 7.into();
        assert_eq!(changes(&[touched, b]), (none(), none()), "nothing shown has changed");
        let b = object("b", "active");
        assert_eq!(changes(std::slice::from_ref(&b)), ("b".to_owned(), "a".to_owned()));
        assert_eq!(changes(&[a, b]), ("a".to_owned(), none()));
        assert_eq!(changes(&[]), (none(), "a b".to_owned()));
    }
}
