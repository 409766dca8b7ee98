//! `drover project ls`.

use crate::api::{self, Api, text};
use crate::args::OutputArgs;
use crate::error::CliError;
use crate::output::{self, Column, age};

pub const COLUMNS: &[Column] = &[
    Column { heading: "NAME", cell: |project, _| text(project, "name").to_owned() },
    Column { heading: "ID", cell: |project, _| text(project, "id").to_owned() },
    Column { heading: "CLUSTER", cell: |project, _| text(project, "clusterId").to_owned() },
    Column { heading: "STATE", cell: |project, _| text(project, "state").to_owned() },
    Column { heading: "AGE", cell: |project, now| age(text(project, "created"), now) },
];

pub async fn list(cluster: Option<&str>, args: OutputArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.server.as_deref())?;
    let projects = match cluster {
        Some(name) => {
            let cluster = api.resolve(&api::CLUSTER, name).await?;
            api.list("projects", &[("clusterId", text(&cluster, "id"))]).await?
        }
        None => api.list("projects", &[]).await?,
    };
    output::list(args.output, COLUMNS, &projects)
}
