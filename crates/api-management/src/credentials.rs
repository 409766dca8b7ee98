//! Credentials in objects: where they can be, by the tables, and what stands in their place.
//!
//! Whoever may read an object reads all of it through the Kubernetes API, whatever the REST view hides.
//! So no stored object holds a credential: admission moves each value of a marked field ([`Mark`]) to a
//! Secret and leaves a reference ([`Reference`]). This module knows the fields and the references;
//! `feature_kit::credentials` has the Secret. Pure. Start at [`take_out`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use api_meta::status::Cause;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::kind::Kind;
use crate::table::{Mark, Nested, Place, Stored};
use crate::types;

/// What references begin with. No value may: it is refused.
pub const PREFIX: &str = "drover-credential://";
/// Annotation in which `kubectl apply` repeats what it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Stands there in place of each credential.
const REDACTED: &str = "(stored apart)";
/// Refuses a reference that does not belong there.
const FOREIGN: &str = "is a reference to a credential that this object does not have here; send the \
                       credential itself";
/// Where objects hold what no row of their type's own table says: kind, path, nested type. The Kubernetes
/// API takes all that the specification of a cluster can hold.
const BEYOND_TABLES: &[(&str, &str, &str)] = &[(Cluster::KIND, "spec", "clusterSpec")];

/// What stands in a stored object in place of a credential: [`PREFIX`], then the key of the value in the
/// object's Secret. A key of a password begins with `p-`, another with `c-`.
pub struct Reference;

impl Reference {
    /// The key in a text, if it is a reference.
    pub fn key(text: &str) -> Option<&str> {
        text.strip_prefix(PREFIX)
    }
    fn of(key: &str) -> String {
        format!("{PREFIX}{key}")
    }
    /// Whether the value of this key is never read back.
    pub fn is_password(key: &str) -> bool {
        key.starts_with(PASSWORD_KEY)
    }
}

const PASSWORD_KEY: &str = "p-";
const CREDENTIAL_KEY: &str = "c-";

/// A field that leads to credentials, or is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    name: &'static str,
    kind: &'static str,
    mark: Option<Mark>,
}

/// Of each nested type that has credentials in it, the fields that lead there.
static LEADING: LazyLock<BTreeMap<&'static str, Vec<Step>>> = LazyLock::new(|| {
    let own = types::tables().flat_map(|table| table.nested);
    let all: Vec<Nested> = types::shared_types().chain(own).collect();
    let mut leading: BTreeMap<&'static str, Vec<Step>> = BTreeMap::new();
    loop {
        let mut next: BTreeMap<&'static str, Vec<Step>> = BTreeMap::new();
        for nested in &all {
            let rows = nested.fields.iter();
            let leads =
                rows.filter(|row| row.mark.is_some() || leading.contains_key(innermost(row.kind)));
            let steps = leads.map(|row| Step { name: row.name, kind: row.kind, mark: row.mark });
            let steps: Vec<Step> = steps.collect();
            if !steps.is_empty() {
                next.insert(nested.id, steps);
            }
        }
        if next == leading {
            return leading;
        }
        leading = next;
    }
});

/// Where objects of each kind begin to lead to credentials: dotted paths.
static ROOTS: LazyLock<BTreeMap<&'static str, Vec<(String, Step)>>> = LazyLock::new(|| {
    let mut roots: BTreeMap<&'static str, Vec<(String, Step)>> = BTreeMap::new();
    for table in types::tables() {
        let Stored::Kind { kind, .. } = table.stored else { continue };
        let steps = roots.entry(kind).or_default();
        for row in &table.fields {
            let Place::Path(path) = &row.place else { continue };
            let step = Step { name: row.name, kind: row.kind, mark: row.mark };
            // Types that share a kind may differ; the stricter one holds.
            let same = |(known, found): &&mut (String, Step)| {
                known == path && found.mark.is_some() == row.mark.is_some()
            };
            match steps.iter_mut().find(same) {
                Some((_, found)) if row.mark.is_some() => found.mark = found.mark.max(row.mark),
                Some((_, found)) if found.kind == row.kind => {}
                _ if row.mark.is_some() || LEADING.contains_key(innermost(row.kind)) => {
                    steps.push((path.clone(), step));
                }
                _ => {}
            }
        }
    }
    for (kind, path, nested) in BEYOND_TABLES {
        let step = Step { name: "", kind: nested, mark: None };
        roots.entry(kind).or_default().push(((*path).to_owned(), step));
    }
    roots.retain(|_, steps| !steps.is_empty());
    roots
});

/// Whether objects of the kind can have credentials.
pub fn concerns(kind: &str) -> bool {
    ROOTS.contains_key(kind)
}

