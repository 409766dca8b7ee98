//! Credentials in objects: the fields that can contain them, from the tables, and the references
//! that replace them.
//!
//! A user who may read an object reads all of it through the Kubernetes API, whatever the REST view
//! hides. So no stored object contains a credential: admission moves each value of a marked field
//! ([`Mark`]) to a Secret and leaves a reference ([`Reference`]). This module knows the fields and
//! the references; `feature_kit::credentials` has the Secret. Pure. Start at [`take_out`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use api_meta::status::Cause;
use serde_json::Value;

use crate::cluster::{Cluster, DRIVER_NAME};
use crate::kind::Kind;
use crate::table::{Mark, Nested, RowLocation, Stored};
use crate::types;

/// Prefix of references. A value with this prefix is refused.
pub const PREFIX: &str = "drover-credential://";
/// Annotation in which `kubectl apply` repeats what it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Replaces each credential there.
const REDACTED: &str = "(stored apart)";
/// Refuses a reference that the stored object does not have.
const FOREIGN: &str = "is a reference to a credential that this object does not have here; send the \
                       credential itself";
/// Parts of objects that no row of their own table describes: kind, path, nested type. The
/// Kubernetes API accepts everything that the spec of a cluster can contain.
const BEYOND_TABLES: &[(&str, &str, &str)] = &[(Cluster::KIND, "spec", "clusterSpec")];

/// Fields that decide where the credentials of an object are sent, by kind.
const DESTINATIONS: &[(&str, &[&str])] = &[(
    "AuthConfig",
    &[
        "servers",
        "port",
        "tls",
        "starttls",
        "certificate",
        "issuer",
        "hostname",
        "endpoint",
        "authEndpoint",
        "tokenEndpoint",
        "graphEndpoint",
        "tenantId",
        "userInfoEndpoint",
        "directoryEndpoint",
    ],
)];

/// What replaces a credential in a stored object: [`PREFIX`], then the key of the value in the
/// Secret of the object. The key of a password begins with `p-`, any other with `c-`.
pub struct Reference;

impl Reference {
    /// The key in a text, if it is a reference.
    pub fn key(text: &str) -> Option<&str> {
        text.strip_prefix(PREFIX)
    }
    fn of(key: &str) -> String {
        format!("{PREFIX}{key}")
    }
    /// Whether the value of this key is never returned to clients.
    pub fn is_password(key: &str) -> bool {
        key.starts_with(PASSWORD_KEY)
    }
}

const PASSWORD_KEY: &str = "p-";
const CREDENTIAL_KEY: &str = "c-";

/// A field that leads to credentials, or is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CredentialStep {
    name: &'static str,
    kind: &'static str,
    mark: Option<Mark>,
}

