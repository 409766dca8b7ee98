//! Principals in the REST view: people as the provider of identities knows them, to be found by who
//! wants to give somebody a role.
//!
//! The provider of the caller's login is searched first, then local users, who are shown only once:
//! those who are among the found by a principal of that provider are left out. Everybody who logged
//! in may look for people; only their names are returned. When a directory does not respond, local
//! users are found all the same.

use std::collections::HashSet;
use std::sync::Arc;

use api_management::user::LOCAL_PRINCIPAL;
use api_management::{User, types};
use feature_kit::table;
use futures::future::BoxFuture;
use identity::Secret;
use identity::provider::{Principal, PrincipalKind};
use kube::ResourceExt;
use rest_view::{
    Action, ActionHandler, ActionRequest, ActionResponse, ApiError, Caller, Context, Descriptor,
    Field, Key, ListScope, Methods, Store, StructType,
};
use serde_json::{Value, json};

use crate::directory::Directory;
use crate::providers::LOCAL;

const TYPE: &str = "principal";
const KIND_USER: &str = "user";
const KIND_GROUP: &str = "group";
const INPUT: &str = "searchPrincipalsInput";

/// The type `principal` under `/v3`, with its action `search`.
pub fn view(directory: &Arc<Directory>) -> Descriptor {
    let store = Arc::new(Principals(directory.clone()));
    let input = StructType::writable(
        INPUT,
        vec![
            Field::string("name").required(),
            Field::options("principalType", &[KIND_USER, KIND_GROUP]),
        ],
    );
    let mut descriptor = Descriptor::with_store(TYPE, "principals", store)
        .methods(Methods::READ)
        .any_id()
        .types([input])
        .collection_action(
            Action::new("search", Search(directory.clone())).input(INPUT).output("collection"),
        );
    let table = types::table(TYPE).into_iter();
    for field in table.flat_map(|table| table::embedded(&table).fields) {
        descriptor = match field.name.as_str() {
            "name" => descriptor.display_name(field),
            _ => descriptor.root([field]),
        };
    }
    descriptor
}

/// The principal of a local user in the stored form.
fn principal(user: &User, caller: &str) -> Value {
    let id = user.name_any();
    let name = if user.display_name.is_empty() { &user.username } else { &user.display_name };
    json!({
        "metadata": {"name": format!("{LOCAL_PRINCIPAL}{id}")},
        "displayName": name,
        "loginName": user.username,
        "principalType": KIND_USER,
        "provider": "local",
        "me": id == caller,
        "memberOf": false,
    })
}

/// Who logs in here; not the server's own users.
fn is_local(user: &User) -> bool {
    !user.username.is_empty() && !user.is_system()
}

/// A principal of a directory in the stored form.
fn foreign(found: &Principal, provider: &str, own_id: Option<&str>, groups: &[String]) -> Value {
    let kind = match found.kind {
        PrincipalKind::User => KIND_USER,
        PrincipalKind::Group => KIND_GROUP,
    };
    json!({
        "metadata": {"name": found.id},
        "displayName": found.display_name,
        "loginName": found.login_name,
        "principalType": kind,
        "provider": provider,
        "me": own_id == Some(found.id.as_str()),
        "memberOf": groups.contains(&found.id),
    })
}

/// What a group is called whose entry was not read: the value of the first part of its name.
fn group_name(id: &str) -> &str {
    let dn = id.split_once("://").map_or(id, |(_, dn)| dn);
    let first = dn.split(',').next().unwrap_or(dn);
    first.split_once('=').map_or(first, |(_, value)| value)
}

/// The caller's login, as its token says.
struct Login {
    user_id: String,
    provider: String,
    /// The stored form of the user's principal.
    user: Value,
    groups: Vec<String>,
}

impl Login {
    fn own_id(&self) -> Option<&str> {
        self.user["metadata"]["name"].as_str()
    }
    fn principals(&self) -> Vec<Value> {
        let group = |id: &String| {
            let name = group_name(id).to_owned();
            let kind = PrincipalKind::Group;
            let group =
                Principal { id: id.clone(), kind, display_name: name.clone(), login_name: name };
            foreign(&group, &self.provider, None, &self.groups)
        };
        [self.user.clone()].into_iter().chain(self.groups.iter().map(group)).collect()
    }
}

impl Directory {
    /// The login of the caller's token at another provider than this server.
    async fn login_of(&self, caller: &Caller) -> Option<Login> {
        let token = self.token(caller.token_id.as_deref()?).await?;
        let is_own = token.user_id == caller.user_id && token.auth_provider != LOCAL;
        if !is_own || !self.providers.is_enabled(&token.auth_provider) {
            return None;
        }
        let user = token.user_principal.clone()?;
        let (provider, groups) = (token.auth_provider.clone(), token.group_principals.clone());
        Some(Login { user_id: token.user_id.clone(), provider, user, groups })
    }

    /// What the caller's provider finds. A failure is logged and finds nothing.
    async fn search_at(
        &self,
        login: &Login,
        text: &str,
        kind: Option<PrincipalKind>,
    ) -> Vec<Value> {
        let provider = login.provider.as_str();
        let found = async {
            let open = self.providers.open(provider).await?;
            let grant = self.grant_of(login).await;
            open.backend
                .principals()
                .search(text, kind, grant.as_ref())
                .await
                .map_err(|error| error.to_string())
        };
        match found.await {
            Ok(found) => {
                let shown = |found| foreign(found, provider, login.own_id(), &login.groups);
                found.iter().map(shown).collect()
            }
            Err(cause) => {
                tracing::warn!(provider, cause, "principals cannot be searched");
                Vec::new()
            }
        }
    }

