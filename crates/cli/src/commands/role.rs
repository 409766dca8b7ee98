//! `drover role …`: role templates and global roles, and their bindings to users and groups.

use api_management::user::LOCAL_PRINCIPAL;
use http::Method;
use serde_json::{Value, json};

use crate::api::{self, Api, encode, id, text};
use crate::args::{ListArgs, OutputFormat, RoleCommand, RoleHolder, RoleTarget};
use crate::commands::{listing, scope};
use crate::effect;
use crate::error::{CliError, Failure};
use crate::output::{self, TableColumn};

pub const CLUSTER_BINDINGS: &str = "clusterroletemplatebindings";
pub const PROJECT_BINDINGS: &str = "projectroletemplatebindings";
pub const GLOBAL_BINDINGS: &str = "globalrolebindings";

/// Hint for a server that does not offer roles in projects.
const NO_PROJECT_ROLES: &str = "if the project exists, this server offers no roles in projects; grant \
                                one in its cluster: drover role grant ROLE --user U --cluster C";

pub const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "NAME", cell: |role, _| text(role, "name").to_owned() },
    TableColumn { heading: "ID", cell: |role, _| text(role, "id").to_owned() },
    TableColumn { heading: "CONTEXT", cell: |role, _| text(role, "context").to_owned() },
    TableColumn {
        heading: "BUILTIN",
        cell: |role, _| if role["builtin"] == true { "yes" } else { "" }.to_owned(),
    },
    TableColumn { heading: "DESCRIPTION", cell: |role, _| text(role, "description").to_owned() },
];

const ROWS: &[TableColumn] = &[
    TableColumn { heading: "Name", cell: |role, _| text(role, "name").to_owned() },
    TableColumn { heading: "Id", cell: |role, _| text(role, "id").to_owned() },
    TableColumn { heading: "Description", cell: |role, _| text(role, "description").to_owned() },
    TableColumn { heading: "Context", cell: |role, _| text(role, "context").to_owned() },
    TableColumn { heading: "Includes", cell: |role, _| words(&role["roleTemplateIds"]) },
    TableColumn { heading: "Rules", cell: |role, _| rules(role) },
];

const BINDING_COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "WHO", cell: |binding, _| who(binding) },
    TableColumn {
        heading: "ROLE",
        cell: |binding, _| match text(binding, "roleTemplateId") {
            "" => text(binding, "globalRoleId").to_owned(),
            role => role.to_owned(),
        },
    },
    TableColumn { heading: "ID", cell: |binding, _| text(binding, "id").to_owned() },
];

/// The strings of a list, separated by commas.
pub fn words(list: &Value) -> String {
    let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(", ")
}

/// The rules, one per line.
fn rules(role: &Value) -> String {
    let rules = role["rules"].as_array().into_iter().flatten();
    rules.map(rule).collect::<Vec<_>>().join("\n")
}

/// A rule: verbs, then resources; empty for no rule.
pub fn rule(rule: &Value) -> String {
    if !rule.is_object() {
        return String::new();
    }
    let on = match words(&rule["resources"]) {
        empty if empty.is_empty() => words(&rule["nonResourceURLs"]),
        resources => resources,
    };
    let of = prefixed(" of ", &words(&rule["apiGroups"]));
    let named = prefixed(" named ", &words(&rule["resourceNames"]));
    format!("{} on {on}{of}{named}", words(&rule["verbs"]))
}

fn prefixed(prefix: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{prefix}{text}") }
}

/// The name of the user if known, else the id of the user or group.
fn who(binding: &Value) -> String {
    ["username", "userId", "userPrincipalId", "groupPrincipalId", "groupId"]
        .into_iter()
        .map(|field| text(binding, field))
        .find(|text| !text.is_empty())
        .unwrap_or_default()
        .to_owned()
}

