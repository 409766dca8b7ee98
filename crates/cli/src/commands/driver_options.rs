//! The options of a cluster driver: what it declares, and what users give.

use std::io::Read as _;
use std::path::Path;

use http::Method;
use serde_json::{Map, Value};

use crate::api::{self, Api, id, text};
use crate::commands::driver::DRIVER;
use crate::error::{CliError, Failure};
use crate::output::TableColumn;
use crate::similar;

/// The field that names the driver, which is no option.
const DRIVER_NAME: &str = "driverName";
/// How fields of clusters with options end.
const SUFFIXES: [&str; 2] = ["EngineConfig", "Config"];

pub const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "FLAG", cell: |option, _| text(option, "flag").to_owned() },
    TableColumn { heading: "TYPE", cell: |option, _| text(option, "type").to_owned() },
    TableColumn { heading: "DEFAULT", cell: |option, _| text(option, "default").to_owned() },
    TableColumn {
        heading: "DESCRIPTION",
        cell: |option, _| text(option, "description").to_owned(),
    },
];

/// The options of one driver.
pub struct DriverOptions {
    /// The field of clusters that has them.
    pub field: String,
    /// Its fields, with their types.
    fields: Map<String, Value>,
}

impl DriverOptions {
    /// Those of a driver, by its name or id.
    ///
    /// # Errors
    /// The driver does not exist or is not active, or a request fails.
    pub async fn of_driver(api: &Api, driver: &str) -> Result<Self, CliError> {
        let found = api.resolve(&DRIVER, driver).await?;
        let (name, is_built_in) = (text(&found, "name"), found["builtIn"] == true);
        let known = SUFFIXES[usize::from(is_built_in)];
        // Users may have given the driver another name than its file has.
        let mut candidates = vec![format!("{name}{known}")];
        let cluster =
            api.call(Method::GET, "/v3/schemas/cluster", None, "reading the type cluster");
        let cluster = cluster.await?;
        let fields = cluster["resourceFields"].as_object();
        let others = fields.into_iter().flat_map(Map::keys).filter(|field| field.ends_with(known));
        candidates.extend(others.cloned());
        for field in candidates {
            if let Some(options) = Self::of_field(api, &field).await?
                && options.fields[DRIVER_NAME]["default"] == id(&found)
            {
                return Ok(options);
            }
        }
        let state = text(&found, "state");
        let text = format!("the options of driver \"{driver}\" are not known: it is {state}");
        Err(CliError::new(Failure::Other, text).hint(
            "\"drover driver activate\" makes them known, and \"drover driver ls\" says why not",
        ))
    }

    /// Those of the driver that made a cluster.
    ///
    /// # Errors
    /// No driver did, or it is not active.
    pub async fn of_cluster(api: &Api, cluster: &Value) -> Result<Self, CliError> {
        let fields = cluster.as_object().into_iter().flatten();
        let made = fields.filter(|(_, value)| value[DRIVER_NAME].is_string());
        for (field, _) in made {
            if let Some(options) = Self::of_field(api, field).await? {
                return Ok(options);
            }
        }
        let name = api::name(cluster);
        let text = format!("cluster \"{name}\" has no options of an active driver");
        Err(CliError::new(Failure::Other, text)
            .hint("only clusters that were created with --driver have options that can change"))
    }