    /// That of the last login of the caller, for providers that show more to users.
    async fn grant_of(&self, login: &Login) -> Option<Secret> {
        self.stored_grant(&login.user_id, &login.provider).await.ok().flatten()
    }

    async fn principal_at(&self, login: &Login, id: &str) -> Option<Value> {
        let open = self.providers.open(&login.provider).await.ok()?;
        let grant = self.grant_of(login).await;
        let found = open.backend.principals().principal(id, grant.as_ref()).await.ok()??;
        Some(foreign(&found, &login.provider, login.own_id(), &login.groups))
    }
}

/// Reads the directory: no rights on users are needed to know how somebody is called.
struct Principals(Arc<Directory>);

impl Principals {
    async fn of(&self, user_id: &str, caller: &str) -> Option<Value> {
        // Names of objects have no path in them, and only such are looked up.
        if user_id.is_empty() || user_id.contains(['/', '%', ':']) {
            return None;
        }
        let user = self.0.user(user_id).await?;
        is_local(&user).then(|| principal(&user, caller))
    }
}

impl Store for Principals {
    /// Who the caller is: as a user, and in which groups. Local users are in none.
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        _: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        let me = &context.caller.user_id;
        Box::pin(async move {
            match self.0.login_of(context.caller).await {
                Some(login) => Ok(login.principals()),
                None => Ok(self.of(me, me).await.into_iter().collect()),
            }
        })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let user_id = key.name.strip_prefix(LOCAL_PRINCIPAL).unwrap_or_default();
            if user_id.is_empty()
                && let Some(login) = self.0.login_of(context.caller).await
                && let Some(found) = self.0.principal_at(&login, &key.name).await
            {
                return Ok(found);
            }
            let found = self.of(user_id, &context.caller.user_id).await;
            found.ok_or_else(|| ApiError::not_found(format!("principal {} not found", key.name)))
        })
    }
}

/// Finds people by how their id, login name or display name begins.
struct Search(Arc<Directory>);

impl Search {
    async fn find(&self, request: ActionRequest<'_>) -> Vec<Value> {
        let text = |field: &str| request.input.get(field).and_then(Value::as_str);
        let caller = request.context.caller;
        let name = text("name").unwrap_or_default();
        let kind = match text("principalType") {
            Some(KIND_GROUP) => Some(PrincipalKind::Group),
            Some(KIND_USER) => Some(PrincipalKind::User),
            _ => None,
        };
        let mut found = match self.0.login_of(caller).await {
            Some(login) => self.0.search_at(&login, name, kind).await,
            None => Vec::new(),
        };
        if kind != Some(PrincipalKind::Group) {
            let known: HashSet<String> =
                found.iter().map(|found| id_of(found).to_owned()).collect();
            found.extend(self.found(name, &caller.user_id, &known));
        }
        found
    }

    /// Local users, but for those with one of the known principals.
    fn found(&self, start: &str, caller: &str, known: &HashSet<String>) -> Vec<Value> {
        let mut found = Vec::new();
        self.0.users().for_each(|_, user| {
            let is_known = user.principal_ids.iter().any(|id| known.contains(id));
            if is_local(user) && !is_known && is_meant(user, start) {
                found.push(principal(user, caller));
            }
        });
        found.sort_by(|a, b| a["metadata"]["name"].as_str().cmp(&b["metadata"]["name"].as_str()));
        found
    }
}

fn id_of(found: &Value) -> &str {
    found["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_meant(user: &User, start: &str) -> bool {
    let names = [user.name_any(), user.username.clone(), user.display_name.clone()];
    !start.is_empty() && names.iter().any(|name| name.starts_with(start))
}

impl ActionHandler for Search {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move { Ok(ActionResponse::Objects(self.find(request).await)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: &str, username: &str, display_name: &str) -> User {
        let mut user = User {
            username: username.to_owned(),
            display_name: display_name.to_owned(),
            ..<User as Default>::default()
        };
        user.metadata.name = Some(id.to_owned());
        user
    }

    #[test]
    fn people_are_meant_by_the_beginning_of_any_of_their_names() {
        let ada = user("u-12345", "ada", "Ada Lovelace");
        for (start, meant) in [
            ("u-123", true),
            ("ad", true),
            ("Ada L", true),
            ("ada", true),
            ("Lovelace", false),
            ("adam", false),
            ("", false),
        ] {
            assert_eq!(is_meant(&ada, start), meant, "{start}");
        }
    }

    #[test]
    fn a_principal_is_called_as_people_see_it() {
        let shown = principal(&user("u-12345", "ada", "Ada"), "u-12345");
        assert_eq!((&shown["displayName"], &shown["me"]), (&json!("Ada"), &json!(true)));
        let shown = principal(&user("u-12345", "ada", ""), "u-other");
        assert_eq!((&shown["displayName"], &shown["me"]), (&json!("ada"), &json!(false)));
        assert_eq!(shown["metadata"]["name"], "local://u-12345");
    }

    #[test]
    fn groups_are_called_by_the_first_part_of_their_name() {
        assert_eq!(group_name("openldap_group://cn=Staff,ou=groups,dc=x"), "Staff");
        assert_eq!(group_name("x"), "x");
    }

    #[test]
    fn who_cannot_log_in_here_is_nobody_to_be_found() {
        let mut system = user("u-1", "x", "");
        system.principal_ids = vec!["system://local".to_owned()];
        assert!(is_local(&user("u-1", "x", "")));
        assert!(!is_local(&user("u-1", "", "X")) && !is_local(&system));
    }
}
