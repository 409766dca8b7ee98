//! User in the REST view. A password sent with a new user goes to the directory, never into the
//! object.

use std::sync::Arc;

use api_management::User;
use feature_kit::table;
use feature_kit::view::resource_of;
use futures::future::BoxFuture;
use identity::Secret;
use rest_view::store::{DeleteOptions, Visible};
use rest_view::{
    Action, ApiError, Context, Descriptor, Field, FieldType, Key, KubeStore, ListScope,
    Presentation, Resource, Store, StructType,
};
use serde_json::{Map, Value};

use crate::directory::Directory;
use crate::user::actions::{
    CHANGED, ChangePassword, END_TOKENS, RefreshAccess, SetPassword, refusal,
};
use crate::user::guard::LoginGuard;

/// The type `user` under `/v3`, with its actions.
pub fn view(directory: &Arc<Directory>, guard: LoginGuard) -> Descriptor {
    let kube = KubeStore::new(resource_of::<User>());
    let store = Users { kube, directory: directory.clone() };
    table::descriptor("user")
        .store(Arc::new(store))
        // Not stored in the object; blanks around it are kept.
        .root([Field::new("password", FieldType::Password).create().write_only()])
        .types([
            StructType::writable("setPasswordInput", vec![secret("newPassword"), end_tokens()]),
            StructType::writable(
                "changePasswordInput",
                vec![secret("currentPassword"), secret("newPassword"), end_tokens()],
            ),
            StructType::new(
                CHANGED,
                vec![Field::int("endedTokens"), Field::int("remainingTokens")],
            ),
        ])
        .action(
            Action::new("setpassword", SetPassword(directory.clone(), guard))
                .input("setPasswordInput")
                .output("user"),
        )
        .collection_action(
            Action::new("changepassword", ChangePassword(directory.clone()))
                .input("changePasswordInput")
                .output(CHANGED),
        )
        .action(
            Action::new("refreshauthprovideraccess", RefreshAccess(directory.clone()))
                .needs_update(),
        )
        .collection_action(Action::new(
            "refreshauthprovideraccess",
            RefreshAccess(directory.clone()),
        ))
        .validator(validate)
        .formatter(format)
        .personal(&["me"])
}

fn end_tokens() -> Field {
    Field::boolean(END_TOKENS)
}

/// Of type password, so that blanks around it are kept.
fn secret(name: &str) -> Field {
    Field::new(name, FieldType::Password).required()
}

fn validate(
    context: &Presentation<'_>,
    input: &Map<String, Value>,
    stored: Option<&Value>,
) -> Result<(), ApiError> {
    let is_self = |stored: &Value| stored["metadata"]["name"] == context.caller.user_id.as_str();
    if stored.is_some_and(is_self) && input.get("enabled") == Some(&Value::Bool(false)) {
        return Err(ApiError::new(422, "InvalidAction", "You cannot deactivate yourself"));
    }
    let has =
        |field: &str| input.get(field).is_some_and(|v| v.as_str().is_some_and(|t| !t.is_empty()));
    if stored.is_none() && has("username") && !has("password") {
        let text = "missing required password";
        return Err(ApiError::invalid_field("MissingRequired", "password", text));
    }
    Ok(())
}

fn format(context: &Presentation<'_>, _: &Value, resource: &mut Resource) {
    let me = resource.id == context.caller.user_id;
    resource.fields.insert("me".to_owned(), me.into());
    if me {
        resource.links.remove("remove");
    }
}

struct Users {
    kube: KubeStore,
    directory: Arc<Directory>,
}

impl Users {
    /// The caller's own user, which everybody reads without a right on users.
    async fn own(&self, caller: &str) -> Option<Value> {
        // Who comes with a certificate has a name that is no object's.
        if caller.is_empty() || caller.contains(['/', '%', ':']) {
            return None;
        }
        let user = self.directory.user(caller).await?;
        serde_json::to_value(&*user).ok()
    }

    /// The user first, with the caller's rights; then the password. Without its password the user
    /// does not stay.
    async fn make(&self, context: &Context<'_>, mut object: Value) -> Result<Value, ApiError> {
        let password = object.as_object_mut().and_then(|map| map.remove("password"));
        let username = object["username"].as_str().unwrap_or_default().to_owned();
        let password = password.as_ref().and_then(Value::as_str).map(Secret::new);
        if let Some(password) = &password {
            self.directory.check_password(password, &username).map_err(|e| refusal(&e))?;
        }
        let created = self.kube.create(context, object).await;
        let created = created.map_err(|error| self.clearer(error, &username))?;
        let Some(password) = password else { return Ok(created) };
        let name = created["metadata"]["name"].as_str().unwrap_or_default();
        if let Err(error) = self.directory.set_password(name, password).await {
            let key = Key { namespace: String::new(), name: name.to_owned() };
            if let Err(left) = self.kube.delete(context, &key, &DeleteOptions::default()).await {
                tracing::warn!(user = name, %left, "a user without a password stays");
            }
            return Err(refusal(&error));
        }
        Ok(created)
    }

    /// A taken login name has a code of its own.
    fn clearer(&self, error: ApiError, username: &str) -> ApiError {
        if error.status == 422 && self.directory.user_by_username(username).is_some() {
            let text = format!("username \"{username}\" is taken");
            return ApiError::invalid_field("NotUnique", "username", text);
        }
        error
    }
}

impl Store for Users {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.kube)
    }
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(async move {
            let mut users = self.kube.list(context, scope).await?;
            let caller = &context.caller.user_id;
            if !users.iter().any(|user| user["metadata"]["name"] == caller.as_str()) {
                users.extend(self.own(caller).await);
            }
            users.retain(|user| self.is_listed(user));
            Ok(users)
        })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            match self.kube.get(context, key).await {
                Err(error) if error.is_forbidden() && key.name == context.caller.user_id => {
                    self.own(&key.name).await.ok_or(error)
                }
                other => other,
            }
        })
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(self.make(context, object))
    }
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        if key.name == context.caller.user_id {
            let error = ApiError::new(422, "InvalidAction", "You cannot delete yourself");
            return Box::pin(async { Err(error) });
        }
        self.kube.delete(context, key, options)
    }
    fn visible<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Option<Vec<Visible>>, ApiError>> {
        Box::pin(async move {
            let Some(mut parts) = self.kube.visible(context, scope).await? else { return Ok(None) };
            let name = context.caller.user_id.clone();
            let own = Visible::Object(Key { namespace: String::new(), name });
            if !parts.contains(&Visible::Everything) && !parts.contains(&own) {
                parts.push(own);
            }
            Ok(Some(parts))
        })
    }
    fn is_listed(&self, stored: &Value) -> bool {
        !is_system(stored)
    }
}

/// Made by and for the server itself.
fn is_system(user: &Value) -> bool {
    let mut ids = user["principalIds"].as_array().into_iter().flatten();
    ids.any(|id| id.as_str().is_some_and(|id| id.starts_with("system://")))
}

#[cfg(test)]
mod tests;
