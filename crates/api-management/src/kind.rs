//! What makes a type a kind: its names, scope, columns, and the CRD made of them.
//!
//! The macro [`kind!`] implements `kube::Resource` and [`Kind`] for a struct. It replaces kube's
//! derive, which always nests under `spec`: half of these kinds have their fields at the top level.

use std::fmt;
use std::marker::PhantomData;

use api_meta::status::Cause;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation,
};
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{API_VERSION, GROUP, VERSION, schema};

/// Where objects of a kind are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindScope {
    Cluster,
    /// For most kinds the namespace has the name of the cluster that they belong to.
    Namespaced,
}

/// A column of `kubectl get`: name, type, JSON path, and whether only wide output shows it.
pub type PrinterColumn = (&'static str, &'static str, &'static str, bool);

/// The names and properties of one kind.
pub trait Kind: JsonSchema + Sized {
    /// The name in `kind` of objects.
    const KIND: &'static str;
    /// The lower-case plural in paths.
    const PLURAL: &'static str;
    /// The lower-case singular that kubectl accepts.
    const SINGULAR: &'static str;
    /// Abbreviations that kubectl accepts.
    const SHORT_NAMES: &'static [&'static str];
    /// Whether objects have a namespace.
    const SCOPE: KindScope;
    /// Whether status is a subresource: writers of the spec cannot change it, and writers of the
    /// status cannot change the rest.
    const STATUS: bool;
    /// The columns of `kubectl get`, before the age.
    const COLUMNS: &'static [PrinterColumn];

    /// The definition of the kind.
    fn crd() -> CustomResourceDefinition {
        let mut columns: Vec<_> = Self::COLUMNS.iter().map(column).collect();
        columns.push(column(&("Age", "date", ".metadata.creationTimestamp", false)));
        let version = CustomResourceDefinitionVersion {
            name: VERSION.to_owned(),
            served: true,
            storage: true,
            additional_printer_columns: Some(columns),
            schema: Some(CustomResourceValidation {
                open_api_v3_schema: Some(schema::complete::<Self>()),
            }),
            subresources: Self::STATUS.then(|| CustomResourceSubresources {
                scale: None,
                status: Some(CustomResourceSubresourceStatus(serde_json::json!({}))),
            }),
            ..CustomResourceDefinitionVersion::default()
        };
        let short_names = Self::SHORT_NAMES.iter().map(|&name| name.to_owned()).collect();
        CustomResourceDefinition {
            metadata: ObjectMeta {
                name: Some(format!("{}.{GROUP}", Self::PLURAL)),
                ..ObjectMeta::default()
            },
            spec: CustomResourceDefinitionSpec {
                group: GROUP.to_owned(),
                names: CustomResourceDefinitionNames {
                    kind: Self::KIND.to_owned(),
                    list_kind: Some(format!("{}List", Self::KIND)),
                    plural: Self::PLURAL.to_owned(),
                    singular: Some(Self::SINGULAR.to_owned()),
                    short_names: Some(short_names),
                    categories: None,
                },
                scope: match Self::SCOPE {
                    KindScope::Cluster => "Cluster".to_owned(),
                    KindScope::Namespaced => "Namespaced".to_owned(),
                },
                versions: vec![version],
                ..CustomResourceDefinitionSpec::default()
            },
            status: None,
        }
    }
}

/// The rules of a kind that need only one object. Pure, so they can run in process, in an admission
/// webhook, and in a client before it sends the object.
pub trait ObjectRules: Kind + DeserializeOwned {
    /// Fills in what the writer left out. Idempotent. Never changes `status`.
    fn fill_defaults(_object: &mut Value) {}

    /// Returns every violation. `old` is the stored object on update, for fields that must not
    /// change.
    fn validate(&self, _old: Option<&Self>) -> Vec<Cause> {
        Vec::new()
    }
}

/// Sets `field` of an object to `value` when it is absent, null or the empty string.
pub(crate) fn default_field(object: &mut Value, field: &str, value: impl Into<Value>) {
    let Some(map) = object.as_object_mut() else { return };
    let unset = match map.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if unset {
        map.insert(field.to_owned(), value.into());
    }
}

/// The nested object `field`, created when absent; `None` when the field has another type.
pub(crate) fn object_field<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let map = object.as_object_mut()?;
    let child = map.entry(field.to_owned()).or_insert_with(|| Value::Object(Map::new()));
    if child.is_null() {
        *child = Value::Object(Map::new());
    }
    child.is_object().then_some(child)
}

/// The fields of an object that its struct does not name, without those that are null: for a struct
/// that is written back as a whole.
pub(crate) fn other_fields<'de, D: Deserializer<'de>>(
    fields: D,
) -> Result<Map<String, Value>, D::Error> {
    let mut fields = Map::deserialize(fields)?;
    // A merge patch with null removes the field, and would be sent again and again.
    fields.retain(|_, value: &mut Value| !value.is_null());
    Ok(fields)
}

/// A violation when a field that is fixed at creation differs from the stored value.
pub(crate) fn immutable(field: &str, new: &str, old: Option<&str>) -> Option<Cause> {
    let changed = old.is_some_and(|old| old != new);
    changed.then(|| Cause::invalid(field, &Value::from(new), "field is immutable"))
}

fn column(&(name, kind, path, wide): &PrinterColumn) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: kind.to_owned(),
        json_path: path.to_owned(),
        priority: wide.then_some(1),
        description: None,
        format: None,
    }
}

/// The `apiVersion` of all these kinds: serialized as the constant, accepted whatever it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiVersion;

impl Serialize for ApiVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(API_VERSION)
    }
}

impl<'de> Deserialize<'de> for ApiVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// The `kind` of `K`: serialized as the constant, accepted whatever it is.
pub struct KindName<K>(PhantomData<fn() -> K>);

impl<K> Clone for KindName<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for KindName<K> {}
impl<K> Default for KindName<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}
impl<K> PartialEq for KindName<K> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl<K: Kind> fmt::Debug for KindName<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(K::KIND)
    }
}
impl<K: Kind> Serialize for KindName<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(K::KIND)
    }
}
impl<'de, K> Deserialize<'de> for KindName<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self(PhantomData))
    }
}

/// Makes a struct with `metadata: ObjectMeta` a kind.
macro_rules! kind {
    (
        $type:ident, $plural:literal, $singular:literal, $scope:ident, $kube_scope:ident,
        status: $status:literal, short: [$($short:literal),*], columns: [$($column:expr),* $(,)?]
    ) => {
        impl $crate::kind::Kind for $type {
            const KIND: &'static str = stringify!($type);
            const PLURAL: &'static str = $plural;
            const SINGULAR: &'static str = $singular;
            const SHORT_NAMES: &'static [&'static str] = &[$($short),*];
            const SCOPE: $crate::kind::KindScope = $crate::kind::KindScope::$scope;
            const STATUS: bool = $status;
            const COLUMNS: &'static [$crate::kind::PrinterColumn] = &[$($column),*];
        }

        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = k8s_openapi::$kube_scope;

            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                stringify!($type).into()
            }
            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                $crate::GROUP.into()
            }
            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                $crate::VERSION.into()
            }
            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &kube::api::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut kube::api::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use kind;
