//! What a copy of a project's Secret is, and what is to be done to have it. Pure.

use std::collections::BTreeMap;

use api_management::keys;
use controller::Projection;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use sha2::{Digest, Sha256};

/// Tokens that Kubernetes makes are good for one service account in one cluster only.
const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
/// Annotations of the original that say nothing about a copy.
const NOT_COPIED: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", keys::PROJECT_ID];

/// What is kept in memory of a Secret: nothing of its content but a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    pub uid: String,
    pub version: String,
    pub kind: String,
    pub immutable: bool,
    /// Of type, content, and whether it may change.
    pub digest: [u8; 32],
    pub is_copy: bool,
    /// Of a copy: [`Observed::stamp`] of its original at that time.
    pub copied: String,
    pub terminating: bool,
}

/// Watches Secrets without keeping their content.
pub struct Digests;

impl Projection for Digests {
    type Object = Secret;
    type Projected = Observed;
    fn project(secret: Secret) -> Observed {
        Observed::of(&secret)
    }
}

impl Observed {
    /// The observed state of a Secret: a digest in place of its content.
    pub fn of(secret: &Secret) -> Self {
        let metadata = &secret.metadata;
        let annotation = |key| metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned();
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            kind: secret.type_.clone().unwrap_or_default(),
            immutable: secret.immutable.unwrap_or_default(),
            digest: digest(secret),
            is_copy: is_copy(metadata),
            copied: annotation(keys::COPIED_VERSION).unwrap_or_default(),
            terminating: metadata.deletion_timestamp.is_some(),
        }
    }

    /// Which object this is, and in which state.
    fn stamp(&self) -> String {
        format!("{}/{}", self.uid, self.version)
    }

    /// Whether a Secret in the namespace of a project belongs into the project's namespaces.
    pub fn is_original(&self) -> bool {
        !self.is_copy && !self.terminating && self.kind != SERVICE_ACCOUNT_TOKEN
    }
}

/// Whether a Secret carries our mark. All others are never touched.
pub fn is_copy(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    let owned = labels.and_then(|labels| labels.get(keys::DOWNSTREAM_OWNED));
    owned.is_some_and(|purpose| purpose == keys::OWNED_PROJECT_SECRET)
        && metadata.annotations.as_ref().is_some_and(|all| all.contains_key(keys::COPY_OF))
}

fn digest(secret: &Secret) -> [u8; 32] {
    let mut digest = Sha256::new();
    // With lengths, so that no two contents are the same bytes.
    let mut add = |part: &[u8]| {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    };
    add(secret.type_.as_deref().unwrap_or_default().as_bytes());
    add(&[u8::from(secret.immutable.unwrap_or_default())]);
    let none = BTreeMap::new();
    for (key, ByteString(value)) in secret.data.as_ref().unwrap_or(&none) {
        add(key.as_bytes());
        add(value);
    }
    digest.finalize().into()
}

/// What is to be done for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Nothing,
    Create,
    Replace,
    /// Kubernetes does not let it become what it is to be.
    DeleteAndCreate,
}

/// From the original and the copy as they are.
pub fn step(original: &Observed, copy: Option<&Observed>) -> Step {
    let Some(copy) = copy else { return Step::Create };
    let same = copy.digest == original.digest;
    if copy.terminating || (same && copy.copied == original.stamp()) {
        Step::Nothing
    } else if copy.kind != original.kind || (copy.immutable && !same) {
        Step::DeleteAndCreate
    } else {
        Step::Replace
    }
}

/// The copy of a project's Secret for one namespace, with its labels and annotations. `project` is
/// the whole id.
pub fn desired(
    original: &Secret,
    project: &str,
    namespace: &str,
    owner: Option<&OwnerReference>,
) -> Secret {
    let name = original.metadata.name.clone().unwrap_or_default();
    let mut labels = original.metadata.labels.clone().unwrap_or_default();
    labels.insert(keys::DOWNSTREAM_OWNED.to_owned(), keys::OWNED_PROJECT_SECRET.to_owned());
    let mut annotations = original.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| !NOT_COPIED.contains(&key.as_str()));
    let marks = [
        (keys::COPY_OF, format!("{project}:{name}")),
        (keys::COPIED_VERSION, Observed::of(original).stamp()),
        (keys::USER_SECRET, "true".to_owned()),
    ];
    annotations.extend(marks.map(|(key, value)| (key.to_owned(), value)));
    Secret {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: owner.map(|owner| vec![owner.clone()]),
            ..ObjectMeta::default()
        },
        type_: original.type_.clone(),
        data: original.data.clone(),
        immutable: original.immutable,
        string_data: None,
    }
}
