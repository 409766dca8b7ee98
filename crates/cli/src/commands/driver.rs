//! `drover driver …`: cluster drivers of a server, their options, and the checks of any driver.

mod conformance;

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::api::{self, Api, NamedType, id, text};
use crate::args::{DriverAddArgs, DriverCommand, DriverFields, DriverUpdateArgs};
use crate::commands::driver_options::{self, DriverOptions};
use crate::commands::listing;
use crate::commands::wait::POLL_EVERY;
use crate::error::{CliError, Failure};
use crate::output::{self, Columns, TableColumn, age};

pub const DRIVER: NamedType<'_> =
    NamedType { singular: "driver", plural: "kontainerdrivers", name_field: "name", inside: None };

/// A server sees a change within milliseconds, and may fail again in the same way.
const REACTION_TIME_MAX: Duration = Duration::from_secs(3);

const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "NAME", cell: |driver, _| text(driver, "name").to_owned() },
    TableColumn { heading: "ID", cell: |driver, _| id(driver).to_owned() },
    TableColumn { heading: "STATE", cell: |driver, _| text(driver, "state").to_owned() },
    TableColumn { heading: "URL", cell: |driver, _| text(driver, "url").to_owned() },
    TableColumn { heading: "AGE", cell: |driver, now| age(text(driver, "created"), now) },
];
const LISTED: Columns = Columns {
    always: COLUMNS,
    wide: &[
        TableColumn {
            heading: "MESSAGE",
            cell: |driver, _| text(driver, "transitioningMessage").to_owned(),
        },
        TableColumn { heading: "CHECKSUM", cell: |driver, _| text(driver, "checksum").to_owned() },
    ],
};

/// Lists, adds, changes, removes, activates or deactivates drivers, or checks one; the exit code is
/// 1 if that does not keep to the contract.
///
/// # Errors
/// The driver does not exist, or a request fails.
pub async fn run(command: DriverCommand) -> Result<ExitCode, CliError> {
    match command {
        DriverCommand::Conformance(args) => return conformance::run(args).await,
        DriverCommand::Ls(args) => {
            let api = Api::open(args.output.server.name())?;
            let read = async || api.list(DRIVER.plural, &[]).await;
            listing::show(&args, LISTED, read).await?;
        }
        DriverCommand::Options { driver, output: args } => {
            let api = Api::open(args.server.name())?;
            let options = DriverOptions::of_driver(&api, &driver).await?;
            output::list(args.output, driver_options::COLUMNS, &options.rows())?;
        }
        DriverCommand::Add(args) => add(&args).await?,
        DriverCommand::Update(args) => update(&args).await?,
        DriverCommand::Activate { driver, wait, server } => {
            let api = Api::open(server.name())?;
            let found = switch(&api, &driver, "activate").await?;
            if wait.wait {
                wait_until_used(&api, &found, &wait).await?;
            }
        }
        DriverCommand::Deactivate { drivers, server } => {
            let api = Api::open(server.name())?;
            for driver in &drivers {
                switch(&api, driver, "deactivate").await?;
            }
        }
        DriverCommand::Rm { drivers, server } => {
            let api = Api::open(server.name())?;
            for driver in &drivers {
                let found = api.resolve(&DRIVER, driver).await?;
                let what = format!("removing driver \"{driver}\"");
                api.delete(DRIVER.plural, id(&found), &what).await?;
                notify!("removed driver {driver}");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn add(args: &DriverAddArgs) -> Result<(), CliError> {
    let api = Api::open(args.output.server.name())?;
    let mut body = given(&args.fields);
    body.insert("url".to_owned(), args.url.clone().into());
    body.insert("active".to_owned(), (!args.inactive).into());
    let body = body.into();
    let driver = api.create(DRIVER.plural, &body, &format!("adding driver {}", args.url)).await?;
    output::print_created(args.output.output, &driver)?;
    if args.wait.wait && !args.inactive {
        wait_until_used(&api, &driver, &args.wait).await?;
    }
    Ok(())
}

async fn update(args: &DriverUpdateArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.name())?;
    let before = api.resolve(&DRIVER, &args.driver).await?;
    let mut body = given(&args.fields);
    if let Some(url) = &args.url {
        body.insert("url".to_owned(), url.clone().into());
        // The one of the former program cannot be that of another.
        body.entry("checksum").or_insert("".into());
    }
    let what = format!("changing driver \"{}\"", args.driver);
    api.update(DRIVER.plural, id(&before), &body.into(), &what).await?;
    notify!("changed driver {}", args.driver);
    if args.wait.wait {
        wait_for_reaction(&api, &before).await?;
        wait_until_used(&api, &before, &args.wait).await?;
    }
    Ok(())
}

/// The fields that users gave.
fn given(fields: &DriverFields) -> Map<String, Value> {
    let texts = [("name", &fields.name), ("checksum", &fields.checksum), ("uiUrl", &fields.ui_url)];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name, text.clone()?.into())));
    let domains = Some(&fields.domains).filter(|domains| !domains.is_empty());
    let domains = domains.map(|domains| ("whitelistDomains", domains.clone().into()));
    texts.chain(domains).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Waits until the server has seen that a driver with an error was changed: for a moment the error
/// is that of the former program.
async fn wait_for_reaction(api: &Api, before: &Value) -> Result<(), CliError> {
    let shown = |driver: &Value| {
        ["state", "transitioning", "transitioningMessage"].map(|field| driver[field].clone())
    };
    let deadline = Instant::now() + REACTION_TIME_MAX;
    while text(before, "transitioning") == "error" && Instant::now() < deadline {
        let now = api.get(DRIVER.plural, id(before), "reading the driver").await?;
        if shown(&now) != shown(before) {
            break;
        }
        sleep(POLL_EVERY).await;
    }
    Ok(())
}

/// Runs an action that may have no effect because it was run before.
async fn switch(api: &Api, driver: &str, action: &str) -> Result<Value, CliError> {
    let found = api.resolve(&DRIVER, driver).await?;
    let is_done = (found["active"] == true) == (action == "activate");
    if is_done {
        notify!("driver {driver} was {action}d before");
        return Ok(found);
    }
    let what = format!("{action} driver \"{driver}\"");
    api.action(DRIVER.plural, id(&found), action, &json!({}), &what).await?;
    notify!("{action}d driver {driver}");
    Ok(found)
}

/// Waits until a driver can be used.
///
/// # Errors
/// It cannot be fetched or started, with the reason; or the time has passed.
async fn wait_until_used(
    api: &Api,
    driver: &Value,
    wait: &crate::args::WaitArgs,
) -> Result<(), CliError> {
    let deadline = Instant::now() + wait.timeout;
    loop {
        let now = api.get(DRIVER.plural, id(driver), "reading the driver").await?;
        let (state, message) = (text(&now, "state"), text(&now, "transitioningMessage"));
        let name = api::name(&now);
        if state == "active" {
            let remark = if message.is_empty() { String::new() } else { format!("; {message}") };
            notify!("driver {name} is active{remark}");
            return Ok(());
        }
        if text(&now, "transitioning") == "error" {
            return Err(CliError::new(Failure::Other, format!("driver {name}: {message}"))
                .hint("the server tries again every two minutes, and when the driver is changed"));
        }
        if Instant::now() >= deadline {
            let limit = wait.timeout.as_secs();
            let text = format!("driver {name} is {state} after {limit} s; it goes on");
            return Err(CliError::new(Failure::Timeout, text)
                .hint("\"drover driver ls\" shows how it goes"));
        }
        sleep(POLL_EVERY).await;
    }
}
