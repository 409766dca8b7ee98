//! Records: kinds that are data. Their tables say what there is to say of them; nothing acts on
//! most of them yet, which each object says of itself (`api_management::unimplemented`).
//!
//! | Where | What |
//! | --- | --- |
//! | [`auth_config`] | providers of identities, one type each, in one collection |
//! | [`catalog`] | where charts come from: which URLs cannot be |
//! | [`cloud_credential`] | keys of clouds, kept in Secrets |
//! | [`effect`] | that nothing acts on an object, where its schema has no place for it |
//! | [`grants`] | who gives global roles, and roles in projects |
//! | [`preference`] | what people set for the interface: everybody their own |
//! | [`rights`] | who may read what, and the namespaces that must be there |

pub mod auth_config;
pub mod catalog;
pub mod cloud_credential;
pub mod effect;
pub mod grants;
pub mod preference;
pub mod rights;

use std::sync::Arc;

use api_management::table::{Row, Stored, TypeTable};
use api_management::{has_struct, types};
use feature_kit::{Feature, KindRules, ViewSpec, credentials, table};
use rest_view::{Descriptor, KubeStore, Presentation, Resource, StructType};
use serde_json::Value;

/// The reference by which objects lie in the namespace of a project; else they lie in a cluster's.
const PROJECT_FIELD: &str = "projectId";
/// The type of who providers of identities know; its objects come from the providers.
const PRINCIPAL: &str = "principal";
/// The field of what ships with the server.
const BUILTIN: &str = "builtin";

/// The feature.
pub fn feature() -> Feature {
    let mut feature = Feature::new("records").seed(rights::seeds()).seed(auth_config::seeds());
    feature = feature.seed([credentials::seed()]).management(credentials::cleanup());
    for rules in kinds() {
        let plural = rules.plural;
        feature = feature.kind_with(match rules.kind {
            grants::GLOBAL_ROLE | grants::GLOBAL_ROLE_BINDING => {
                rules.admit_with(Arc::new(grants::GlobalRules { plural }))
            }
            grants::PROJECT_ROLE_TEMPLATE_BINDING => {
                rules.admit_with(Arc::new(grants::ProjectBindingRules { plural }))
            }
            auth_config::KIND => rules.admit_with(Arc::new(auth_config::ProviderRules)),
            preference::KIND => rules.written_by_server(),
            _ => rules,
        });
    }
    feature
        .view(ViewSpec::new(|_| views()))
        .view(ViewSpec::acting_as(preference::identity(), |_, client| {
            vec![preference::view(client)]
        }))
}

/// The rules of every kind that has no struct.
fn kinds() -> Vec<KindRules> {
    let mut known: Vec<&str> = Vec::new();
    let mut rules = Vec::new();
    for table in types::tables() {
        let Stored::Kind { kind, .. } = table.stored else { continue };
        if has_struct(kind) || known.contains(&kind) {
            continue;
        }
        known.push(kind);
        rules.extend(KindRules::of_tables(&types::tables_of_kind(kind)));
    }
    rules
}

/// Every type that has no view of its own. The first carries the nested types that several share.
fn views() -> Vec<Descriptor> {
    let mut views = Vec::new();
    let mut embedded = table::shared_types().collect::<Vec<StructType>>();
    for found in types::tables() {
        match (found.id, found.stored) {
            (preference::TYPE | PRINCIPAL, _) => {}
            (_, Stored::Kind { kind, .. }) if has_struct(kind) => {}
            (_, Stored::Nowhere) => embedded.push(table::embedded(&found)),
            _ => views.extend(view(&found)),
        }
    }
    if let Some(first) = views.first_mut() {
        first.types.append(&mut embedded);
    }
    views
}

fn view(found: &TypeTable) -> Option<Descriptor> {
    let mut descriptor = effect::shown(table::of_table(found)?, found);
    if catalog::TYPES.contains(&found.id) {
        descriptor = descriptor.validator(catalog::check);
    }
    Some(match found.stored {
        Stored::Kind { kind: auth_config::KIND, .. } => auth_config::view(descriptor),
        Stored::Secret { prefix: cloud_credential::PREFIX } => cloud_credential::view(descriptor),
        _ if found.namespaced
            && found.namespace.is_none()
            && found.parent != Some(PROJECT_FIELD) =>
        {
            let clusters = feature_kit::view::resource_of::<api_management::Cluster>();
            let store = KubeStore::new(table::resource_of(found)?).in_namespaces_of(clusters);
            descriptor.store(Arc::new(store))
        }
        _ if found.fields.iter().any(is_builtin) => {
            descriptor.formatter(keep_builtin).personal(&[])
        }
        _ => descriptor,
    })
}

/// Whether the field says of objects that they ship with the server, which people cannot say.
fn is_builtin(row: &Row) -> bool {
    row.name == BUILTIN && !row.access.create
}

/// What ships with the server cannot be removed.
fn keep_builtin(_: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let kept = stored[BUILTIN] == true || stored["spec"][BUILTIN] == true;
    if kept {
        resource.links.remove("remove");
    }
}

#[cfg(test)]
mod tests;