    async fn of_field(api: &Api, field: &str) -> Result<Option<Self>, CliError> {
        let path = format!("/v3/schemas/{field}");
        match api.call(Method::GET, &path, None, "reading the options of the driver").await {
            Ok(mut schema) => match schema["resourceFields"].take() {
                Value::Object(fields) => Ok(Some(Self { field: field.to_owned(), fields })),
                _ => Ok(None),
            },
            Err(error) if error.failure == Failure::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One row for each option.
    pub fn rows(&self) -> Vec<Value> {
        let rows = self.fields.iter().filter(|(name, _)| *name != DRIVER_NAME);
        let row = |(name, field): (&String, &Value)| {
            let default = match &field["default"] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            serde_json::json!({
                "flag": format!("--{}", flag(name)),
                "type": field["type"],
                "default": default,
                "description": field["description"],
            })
        };
        rows.map(row).collect()
    }

    /// The names of the options as flags.
    pub fn flags(&self) -> impl Iterator<Item = String> {
        self.fields.keys().filter(|name| *name != DRIVER_NAME).map(|name| flag(name))
    }

    /// The fields that users gave: those of a file, then those of the line.
    ///
    /// # Errors
    /// The driver has no such option, or the value is of another type.
    pub fn parse(
        &self,
        file: Option<&Path>,
        given: &[String],
    ) -> Result<Map<String, Value>, CliError> {
        let mut parsed = Map::new();
        for (name, value) in file.map(read).transpose()?.unwrap_or_default() {
            let (name, kind) = self.find(&name)?;
            parsed.insert(name.clone(), check(&name, kind, value)?);
        }
        let mut lists: Vec<String> = Vec::new();
        for pair in given {
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                CliError::usage(format!("--option needs NAME=VALUE, and got \"{pair}\""))
            })?;
            let (name, kind) = self.find(name)?;
            let value = match value.strip_prefix('@') {
                Some(file) => std::fs::read_to_string(file)
                    .map_err(|error| CliError::usage(format!("cannot read \"{file}\": {error}")))?,
                None => value.to_owned(),
            };
            let value = from_text(&name, kind, &value)?;
            match (&value, parsed.get_mut(&name)) {
                // What is repeated on the line is one list.
                (Value::Array(more), Some(Value::Array(list))) if lists.contains(&name) => {
                    list.extend(more.iter().cloned());
                }
                _ => drop(parsed.insert(name.clone(), value)),
            }
            lists.push(name);
        }
        Ok(parsed)
    }

    /// The field and its type, by its name or that of the flag.
    fn find(&self, name: &str) -> Result<(String, &str), CliError> {
        let field = driver_contract::field_name(name).unwrap_or_else(|_| name.to_owned());
        let found = self.fields.get(&field).filter(|_| field != DRIVER_NAME);
        if let Some(found) = found {
            return Ok((field, text(found, "type")));
        }
        let flags: Vec<String> = self.flags().collect();
        let error = CliError::usage(format!("the driver has no option \"{name}\""));
        Err(match similar::closest(name, flags.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean --{near}?")),
            None => error.hint(format!("it has: --{}", flags.join(", --"))),
        })
    }
}

/// The flag of a field: `diskSizeGb` is `disk-size-gb`.
fn flag(field: &str) -> String {
    let mut flag = String::new();
    for letter in field.chars() {
        if letter.is_ascii_uppercase() {
            flag.push('-');
        }
        flag.push(letter.to_ascii_lowercase());
    }
    flag
}

/// The options in a file; `-` is standard input.
fn read(file: &Path) -> Result<Map<String, Value>, CliError> {
    let shown = file.display();
    let failed = |error: &dyn std::fmt::Display| {
        CliError::usage(format!("cannot read the options in \"{shown}\": {error}"))
    };
    let content = if file == Path::new("-") {
        let mut content = String::new();
        let read = std::io::stdin().read_to_string(&mut content);
        read.map(|_| content)
    } else {
        std::fs::read_to_string(file)
    };
    let content = content.map_err(|error| failed(&error))?;
    let parsed: Value = serde_saphyr::from_str(&content).map_err(|error| failed(&error))?;
    match parsed {
        Value::Object(options) => Ok(options),
        _ => Err(failed(&"it must be a YAML mapping of options, such as \"node-count: 3\"")),
    }
}

fn wrong(name: &str, value: &str, needed: &str) -> CliError {
    CliError::usage(format!("\"{value}\" is no value for --{}, which needs {needed}", flag(name)))
}

