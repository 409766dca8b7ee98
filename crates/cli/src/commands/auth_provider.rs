//! `drover auth-provider ls|get|test|enable|disable`.

use serde_json::{Map, Value, json};

use crate::api::{Api, id, text};
use crate::args::{AuthProviderCommand, ProviderLoginArgs};
use crate::browser;
use crate::commands::apply::content;
use crate::commands::listing;
use crate::commands::role::words;
use crate::error::{CliError, Failure};
use crate::output::{self, TableColumn};
use crate::prompt;

const CONFIGS: &str = "authConfigs";

pub const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "NAME", cell: |config, _| text(config, "id").to_owned() },
    TableColumn { heading: "ENABLED", cell: |config, _| (config["enabled"] == true).to_string() },
    TableColumn { heading: "ACCESS", cell: |config, _| text(config, "accessMode").to_owned() },
    TableColumn { heading: "TYPE", cell: |config, _| text(config, "type").to_owned() },
];

const ROWS: &[TableColumn] = &[
    TableColumn { heading: "Name", cell: |config, _| text(config, "id").to_owned() },
    TableColumn { heading: "Type", cell: |config, _| text(config, "type").to_owned() },
    TableColumn { heading: "Enabled", cell: |config, _| (config["enabled"] == true).to_string() },
    TableColumn { heading: "Access", cell: |config, _| text(config, "accessMode").to_owned() },
    TableColumn { heading: "Allowed", cell: |config, _| words(&config["allowedPrincipalIds"]) },
    TableColumn { heading: "Servers", cell: |config, _| words(&config["servers"]) },
    TableColumn { heading: "Issuer", cell: |config, _| text(config, "issuer").to_owned() },
    TableColumn { heading: "Users", cell: |config, _| text(config, "userSearchBase").to_owned() },
    TableColumn { heading: "Groups", cell: |config, _| text(config, "groupSearchBase").to_owned() },
];

const TESTED: &[TableColumn] = &[
    TableColumn { heading: "Principal", cell: |who, _| text(who, "principalId").to_owned() },
    TableColumn { heading: "Groups", cell: |who, _| words(&who["groupPrincipalIds"]) },
];

/// Prints identity providers, or tests, enables or disables one.
///
/// # Errors
/// There is no such provider, the login of the test fails, the provider is not enabled, or a
/// request fails.
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
        AuthProviderCommand::Get { name, output } => {
            let api = Api::open(output.server.name())?;
            output::one(output.output, ROWS, &provider(&api, &name).await?)
        }
        AuthProviderCommand::Test { login, output } => {
            let api = Api::open(output.server.name())?;
            let login = log_in(&api, &login).await?;
            let tested = login.apply(&api, "test", "testing").await?;
            output::one(output.output, TESTED, &tested)
        }
        AuthProviderCommand::Enable { login, server } => {
            let api = Api::open(server.name())?;
            let login = log_in(&api, &login).await?;
            login.apply(&api, "testAndApply", "testing and enabling").await?;
            let TestLogin { provider, who, .. } = login;
            notify!("{who} logged in; {provider} is enabled, and that account there is you here");
            Ok(())
        }
        AuthProviderCommand::Disable { name, server } => {
            let api = Api::open(server.name())?;
            disable(&api, &name).await?;
            notify!("disabled {name}; all tokens of logins through it end");
            Ok(())
        }
    }
}

/// Hint when a provider is not the one that was meant.
const SHOWS: &str = "\"drover auth-provider ls\" shows all providers";

async fn provider(api: &Api, name: &str) -> Result<Value, CliError> {
    let config = api.get(CONFIGS, name, &format!("provider \"{name}\"")).await;
    config.map_err(|error| match error.failure {
        Failure::NotFound => error.hint(SHOWS),
        _ => error,
    })
}

/// The input of the actions that test a configuration.
struct TestLogin {
    provider: String,
    plural: String,
    body: Value,
    /// Who logs in, for people.
    who: String,
}

impl TestLogin {
    async fn apply(&self, api: &Api, action: &str, doing: &str) -> Result<Value, CliError> {
        let what = format!("{doing} provider \"{}\"", self.provider);
        api.action(&self.plural, &self.provider, action, &self.body, &what).await
    }
}

