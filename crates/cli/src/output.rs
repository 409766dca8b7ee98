//! Data on stdout: tables for people, JSON and YAML for programs.

use std::io::Write;

use comfy_table::{Table, presets};
use jiff::Timestamp;
use serde_json::Value;

use crate::args::Format;
use crate::error::{CliError, Failure};

/// A column: its heading and what it shows of a resource.
pub struct Column {
    pub heading: &'static str,
    pub cell: fn(&Value, Timestamp) -> String,
}

/// Prints resources in the form asked for.
pub fn list(format: Format, columns: &[Column], items: &[Value]) -> Result<(), CliError> {
    match format {
        Format::Table => print(&table(columns, items, Timestamp::now())),
        _ => write(&document(format, &Value::from(items.to_vec()))?),
    }
}

/// Prints one resource; as a table, one line per row of `rows`.
pub fn one(format: Format, rows: &[Column], item: &Value) -> Result<(), CliError> {
    match format {
        Format::Table => print(&details(rows, item, Timestamp::now())),
        _ => write(&document(format, item)?),
    }
}

/// Prints text of a server: what could steer the terminal is escaped.
pub fn print(text: &str) -> Result<(), CliError> {
    write(&harmless(text))
}

/// Writes to stdout as it is. A reader that has gone is no failure.
pub fn write(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    let newline = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::new(Failure::Other, format!("writing to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Says something to the person: on stderr, with what could steer the terminal escaped. Nobody may
/// be reading.
pub fn tell(text: &str) {
    let mut out = std::io::stderr().lock();
    if let Err(error) = writeln!(out, "{}", harmless(text)) {
        tracing::debug!(%error, "writing to stderr");
    }
}

/// [`tell`] with the arguments of `format!`.
macro_rules! tell {
    ($($text:tt)*) => { $crate::output::tell(&format!($($text)*)) };
}

/// Prints the id of an object that was made, or all of it where a form for programs was asked for.
pub fn made(format: Format, item: &Value) -> Result<(), CliError> {
    match format {
        Format::Table => print(item["id"].as_str().unwrap_or_default()),
        format => one(format, &[], item),
    }
}

fn document(format: Format, value: &Value) -> Result<String, CliError> {
    let failed = |error: &dyn std::fmt::Display| {
        CliError::new(Failure::Other, format!("formatting the output: {error}"))
    };
    match format {
        Format::Yaml => serde_saphyr::to_string(value).map_err(|error| failed(&error)),
        _ => serde_json::to_string_pretty(value).map_err(|error| failed(&error)),
    }
}

/// The table of `items`; an empty one still has its headings.
pub fn table(columns: &[Column], items: &[Value], now: Timestamp) -> String {
    let headings = columns.iter().map(|column| column.heading.to_owned());
    // One line each: a name with a line break must not look like a row of its own.
    let line = |text: String| or_dash(harmless(&text).replace('\n', "\\n"));
    let rows = items.iter().map(|item| columns.iter().map(|c| line((c.cell)(item, now))));
    grid(headings.collect(), rows.map(Iterator::collect).collect())
}

/// Headings on the left, values on the right.
pub fn details(rows: &[Column], item: &Value, now: Timestamp) -> String {
    let shown =
        rows.iter().map(|row| vec![format!("{}:", row.heading), harmless(&(row.cell)(item, now))]);
    grid(Vec::new(), shown.filter(|row| !row[1].is_empty()).collect())
}

fn grid(headings: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if !headings.is_empty() {
        table.set_header(headings);
    }
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

/// Escapes what could steer a terminal or turn the order of what is read: what others wrote is
/// only ever shown. Line breaks stay.
pub fn harmless(text: &str) -> String {
    let steers = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// How long ago an RFC 3339 time was, in one or two units; empty when it is none.
pub fn age(created: &str, now: Timestamp) -> String {
    let Ok(created) = created.parse::<Timestamp>() else { return String::new() };
    let seconds = now.duration_since(created).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}
