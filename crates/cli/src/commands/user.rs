//! `drover user ls|create|rm`.

use serde_json::json;

use crate::api::{self, Api, text};
use crate::args::{Format, UserCommand};
use crate::error::CliError;
use crate::output::{self, Column, age};
use crate::prompt;

pub const COLUMNS: &[Column] = &[
    Column { heading: "USERNAME", cell: |user, _| text(user, "username").to_owned() },
    Column { heading: "ID", cell: |user, _| text(user, "id").to_owned() },
    Column { heading: "NAME", cell: |user, _| text(user, "name").to_owned() },
    Column {
        heading: "ENABLED",
        cell: |user, _| if user["enabled"] == false { "no" } else { "yes" }.to_owned(),
    },
    Column { heading: "AGE", cell: |user, now| age(text(user, "created"), now) },
];

pub async fn run(command: UserCommand) -> Result<(), CliError> {
    match command {
        UserCommand::Ls(args) => {
            let api = Api::open(args.server.server.as_deref())?;
            output::list(args.output, COLUMNS, &api.list("users", &[]).await?)
        }
        UserCommand::Create { username, display_name, password, output } => {
            let api = Api::open(output.server.server.as_deref())?;
            let instead = "--password, or DROVER_USER_PASSWORD";
            let password = match password {
                Some(password) => password,
                None => prompt::secret(&format!("password for {username}"), instead)?,
            };
            let name = display_name.unwrap_or_else(|| username.clone());
            let body = json!({"username": username, "name": name, "password": password});
            let what = format!("creating user \"{username}\"");
            let user = api.create("users", &body, &what).await?;
            match output.output {
                Format::Table => output::print(text(&user, "id"))?,
                format => output::one(format, &[], &user)?,
            }
            eprintln!("created user {username}; give rights with \"drover role grant\"");
            Ok(())
        }
        UserCommand::Rm { users, yes, server } => {
            let api = Api::open(server.server.as_deref())?;
            remove(&api, &users, yes).await
        }
    }
}

/// All names are resolved before the first user goes.
async fn remove(api: &Api, users: &[String], yes: bool) -> Result<(), CliError> {
    let mut found = Vec::new();
    for name in users {
        found.push(api.resolve(&api::USER, name).await?);
    }
    for user in found {
        let (id, name) = (text(&user, "id"), text(&user, "username"));
        if !yes && !prompt::confirm(&format!("Delete user {name} ({id})?"), "--yes")? {
            continue;
        }
        api.delete("users", id, &format!("deleting user \"{name}\"")).await?;
        eprintln!("deleted user {name}");
    }
    Ok(())
}
