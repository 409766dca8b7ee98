//! The agent's manifest: what a cluster's owner applies to let the agent run.
//!
//! Everything carries the label `drover.io/owned`, everything namespaced is in `cattle-system`, and
//! the two cluster-wide objects become owned by that namespace once the agent is there
//! ([`crate::cluster::ownership`]). Which rights the agent gets, and why, is
//! `docs/adr/0005-agent-rights.md`. Pure.

use api_management::setting::{AGENT_IMAGE, SYSTEM_DEFAULT_REGISTRY};
use api_management::{ClusterSpec, keys};
use api_meta::image::ImageReference;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use feature_kit::Settings;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Name of the agent's cluster role and its binding.
pub const AGENT_NAME: &str = api_management::cluster::AGENT_ROLE;
/// Name of the Deployment, as existing tools look for it.
pub const DEPLOYMENT: &str = "cattle-cluster-agent";
/// Name of the agent's service account.
pub const SERVICE_ACCOUNT: &str = "cattle";
/// The account of pods that name none, which the cluster makes in every namespace.
pub const DEFAULT_ACCOUNT: &str = "default";
/// Secret in which the agent keeps its key.
const IDENTITY_SECRET: &str = "drover-agent-identity";
/// Value of the label `drover.io/owned` on the manifest's objects.
const OWNED_AGENT: &str = "agent";
/// The agent in its image.
const PROGRAM: &str = "/drover-agent";
/// Where the credentials are mounted.
const CREDENTIALS_PATH: &str = "/cattle-credentials";
/// Readable by whichever user the cluster lets the agent run as. Only the agent's container sees
/// the files; the owner could be set by `fsGroup`, but then not every cluster would take the pod.
const CREDENTIALS_MODE: i32 = 0o444;

/// What a manifest is made of.
pub struct Import<'a> {
    pub cluster: &'a str,
    pub server_url: &'a str,
    /// PEM; empty when the server's certificate is from a public authority.
    pub ca_certs: &'a str,
    pub token: &'a str,
    pub image: &'a str,
    /// As in the cluster's spec.
    pub env: &'a [Value],
}

/// The agent image as the settings that hold now have it: see [`image_of`].
pub fn agent_image(spec: &ClusterSpec, settings: &Settings) -> String {
    image_of(spec, &settings.get(AGENT_IMAGE), &settings.get(SYSTEM_DEFAULT_REGISTRY))
}

/// What the spec names, else the setting; from `registry`, if there is one and the image names none
/// itself.
pub(crate) fn image_of(spec: &ClusterSpec, setting: &str, registry: &str) -> String {
    let named = [&spec.agent_image_override, &spec.desired_agent_image];
    let image = named.into_iter().find(|image| !image.is_empty());
    let image = image.map_or(setting, |image| image);
    from_registry(image, registry)
}

/// The image from `registry`, if there is one and the image names none itself.
pub(crate) fn from_registry(image: &str, registry: &str) -> String {
    match image.parse::<ImageReference>() {
        Ok(reference) if !registry.is_empty() => reference.in_registry(registry).to_string(),
        _ => image.to_owned(),
    }
}