/// For each nested type with credentials, the fields that lead to them.
static LEADING: LazyLock<BTreeMap<&'static str, Vec<CredentialStep>>> = LazyLock::new(|| {
    let own = types::tables().flat_map(|table| table.nested);
    let all: Vec<Nested> = types::shared_types().chain(own).collect();
    let mut leading: BTreeMap<&'static str, Vec<CredentialStep>> = BTreeMap::new();
    loop {
        let mut next: BTreeMap<&'static str, Vec<CredentialStep>> = BTreeMap::new();
        for nested in &all {
            let rows = nested.fields.iter();
            let leads =
                rows.filter(|row| row.mark.is_some() || leading.contains_key(innermost(row.kind)));
            let steps =
                leads.map(|row| CredentialStep { name: row.name, kind: row.kind, mark: row.mark });
            let steps: Vec<CredentialStep> = steps.collect();
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

/// For each kind, the dotted paths of the outermost fields that lead to credentials.
static ROOTS: LazyLock<BTreeMap<&'static str, Vec<(String, CredentialStep)>>> =
    LazyLock::new(|| {
        let mut roots: BTreeMap<&'static str, Vec<(String, CredentialStep)>> = BTreeMap::new();
        for table in types::tables() {
            let Stored::Kind { kind, .. } = table.stored else { continue };
            let steps = roots.entry(kind).or_default();
            for row in &table.fields {
                let RowLocation::Path(path) = &row.location else { continue };
                let step = CredentialStep { name: row.name, kind: row.kind, mark: row.mark };
                // Types that share a kind may differ; the stricter one applies.
                let same = |(known, found): &&mut (String, CredentialStep)| {
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
            let step = CredentialStep { name: "", kind: nested, mark: None };
            roots.entry(kind).or_default().push(((*path).to_owned(), step));
        }
        roots.retain(|_, steps| !steps.is_empty());
        roots
    });

/// Whether objects of the kind can have credentials.
pub fn concerns(kind: &str) -> bool {
    ROOTS.contains_key(kind)
}

/// The marked fields of a kind, sorted, as `spec.nodes[].sshKey` or, in a map, `spec.answers{}`.
pub fn fields(kind: &str) -> Vec<(String, Mark)> {
    fn below(found: &mut BTreeMap<String, Mark>, path: &str, step: CredentialStep) {
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

/// Whether a URL has a user, and perhaps a password, before its host. Without a scheme, whether it
/// has both.
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

/// Visits the texts of `value`, of the type `kind`, at or below `path`. All below a marked field
/// are its texts.
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
            // Beside the options of a driver, which may be keys of a cloud, stands its name.
            for (key, entry) in entries.iter_mut().filter(|(key, _)| *key != DRIVER_NAME) {
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

/// Credentials by the keys of their references.
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

/// Whether credentials of the object would be sent elsewhere than those of `old`.
pub fn is_redirected(kind: &str, object: &Value, old: &Value) -> bool {
    let plain = |value: &Value| value.is_null() || *value == "" || *value == false;
    let of_kind = DESTINATIONS.iter().filter(|(of, _)| *of == kind);
    let mut fields = of_kind.flat_map(|(_, fields)| fields.iter().copied());
    fields.any(|field| {
        let (new, old) = (&object[field], &old[field]);
        new != old && !(plain(new) && plain(old))
    })
}

/// Whether the object takes a credential of `old` elsewhere: it is redirected and has one of the
/// references that `old` has. A credential that was sent again has a new reference then.
pub fn takes_elsewhere(kind: &str, object: &Value, old: &Value) -> bool {
    is_redirected(kind, object, old) && !keys(kind, object).is_disjoint(&keys(kind, old))
}

/// Replaces the credentials of the object with references. `old`: the stored object, with the
/// values `stored`. New values are added to `extracted`, which may contain some of an earlier pass.
/// `new_id` returns an id that no other value has. A value that the object already has retains its
/// reference, so a write that repeats it changes nothing; but not when the object is redirected
/// ([`is_redirected`]), so that [`takes_elsewhere`] distinguishes it from one that was not sent.
///
/// A reference in the input is accepted only when the stored object has it, and the reference of a
/// password only in password fields.
///
/// # Errors
/// A cause for each other reference.
pub fn take_out(
    kind: &str,
    object: &mut Value,
    old: Option<&Value>,
    stored: &Values,
    extracted: &mut Values,
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
    let is_redirected = old.is_some_and(|old| is_redirected(kind, object, old));
    let none = Values::new();
    let reusable = if is_redirected { &none } else { stored };
    let mut causes = Vec::new();
    visit(kind, object, &mut |leaf| {
        if let Some(key) = Reference::key(leaf.text) {
            let fits = leaf.mark == Mark::Password || !Reference::is_password(key);
            if !(fits && (own.contains(key) || extracted.contains_key(key))) {
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
        let own = own.filter(|key| reusable.get(*key).is_some_and(|value| fits(key, value)));
        if let Some(key) = own {
            *leaf.text = Reference::of(key);
            return;
        }
        let known = extracted.iter().chain(reusable).find(|(key, value)| fits(key, value));
        let key = known.map(|(key, _)| key.clone());
        let key = key.unwrap_or_else(|| format!("{prefix}{}", new_id()));
        let reference = Reference::of(&key);
        extracted.insert(key, std::mem::replace(leaf.text, reference));
    });
    if let Some(text) = redacted(kind, object) {
        object["metadata"]["annotations"][LAST_APPLIED] = text.into();
    }
    if causes.is_empty() { Ok(()) } else { Err(causes) }
}

/// The annotation of `kubectl apply` without credentials; `None` when it has none. Text that cannot
/// be parsed is replaced as a whole.
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

/// Replaces the references of the object with their values. A field without a value in `values` is
/// left out.
///
/// `with_passwords`: only for the server itself; clients never read passwords.
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

/// Removes every field that is a reference. Lists retain their length, because other fields refer
/// to their items by position.
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

/// The arrays and maps around the innermost type, outermost first.
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
