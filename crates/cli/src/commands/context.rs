//! `drover context ls|use|current|rm`: which login, cluster and project commands use.

use serde_json::{Value, json};

use crate::api::{Api, id, text};
use crate::args::{ContextCommand, Format};
use crate::commands::place;
use crate::config::{self, Chosen, Config, Context};
use crate::error::{CliError, Failure};
use crate::output::{self, Column};

pub const COLUMNS: &[Column] = &[
    Column {
        heading: "CURRENT",
        cell: |context, _| if context["current"] == true { "*" } else { " " }.to_owned(),
    },
    Column { heading: "NAME", cell: |context, _| text(context, "name").to_owned() },
    Column { heading: "SERVER", cell: |context, _| text(context, "server").to_owned() },
    Column { heading: "USER", cell: |context, _| user(context) },
    Column { heading: "CLUSTER", cell: |context, _| chosen(context, "cluster") },
    Column { heading: "PROJECT", cell: |context, _| chosen(context, "project") },
];

const ROWS: &[Column] = &[
    Column { heading: "Name", cell: |context, _| text(context, "name").to_owned() },
    Column { heading: "Server", cell: |context, _| text(context, "server").to_owned() },
    Column { heading: "User", cell: |context, _| user(context) },
    Column { heading: "Cluster", cell: |context, _| chosen(context, "cluster") },
    Column { heading: "Project", cell: |context, _| chosen(context, "project") },
];

fn user(context: &Value) -> String {
    match (text(context, "user"), text(context, "username")) {
        ("", _) => "(logged out)".to_owned(),
        (user, "") => user.to_owned(),
        (_, username) => username.to_owned(),
    }
}

fn chosen(context: &Value, field: &str) -> String {
    match text(&context[field], "name") {
        "" => text(&context[field], "id").to_owned(),
        name => name.to_owned(),
    }
}

/// Without the token.
pub fn shown(name: &str, context: &Context, current: bool) -> Value {
    let place = |chosen: &Chosen| match chosen.is_none() {
        true => Value::Null,
        false => json!({"id": chosen.id, "name": chosen.name}),
    };
    json!({
        "name": name,
        "current": current,
        "server": context.server,
        "user": context.login.user,
        "username": context.login.username,
        "cluster": place(&context.cluster),
        "project": place(&context.project),
    })
}

pub async fn run(command: ContextCommand) -> Result<(), CliError> {
    match command {
        ContextCommand::Ls { output } => list(output),
        ContextCommand::Current { output } => {
            let api = Api::open(output.server.name())?;
            output::one(output.output, ROWS, &shown(api.name(), api.context(), true))
        }
        ContextCommand::Use { name, cluster, project, clear } => {
            choose(name, cluster.as_deref(), project.as_deref(), clear).await
        }
        ContextCommand::Rm { name } => remove(&name),
    }
}

fn list(format: Format) -> Result<(), CliError> {
    let config = config::load(&config::path()?)?;
    let shown: Vec<Value> = config
        .contexts
        .iter()
        .map(|(name, context)| shown(name, context, *name == config.current))
        .collect();
    output::list(format, COLUMNS, &shown)
}

async fn choose(
    name: Option<String>,
    cluster: Option<&str>,
    project: Option<&str>,
    clear: bool,
) -> Result<(), CliError> {
    let path = config::path()?;
    let mut config = config::load(&path)?;
    if name.is_none() && cluster.is_none() && project.is_none() && !clear {
        return Err(CliError::usage("nothing to choose is given")
            .hint(format!("name a login ({}), or give --cluster or --project", names(&config))));
    }
    let name = name.unwrap_or_else(|| config.current.clone());
    let Some(context) = config.contexts.get(&name) else {
        let text = format!("no login has the name \"{name}\"");
        return Err(CliError::new(Failure::NotFound, text)
            .hint(format!("log in by \"drover login URL\", or use one of: {}", names(&config))));
    };
    let mut context = context.clone();
    if clear {
        (context.cluster, context.project) = (Chosen::default(), Chosen::default());
    } else if cluster.is_some() || project.is_some() {
        (context.cluster, context.project) = look_up(&name, &context, cluster, project).await?;
    }
    let said = place_text(&context);
    config.contexts.insert(name.clone(), context);
    config.current.clone_from(&name);
    config::save(&path, &config)?;
    tell!("commands now use {name}{said}");
    Ok(())
}

/// A context keeps what is there, so that a wrong name is told now.
async fn look_up(
    name: &str,
    context: &Context,
    cluster: Option<&str>,
    project: Option<&str>,
) -> Result<(Chosen, Chosen), CliError> {
    if context.login.token.is_empty() {
        let text = format!("not logged in to \"{name}\"");
        return Err(CliError::new(Failure::Unauthenticated, text)
            .hint(format!("run \"drover login {}\"", context.server)));
    }
    let api = Api::new(name, context.clone())?;
    let (cluster, project) = place::cluster_and_project(&api, cluster, project).await?;
    let chosen =
        |found: &Value| Chosen { id: id(found).to_owned(), name: text(found, "name").to_owned() };
    Ok((chosen(&cluster), project.as_ref().map(chosen).unwrap_or_default()))
}

fn place_text(context: &Context) -> String {
    let part = |word: &str, chosen: &Chosen| match chosen.is_none() {
        true => String::new(),
        false => format!(", {word} {} ({})", chosen.name, chosen.id),
    };
    part("cluster", &context.cluster) + &part("project", &context.project)
}

fn names(config: &Config) -> String {
    let names: Vec<&str> = config.contexts.keys().map(String::as_str).collect();
    if names.is_empty() { "there is none".to_owned() } else { names.join(", ") }
}

fn remove(name: &str) -> Result<(), CliError> {
    let path = config::path()?;
    let mut config = config::load(&path)?;
    match config.contexts.get(name) {
        None => {
            let text = format!("no login has the name \"{name}\"");
            return Err(CliError::new(Failure::NotFound, text)
                .hint(format!("there are: {}", names(&config))));
        }
        Some(context) if !context.login.token.is_empty() => {
            let text = format!("the login \"{name}\" has not been ended");
            return Err(CliError::new(Failure::Conflict, text)
                .hint(format!("run \"drover logout --server {name}\" first")));
        }
        Some(_) => {}
    }
    config.contexts.remove(name);
    if config.current == name {
        config.current.clear();
    }
    config::save(&path, &config)?;
    tell!("forgot {name}");
    Ok(())
}
