//! The types of built-in kinds, as the `k8s-openapi` crate describes them.

use std::borrow::Cow;
use std::sync::OnceLock;

use k8s_openapi::api::{
    admissionregistration, apps, authentication, authorization, autoscaling, batch, certificates,
    coordination, core, discovery, events, flowcontrol, networking, node, policy, rbac, resource,
    scheduling, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use structural_schema::Schema;
use structured_merge::OpenApiError;

use super::components;

/// Prefix of references between definitions.
pub const DEFINITIONS_PATH: &str = "/components/schemas";

/// The type of a built-in kind, with its compiled schemas.
pub struct Builtin {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    name: fn() -> Cow<'static, str>,
    generate: fn(&mut SchemaGenerator) -> schemars::Schema,
    schema: OnceLock<Schema>,
    merge_schema: OnceLock<structured_merge::Schema>,
}

impl Builtin {
    const fn of<T: k8s_openapi::Resource + JsonSchema>() -> Self {
        Self {
            group: T::GROUP,
            version: T::VERSION,
            kind: T::KIND,
            name: T::schema_name,
            generate: SchemaGenerator::subschema_for::<T>,
            schema: OnceLock::new(),
            merge_schema: OnceLock::new(),
        }
    }
    /// Name of the type's definition: `io.k8s.api.core.v1.Pod`.
    pub fn definition(&self) -> String {
        (self.name)().into_owned()
    }
    /// Group, version and kind.
    pub fn gvk(&self) -> (&'static str, &'static str, &'static str) {
        (self.group, self.version, self.kind)
    }
    /// Adds the definition of the type, and those it refers to, to what `generator` collects.
    pub fn collect(&self, generator: &mut SchemaGenerator) {
        (self.generate)(generator);
    }
    /// The compiled schema. Made at first use and cached for the process.
    pub fn schema(&self) -> &Schema {
        self.schema.get_or_init(|| {
            let mut generator = generator();
            let root = (self.generate)(&mut generator);
            let definitions: Map<String, Value> = generator.take_definitions(false);
            Schema::from_json_schema(root.as_value(), &definitions)
                .expect("generated schemas refer only to definitions that come with them")
        })
    }
    /// The definition of the type and all definitions it refers to, as OpenAPI v3, by name.
    pub fn models(&self) -> Map<String, Value> {
        let mut generator = generator();
        self.collect(&mut generator);
        components::openapi_definitions(&mut generator)
    }
    /// The schema by which objects merge and their fields have owners. Made at first use and cached
    /// for the process.
    pub fn merge_schema(&self) -> &structured_merge::Schema {
        self.merge_schema.get_or_init(|| {
            self.merge_schema_from(self.models())
                .expect("the models of built-in kinds are complete, and their extensions are known")
        })
    }
    /// The merge schema from other models of the type and the types that it refers to.
    ///
    /// # Errors
    /// A model is missing, or has an extension that is not known.
    pub fn merge_schema_from(
        &self,
        mut models: Map<String, Value>,
    ) -> Result<structured_merge::Schema, OpenApiError> {
        // Clients may omit these fields, but kube-apiserver always returns them: no manager adds
        // them.
        let always_present = match self.kind {
            "ClusterRole" | "Role" => Some("rules"),
            _ => None,
        };
        if let (Some(field), Some(model)) = (always_present, models.get_mut(&self.definition())) {
            model["required"] = json!([field]);
        }
        structured_merge::Schema::from_openapi(&models, &self.definition())
    }
}

/// A generator that collects definitions with references in the format of OpenAPI v3.
pub fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = DEFINITIONS_PATH.into());
    settings.into_generator()
}

/// The types of all built-in kinds.
pub fn builtins() -> &'static [Builtin] {
    &BUILTINS
}

/// The type of a built-in kind; `None` for unknown ones.
pub fn builtin(group: &str, version: &str, kind: &str) -> Option<&'static Builtin> {
    let same = |one: &&Builtin| (one.group, one.version, one.kind) == (group, version, kind);
    BUILTINS.iter().find(same)
}

/// The schema of a built-in kind: finds unknown fields and type errors in its objects.
pub fn builtin_schema(group: &str, version: &str, kind: &str) -> Option<&'static Schema> {
    builtin(group, version, kind).map(Builtin::schema)
}

