//! `drover context ls|use|current|rm`: which login, cluster and project commands use.

use serde_json::{Value, json};

use crate::api::{Api, id, text};
use crate::args::{ContextCommand, OutputFormat};
use crate::commands::scope;
use crate::config::{self, Config, LoginContext, Selection};
use crate::error::{CliError, Failure};
use crate::output::{self, TableColumn};

pub const COLUMNS: &[TableColumn] = &[
    TableColumn {
        heading: "CURRENT",
        cell: |context, _| if context["current"] == true { "*" } else { " " }.to_owned(),
    },
    TableColumn { heading: "NAME", cell: |context, _| text(context, "name").to_owned() },
    TableColumn { heading: "SERVER", cell: |context, _| text(context, "server").to_owned() },
    TableColumn { heading: "USER", cell: |context, _| user(context) },
    TableColumn { heading: "CLUSTER", cell: |context, _| chosen(context, "cluster") },
    TableColumn { heading: "PROJECT", cell: |context, _| chosen(context, "project") },
];

const ROWS: &[TableColumn] = &[
    TableColumn { heading: "Name", cell: |context, _| text(context, "name").to_owned() },
    TableColumn { heading: "Server", cell: |context, _| text(context, "server").to_owned() },
    TableColumn { heading: "User", cell: |context, _| user(context) },
    TableColumn { heading: "Cluster", cell: |context, _| chosen(context, "cluster") },
    TableColumn { heading: "Project", cell: |context, _| chosen(context, "project") },
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

/// The JSON of a context, without the token.
pub fn context_json(name: &str, context: &LoginContext, current: bool) -> Value {
    let scope = |chosen: &Selection| match chosen.is_none() {
        true => Value::Null,
        false => json!({"id": chosen.id, "name": chosen.name}),
    };
    json!({
        "name": name,
        "current": current,
        "server": context.server,
        "user": context.login.user,
        "username": context.login.username,
        "cluster": scope(&context.cluster),
        "project": scope(&context.project),
    })
}

/// Prints or changes the stored logins and their defaults.
///
/// # Errors
/// No login has this name, or the configuration cannot be written.
pub async fn run(command: ContextCommand) -> Result<(), CliError> {
    match command {
        ContextCommand::Ls { output } => list(output),
        ContextCommand::Current { output } => {
            let api = Api::open(output.server.name())?;
            output::one(output.output, ROWS, &context_json(api.name(), api.context(), true))
        }
        ContextCommand::Use { name, cluster, project, clear } => {
            choose(name, cluster.as_deref(), project.as_deref(), clear).await
        }
        ContextCommand::Rm { name } => remove(&name),
    }
}

fn list(format: OutputFormat) -> Result<(), CliError> {
    let config = config::load(&config::path()?)?;
    let shown: Vec<Value> = config
        .contexts
        .iter()
        .map(|(name, context)| context_json(name, context, *name == config.current))
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
        return Err(CliError::usage("no login, cluster or project is given")
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
        (context.cluster, context.project) = (Selection::default(), Selection::default());
    } else if cluster.is_some() || project.is_some() {
        (context.cluster, context.project) =
            resolve_scope(&name, &context, cluster, project).await?;
    }
    let scope_note = scope_text(&context);
    config.contexts.insert(name.clone(), context);
    config.current.clone_from(&name);
    config::save(&path, &config)?;
    notify!("commands now use {name}{scope_note}");
    Ok(())
}

/// Resolves a cluster and a project, so that a wrong name is an error now and not when it is used.
async fn resolve_scope(
    name: &str,
    context: &LoginContext,
    cluster: Option<&str>,
    project: Option<&str>,
) -> Result<(Selection, Selection), CliError> {
    if context.login.token.is_empty() {
        let text = format!("not logged in to \"{name}\"");
        return Err(CliError::new(Failure::Unauthenticated, text)
            .hint(format!("run \"drover login {}\"", context.server)));
    }
    let api = Api::new(name, context.clone())?;
    let (cluster, project) = scope::cluster_and_project(&api, cluster, project).await?;
    let chosen = |found: &Value| Selection {
        id: id(found).to_owned(),
        name: text(found, "name").to_owned(),
    };
    Ok((chosen(&cluster), project.as_ref().map(chosen).unwrap_or_default()))
}

fn scope_text(context: &LoginContext) -> String {
    let part = |word: &str, chosen: &Selection| match chosen.is_none() {
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
    notify!("forgot {name}");
    Ok(())
}