fn from_text(name: &str, kind: &str, value: &str) -> Result<Value, CliError> {
    match kind {
        "int" => {
            value.parse::<i64>().map(Value::from).map_err(|_| wrong(name, value, "a whole number"))
        }
        "boolean" => {
            value.parse::<bool>().map(Value::from).map_err(|_| wrong(name, value, "true or false"))
        }
        // One value of the list: values of some drivers have commas. An empty text empties it.
        _ if kind.starts_with("array") => {
            Ok(Some(value).filter(|value| !value.is_empty()).into_iter().collect())
        }
        _ => Ok(value.into()),
    }
}

/// A value of a file, if it is of the type of the option.
fn check(name: &str, kind: &str, value: Value) -> Result<Value, CliError> {
    let is_right = match kind {
        "int" => value.is_i64(),
        "boolean" => value.is_boolean(),
        _ if kind.starts_with("array") => value.is_array(),
        _ => value.is_string(),
    };
    let needed = match kind {
        "int" => "a whole number",
        "boolean" => "true or false",
        _ if kind.starts_with("array") => "a list of texts",
        _ => "a text, in quotes if it looks like a number",
    };
    if is_right { Ok(value) } else { Err(wrong(name, &value.to_string(), needed)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options() -> DriverOptions {
        let fields = json!({
            "driverName": {"type": "string", "default": "kd-1"},
            "diskSizeGb": {"type": "int", "default": 100, "description": "Size"},
            "private": {"type": "boolean"},
            "zones": {"type": "array[string]"},
            "accessToken": {"type": "password"},
        });
        let Value::Object(fields) = fields else { panic!() };
        DriverOptions { field: "xEngineConfig".to_owned(), fields }
    }

    fn parse(given: &[&str]) -> Result<Value, CliError> {
        let given: Vec<String> = given.iter().map(|&pair| pair.to_owned()).collect();
        options().parse(None, &given).map(Value::from)
    }

    #[test]
    fn options_of_the_line_get_the_types_of_the_driver() {
        let parsed =
            parse(&["disk-size-gb=20", "private=true", "zones=a,b", "zones=c", "zones="]).unwrap();
        assert_eq!(parsed, json!({"diskSizeGb": 20, "private": true, "zones": ["a,b", "c"]}));
        assert_eq!(parse(&["accessToken=x=y"]).unwrap(), json!({"accessToken": "x=y"}));
        assert_eq!(parse(&["zones="]).unwrap(), json!({"zones": []}));
        for (wrong, said) in [
            ("disk-size=1", "did you mean --disk-size-gb?"),
            ("region=a", "it has: --access-token, --disk-size-gb, --private, --zones"),
            ("driver-name=a", "it has: "),
        ] {
            let error = parse(&[wrong]).unwrap_err();
            assert!(error.hint.unwrap().contains(said), "{wrong}");
        }
        for wrong in ["private=yes", "disk-size-gb=big", "private"] {
            assert!(parse(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_of_a_file_come_first_and_must_have_the_right_type() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("options.yaml");
        std::fs::write(&file, "disk-size-gb: 30\nzones: [x]\naccessToken: t\n").unwrap();
        let parsed = options().parse(Some(&file), &["zones=y".to_owned()]).unwrap();
        let expected = json!({"diskSizeGb": 30, "zones": ["y"], "accessToken": "t"});
        assert_eq!(Value::from(parsed), expected);
        for wrong in ["disk-size-gb: big", "- a", "zones: x", "accessToken: 5", "other: 1", ": :"] {
            std::fs::write(&file, wrong).unwrap();
            assert!(options().parse(Some(&file), &[]).is_err(), "{wrong}");
        }
        assert!(options().parse(Some(&folder.path().join("none")), &[]).is_err());
    }

    #[test]
    fn the_table_of_options_has_flags_and_defaults() {
        let rows = options().rows();
        let size = rows.iter().find(|row| row["flag"] == "--disk-size-gb").unwrap();
        assert_eq!((text(size, "default"), text(size, "description")), ("100", "Size"));
        assert_eq!(rows.len(), 4);
    }
}