static BUILTINS: [Builtin; 71] = [
    Builtin::of::<core::v1::Binding>(),
    Builtin::of::<core::v1::ComponentStatus>(),
    Builtin::of::<core::v1::ConfigMap>(),
    Builtin::of::<core::v1::Endpoints>(),
    Builtin::of::<core::v1::Event>(),
    Builtin::of::<core::v1::LimitRange>(),
    Builtin::of::<core::v1::Namespace>(),
    Builtin::of::<core::v1::Node>(),
    Builtin::of::<core::v1::PersistentVolume>(),
    Builtin::of::<core::v1::PersistentVolumeClaim>(),
    Builtin::of::<core::v1::Pod>(),
    Builtin::of::<core::v1::PodTemplate>(),
    Builtin::of::<core::v1::ReplicationController>(),
    Builtin::of::<core::v1::ResourceQuota>(),
    Builtin::of::<core::v1::Secret>(),
    Builtin::of::<core::v1::Service>(),
    Builtin::of::<core::v1::ServiceAccount>(),
    Builtin::of::<apps::v1::ControllerRevision>(),
    Builtin::of::<apps::v1::DaemonSet>(),
    Builtin::of::<apps::v1::Deployment>(),
    Builtin::of::<apps::v1::ReplicaSet>(),
    Builtin::of::<apps::v1::StatefulSet>(),
    Builtin::of::<batch::v1::CronJob>(),
    Builtin::of::<batch::v1::Job>(),
    Builtin::of::<rbac::v1::ClusterRole>(),
    Builtin::of::<rbac::v1::ClusterRoleBinding>(),
    Builtin::of::<rbac::v1::Role>(),
    Builtin::of::<rbac::v1::RoleBinding>(),
    Builtin::of::<coordination::v1::Lease>(),
    Builtin::of::<events::v1::Event>(),
    Builtin::of::<apiextensions::v1::CustomResourceDefinition>(),
    Builtin::of::<apiregistration::v1::APIService>(),
    Builtin::of::<authentication::v1::SelfSubjectReview>(),
    Builtin::of::<authentication::v1::TokenRequest>(),
    Builtin::of::<authentication::v1::TokenReview>(),
    Builtin::of::<authorization::v1::LocalSubjectAccessReview>(),
    Builtin::of::<authorization::v1::SelfSubjectAccessReview>(),
    Builtin::of::<authorization::v1::SelfSubjectRulesReview>(),
    Builtin::of::<authorization::v1::SubjectAccessReview>(),
    Builtin::of::<networking::v1::Ingress>(),
    Builtin::of::<networking::v1::IngressClass>(),
    Builtin::of::<networking::v1::IPAddress>(),
    Builtin::of::<networking::v1::NetworkPolicy>(),
    Builtin::of::<networking::v1::ServiceCIDR>(),
    Builtin::of::<policy::v1::Eviction>(),
    Builtin::of::<policy::v1::PodDisruptionBudget>(),
    Builtin::of::<discovery::v1::EndpointSlice>(),
    Builtin::of::<admissionregistration::v1::MutatingAdmissionPolicy>(),
    Builtin::of::<admissionregistration::v1::MutatingAdmissionPolicyBinding>(),
    Builtin::of::<admissionregistration::v1::MutatingWebhookConfiguration>(),
    Builtin::of::<admissionregistration::v1::ValidatingAdmissionPolicy>(),
    Builtin::of::<admissionregistration::v1::ValidatingAdmissionPolicyBinding>(),
    Builtin::of::<admissionregistration::v1::ValidatingWebhookConfiguration>(),
    Builtin::of::<autoscaling::v1::HorizontalPodAutoscaler>(),
    Builtin::of::<autoscaling::v1::Scale>(),
    Builtin::of::<autoscaling::v2::HorizontalPodAutoscaler>(),
    Builtin::of::<storage::v1::CSIDriver>(),
    Builtin::of::<storage::v1::CSINode>(),
    Builtin::of::<storage::v1::CSIStorageCapacity>(),
    Builtin::of::<storage::v1::StorageClass>(),
    Builtin::of::<storage::v1::VolumeAttachment>(),
    Builtin::of::<storage::v1::VolumeAttributesClass>(),
    Builtin::of::<resource::v1::DeviceClass>(),
    Builtin::of::<resource::v1::ResourceClaim>(),
    Builtin::of::<resource::v1::ResourceClaimTemplate>(),
    Builtin::of::<resource::v1::ResourceSlice>(),
    Builtin::of::<scheduling::v1::PriorityClass>(),
    Builtin::of::<node::v1::RuntimeClass>(),
    Builtin::of::<certificates::v1::CertificateSigningRequest>(),
    Builtin::of::<flowcontrol::v1::FlowSchema>(),
    Builtin::of::<flowcontrol::v1::PriorityLevelConfiguration>(),
];
