//! References whose objects must exist, and objects that cannot be deleted while they are
//! referenced. The fields declare which these are ([`Field::exists`](crate::Field),
//! [`Field::holds`](crate::Field)).
//!
//! The object that a write names must be visible to the caller, so nobody learns of hidden objects.
//! The objects that prevent a delete are searched as the server, and named only to callers who may
//! see them.

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::mapping;
use crate::types::context::Context;
use crate::types::descriptor::Descriptor;
use crate::types::field::FieldType;
use crate::types::store::{Key, ListScope};

/// Refuses input that refers to an object that does not exist. `stored`: the object that an update
/// changes; references that it already has are accepted.
///
/// # Errors
/// 404 that names the missing object.
pub(crate) async fn require(
    context: &Context<'_>,
    descriptor: &Descriptor,
    input: &Map<String, Value>,
    stored: Option<&Value>,
) -> Result<(), ApiError> {
    for field in descriptor.fields.values().filter(|field| field.exists) {
        let FieldType::Reference(to) = field.kind.innermost() else { continue };
        let Some(target) = context.registry.find(&descriptor.version, to) else { continue };
        let before = stored
            .map(|stored| mapping::to_view(descriptor, context.registry, stored, false))
            .and_then(|mut shown| shown.remove(&field.name));
        let known: Vec<&str> = before.iter().flat_map(ids).collect();
        let sent = input.get(&field.name).into_iter().flat_map(ids);
        for id in sent.filter(|id| !known.contains(id)) {
            let found = match target.key_of(id) {
                Ok(key) => target.store.get(context, &key).await.map(drop),
                Err(error) => Err(error),
            };
            match found {
                Err(error) if error.is_not_found() => return Err(absent(to, id)),
                other => other?,
            }
        }
    }
    Ok(())
}

/// Refuses to delete an object that another object holds. Stored objects decide, including those
/// that the caller may not see. A caller who may not delete the object gets the refusal of the
/// delete itself, and learns nothing here.
///
/// # Errors
/// 405 that names the holder, as far as the caller may see it.
pub(crate) async fn refuse_held(
    context: &Context<'_>,
    descriptor: &Descriptor,
    key: &Key,
    id: &str,
) -> Result<(), ApiError> {
    let types = context.registry.descriptors_of(&descriptor.version);
    let holders = types.filter_map(|other| {
        let names = other.references_to(&descriptor.id);
        let holds = |name: &&str| other.fields.get(*name).is_some_and(|field| field.holds);
        let names: Vec<&str> = names.filter(holds).collect();
        (!names.is_empty()).then_some((other, names))
    });
    let mut is_removable = None;
    for (other, names) in holders {
        if is_removable.is_none() {
            is_removable = Some(may_remove(context, descriptor, key).await?);
        }
        if is_removable == Some(false) {
            return Ok(());
        }
        let mut is_held = false;
        for stored in other.store.list(&context.as_server(), &ListScope::default()).await? {
            let shown = mapping::to_view(other, context.registry, &stored, false);
            if !names.iter().any(|name| shown.get(*name).is_some_and(|value| value == id)) {
                continue;
            }
            if is_orphaned(context, other, &shown).await? {
                continue;
            }
            let holder = crate::collection::id_of(other, &stored);
            if other.store.get(context, &other.key_of(&holder)?).await.is_ok() {
                let holder = format!("{} [{holder}]", words(&other.id));
                return Err(in_use(descriptor, id, &holder));
            }
            is_held = true;
        }
        if is_held {
            let hidden = format!("a {} that is not shown to you", words(&other.id));
            return Err(in_use(descriptor, id, &hidden));
        }
    }
    Ok(())
}

/// Whether the holder is about an object that is gone: it goes soon after that object. One that is
/// still being deleted may need what it holds for that.
async fn is_orphaned(
    context: &Context<'_>,
    holder: &Descriptor,
    shown: &Map<String, Value>,
) -> Result<bool, ApiError> {
    for field in holder.fields.values().filter(|field| field.required) {
        let FieldType::Reference(to) = field.kind.innermost() else { continue };
        let Some(target) = context.registry.find(&holder.version, to) else { continue };
        for id in shown.get(&field.name).into_iter().flat_map(ids) {
            match target.store.get(&context.as_server(), &target.key_of(id)?).await {
                Err(error) if error.is_not_found() => return Ok(true),
                other => drop(other?),
            }
        }
    }
    Ok(false)
}

async fn may_remove(
    context: &Context<'_>,
    descriptor: &Descriptor,
    key: &Key,
) -> Result<bool, ApiError> {
    match descriptor.store.get(context, key).await {
        Err(error) if error.is_not_found() => return Ok(false),
        _ => {}
    }
    let may = descriptor.store.may_change(context, std::slice::from_ref(key)).await?;
    Ok(may.first().is_some_and(|may| may.delete))
}

fn in_use(held: &Descriptor, id: &str, holder: &str) -> ApiError {
    let mut error = ApiError::method_not_allowed("DELETE");
    error.message = format!("{} [{id}] is in use by {holder}", words(&held.id));
    error
}

/// The ids in the value of a reference, or of a list of them.
fn ids(value: &Value) -> impl Iterator<Item = &str> {
    let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    items.iter().filter_map(Value::as_str).filter(|id| !id.is_empty())
}

fn absent(kind: &str, id: &str) -> ApiError {
    ApiError::not_found(format!("unable to find {} [{id}]", words(kind)))
}

/// `nodeTemplate` in words: `node template`.
fn words(id: &str) -> String {
    let mut words = String::new();
    for letter in id.chars() {
        if letter.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_missing_object_is_named_in_words() {
        assert_eq!(absent("nodeTemplate", "x").message, "unable to find node template [x]");
        let ids: Vec<_> = [json!("a"), json!(["b", "c"]), json!(null), json!("")]
            .iter()
            .flat_map(|value| super::ids(value).map(str::to_owned).collect::<Vec<_>>())
            .collect();
        assert_eq!(ids, ["a", "b", "c"]);
    }
}
