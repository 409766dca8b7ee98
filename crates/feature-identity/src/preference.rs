//! Preferences: what users set for the web interface. Each user has their own, in the namespace of
//! the user's name, and reaches no other.
//!
//! The namespace is the user's only when it refers to the user as its owner, so that a user never
//! shares one with a project or a cluster of the same name, nor with an earlier user of the same
//! id.
//!
//! The objects are read and written with an identity of the server, because users have no rights in
//! such a namespace. So the store checks access itself: it always uses the caller's own namespace.

use std::sync::Arc;

use api_management::{User, keys};
use feature_kit::ownership::{is_owned_by, owner_reference};
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, KindRules, system_namespace, table};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, ObjectMeta, Patch,
    PatchParams, PostParams,
};
use kube::{Client, ResourceExt};
use rest_view::store::DeleteOptions;
use rest_view::{ApiError, Context, Descriptor, Key, ListScope, Store};
use serde_json::{Value, json};

const TYPE: &str = "preference";
const KIND: &str = "Preference";
const PLURAL: &str = "preferences";

/// The rules of the kind, which only tables describe.
pub fn rules() -> KindRules {
    KindRules::of_tables(KIND).written_by_server()
}

/// Reads and writes the preferences of all users.
pub fn identity() -> ControllerIdentity {
    let verbs = ["get", "list", "create", "update", "delete"];
    ControllerIdentity::new(
        "preferences",
        vec![
            ours(&[PLURAL], &verbs),
            ours(&["users"], &["get"]),
            rule("", &["namespaces"], &["get", "create", "patch"]),
        ],
    )
}

/// The type, whose objects `client` reads and writes as [`identity`].
pub fn view(client: Client) -> Descriptor {
    let mut descriptor = table::descriptor(TYPE);
    descriptor.namespaced = false;
    descriptor.store(Arc::new(Preferences { client, resource: resource() }))
}

fn resource() -> ApiResource {
    let kind = GroupVersionKind::gvk(api_management::GROUP, api_management::VERSION, KIND);
    ApiResource::from_gvk_with_plural(&kind, PLURAL)
}

struct Preferences {
    client: Client,
    resource: ApiResource,
}

impl Preferences {
    /// The caller's user, whose uid the namespace refers to; none when there is no such object.
    async fn user(&self, context: &Context<'_>) -> Result<Option<User>, ApiError> {
        let id = context.caller.user_id.as_str();
        // Names in certificates may be those of no object.
        if id.is_empty() || id.contains([':', '/', '%']) {
            return Err(only_users());
        }
        Ok(Api::<User>::all(self.client.clone()).get_opt(id).await?)
    }

    /// The preferences in the caller's own namespace; none while there is no such namespace.
    async fn own(&self, context: &Context<'_>) -> Result<Option<Api<DynamicObject>>, ApiError> {
        let Some(user) = self.user(context).await? else { return Ok(None) };
        let found = self.find_namespace(&user).await?;
        Ok(found.then(|| self.api(&user)))
    }

    /// Like [`Self::own`], for one preference: without a namespace it does not exist.
    async fn own_with(&self, context: &Context<'_>) -> Result<Api<DynamicObject>, ApiError> {
        self.own(context).await?.ok_or_else(ApiError::no_such_id)
    }

    fn api(&self, user: &User) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &user.name_any(), &self.resource)
    }

    async fn create_own(
        &self,
        context: &Context<'_>,
        mut object: Value,
    ) -> Result<Value, ApiError> {
        let user = self.user(context).await?.ok_or_else(only_users)?;
        if !self.find_namespace(&user).await? {
            self.create_namespace(&user).await?;
        }
        object["metadata"]["namespace"] = user.name_any().into();
        let object: DynamicObject =
            serde_json::from_value(object).map_err(ApiError::server_error)?;
        to_value(self.api(&user).create(&PostParams::default(), &object).await?)
    }

    /// Whether the user's namespace exists. One that an earlier version created for the user gets
    /// its owner.
    ///
    /// # Errors
    /// The namespace of this name is not the user's.
    async fn find_namespace(&self, user: &User) -> Result<bool, ApiError> {
        let (name, api) = (user.name_any(), Api::<Namespace>::all(self.client.clone()));
        let Some(namespace) = api.get_metadata_opt(&name).await? else { return Ok(false) };
        if is_owned_by(&namespace.metadata, user.metadata.uid.as_deref()) {
            return Ok(true);
        }
        if !is_of_earlier_version(&namespace.metadata, user) {
            let text = format!(
                "namespace \"{name}\" of the management API is not that of user \"{name}\", so preferences \
                 cannot be stored; an administrator has to delete it"
            );
            return Err(ApiError::new(409, "NameTaken", text));
        }
        let patch = json!({"metadata": {
            "resourceVersion": namespace.metadata.resource_version,
            "ownerReferences": [owner_reference(user)],
        }});
        api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(true)
    }

    async fn create_namespace(&self, user: &User) -> Result<(), ApiError> {
        let mut namespace = system_namespace(&user.name_any());
        namespace.metadata.owner_references = Some(vec![owner_reference(user)]);
        let api: Api<Namespace> = Api::all(self.client.clone());
        match api.create(&PostParams::default(), &namespace).await {
            // Another request of the same user was faster, or another object has the name.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.find_namespace(user).await.map(drop)
            }
            created => Ok(created.map(drop)?),
        }
    }
}

fn only_users() -> ApiError {
    ApiError::permission_denied("only users have preferences")
}

/// Earlier versions set no owner of such a namespace. It is the user's when it was created for no
/// project and no other object, and not before the user.
fn is_of_earlier_version(namespace: &ObjectMeta, user: &User) -> bool {
    let annotations = namespace.annotations.as_ref();
    let is_system = annotations
        .is_some_and(|all| all.get(keys::SYSTEM_NAMESPACE).is_some_and(|value| value == "true"));
    let is_unowned = namespace.owner_references.iter().flatten().next().is_none()
        && keys::project_of(namespace).is_none();
    is_system && is_unowned && namespace.creation_timestamp >= user.metadata.creation_timestamp
}

fn to_value(object: DynamicObject) -> Result<Value, ApiError> {
    serde_json::to_value(object).map_err(ApiError::server_error)
}

impl Store for Preferences {
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        _: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(async move {
            let Some(api) = self.own(context).await? else { return Ok(Vec::new()) };
            let list = api.list(&ListParams::default()).await?;
            list.items.into_iter().map(to_value).collect()
        })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move { to_value(self.own_with(context).await?.get(&key.name).await?) })
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(self.create_own(context, object))
    }
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let object: DynamicObject =
                serde_json::from_value(object).map_err(ApiError::server_error)?;
            let api = self.own_with(context).await?;
            to_value(api.replace(&key.name, &PostParams::default(), &object).await?)
        })
    }
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        _: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(async move {
            let api = self.own_with(context).await?;
            match api.delete(&key.name, &DeleteParams::default()).await {
                Ok(_) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
    }
}
