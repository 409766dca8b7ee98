//! `drover version`: of this program and of its server.

use http::Method;
use serde_json::{Value, json};

use crate::api::{Api, text};
use crate::args::VersionArgs;
use crate::error::{CliError, Failure};
use crate::output::{self, TableColumn};

const ROWS: &[TableColumn] = &[
    TableColumn { heading: "Client", cell: |version, _| text(version, "client").to_owned() },
    TableColumn {
        heading: "Server",
        cell: |version, _| text(&version["server"], "url").to_owned(),
    },
    TableColumn {
        heading: "Rancher API",
        cell: |version, _| text(&version["server"], "rancher").to_owned(),
    },
    TableColumn {
        heading: "Kubernetes API",
        cell: |version, _| text(&version["server"], "kubernetes").to_owned(),
    },
];

/// Prints the versions of this program and of the server.
///
/// # Errors
/// The server does not respond.
pub async fn run(args: VersionArgs) -> Result<(), CliError> {
    let format = args.output.output;
    let mut version = json!({"client": env!("CARGO_PKG_VERSION")});
    if args.client {
        return output::one(format, ROWS, &version);
    }
    let server = match Api::open(args.output.server.name()) {
        Ok(api) => server_version(&api).await,
        Err(error) => Err(error),
    };
    // The version of this program is shown in any case.
    match server {
        Ok(server) => {
            version["server"] = server;
            output::one(format, ROWS, &version)
        }
        Err(error) => {
            output::one(format, ROWS, &version)?;
            Err(match error.failure {
                Failure::Unauthenticated => error.during("the server's version"),
                _ => error,
            })
        }
    }
}

async fn server_version(api: &Api) -> Result<Value, CliError> {
    let what = "the server's version";
    let kubernetes = api.call(Method::GET, "/version", None, what).await?;
    let rancher = api.get("settings", api_management::setting::SERVER_VERSION, what).await?;
    Ok(json!({
        "url": api.url(),
        // The versions whose clients the server works with.
        "rancher": text(&rancher, "value"),
        "kubernetes": text(&kubernetes, "gitVersion"),
    }))
}