/// The marked fields of a kind, in order, as `spec.nodes[].sshKey` or, in a map, `spec.answers{}`.
pub fn fields(kind: &str) -> Vec<(String, Mark)> {
    fn below(found: &mut BTreeMap<String, Mark>, path: &str, step: Step) {
        let path = format!("{path}{}", around(step.kind));
        if let Some(mark) = step.mark {
            found.insert(path, mark);
            return;
        }
        for step in LEADING.get(innermost(step.kind)).into_iter().flatten() {
            below(found, &format!("{path}.{}", step.name), *step);
        }
    }
    let mut found = BTreeMap::new();
    for (path, step) in ROOTS.get(kind).into_iter().flatten() {
        below(&mut found, path, *step);
    }
    found.into_iter().collect()
}

/// The kinds whose objects can have credentials.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    ROOTS.keys().copied()
}

/// The plurals of [`kinds`].
pub fn plurals() -> impl Iterator<Item = &'static str> {
    let plurals = types::tables().filter_map(|table| match table.stored {
        Stored::Kind { kind, plural } if concerns(kind) => Some(plural),
        _ => None,
    });
    plurals.collect::<BTreeSet<_>>().into_iter()
}

/// One text in a marked field.
struct Leaf<'a> {
    path: &'a str,
    mark: Mark,
    text: &'a mut String,
}

impl Leaf<'_> {
    /// Whether it is a credential and not yet a reference.
    fn is_plain(&self) -> bool {
        let is_meant = self.mark != Mark::Url || names_user(self.text);
        !self.text.is_empty() && is_meant && Reference::key(self.text).is_none()
    }
}

