//! Configurations of identity providers: one object each, of a type of its own, in the collection
//! `authConfigs`.
//!
//! The configuration of every provider can be stored. Enabling a provider that nobody can log in
//! through is refused: one that is not implemented, or whose configuration is not right.
//! [`actions`] tests and enables a provider.

mod actions;
mod trial;

use std::sync::Arc;

use api_management::{GROUP, VERSION, credentials, keys, types};
use api_meta::status::{Cause, Status};
use controller::ReconcileError;
use controller::error::{Attempt, is_code};
use feature_kit::{Admit, KindRules, Review, ReviewOperation, Seed, table};
use futures::future::BoxFuture;
use identity::provider::Problem;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use rest_view::{
    ApiError, Context, Descriptor, Key, KubeResource, KubeStore, MayChange, Presentation, Resource,
    Store, mapping,
};
use serde_json::{Value, json};

use crate::directory::Directory;
use crate::provider_kind::ProviderKind;
use crate::providers::{KIND, PLURAL};

pub use trial::PendingTests;

/// The type of all of them.
const ANY: &str = "authConfig";
/// Names and passwords of local users.
const LOCAL: &str = "localConfig";

/// Object name and type of each provider.
const PROVIDERS: &[(&str, &str)] = &[
    ("activedirectory", "activeDirectoryConfig"),
    ("adfs", "adfsConfig"),
    ("azuread", "azureADConfig"),
    ("freeipa", "freeIpaConfig"),
    ("github", "githubConfig"),
    ("googleoauth", "googleOauthConfig"),
    ("keycloak", "keyCloakConfig"),
    ("keycloakoidc", "keyCloakOIDCConfig"),
    ("local", LOCAL),
    ("oidc", "oidcConfig"),
    ("okta", "oktaConfig"),
    ("openldap", "openLdapConfig"),
    ("ping", "pingConfig"),
    ("shibboleth", "shibbolethConfig"),
];

/// The rules of the kind, which only tables describe.
pub fn rules() -> KindRules {
    KindRules::of_tables(KIND).admit_with(Arc::new(ProviderRules))
}

/// One object per provider, from the start; administrators change them later.
pub fn seeds() -> impl Iterator<Item = Seed> {
    PROVIDERS.iter().map(|&(name, kind)| {
        Seed::custom(format!("authconfig \"{name}\""), move |client| {
            Box::pin(async move { create(client, name, kind).await })
        })
    })
}

async fn create(client: kube::Client, name: &str, kind: &str) -> Result<bool, ReconcileError> {
    let kind_of_all = GroupVersionKind::gvk(GROUP, VERSION, KIND);
    let resource = ApiResource::from_gvk_with_plural(&kind_of_all, PLURAL);
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let mut object = DynamicObject::new(name, &resource);
    object.data = json!({"type": kind, "enabled": kind == LOCAL, "accessMode": "unrestricted"});
    let labels = [(keys::CREATOR.to_owned(), keys::CREATOR_NORMAN.to_owned())];
    object.metadata.labels = Some(labels.into());
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(true),
        Err(error) if is_code(&error, 409) => Ok(false),
        Err(error) => Err(error).attempt(|| format!("create authconfig \"{name}\"")),
    }
}

/// Where the objects are.
fn resource() -> KubeResource {
    KubeResource::new(GROUP, VERSION, PLURAL, KIND, false)
}

/// Refuses to enable a provider that nobody can log in through.
struct ProviderRules;

impl Admit for ProviderRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(check(review)))
    }
}

fn check(review: &Review<'_>) -> Result<(), Status> {
    let (Some(object), false) = (review.object, review.operation == ReviewOperation::Delete) else {
        return Ok(());
    };
    check_destination(review, object)?;
    if object["enabled"] != true || object["type"] == LOCAL {
        return Ok(());
    }
    if let Some(kind) = ProviderKind::of_config(object["type"].as_str().unwrap_or_default()) {
        return check_provider(kind, review.name, object);
    }
    let text =
        "logging in through this provider is not available in this version; leave it disabled";
    let cause = Cause::invalid("enabled", &Value::from(true), text);
    Err(Status::invalid(GROUP, KIND, review.name, vec![cause]))
}

/// A stored credential does not go to another server than it was entered for.
fn check_destination(review: &Review<'_>, object: &Value) -> Result<(), Status> {
    if !review.old.is_some_and(|old| credentials::takes_elsewhere(KIND, object, old)) {
        return Ok(());
    }
    let kind = ProviderKind::of_config(object["type"].as_str().unwrap_or_default());
    let fields = kind.map_or(&[] as &[&str], |kind| kind.credential_fields).iter();
    let field = fields.copied().find(|field| object[*field].is_string()).unwrap_or("type");
    let cause = Cause::invalid(field, &object[field], actions::ENTER_AGAIN);
    Err(Status::invalid(GROUP, KIND, review.name, vec![cause]))
}

fn check_provider(kind: &'static ProviderKind, name: &str, object: &Value) -> Result<(), Status> {
    if name != kind.name {
        let text = format!("must be \"{}\" for this type", kind.name);
        let cause = Cause::invalid("metadata.name", &Value::from(name), &text);
        return Err(Status::invalid(GROUP, KIND, name, vec![cause]));
    }
    let problems = kind.problems(object).into_iter();
    let cause =
        |problem: Problem| Cause::invalid(problem.field, &object[problem.field], &problem.text);
    let causes: Vec<Cause> = problems.map(cause).collect();
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid(GROUP, KIND, name, causes)) }
}

/// The collection of all providers, and the type of each.
pub fn views(directory: &Arc<Directory>) -> Vec<Descriptor> {
    let tables = types::tables_of_kind(KIND).into_iter();
    let views = tables.filter_map(|table| table::of_table(&table)).map(view);
    views.map(|descriptor| actions::with_actions(descriptor, directory)).collect()
}

/// The collection shows each object as its own type; that type shows only its own object.
fn view(descriptor: Descriptor) -> Descriptor {
    if descriptor.id == ANY {
        return descriptor.formatter(as_own_type).types(actions::types());
    }
    let id = descriptor.id.clone();
    descriptor.store(Arc::new(OfType { kube: KubeStore::new(resource()), id }))
}

fn as_own_type(context: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let id = stored["type"].as_str().unwrap_or_default();
    let own = PROVIDERS.iter().any(|(_, known)| *known == id);
    let Some(descriptor) = context.registry.find("/v3", id).filter(|_| own) else { return };
    let fields = mapping::to_view(descriptor, context.registry, stored, false);
    resource.fields.extend(fields);
    resource.subtype = Some(id.to_owned());
    rest_view::add_actions(context, descriptor, stored, resource);
    let own = context.urls.resource(descriptor, &resource.id);
    resource.links.insert("self".to_owned(), own.clone());
    resource.links.remove("remove");
    if descriptor.methods.update {
        resource.links.insert("update".to_owned(), own);
    } else {
        resource.links.remove("update");
    }
}

/// Objects of one `type`. They are listed and removed as [`ANY`].
struct OfType {
    kube: KubeStore,
    id: String,
}

impl Store for OfType {
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let object = self.kube.get(context, key).await?;
            if object["type"] == self.id.as_str() {
                Ok(object)
            } else {
                Err(ApiError::no_such_id())
            }
        })
    }
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        self.kube.replace(context, key, object)
    }
    fn may_change<'a>(
        &'a self,
        context: &'a Context<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<MayChange>, ApiError>> {
        self.kube.may_change(context, keys)
    }
}
