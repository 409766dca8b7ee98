//! The links `update` and `remove`, and actions that change an object: listed only for callers who
//! may do that.
//!
//! Not applied to the reply to a create: the rights of the creator may become effective a moment
//! later.

use crate::error::ApiError;
use crate::types::context::Context;
use crate::types::descriptor::{Descriptor, Resource};

/// What the caller may do with an object that they can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MayChange {
    pub update: bool,
    pub delete: bool,
}

impl MayChange {
    /// May update and delete.
    pub const ALL: Self = Self { update: true, delete: true };
    /// May neither update nor delete.
    pub const NONE: Self = Self { update: false, delete: false };
}

/// Removes the links and actions that would be refused. Queries the rights for all resources at
/// once.
///
/// # Errors
/// The rights could not be queried.
pub(crate) async fn trim(
    context: &Context<'_>,
    descriptor: &Descriptor,
    resources: &mut [Resource],
) -> Result<(), ApiError> {
    let changing = |resource: &Resource| -> Vec<&str> {
        let shown = resource.subtype.as_deref();
        let shown = shown.and_then(|id| context.registry.find(&descriptor.version, id));
        let actions = descriptor.actions.iter().chain(shown.iter().flat_map(|it| &it.actions));
        actions.filter(|action| action.needs_update).map(|action| action.name.as_str()).collect()
    };
    let is_changeable = |resource: &Resource| {
        ["update", "remove"].iter().any(|&link| resource.links.contains_key(link))
            || changing(resource).iter().any(|&action| resource.actions.contains_key(action))
    };
    let (mut keys, mut changeable) = (Vec::new(), Vec::new());
    for resource in resources.iter_mut().filter(|resource| is_changeable(resource)) {
        keys.push(resource.key.clone());
        changeable.push(resource);
    }
    if keys.is_empty() {
        return Ok(());
    }
    let rights = match context.caller.is_anonymous() {
        true => vec![MayChange::NONE; keys.len()],
        false => descriptor.store.may_change(context, &keys).await?,
    };
    for (resource, may) in changeable.into_iter().zip(rights) {
        for (link, is_allowed) in [("update", may.update), ("remove", may.delete)] {
            if !is_allowed {
                resource.links.remove(link);
            }
        }
        if !may.update {
            changing(resource).iter().for_each(|&action| drop(resource.actions.remove(action)));
        }
    }
    Ok(())
}

/// Like [`trim`], for one resource.
pub(crate) async fn trim_one(
    context: &Context<'_>,
    descriptor: &Descriptor,
    mut resource: Resource,
) -> Result<Resource, ApiError> {
    trim(context, descriptor, std::slice::from_mut(&mut resource)).await?;
    Ok(resource)
}