/// Whether a URL has a user, and perhaps a password, before its host. Without a scheme, whether it has both.
fn names_user(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else {
        let authority = url.split(['/', '?', '#']).next().unwrap_or(url);
        return authority.split_once('@').is_some_and(|(user, _)| user.contains(':'));
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // A password may have characters that should have been escaped.
    rest[..end].contains('@') || rest.contains('@') && !rest[..end].contains('.')
}

/// Visits every text of the object's marked fields.
fn visit(kind: &str, object: &mut Value, each: &mut dyn FnMut(Leaf<'_>)) {
    for (path, step) in ROOTS.get(kind).into_iter().flatten() {
        let value = path.split('.').try_fold(&mut *object, |value, name| value.get_mut(name));
        if let Some(value) = value {
            below(value, step.kind, step.mark, path, each);
        }
    }
}

/// Visits the texts of `value`, of the type `kind`, at or below `path`. All below a marked field are its texts.
fn below(
    value: &mut Value,
    kind: &str,
    mark: Option<Mark>,
    path: &str,
    each: &mut dyn FnMut(Leaf<'_>),
) {
    match (value, mark) {
        (Value::String(text), Some(mark)) => each(Leaf { path, mark, text }),
        (Value::Array(items), _) => {
            for (index, item) in items.iter_mut().enumerate() {
                let path = format!("{path}[{index}]");
                below(item, inside(kind), mark, &path, each);
            }
        }
        (Value::Object(entries), mark) if mark.is_some() || kind.starts_with("map[") => {
            for (key, entry) in entries {
                let path = format!("{path}[{key}]");
                below(entry, inside(kind), mark, &path, each);
            }
        }
        (Value::Object(fields), None) => {
            for step in LEADING.get(kind).into_iter().flatten() {
                if let Some(value) = fields.get_mut(step.name) {
                    let path = format!("{path}.{}", step.name);
                    below(value, step.kind, step.mark, &path, each);
                }
            }
        }
        _ => {}
    }
}

/// Values by the keys of their references.
pub type Values = BTreeMap<String, String>;

/// Whether the object has a credential that is no reference.
pub fn has_plain(kind: &str, object: &Value) -> bool {
    if !concerns(kind) {
        return false;
    }
    let mut object = object.clone();
    let mut found = false;
    visit(kind, &mut object, &mut |leaf| found |= leaf.is_plain());
    found || redacted(kind, &object).is_some()
}

/// The keys of the object's references.
pub fn keys(kind: &str, object: &Value) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    if concerns(kind) {
        visit(kind, &mut object.clone(), &mut |leaf| {
            keys.extend(Reference::key(leaf.text).map(str::to_owned));
        });
    }
    keys
}

/// Puts references in place of the object's credentials. `old`: the object as it is stored, with the values
/// `stored`. What is new goes to `taken`, which may have some of an earlier pass; `new_id` makes up an id
/// that no other value has. A value that the object has already keeps its reference, so a write that
/// repeats it changes nothing.
///
/// A reference is taken only when the stored object has it, and that of a password only in fields of
/// passwords.
///
/// # Errors
/// A cause for each other reference.
pub fn take_out(
    kind: &str,
    object: &mut Value,
    old: Option<&Value>,
    stored: &Values,
    taken: &mut Values,
    new_id: &mut dyn FnMut() -> String,
) -> Result<(), Vec<Cause>> {
    let mut at_path = BTreeMap::new();
    if let Some(old) = old {
        visit(kind, &mut old.clone(), &mut |leaf| {
            if let Some(key) = Reference::key(leaf.text) {
                at_path.insert(leaf.path.to_owned(), key.to_owned());
            }
        });
    }
    let own: BTreeSet<String> = at_path.values().cloned().collect();
    let mut causes = Vec::new();
    visit(kind, object, &mut |leaf| {
        if let Some(key) = Reference::key(leaf.text) {
            let fits = leaf.mark == Mark::Password || !Reference::is_password(key);
            if !(fits && (own.contains(key) || taken.contains_key(key))) {
                causes.push(Cause::invalid(leaf.path, &Value::from(leaf.text.as_str()), FOREIGN));
            }
            return;
        }
        if !leaf.is_plain() {
            return;
        }
        let prefix = if leaf.mark == Mark::Password { PASSWORD_KEY } else { CREDENTIAL_KEY };
        let fits = |key: &&String, value: &String| key.starts_with(prefix) && value == leaf.text;
        let own = at_path.get(leaf.path);
        let own = own.filter(|key| stored.get(*key).is_some_and(|value| fits(key, value)));
        if let Some(key) = own {
            *leaf.text = Reference::of(key);
            return;
        }
        let known = taken.iter().chain(stored).find(|(key, value)| fits(key, value));
        let key = known.map(|(key, _)| key.clone());
        let key = key.unwrap_or_else(|| format!("{prefix}{}", new_id()));
        let reference = Reference::of(&key);
        taken.insert(key, std::mem::replace(leaf.text, reference));
    });
    if let Some(text) = redacted(kind, object) {
        object["metadata"]["annotations"][LAST_APPLIED] = text.into();
    }
    if causes.is_empty() { Ok(()) } else { Err(causes) }
}

/// What `kubectl apply` notes of the object, without credentials; `None` when it has none. What cannot be
/// read goes whole.
fn redacted(kind: &str, object: &Value) -> Option<String> {
    if !concerns(kind) {
        return None;
    }
    let text = object["metadata"]["annotations"].get(LAST_APPLIED)?.as_str()?;
    let Ok(mut applied) = serde_json::from_str::<Value>(text) else {
        return (text != REDACTED).then(|| REDACTED.to_owned());
    };
    let mut found = false;
    visit(kind, &mut applied, &mut |leaf| {
        if leaf.is_plain() && leaf.text != REDACTED {
            found = true;
            REDACTED.clone_into(leaf.text);
        }
    });
    found.then(|| applied.to_string())
}

/// Puts values in place of the object's references. Where `values` has none, the field is left out.
///
/// `with_passwords`: for the server itself; others never read them.
pub fn put_back(kind: &str, object: &mut Value, values: &Values, with_passwords: bool) {
    let mut found = false;
    visit(kind, object, &mut |leaf| {
        let Some(key) = Reference::key(leaf.text) else { return };
        let value = values.get(key).filter(|_| with_passwords || !Reference::is_password(key));
        match value {
            Some(value) => leaf.text.clone_from(value),
            None => found = true,
        }
    });
    if found {
        drop_references(object);
    }
}

/// Removes every field that is a reference. Lists stay as long as they are: other fields name their items.
fn drop_references(value: &mut Value) {
    let is_reference =
        |value: &Value| value.as_str().is_some_and(|text| Reference::key(text).is_some());
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !is_reference(value));
            fields.values_mut().for_each(drop_references);
        }
        Value::Array(items) => {
            for item in items {
                if is_reference(item) {
                    *item = Value::String(String::new());
                }
                drop_references(item);
            }
        }
        _ => {}
    }
}

/// The type of the items of an array or map.
fn inside(kind: &str) -> &str {
    let items = kind.strip_prefix("array[").or_else(|| kind.strip_prefix("map["));
    items.and_then(|items| items.strip_suffix(']')).unwrap_or(kind)
}

fn innermost(kind: &'static str) -> &'static str {
    let within = inside(kind);
    if within == kind { kind } else { innermost(within) }
}

/// The arrays and maps around the innermost type, from the outside.
fn around(kind: &str) -> String {
    let within = inside(kind);
    if within == kind {
        return String::new();
    }
    let outer = if kind.starts_with("map[") { "{}" } else { "[]" };
    format!("{outer}{}", around(within))
}

#[cfg(test)]
mod tests;
