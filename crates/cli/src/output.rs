//! Data on stdout: tables for users, other encodings for programs ([`OutputFormat`]).

mod grid;
mod template;

use std::io::{IsTerminal, Write};

use jiff::Timestamp;
use serde_json::Value;

use crate::api;
use crate::args::OutputFormat;
use crate::error::{CliError, Failure};
use grid::{Cell, Grid};
pub use template::Template;

/// A column: its heading, and the function that formats its cell for a resource.
pub struct TableColumn {
    pub heading: &'static str,
    pub cell: fn(&Value, Timestamp) -> String,
}

/// The columns of a list.
#[derive(Clone, Copy)]
pub struct Columns {
    pub always: &'static [TableColumn],
    /// The columns that `-o wide` adds.
    pub wide: &'static [TableColumn],
}

impl From<&'static [TableColumn]> for Columns {
    fn from(always: &'static [TableColumn]) -> Self {
        Self { always, wide: &[] }
    }
}

impl Columns {
    fn of(self, format: OutputFormat) -> impl Iterator<Item = &'static TableColumn> {
        let wide = if format == OutputFormat::Wide { self.wide } else { &[] };
        self.always.iter().chain(wide)
    }
}

/// Prints resources in the requested format.
pub fn list(
    format: OutputFormat,
    columns: impl Into<Columns>,
    items: &[Value],
) -> Result<(), CliError> {
    match format {
        OutputFormat::Json | OutputFormat::Yaml => {
            write(&document(format, &Value::from(items.to_vec()))?)
        }
        OutputFormat::JsonPath(template) => print(&template.render(&Value::from(items.to_vec()))),
        _ => Printer::new(format, columns.into()).print(items).map(drop),
    }
}

/// Prints one resource; as a table, one line per row of `rows`.
pub fn one(format: OutputFormat, rows: &[TableColumn], item: &Value) -> Result<(), CliError> {
    match format {
        OutputFormat::Table | OutputFormat::Wide => {
            write(&details_grid(rows, item, Timestamp::now()).lay_out(is_coloured()))
        }
        OutputFormat::Name => print(api::name(item)),
        OutputFormat::Id => print(api::id(item)),
        OutputFormat::Json | OutputFormat::Yaml => write(&document(format, item)?),
        OutputFormat::JsonPath(template) => print(&template.render(item)),
    }
}

/// Prints resources incrementally: each one is a row, a line or a document of its own.
pub struct Printer {
    format: OutputFormat,
    columns: Columns,
    /// Holds the column widths of all rows so far.
    grid: Grid,
    /// Whether nothing has been printed yet.
    is_new: bool,
}

impl Printer {
    /// A printer of objects; `columns` are those of tables.
    pub fn new(format: OutputFormat, columns: Columns) -> Self {
        Self { format, columns, grid: Grid::default(), is_new: true }
    }

    /// Prints `items`. Returns whether stdout still has a reader.
    pub fn print(&mut self, items: &[Value]) -> Result<bool, CliError> {
        let is_new = std::mem::take(&mut self.is_new);
        let mut lines = Vec::new();
        match self.format {
            OutputFormat::Table | OutputFormat::Wide => {
                if is_new {
                    self.grid.add_row(self.columns.of(self.format).map(|c| Cell::new(c.heading)));
                }
                let now = Timestamp::now();
                for item in items {
                    self.grid.add_row(self.columns.of(self.format).map(|c| cell(c, item, now)));
                }
                lines.push(self.grid.lay_out(is_coloured()));
            }
            OutputFormat::Name => lines.extend(items.iter().map(|item| harmless(api::name(item)))),
            OutputFormat::Id => lines.extend(items.iter().map(|item| harmless(api::id(item)))),
            OutputFormat::Json => lines.extend(items.iter().map(Value::to_string)),
            OutputFormat::Yaml => {
                for item in items {
                    lines.push(format!("---\n{}", document(self.format, item)?.trim_end()));
                }
            }
            OutputFormat::JsonPath(template) => {
                lines.extend(items.iter().map(|item| harmless(&template.render(item))));
            }
        }
        try_write(&lines.join("\n"))
    }

