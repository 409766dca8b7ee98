//! `drover user …`.

use serde_json::{Value, json};

use crate::api::{self, Api, id, text};
use crate::args::UserCommand;
use crate::commands::listing;
use crate::commands::password::{self, new_password};
use crate::commands::role::GLOBAL_BINDINGS;
use crate::error::{CliError, Failure};
use crate::output::{self, Columns, TableColumn, age};
use crate::prompt;

pub const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "USERNAME", cell: |user, _| text(user, "username").to_owned() },
    TableColumn { heading: "ID", cell: |user, _| text(user, "id").to_owned() },
    TableColumn { heading: "NAME", cell: |user, _| text(user, "name").to_owned() },
    TableColumn {
        heading: "ENABLED",
        cell: |user, _| if user["enabled"] == false { "no" } else { "yes" }.to_owned(),
    },
    TableColumn { heading: "AGE", cell: |user, now| age(text(user, "created"), now) },
];

const ROWS: &[TableColumn] = &[
    TableColumn { heading: "Username", cell: |user, _| text(user, "username").to_owned() },
    TableColumn { heading: "Id", cell: |user, _| text(user, "id").to_owned() },
    TableColumn { heading: "Name", cell: |user, _| text(user, "name").to_owned() },
    TableColumn { heading: "Description", cell: |user, _| text(user, "description").to_owned() },
    TableColumn { heading: "State", cell: |user, _| text(user, "state").to_owned() },
    TableColumn {
        heading: "Enabled",
        cell: |user, _| if user["enabled"] == false { "no" } else { "yes" }.to_owned(),
    },
    TableColumn { heading: "Created", cell: |user, _| text(user, "created").to_owned() },
];

const LISTED: Columns = Columns {
    always: COLUMNS,
    wide: &[
        TableColumn {
            heading: "DESCRIPTION",
            cell: |user, _| text(user, "description").to_owned(),
        },
        TableColumn {
            heading: "MUST CHANGE PASSWORD",
            cell: |user, _| {
                if user["mustChangePassword"] == true { "yes" } else { "no" }.to_owned()
            },
        },
    ],
};

/// Lists, creates, changes or removes users.
///
/// # Errors
/// The user does not exist, or a request fails.
pub async fn run(command: UserCommand) -> Result<(), CliError> {
    match command {
        UserCommand::Ls(args) => {
            let api = Api::open(args.output.server.name())?;
            listing::show(&args, LISTED, async || api.list("users", &[]).await).await
        }
        UserCommand::Get { user, output } => {
            let api = Api::open(output.server.name())?;
            output::one(output.output, ROWS, &api.resolve(&api::USER, &user).await?)
        }
        UserCommand::Create {
            username,
            display_name,
            global_role,
            no_global_role,
            password,
            output,
        } => {
            let api = Api::open(output.server.name())?;
            // A role that does not exist is found before the user is made.
            let roles = match no_global_role {
                true => Vec::new(),
                false => first_roles(&api, &global_role).await?,
            };
            let password = new_password(password, &username)?;
            let name = display_name.unwrap_or_else(|| username.clone());
            let body = json!({"username": username, "name": name, "password": password});
            let what = format!("creating user \"{username}\"");
            let user = api.create("users", &body, &what).await?;
            output::print_created(output.output, &user)?;
            give_first_roles(&api, &user, &roles).await
        }
        UserCommand::Disable { users, server } => {
            enable(&Api::open(server.name())?, &users, false).await
        }
        UserCommand::Enable { users, server } => {
            enable(&Api::open(server.name())?, &users, true).await
        }
        UserCommand::SetPassword { user: Some(user), password, end_tokens, server, .. } => {
            let api = Api::open(server.name())?;
            let found = api.resolve(&api::USER, &user).await?;
            let password = new_password(password, &user)?;
            set_password(&api, &found, &password, end_tokens).await
        }
        UserCommand::SetPassword {
            user: None,
            current_password,
            current_password_stdin,
            password,
            end_tokens,
            server,
        } => {
            let api = Api::open(server.name())?;
            let current = prompt::read_secret(
                current_password,
                current_password_stdin,
                "current password",
                "--current-password-stdin, or DROVER_PASSWORD",
            )?;
            let login = api.login();
            let own = if login.username.is_empty() { &login.user } else { &login.username };
            let new = new_password(password, own)?;
            password::change_own(&api, &current, &new, end_tokens).await
        }
        UserCommand::Rm { users, yes, server } => {
            let api = Api::open(server.name())?;
            remove(&api, &users, yes).await
        }
    }
}

async fn give_first_roles(api: &Api, user: &Value, roles: &[String]) -> Result<(), CliError> {
    let username = text(user, "username");
    for role in roles {
        let body = json!({"globalRoleId": role, "userId": id(user)});
        let what = format!("giving \"{username}\" the global role \"{role}\"");
        let given = api.create(GLOBAL_BINDINGS, &body, &what).await;
        given.map_err(|error| {
            error.hint(format!(
                "the user was made; give the role with: drover role grant {role} --global --user \
                 {username}"
            ))
        })?;
    }
    let given = if roles.is_empty() { "no global role".to_owned() } else { roles.join(", ") };
    notify!("created user {username} with {given}; grant more with \"drover role grant\"");
    Ok(())
}

/// Ids of the global roles that a new user gets: the given ones, or those that new users have.
async fn first_roles(api: &Api, given: &[String]) -> Result<Vec<String>, CliError> {
    let mut roles = Vec::new();
    if given.is_empty() {
        let defaults = api.list(api::GLOBAL_ROLE.plural, &[("newUserDefault", "true")]).await?;
        let is_default = |role: &&Value| role["newUserDefault"] == true;
        roles.extend(defaults.iter().filter(is_default).map(|role| id(role).to_owned()));
    }
    for role in given {
        roles.push(id(&api.resolve(&api::GLOBAL_ROLE, role).await?).to_owned());
    }
    Ok(roles)
}

/// Sets a user's password without the previous one.
async fn set_password(
    api: &Api,
    user: &Value,
    new: &str,
    end_tokens: bool,
) -> Result<(), CliError> {
    let name = api::name(user);
    let body = json!({"newPassword": new, "endTokens": end_tokens});
    let what = format!("setting the password of \"{name}\"");
    let done = api.action("users", id(user), "setpassword", &body, &what).await;
    let done = done.map_err(|mut error| {
        if error.failure == Failure::Forbidden && id(user) == api.login().user {
            // Changing it needs no further right.
            error.denied = None;
            return error.hint("leave out the name to change your own password");
        }
        error
    })?;
    notify!("{name} has a new password; logins and tokens ended: {}", password::ended_count(&done));
    password::report_remaining_tokens(&done);
    Ok(())
}

/// All names are resolved before the first user is changed.
async fn enable(api: &Api, users: &[String], enabled: bool) -> Result<(), CliError> {
    let word = if enabled { "enabled" } else { "disabled" };
    let mut found = Vec::new();
    for name in users {
        found.push(api.resolve(&api::USER, name).await?);
    }
    for (user, name) in found.iter().zip(users) {
        let what = format!("user \"{name}\" is not {word}");
        api.update("users", id(user), &json!({"enabled": enabled}), &what).await?;
        notify!("{word} user {name}");
    }
    Ok(())
}

/// All names are resolved before the first user is deleted.
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
        notify!("deleted user {name}");
    }
    Ok(())
}