/// Reads the configuration, and asks for what the login with it needs.
async fn log_in(api: &Api, args: &ProviderLoginArgs) -> Result<TestLogin, CliError> {
    if args.password_stdin && args.file.as_os_str() == "-" {
        let text = "both the file and the password are to be read from stdin";
        return Err(CliError::new(Failure::Usage, text).hint("give the file by its name"));
    }
    let name = &args.name;
    let config = provider(api, name).await?;
    let fields = || fields(&content(&args.file)?, &args.file.display().to_string());
    let plural = plural(&config);
    let (body, who) = match login_of(&config) {
        Some(ProviderLogin::Password { field }) => {
            let who = args.username.clone().ok_or_else(|| {
                CliError::usage("the configuration of a directory is tested with an account")
                    .hint("give --username, and its password")
            })?;
            let fields = fields()?;
            let question = format!("password of {who}");
            let instead = "--password-stdin, or DROVER_USER_PASSWORD";
            let given = args.password.clone();
            let password = prompt::read_secret(given, args.password_stdin, &question, instead)?;
            (json!({field: fields, "username": who, "password": password, "enabled": true}), who)
        }
        Some(ProviderLogin::Browser { .. }) if args.file.as_os_str() == "-" => {
            let text = "both the file and the code are to be read from stdin";
            return Err(CliError::new(Failure::Usage, text).hint("give the file by its name"));
        }
        Some(ProviderLogin::Browser { field }) => {
            let fields = fields()?;
            let what = format!("testing provider \"{name}\"");
            let body = Value::Object(fields.clone());
            let begun = api.action(&plural, name, "configureTest", &body, &what).await?;
            browser::open(text(&begun, "redirectUrl"), !args.no_browser);
            let code = browser::code(None).await?;
            (json!({field: fields, "code": code, "enabled": true}), "you".to_owned())
        }
        None => {
            let text = format!("provider \"{name}\" cannot be enabled by this command");
            return Err(CliError::new(Failure::Invalid, text).hint(
                "it is for openldap, freeipa, activedirectory, azuread, github, googleoauth, \
                 keycloakoidc and oidc",
            ));
        }
    };
    Ok(TestLogin { provider: name.clone(), plural, body, who })
}

/// How a configuration is tested, and the field of the action's body that has it.
#[derive(Debug, PartialEq, Eq)]
enum ProviderLogin {
    Password { field: &'static str },
    Browser { field: &'static str },
}

/// `None` for a provider that people cannot log in through.
fn login_of(config: &Value) -> Option<ProviderLogin> {
    match text(config, "type") {
        "activeDirectoryConfig" => Some(ProviderLogin::Password { field: "activeDirectoryConfig" }),
        "openLdapConfig" | "freeIpaConfig" => Some(ProviderLogin::Password { field: "ldapConfig" }),
        "keyCloakOIDCConfig" | "oidcConfig" => Some(ProviderLogin::Browser { field: "oidcConfig" }),
        "azureADConfig" => Some(ProviderLogin::Browser { field: "config" }),
        "googleOauthConfig" => Some(ProviderLogin::Browser { field: "googleOauthConfig" }),
        "githubConfig" => Some(ProviderLogin::Browser { field: "githubConfig" }),
        _ => None,
    }
}

/// The fields of a configuration in a file.
fn fields(content: &str, file: &str) -> Result<Map<String, Value>, CliError> {
    serde_saphyr::from_str(content).map_err(|error| {
        CliError::new(Failure::Invalid, format!("reading \"{file}\": {error}"))
            .hint("the file has one field of the configuration per line, such as: port: 636")
    })
}

async fn disable(api: &Api, name: &str) -> Result<(), CliError> {
    let config = provider(api, name).await?;
    if config["enabled"] != true || name == "local" {
        let why = if name == "local" { "cannot be disabled" } else { "is not enabled" };
        let text = format!("provider \"{name}\" {why}");
        return Err(CliError::new(Failure::Conflict, text).hint(SHOWS));
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
        assert_eq!(login_of(&config), Some(ProviderLogin::Password { field: "ldapConfig" }));
        assert_eq!(login_of(&json!({"type": "oktaConfig"})), None);
    }

    #[test]
    fn a_file_has_the_fields_of_the_configuration() {
        let read = fields("servers: [ldap.example.org]\nport: 636\ntls: true\n", "f").unwrap();
        assert_eq!(read["port"], 636);
        let error = fields("- one\n", "f").unwrap_err();
        assert!(error.to_string().contains("reading \"f\""), "{error}");
    }
}
