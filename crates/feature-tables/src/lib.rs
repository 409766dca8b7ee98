//! Kinds and types that only tables describe: their admission rules and their views, made from the
//! tables. No controller acts on them; most report that themselves
//! (`api_management::unimplemented`).
//!
//! Not here: kinds with a struct, and those that another feature acts on
//! ([`KINDS_OF_OTHER_FEATURES`]). A kind that gets behaviour moves to a feature of its subject.
//!
//! | Where | What |
//! | --- | --- |
//! | [`catalog`] | repositories of charts: which URLs are refused |
//! | [`effect`] | the condition of unimplemented objects, where their schema has no conditions |
//! | [`rights`] | who may read which kinds, and the namespaces that must exist |

pub mod catalog;
pub mod effect;
pub mod rights;

use std::sync::Arc;

use api_management::table::{Row, Stored, TypeTable};
use api_management::{has_struct, types};
use feature_kit::view::in_projects;
use feature_kit::{Feature, KindRules, ViewSpec, credentials, table};
use rest_view::{Descriptor, KubeStore, Presentation, Resource, StructType};
use serde_json::Value;

/// Kinds without a struct that another feature serves, with all types of their objects.
const KINDS_OF_OTHER_FEATURES: [&str; 2] = ["AuthConfig", "Preference"];
/// Other types that another feature serves.
const TYPES_OF_OTHER_FEATURES: [&str; 2] = ["cloudCredential", "principal"];
/// The reference of objects in the namespace of a project; without it they are in a cluster's.
const PROJECT_FIELD: &str = "projectId";
/// The field that marks what ships with the server.
const BUILTIN: &str = "builtin";

/// Every kind and type that only tables describe, with the namespaces and rights that they need.
pub fn feature() -> Feature {
    let mut feature = Feature::new("tables").seed(rights::seeds()).seed([credentials::seed()]);
    for rules in kinds() {
        feature = feature.kind_with(rules);
    }
    feature.management(credentials::cleanup()).view(ViewSpec::new(|_| views()))
}

/// Whether this feature serves the kind.
fn is_own_kind(kind: &str) -> bool {
    !has_struct(kind) && !KINDS_OF_OTHER_FEATURES.contains(&kind)
}

/// The rules of every kind of this feature.
fn kinds() -> Vec<KindRules> {
    let mut rules: Vec<KindRules> = Vec::new();
    for table in types::tables() {
        let Stored::Kind { kind, .. } = table.stored else { continue };
        if is_own_kind(kind) && !rules.iter().any(|known| known.kind == kind) {
            rules.push(KindRules::of_tables(kind));
        }
    }
    rules
}

/// Every type of this feature. The first carries the nested types that several types use.
fn views() -> Vec<Descriptor> {
    let mut views = Vec::new();
    let mut embedded = table::shared_types().collect::<Vec<StructType>>();
    for found in types::tables() {
        match found.stored {
            _ if TYPES_OF_OTHER_FEATURES.contains(&found.id) => {}
            Stored::Kind { kind, .. } if !is_own_kind(kind) => {}
            Stored::Nowhere => embedded.push(table::embedded(&found)),
            _ => views.extend(view(&found)),
        }
    }
    if let Some(first) = views.first_mut() {
        first.types.append(&mut embedded);
    }
    views
}

fn view(found: &TypeTable) -> Option<Descriptor> {
    let mut descriptor = effect::with_condition(table::of_table(found)?, found);
    if catalog::TYPES.contains(&found.id) {
        descriptor = descriptor.validator(catalog::check);
    }
    let is_in_parent = found.namespaced && found.namespace.is_none();
    if is_in_parent && found.parent == Some(PROJECT_FIELD) {
        descriptor = descriptor.store(in_projects(table::resource_of(found)?));
    } else if is_in_parent {
        let clusters = feature_kit::view::resource_of::<api_management::Cluster>();
        let store = KubeStore::new(table::resource_of(found)?).in_namespaces_of(clusters);
        descriptor = descriptor.store(Arc::new(store));
    } else if found.fields.iter().any(is_builtin) {
        descriptor = descriptor.formatter(hide_removal_of_builtin).personal(&[]);
    }
    Some(descriptor)
}

/// Whether the field marks objects that ship with the server, which users cannot set.
fn is_builtin(row: &Row) -> bool {
    row.name == BUILTIN && !row.access.create
}

/// Objects that ship with the server cannot be removed.
fn hide_removal_of_builtin(_: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    if stored[BUILTIN] == true || stored["spec"][BUILTIN] == true {
        resource.links.remove("remove");
    }
}

#[cfg(test)]
mod tests;