/// Lists role templates and bindings, grants and revokes roles.
///
/// # Errors
/// The role, user, cluster or project does not exist, or a request fails.
pub async fn run(command: RoleCommand) -> Result<(), CliError> {
    match command {
        RoleCommand::Ls(args) => {
            let api = Api::open(args.output.server.name())?;
            listing::show(&args, COLUMNS, async || all_roles(&api).await).await
        }
        RoleCommand::Get { role, output } => {
            let api = Api::open(output.server.name())?;
            output::one(output.output, ROWS, &any_role(&api, &role).await?)
        }
        RoleCommand::Bindings { scope, list } => {
            let api = Api::open(list.output.server.name())?;
            match &scope.project.project {
                _ if scope.global => show_bindings(&api, GLOBAL_BINDINGS, &[], &list).await,
                Some(project) => {
                    let project = scope::project(&api, scope.cluster.name(), project).await?;
                    let filter = ("projectId", id(&project));
                    show_bindings(&api, PROJECT_BINDINGS, &[filter], &list).await
                }
                None => {
                    let cluster = scope::cluster(&api, scope.cluster.name()).await?;
                    let filter = ("clusterId", id(&cluster));
                    show_bindings(&api, CLUSTER_BINDINGS, &[filter], &list).await
                }
            }
        }
        RoleCommand::Grant { target, output } => {
            let api = Api::open(output.server.name())?;
            Binding::of(&api, &target).await?.grant(&api, output.output).await
        }
        RoleCommand::Revoke { target, server } => {
            let api = Api::open(server.name())?;
            Binding::of(&api, &target).await?.revoke(&api).await
        }
    }
}

/// Role templates, and the global roles that the caller sees, whose context is `global`.
async fn all_roles(api: &Api) -> Result<Vec<Value>, CliError> {
    let mut roles = api.list(api::ROLE.plural, &[]).await?;
    let global = match api.list(api::GLOBAL_ROLE.plural, &[]).await {
        Ok(global) => global,
        Err(error) if error.failure == Failure::Forbidden => Vec::new(),
        Err(error) => return Err(error),
    };
    roles.extend(global.into_iter().map(in_global_context));
    Ok(roles)
}

async fn any_role(api: &Api, name: &str) -> Result<Value, CliError> {
    match api.resolve(&api::ROLE, name).await {
        Err(error) if error.failure == Failure::NotFound => {
            let global = api.resolve(&api::GLOBAL_ROLE, name).await;
            // The message about role templates has the closest name of those.
            global.map(in_global_context).map_err(|_| error)
        }
        found => found,
    }
}

fn in_global_context(mut role: Value) -> Value {
    role["context"] = "global".into();
    role
}

/// Lists bindings; tables have the names of users, if the caller may see them.
pub async fn show_bindings(
    api: &Api,
    plural: &str,
    filter: &[(&str, &str)],
    args: &ListArgs,
) -> Result<(), CliError> {
    let read = async || {
        let mut bindings = api.list(plural, filter).await?;
        if args.format().is_table() {
            name_users(api, &mut bindings).await?;
        }
        Ok(bindings)
    };
    listing::show(args, BINDING_COLUMNS, read).await
}

async fn name_users(api: &Api, bindings: &mut [Value]) -> Result<(), CliError> {
    let users = match api.list("users", &[]).await {
        Ok(users) => users,
        Err(error) if error.failure == Failure::Forbidden => Vec::new(),
        Err(error) => return Err(error),
    };
    for binding in bindings {
        let user_id = text(binding, "userId").to_owned();
        let known = users.iter().find(|user| id(user) == user_id);
        let name = match known {
            Some(user) => text(user, "username").to_owned(),
            None if user_id.is_empty() => continue,
            None => login_name(api, &user_id).await,
        };
        if let Some(map) = binding.as_object_mut() {
            map.insert("username".to_owned(), name.into());
        }
    }
    Ok(())
}

/// The login name of a user, which all users may read; empty if the server does not return it.
pub async fn login_name(api: &Api, user_id: &str) -> String {
    let principal = format!("{LOCAL_PRINCIPAL}{user_id}");
    let path = format!("/v3/principals/{}", encode(&principal));
    let found = api.call(Method::GET, &path, None, "a user's name").await;
    text(&found.unwrap_or_default(), "loginName").to_owned()
}