/// What agents pin; none when there is nothing to pin.
pub fn ca_checksum(pem: &str) -> Option<String> {
    (!pem.trim_end_matches('\n').is_empty()).then(|| tls_trust::ca_checksum(pem))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The manifest's text.
///
/// # Panics
/// Never: the documents are plain JSON values.
pub fn render(import: &Import<'_>) -> String {
    let documents = documents(import);
    let text = |document: &Value| {
        serde_saphyr::to_string(document).expect("plain JSON values have a YAML form")
    };
    documents.iter().map(|document| format!("---\n{}", text(document))).collect()
}

/// The manifest's objects, in the order in which they can be applied.
pub fn documents(import: &Import<'_>) -> Vec<Value> {
    let secret = credentials(import);
    let secret_name = secret["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    vec![
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": keys::SYSTEM_NS, "labels": labels()},
        }),
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": named(SERVICE_ACCOUNT),
        }),
        cluster_role(),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": AGENT_NAME, "labels": labels()},
            "roleRef": role_ref("ClusterRole", AGENT_NAME),
            "subjects": [subject()],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": named(AGENT_NAME),
            "rules": [
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
                {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [IDENTITY_SECRET],
                    "verbs": ["get", "update"]},
                {"apiGroups": [""], "resources": ["serviceaccounts/token"],
                    "resourceNames": [SERVICE_ACCOUNT], "verbs": ["create"]},
                {"apiGroups": [""], "resources": ["serviceaccounts"],
                    "resourceNames": [DEFAULT_ACCOUNT], "verbs": ["patch"]},
                // Shells of people. A WebSocket to exec is a get, and since 1.35 also a create.
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete"]},
                {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": named(AGENT_NAME),
            "roleRef": role_ref("Role", AGENT_NAME),
            "subjects": [subject()],
        }),
        secret,
        deployment(import, &secret_name),
    ]
}

fn labels() -> Value {
    json!({keys::DOWNSTREAM_OWNED: OWNED_AGENT})
}

fn named(name: &str) -> Value {
    json!({"name": name, "namespace": keys::SYSTEM_NS, "labels": labels()})
}

fn role_ref(kind: &str, name: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name})
}

fn subject() -> Value {
    json!({"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": keys::SYSTEM_NS})
}

/// Kinds whose changes the server follows for the change feed: API group, plurals. It learns which
/// object changed, and reads each as the subscriber.
const FOLLOWED: [(&str, &[&str]); 9] = [
    ("", &["configmaps", "persistentvolumeclaims", "persistentvolumes", "replicationcontrollers"]),
    ("", &["secrets", "services"]),
    ("apiregistration.k8s.io", &["apiservices"]),
    ("apps", &["daemonsets", "deployments", "replicasets", "statefulsets"]),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    ("networking.k8s.io", &["ingresses"]),
    ("rbac.authorization.k8s.io", &["roles", "rolebindings"]),
    ("storage.k8s.io", &["storageclasses"]),
];

/// What the server does downstream under its own name. What people do there they do as themselves:
/// that is what the right to impersonate is for.
fn cluster_role() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": AGENT_NAME, "labels": labels()},
        "rules": own_rules().into_iter().chain(FOLLOWED.map(follow)).collect::<Value>(),
    })
}

fn follow((group, plurals): (&str, &[&str])) -> Value {
    json!({"apiGroups": [group], "resources": plurals, "verbs": ["list", "watch"]})
}

fn own_rules() -> [Value; 8] {
    let read = json!(["get", "list", "watch"]);
    let roles = json!(["clusterroles", "clusterrolebindings"]);
    [
        json!({"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"],
            "verbs": ["impersonate"]}),
        // Keys of extras are anybody's to choose, and RBAC has no pattern for subresources.
        json!({"apiGroups": ["authentication.k8s.io"], "resources": ["*"],
            "verbs": ["impersonate"]}),
        json!({"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"],
            "verbs": ["create"]}),
        json!({"apiGroups": [""], "resources":
            ["nodes", "pods", "namespaces", "componentstatuses"], "verbs": read}),
        json!({"apiGroups": ["metrics.k8s.io"], "resources": ["nodes"], "verbs": ["list"]}),
        json!({"apiGroups": [""], "resources": ["namespaces"],
            "resourceNames": [keys::SYSTEM_NS], "verbs": ["delete"]}),
        json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": roles, "verbs":
            ["get", "list", "watch", "create", "update", "patch", "delete", "bind", "escalate"]}),
        json!({"nonResourceURLs": ["/readyz", "/readyz/*", "/healthz", "/livez", "/version"],
            "verbs": ["get"]}),
    ]
}