    /// The displayed values of a resource, without columns that change while the object does not.
    pub fn displayed_value(&self, item: &Value) -> Value {
        match self.format {
            OutputFormat::Table | OutputFormat::Wide => {
                let lasting = self.columns.of(self.format).filter(|c| c.heading != AGE_HEADING);
                lasting.map(|column| (column.cell)(item, Timestamp::UNIX_EPOCH)).collect()
            }
            _ => item.clone(),
        }
    }
}

/// Heading of columns whose cells change while the object does not.
const AGE_HEADING: &str = "AGE";

/// Prints text from a server. Control characters for the terminal are escaped.
pub fn print(text: &str) -> Result<(), CliError> {
    write(&harmless(text))
}

/// Writes to stdout unchanged. A closed reader is not an error.
pub fn write(text: &str) -> Result<(), CliError> {
    try_write(text).map(drop)
}

/// Like [`write`]; returns whether stdout still has a reader.
fn try_write(text: &str) -> Result<bool, CliError> {
    let mut out = std::io::stdout().lock();
    let newline = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CliError::new(Failure::Other, format!("writing to stdout: {error}"))),
    }
}

/// Whether stdout shows colours: true for a terminal, unless `NO_COLOR` has a value or `TERM` is
/// `dumb`.
fn is_coloured() -> bool {
    let is_set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    std::io::stdout().is_terminal()
        && is_set("NO_COLOR").is_none()
        && is_set("TERM").is_none_or(|term| term != "dumb")
}

/// Writes a message for the user to stderr, with control characters for the terminal escaped. A
/// failed write is only logged: stderr may have no reader.
pub fn notify(text: &str) {
    let mut out = std::io::stderr().lock();
    if let Err(error) = writeln!(out, "{}", harmless(text)) {
        tracing::debug!(%error, "writing to stderr");
    }
}

/// [`notify`] with the arguments of `format!`.
macro_rules! notify {
    ($($text:tt)*) => { $crate::output::notify(&format!($($text)*)) };
}

/// Prints a created object: its id, or the whole object if a machine-readable format was requested.
pub fn print_created(format: OutputFormat, item: &Value) -> Result<(), CliError> {
    match format.is_table() {
        true => print(api::id(item)),
        false => one(format, &[], item),
    }
}

fn document(format: OutputFormat, value: &Value) -> Result<String, CliError> {
    let failed = |error: &dyn std::fmt::Display| {
        CliError::new(Failure::Other, format!("formatting the output: {error}"))
    };
    match format {
        OutputFormat::Yaml => serde_saphyr::to_string(value).map_err(|error| failed(&error)),
        _ => serde_json::to_string_pretty(value).map_err(|error| failed(&error)),
    }
}

/// The cell of a table. It has one line: a name with a line break must not look like a second row.
fn cell(column: &TableColumn, item: &Value, now: Timestamp) -> Cell {
    let text = or_dash(harmless(&(column.cell)(item, now)).replace('\n', "\\n"));
    Cell { text, is_state: column.heading == "STATE" }
}

/// The table of `items`, without colours; an empty one still has its headings.
#[cfg(test)]
pub fn table(columns: &[TableColumn], items: &[Value], now: Timestamp) -> String {
    let mut grid = Grid::default();
    grid.add_row(columns.iter().map(|column| Cell::new(column.heading)));
    for item in items {
        grid.add_row(columns.iter().map(|column| cell(column, item, now)));
    }
    grid.lay_out(false)
}

/// Headings on the left, values on the right, without colours.
#[cfg(test)]
pub fn details(rows: &[TableColumn], item: &Value, now: Timestamp) -> String {
    details_grid(rows, item, now).lay_out(false)
}

fn details_grid(rows: &[TableColumn], item: &Value, now: Timestamp) -> Grid {
    let mut grid = Grid::default();
    for row in rows {
        let text = harmless(&(row.cell)(item, now));
        if !text.is_empty() {
            let heading = Cell::new(&format!("{}:", row.heading));
            grid.add_row([heading, Cell { text, is_state: row.heading == "State" }]);
        }
    }
    grid
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

/// Escapes control characters for the terminal, and characters that change the direction of text:
/// text from other users is displayed, never interpreted. Line breaks stay.
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

/// How long ago an RFC 3339 time was, in one unit; empty if it is not a time.
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
