//! Principals in the REST view: people as the provider of identities knows them, to be found by who
//! wants to give somebody a role.
//!
//! There is one provider, the local one, and it knows users alone. Everybody who logged in may look
//! for people; only their names are returned.

use std::sync::Arc;

use api_management::user::LOCAL_PRINCIPAL;
use api_management::{User, types};
use feature_kit::table;
use futures::future::BoxFuture;
use kube::ResourceExt;
use rest_view::{
    Action, ActionHandler, ActionRequest, ActionResponse, ApiError, Context, Descriptor, Field,
    Key, ListScope, Methods, Store, StructType,
};
use serde_json::{Value, json};

use crate::directory::Directory;

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
    /// Who the caller is: as a user, and in which groups, of which the local provider has none.
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        _: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        let me = &context.caller.user_id;
        Box::pin(async move { Ok(self.of(me, me).await.into_iter().collect()) })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let user_id = key.name.strip_prefix(LOCAL_PRINCIPAL).unwrap_or_default();
            let found = self.of(user_id, &context.caller.user_id).await;
            found.ok_or_else(|| ApiError::not_found(format!("principal {} not found", key.name)))
        })
    }
}

/// Finds people by how their id, login name or display name begins.
struct Search(Arc<Directory>);

impl Search {
    fn found(&self, start: &str, caller: &str) -> Vec<Value> {
        let mut found = Vec::new();
        self.0.users().for_each(|_, user| {
            if is_local(user) && is_meant(user, start) {
                found.push(principal(user, caller));
            }
        });
        found.sort_by(|a, b| a["metadata"]["name"].as_str().cmp(&b["metadata"]["name"].as_str()));
        found
    }
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
        let text = |field: &str| request.input.get(field).and_then(Value::as_str);
        let caller = &request.context.caller.user_id;
        let found = match text("principalType") {
            // Nobody is in groups of the local provider yet.
            Some(KIND_GROUP) => Vec::new(),
            _ => self.found(text("name").unwrap_or_default(), caller),
        };
        Box::pin(async move { Ok(ActionResponse::Objects(found)) })
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
    fn who_cannot_log_in_here_is_nobody_to_be_found() {
        let mut system = user("u-1", "x", "");
        system.principal_ids = vec!["system://local".to_owned()];
        assert!(is_local(&user("u-1", "x", "")));
        assert!(!is_local(&user("u-1", "", "X")) && !is_local(&system));
    }
}
