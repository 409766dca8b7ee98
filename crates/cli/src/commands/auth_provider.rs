//! `drover auth-provider ls|disable`.

use serde_json::{Value, json};

use crate::api::{Api, id, text};
use crate::args::AuthProviderCommand;
use crate::commands::listing;
use crate::error::{CliError, Failure};
use crate::output::TableColumn;

const CONFIGS: &str = "authConfigs";

pub const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "NAME", cell: |config, _| text(config, "id").to_owned() },
    TableColumn { heading: "ENABLED", cell: |config, _| (config["enabled"] == true).to_string() },
    TableColumn { heading: "ACCESS", cell: |config, _| text(config, "accessMode").to_owned() },
    TableColumn { heading: "TYPE", cell: |config, _| text(config, "type").to_owned() },
];

/// Prints identity providers, or disables one.
///
/// # Errors
/// There is no such provider, it is not enabled, or a request fails.
pub async fn run(command: AuthProviderCommand) -> Result<(), CliError> {
    match command {
        AuthProviderCommand::Ls(args) => {
            let api = Api::open(args.output.server.name())?;
            let read = async || {
                let mut configs = api.list(CONFIGS, &[]).await?;
                configs.sort_by(|a, b| id(a).cmp(id(b)));
                Ok(configs)
            };
            listing::show(&args, COLUMNS, read).await
        }
        AuthProviderCommand::Disable { name, server } => {
            let api = Api::open(server.name())?;
            disable(&api, &name).await?;
            notify!("disabled {name}; all tokens of logins through it end");
            Ok(())
        }
    }
}

async fn disable(api: &Api, name: &str) -> Result<(), CliError> {
    let shows = "\"drover auth-provider ls\" shows all providers";
    let config = api.get(CONFIGS, name, &format!("provider \"{name}\"")).await;
    let config = config.map_err(|error| match error.failure {
        Failure::NotFound => error.hint(shows),
        _ => error,
    })?;
    if config["enabled"] != true || name == "local" {
        let why = if name == "local" { "cannot be disabled" } else { "is not enabled" };
        let text = format!("provider \"{name}\" {why}");
        return Err(CliError::new(Failure::Conflict, text).hint(shows));
    }
    let plural = plural(&config);
    let what = format!("disabling provider \"{name}\"");
    api.action(&plural, name, "disable", &json!({}), &what).await.map(drop)
}

/// The collection of the provider's own type, which has the actions.
fn plural(config: &Value) -> String {
    format!("{}s", text(config, "type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_shown_with_who_may_log_in() {
        let config = json!({"id": "openldap", "type": "openLdapConfig", "enabled": true,
                            "accessMode": "restricted"});
        let cells = COLUMNS.iter().map(|c| (c.cell)(&config, jiff::Timestamp::now()));
        let cells: Vec<_> = cells.collect();
        assert_eq!(cells, ["openldap", "true", "restricted", "openLdapConfig"]);
        assert_eq!(plural(&config), "openLdapConfigs");
    }
}
