//! Links `update` and `remove`, and actions that change an object: shown to who may do that, whatever the type
//! offers.
//!
//! Not for the reply to a create: the rights of who made an object may come a moment later.

use crate::error::ApiError;
use crate::types::context::Context;
use crate::types::descriptor::{Descriptor, Resource};

/// What the caller may do with an object that they see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MayChange {
    pub update: bool,
    pub delete: bool,
}

impl MayChange {
    pub const ALL: Self = Self { update: true, delete: true };
    pub const NONE: Self = Self { update: false, delete: false };
}

/// Takes away the links and actions that lead to a refusal. Asks for all resources at once.
pub(crate) async fn trim(
    context: &Context<'_>,
    descriptor: &Descriptor,
    resources: &mut [Resource],
) -> Result<(), ApiError> {
    let changing = || descriptor.actions.iter().filter(|action| action.needs_update);
    let is_changeable = |resource: &Resource| {
        ["update", "remove"].iter().any(|&link| resource.links.contains_key(link))
            || changing().any(|action| resource.actions.contains_key(&action.name))
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
        for (link, kept) in [("update", may.update), ("remove", may.delete)] {
            if !kept {
                resource.links.remove(link);
            }
        }
        if !may.update {
            changing().for_each(|action| drop(resource.actions.remove(&action.name)));
        }
    }
    Ok(())
}

/// As [`trim`], of one.
pub(crate) async fn trim_one(
    context: &Context<'_>,
    descriptor: &Descriptor,
    mut resource: Resource,
) -> Result<Resource, ApiError> {
    trim(context, descriptor, std::slice::from_mut(&mut resource)).await?;
    Ok(resource)
}
