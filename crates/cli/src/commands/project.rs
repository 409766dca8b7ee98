//! `drover project …`.

mod quota;

use serde_json::{Value, json};

use crate::api::{Api, id, text};
use crate::args::{OutputArgs, ProjectCommand, ProjectMember, WaitArgs};
use crate::commands::{listing, pod_security, role, scope, wait};
use crate::effect;
use crate::error::{CliError, Failure};
use crate::output::{self, Columns, TableColumn, age};
use crate::prompt;

pub const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "NAME", cell: |project, _| text(project, "name").to_owned() },
    TableColumn { heading: "ID", cell: |project, _| text(project, "id").to_owned() },
    TableColumn { heading: "CLUSTER", cell: |project, _| scope::cluster_shown(project) },
    TableColumn { heading: "STATE", cell: |project, _| effect::state(project) },
    TableColumn { heading: "AGE", cell: |project, now| age(text(project, "created"), now) },
];

const ROWS: &[TableColumn] = &[
    TableColumn { heading: "Name", cell: |project, _| text(project, "name").to_owned() },
    TableColumn { heading: "Id", cell: |project, _| text(project, "id").to_owned() },
    TableColumn {
        heading: "Description",
        cell: |project, _| text(project, "description").to_owned(),
    },
    TableColumn { heading: "Cluster", cell: |project, _| scope::cluster_shown(project) },
    TableColumn { heading: "State", cell: |project, _| effect::state(project) },
    TableColumn { heading: "Created", cell: |project, _| text(project, "created").to_owned() },
];

const LISTED: Columns = Columns {
    always: COLUMNS,
    wide: &[
        TableColumn {
            heading: "CLUSTER ID",
            cell: |project, _| text(project, "clusterId").to_owned(),
        },
        TableColumn {
            heading: "DESCRIPTION",
            cell: |project, _| text(project, "description").to_owned(),
        },
    ],
};

/// Lists, creates or removes projects, and changes their members.
///
/// # Errors
/// The cluster or the project does not exist, or a request fails.
pub async fn run(command: ProjectCommand) -> Result<(), CliError> {
    match command {
        ProjectCommand::Ls { cluster, all_clusters, list } => {
            let api = Api::open(list.output.server.name())?;
            let cluster = match all_clusters {
                true => None,
                false => scope::chosen_cluster(&api, cluster.name()).await?,
            };
            let filter: Vec<_> = cluster.iter().map(|cluster| ("clusterId", id(cluster))).collect();
            let read = async || {
                let mut projects = api.list("projects", &filter).await?;
                scope::name_clusters(&api, list.format(), &mut projects).await?;
                Ok(projects)
            };
            listing::show(&list, LISTED, read).await
        }
        ProjectCommand::Get { project, cluster, output } => {
            let api = Api::open(output.server.name())?;
            let mut project = scope::project(&api, cluster.name(), &project).await?;
            let shown = std::slice::from_mut(&mut project);
            scope::name_clusters(&api, output.output, shown).await?;
            effect::warn_if_none(&project, &format!("project \"{}\"", text(&project, "name")));
            output::one(output.output, ROWS, &project)
        }
        ProjectCommand::Create { name, description, cluster, wait, output } => {
            let api = Api::open(output.server.name())?;
            let cluster = scope::cluster(&api, cluster.name()).await?;
            create(&api, &cluster, &name, description.as_deref(), &wait, &output).await
        }
        ProjectCommand::Rm { project, yes, cluster, server } => {
            let api = Api::open(server.name())?;
            let project = scope::project(&api, cluster.name(), &project).await?;
            remove(&api, &project, yes).await
        }
        ProjectCommand::Quota { project, changes } => quota::run(&project, changes).await,
        ProjectCommand::PodSecurity { project, change, cluster, server } => {
            pod_security::of_project(&project, &change, cluster.name(), server.name()).await
        }
        ProjectCommand::Members { project, cluster, list } => {
            let api = Api::open(list.output.server.name())?;
            let project = scope::project(&api, cluster.name(), &project).await?;
            let filter = ("projectId", id(&project));
            role::show_bindings(&api, role::PROJECT_BINDINGS, &[filter], &list).await
        }
        ProjectCommand::AddMember { member, output } => {
            let api = Api::open(output.server.name())?;
            role_of(&api, &member).await?.grant(&api, output.output).await
        }
        ProjectCommand::RemoveMember { member, server } => {
            let api = Api::open(server.name())?;
            role_of(&api, &member).await?.revoke(&api).await
        }
    }
}

async fn role_of(api: &Api, member: &ProjectMember) -> Result<role::Binding, CliError> {
    let project = scope::project(api, member.cluster.name(), &member.project).await?;
    role::Binding::in_project(api, &project, &member.role, &member.holder).await
}

async fn create(
    api: &Api,
    cluster: &Value,
    name: &str,
    description: Option<&str>,
    wait: &WaitArgs,
    args: &OutputArgs,
) -> Result<(), CliError> {
    // The server accepts a name twice; a user who types it again made a mistake.
    let known = api.list("projects", &[("clusterId", id(cluster)), ("name", name)]).await?;
    if let Some(known) = known.iter().find(|project| text(project, "name") == name) {
        let message = format!("the name \"{name}\" is taken by project {}", id(known));
        return Err(CliError::new(Failure::Conflict, message).hint("choose another name"));
    }
    let mut body = json!({"name": name, "clusterId": id(cluster)});
    if let Some(description) = description {
        body["description"] = description.into();
    }
    let what = format!("creating project \"{name}\"");
    let mut project = api.create("projects", &body, &what).await?;
    if wait.wait {
        let goal = wait::Goal::active();
        project = wait::until(api, "projects", &project, &goal, wait.timeout).await?;
    }
    effect::warn_if_none(&project, &format!("project \"{name}\""));
    output::print_created(args.output, &project)?;
    notify!(
        "created project {}; next: drover namespace create NAME --project {}",
        name,
        id(&project)
    );
    Ok(())
}

async fn remove(api: &Api, project: &Value, yes: bool) -> Result<(), CliError> {
    let (name, id) = (text(project, "name"), id(project));
    if !yes && !prompt::confirm(&format!("Delete project {name} ({id})?"), "--yes")? {
        return Err(CliError::new(Failure::Other, "nothing was deleted"));
    }
    api.delete("projects", id, &format!("deleting project \"{name}\"")).await?;
    notify!("deleted project {name}");
    Ok(())
}
