//! `drover settings ls|get|set|reset`.

use serde_json::{Value, json};

use crate::api::{Api, id, text};
use crate::args::SettingsCommand;
use crate::commands::listing;
use crate::error::{CliError, Failure};
use crate::output::{self, TableColumn};
use crate::similar;

const SETTINGS: &str = "settings";
/// Longest value in a table, in characters.
const SHOWN_MAX: usize = 60;

pub const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "NAME", cell: |setting, _| text(setting, "id").to_owned() },
    TableColumn { heading: "VALUE", cell: |setting, _| first_line(text(setting, "value")) },
    TableColumn { heading: "FROM", cell: |setting, _| source(setting).to_owned() },
];

/// The part of a value that fits a line: certificates are settings too.
fn first_line(value: &str) -> String {
    let first = value.lines().next().unwrap_or_default();
    let shown: String = first.chars().take(SHOWN_MAX).collect();
    if shown.len() < value.len() { format!("{shown} …") } else { shown }
}

/// The source of the effective value.
fn source(setting: &Value) -> &'static str {
    match text(setting, "source") {
        "env" => "environment",
        _ if text(setting, "value") == text(setting, "default") => "default",
        _ => "set",
    }
}

/// Prints or changes settings of the server.
///
/// # Errors
/// The setting does not exist, its value is invalid, or a request fails.
pub async fn run(command: SettingsCommand) -> Result<(), CliError> {
    match command {
        SettingsCommand::Ls(args) => {
            let api = Api::open(args.output.server.name())?;
            let read = async || {
                let mut settings = api.list(SETTINGS, &[]).await?;
                settings.sort_by(|a, b| text(a, "id").cmp(text(b, "id")));
                Ok(settings)
            };
            listing::show(&args, COLUMNS, read).await
        }
        SettingsCommand::Get { name, output } => {
            let api = Api::open(output.server.name())?;
            let setting = find(&api, &name).await?;
            match output.output.is_table() {
                true => output::print(text(&setting, "value")),
                false => output::one(output.output, &[], &setting),
            }
        }
        SettingsCommand::Set { name, value, server } => {
            let api = Api::open(server.name())?;
            put(&api, &name, &value).await?;
            notify!("set {name}");
            Ok(())
        }
        SettingsCommand::Reset { names, server } => {
            let api = Api::open(server.name())?;
            for name in names {
                // A setting without a value of its own has its default.
                let setting = put(&api, &name, "").await?;
                let value = first_line(text(&setting, "default"));
                notify!("{name} is \"{value}\" again");
            }
            Ok(())
        }
    }
}

async fn find(api: &Api, name: &str) -> Result<Value, CliError> {
    let error = match api.get(SETTINGS, name, &format!("setting \"{name}\"")).await {
        Err(error) if error.failure == Failure::NotFound => error,
        other => return other,
    };
    let known = api.list(SETTINGS, &[]).await.unwrap_or_default();
    let shows = "\"drover settings ls\" shows all settings";
    Err(error.hint(match similar::closest(name, known.iter().map(id)) {
        Some(meant) => format!("did you mean \"{meant}\"? {shows}"),
        None => shows.to_owned(),
    }))
}

async fn put(api: &Api, name: &str, value: &str) -> Result<Value, CliError> {
    find(api, name).await?;
    let what = format!("changing setting \"{name}\"");
    api.update(SETTINGS, name, &json!({"value": value}), &what).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_says_where_its_value_comes_from_and_fits_a_line() {
        let shown = |setting: &Value| {
            COLUMNS.iter().map(|c| (c.cell)(setting, jiff::Timestamp::now())).collect::<Vec<_>>()
        };
        let setting = json!({"id": "ui-pl", "value": "a\nb", "default": "d", "source": "db"});
        assert_eq!(shown(&setting), ["ui-pl", "a …", "set"]);
        let setting = json!({"id": "x", "value": "d", "default": "d", "source": "default"});
        assert_eq!(shown(&setting), ["x", "d", "default"]);
        let setting = json!({"id": "x", "value": "d", "default": "d", "source": "env"});
        assert_eq!(shown(&setting), ["x", "d", "environment"]);
    }
}