/// The role of a user or group, in a cluster or project or globally, with names for messages.
pub struct Binding {
    plural: &'static str,
    /// `clusterId` or `projectId`, and its value; none for a global role.
    scope: Option<(&'static str, String)>,
    /// `roleTemplateId` or `globalRoleId`, and its value.
    role: (&'static str, String),
    /// `userId` or `groupPrincipalId`, and its value.
    holder: (&'static str, String),
    /// Such as `role "x" in cluster "y"`.
    shown: String,
    /// Name of the user or group, as the caller gave it.
    holder_shown: String,
}

impl Binding {
    async fn of(api: &Api, target: &RoleTarget) -> Result<Self, CliError> {
        let scope = &target.scope;
        if scope.global {
            return Self::global(api, &target.role, &target.holder).await;
        }
        if let Some(project) = &scope.project.project {
            let project = scope::project(api, scope.cluster.name(), project).await?;
            return Self::in_project(api, &project, &target.role, &target.holder).await;
        }
        let cluster = scope::cluster(api, scope.cluster.name()).await?;
        let at = ("clusterId", id(&cluster).to_owned());
        let where_to = format!("cluster \"{}\"", text(&cluster, "name"));
        Self::at(api, CLUSTER_BINDINGS, at, &where_to, &target.role, &target.holder).await
    }

    /// The binding of `role`, a name or id, to a user or group in a project; nothing is written.
    ///
    /// # Errors
    /// The role or the user does not exist, or a request fails.
    pub async fn in_project(
        api: &Api,
        project: &Value,
        role: &str,
        holder: &RoleHolder,
    ) -> Result<Self, CliError> {
        let at = ("projectId", id(project).to_owned());
        let where_to = format!("project \"{}\"", text(project, "name"));
        Self::at(api, PROJECT_BINDINGS, at, &where_to, role, holder).await
    }

    /// The binding of a global role, a name or id, to a user or group; nothing is written.
    ///
    /// # Errors
    /// The role or the user does not exist, or a request fails.
    pub async fn global(api: &Api, role: &str, holder: &RoleHolder) -> Result<Self, CliError> {
        let found = api.resolve(&api::GLOBAL_ROLE, role).await?;
        let (holder, holder_shown) = Self::holder(api, holder).await?;
        Ok(Self {
            plural: GLOBAL_BINDINGS,
            scope: None,
            role: ("globalRoleId", id(&found).to_owned()),
            holder,
            shown: format!("global role \"{role}\""),
            holder_shown,
        })
    }

    async fn at(
        api: &Api,
        plural: &'static str,
        scope: (&'static str, String),
        where_to: &str,
        role: &str,
        holder: &RoleHolder,
    ) -> Result<Self, CliError> {
        let found = api.resolve(&api::ROLE, role).await?;
        let (holder, holder_shown) = Self::holder(api, holder).await?;
        Ok(Self {
            plural,
            scope: Some(scope),
            role: ("roleTemplateId", id(&found).to_owned()),
            holder,
            shown: format!("role \"{role}\" in {where_to}"),
            holder_shown,
        })
    }

    /// The field of a binding that names the user or group, its value, and the name to show.
    async fn holder(
        api: &Api,
        holder: &RoleHolder,
    ) -> Result<((&'static str, String), String), CliError> {
        if let Some(group) = &holder.group {
            return Ok((("groupPrincipalId", group.clone()), group.clone()));
        }
        let name = holder.user.clone().unwrap_or_default();
        let user = api.resolve(&api::USER, &name).await?;
        Ok((("userId", id(&user).to_owned()), name))
    }

    fn fields(&self) -> Vec<(&str, &str)> {
        let fields = [Some(&self.holder), Some(&self.role), self.scope.as_ref()];
        fields.into_iter().flatten().map(|(field, value)| (*field, value.as_str())).collect()
    }

    /// Creates the binding, and prints it in `format`.
    ///
    /// # Errors
    /// The request fails, or the caller may not grant the role.
    pub async fn grant(&self, api: &Api, format: OutputFormat) -> Result<(), CliError> {
        let mut body = json!({});
        for (field, value) in self.fields() {
            body[field] = value.into();
        }
        let what = format!("granting \"{}\" the {}", self.holder_shown, self.shown);
        let binding = api.create(self.plural, &body, &what).await.map_err(|error| {
            // A server without roles in projects does not have this collection.
            match self.plural == PROJECT_BINDINGS && error.failure == Failure::NotFound {
                true => error.hint(NO_PROJECT_ROLES),
                false => error,
            }
        })?;
        effect::warn_if_none(&binding, &self.shown);
        output::print_created(format, &binding)
    }

    /// Deletes all bindings with the same role, scope, and user or group.
    ///
    /// # Errors
    /// There is none, or a request fails.
    pub async fn revoke(&self, api: &Api) -> Result<(), CliError> {
        let found = api.list(self.plural, &self.fields()).await?;
        let matches = |binding: &&Value| self.fields().iter().all(|(f, v)| text(binding, f) == *v);
        let found: Vec<&Value> = found.iter().filter(matches).collect();
        if found.is_empty() {
            let text = format!("\"{}\" does not have the {}", self.holder_shown, self.shown);
            return Err(CliError::new(Failure::NotFound, text)
                .hint("\"drover role bindings\" shows who has which role"));
        }
        for binding in found {
            let what = format!("deleting role binding \"{}\"", id(binding));
            api.delete(self.plural, id(binding), &what).await?;
        }
        notify!("revoked the {} of {}", self.shown, self.holder_shown);
        Ok(())
    }
}