fn credentials(import: &Import<'_>) -> Value {
    let key = hex(&Sha256::digest(format!("{}{}", import.server_url, import.token)));
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": named(&format!("cattle-credentials-{}", &key[..7])),
        "type": "Opaque",
        // Not stringData: applying the same manifest again must change nothing.
        "data": {
            "url": STANDARD.encode(import.server_url),
            "token": STANDARD.encode(import.token),
            "namespace": STANDARD.encode(import.cluster),
        },
    })
}

fn deployment(import: &Import<'_>, secret: &str) -> Value {
    let app = json!({"app": DEPLOYMENT});
    let mut pod_labels = app.clone();
    pod_labels[keys::DOWNSTREAM_OWNED] = OWNED_AGENT.into();
    let mut metadata = named(DEPLOYMENT);
    metadata["labels"]["app"] = DEPLOYMENT.into();
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": app},
            "strategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": pod_labels},
                "spec": {
                    "serviceAccountName": SERVICE_ACCOUNT,
                    // With the container's below: what the Pod Security level "restricted" asks
                    // for. The user is the image's, or one that the cluster chooses.
                    "securityContext": {
                        "runAsNonRoot": true,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "affinity": affinity(),
                    "tolerations": tolerations(),
                    "containers": [container(import)],
                    "volumes": [{"name": "cattle-credentials",
                        "secret": {"secretName": secret, "defaultMode": CREDENTIALS_MODE}}],
                },
            },
        },
    })
}

fn container(import: &Import<'_>) -> Value {
    let set = |name: &str, value: &str| json!({"name": name, "value": value});
    let mut env = vec![
        set("CATTLE_SERVER", import.server_url),
        set("CATTLE_CA_CHECKSUM", &ca_checksum(import.ca_certs).unwrap_or_default()),
        set("CATTLE_CLUSTER", "true"),
        set("CATTLE_K8S_MANAGED", "true"),
    ];
    env.extend(import.env.iter().cloned());
    json!({
        "name": "cluster-register",
        "image": import.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["cluster"],
        "env": env,
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        "startupProbe": startup_probe(),
        // When the agent could not leave a message itself, its log has the reason.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "cattle-credentials", "mountPath": CREDENTIALS_PATH, "readOnly": true},
        ],
    })
}

/// Ready means connected, once: a new version or a new manifest replaces a working agent only after
/// it has reached the server. A connection lost later must not count, since nothing would get
/// better if the pod were taken for dead.
fn startup_probe() -> Value {
    json!({
        "exec": {"command": [PROGRAM, "probe"]},
        "periodSeconds": 2,
        "timeoutSeconds": 5,
        // After ten minutes the container is started anew, which also lets a kubelet forget how
        // often that happened.
        "failureThreshold": 300,
    })
}

const CONTROL_PLANE_ROLES: [&str; 3] = [
    "node-role.kubernetes.io/controlplane",
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

fn affinity() -> Value {
    let prefer = |key: &str, weight: i32| {
        let matched = json!({"key": key, "operator": "In", "values": ["true"]});
        json!({"weight": weight, "preference": {"matchExpressions": [matched]}})
    };
    // The oldest of the three names draws a warning here, and no supported version needs it.
    let preferred = CONTROL_PLANE_ROLES.iter().filter(|key| !key.ends_with("/master"));
    let mut preferred: Vec<Value> = preferred.map(|key| prefer(key, 100)).collect();
    preferred.push(prefer("cattle.io/cluster-agent", 1));
    let not_windows =
        json!({"key": "kubernetes.io/os", "operator": "NotIn", "values": ["windows"]});
    json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [not_windows]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }})
}

/// Of pods that may run on nodes of the control plane: a cluster may have no others.
pub(crate) fn tolerations() -> Vec<Value> {
    let tolerate = |key: &&str| json!({"key": key, "operator": "Exists", "effect": "NoSchedule"});
    CONTROL_PLANE_ROLES.iter().map(tolerate).collect()
}
