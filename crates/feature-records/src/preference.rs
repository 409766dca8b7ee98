//! Preferences: what people set for the interface. Everybody has their own, in the namespace that is
//! named after them, and reaches no other.
//!
//! The objects are reached with an identity of the server, because nobody has rights in such a
//! namespace; so this type decides itself, and always takes the caller's own.

use std::sync::Arc;

use api_management::keys;
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, table};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, ObjectMeta,
    PostParams,
};
use rest_view::store::DeleteOptions;
use rest_view::{ApiError, Context, Descriptor, Key, ListScope, Store};
use serde_json::Value;

pub const TYPE: &str = "preference";
pub const KIND: &str = "Preference";
const PLURAL: &str = "preferences";

/// Reads and writes the preferences of all people.
pub fn identity() -> ControllerIdentity {
    let verbs = ["get", "list", "create", "update", "delete"];
    ControllerIdentity::new(
        "preferences",
        vec![ours(&[PLURAL], &verbs), rule("", &["namespaces"], &["get", "create"])],
    )
}

/// `client` acts as [`identity`].
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
    fn own(&self, context: &Context<'_>) -> Result<Api<DynamicObject>, ApiError> {
        let user = context.caller.user_id.as_str();
        // What is not a user of ours has no namespace of that name to call its own.
        if user.is_empty() || user.contains(':') {
            return Err(ApiError::permission_denied("only users have preferences"));
        }
        Ok(Api::namespaced_with(self.client.clone(), user, &self.resource))
    }

    async fn make(&self, context: &Context<'_>, mut object: Value) -> Result<Value, ApiError> {
        let api = self.own(context)?;
        let user = context.caller.user_id.as_str();
        object["metadata"]["namespace"] = user.into();
        let object: DynamicObject =
            serde_json::from_value(object).map_err(ApiError::server_error)?;
        match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.make_namespace(user).await?;
                to_value(api.create(&PostParams::default(), &object).await?)
            }
            created => to_value(created?),
        }
    }

    async fn make_namespace(&self, user: &str) -> Result<(), ApiError> {
        let annotations = [(keys::SYSTEM_NAMESPACE.to_owned(), "true".to_owned())];
        let metadata = ObjectMeta {
            name: Some(user.to_owned()),
            annotations: Some(annotations.into()),
            ..ObjectMeta::default()
        };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let api: Api<Namespace> = Api::all(self.client.clone());
        match api.create(&PostParams::default(), &namespace).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            made => Ok(made.map(drop)?),
        }
    }
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
            let list = self.own(context)?.list(&ListParams::default()).await?;
            list.items.into_iter().map(to_value).collect()
        })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move { to_value(self.own(context)?.get(&key.name).await?) })
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(self.make(context, object))
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
            let api = self.own(context)?;
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
            let api = self.own(context)?;
            match api.delete(&key.name, &DeleteParams::default()).await {
                Ok(_) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
    }
}
