//! The objects of one shell in its cluster: a pod, and a Secret with the kubeconfig, which goes
//! with the pod.

use std::collections::BTreeMap;

use api_management::keys;
use feature_kit::ownership::owner_reference;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::SESSION_TIME_MAX;
use crate::cluster_registration_token::manifest::tolerations;

/// The only container.
pub(super) const CONTAINER: &str = "shell";
/// Key of the kubeconfig in the Secret.
const KUBECONFIG_KEY: &str = "config";
const KUBECONFIG_FOLDER: &str = "/etc/drover-shell/kubeconfig";
const HOME: &str = "/home/shell";
/// Source of the image's prompt and greeting; other images ignore that it is missing.
const PROFILE: &str = "/etc/drover-shell/profile";
/// The user of the image, by the convention of images without users.
const USER_ID: u32 = 65_532;

/// What makes a shell's pod different from others.
pub(super) struct ShellPod<'a> {
    pub name: &'a str,
    pub image: &'a str,
    /// Name of the cluster, for the prompt.
    pub cluster: &'a str,
}

impl ShellPod<'_> {
    /// The pod. It waits for the Secret of the same name.
    pub(super) fn to_pod(&self) -> Pod {
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": keys::SYSTEM_NS, "labels": labels()},
            "spec": {
                // As for a program that serves: one that runs once may be over any time.
                "restartPolicy": "Always",
                "activeDeadlineSeconds": SESSION_TIME_MAX.as_secs(),
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "tolerations": tolerations(),
                "securityContext": {
                    "runAsNonRoot": true,
                    "runAsUser": USER_ID,
                    "runAsGroup": USER_ID,
                    "fsGroup": USER_ID,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [self.container()],
                "volumes": [
                    {"name": "home", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
                    {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
                    {"name": "kubeconfig",
                     "secret": {"secretName": self.name, "defaultMode": 0o440}},
                ],
            },
        });
        serde_json::from_value(pod).expect("a fixed pod has the fields of a pod")
    }

    fn container(&self) -> Value {
        // A copy, so that `kubectl config` can change it.
        let copy = format!(
            "mkdir -p {HOME}/.kube && cp {KUBECONFIG_FOLDER}/{KUBECONFIG_KEY} {HOME}/.kube/config \
             && chmod 600 {HOME}/.kube/config && exec sleep {}",
            SESSION_TIME_MAX.as_secs()
        );
        let variables = [
            ("HOME", HOME),
            ("KUBECONFIG", "/home/shell/.kube/config"),
            ("ENV", PROFILE),
            ("TERM", "xterm-256color"),
            ("DROVER_CLUSTER", &plain(self.cluster)),
        ];
        json!({
            "name": CONTAINER,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", copy],
            "workingDir": HOME,
            "env": variables.map(|(name, value)| json!({"name": name, "value": value})),
            "resources": {
                "requests": {"cpu": "10m", "memory": "64Mi"},
                "limits": {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "64Mi"},
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [
                {"name": "home", "mountPath": HOME},
                {"name": "tmp", "mountPath": "/tmp"},
                {"name": "kubeconfig", "mountPath": KUBECONFIG_FOLDER, "readOnly": true},
            ],
        })
    }
}

/// The Secret with the kubeconfig of a pod that was created.
pub(super) fn secret(pod: &Pod, kubeconfig: String) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: pod.metadata.name.clone(),
            namespace: Some(keys::SYSTEM_NS.to_owned()),
            labels: Some(labels()),
            owner_references: Some(vec![owner_reference(pod)]),
            ..ObjectMeta::default()
        },
        immutable: Some(true),
        string_data: Some([(KUBECONFIG_KEY.to_owned(), kubeconfig)].into()),
        ..Secret::default()
    }
}

fn labels() -> BTreeMap<String, String> {
    [(keys::DOWNSTREAM_OWNED.to_owned(), keys::OWNED_KUBECTL_SHELL.to_owned())].into()
}

/// The name without what a prompt could interpret.
fn plain(name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-._ ".contains(*c);
    name.chars().filter(is_plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_has_no_rights_no_credential_of_its_own_and_an_end() {
        let pod = ShellPod { name: "drover-shell-x", image: "s:1", cluster: "a$(id)\\[" }.to_pod();
        insta::assert_yaml_snapshot!(serde_json::to_value(pod).unwrap());
    }

    #[test]
    fn the_secret_goes_with_its_pod() {
        let mut pod = ShellPod { name: "drover-shell-x", image: "s:1", cluster: "a" }.to_pod();
        pod.metadata.uid = Some("uid-1".to_owned());
        let secret = secret(&pod, "text".to_owned());
        let owner = &secret.metadata.owner_references.unwrap()[0];
        assert_eq!((owner.kind.as_str(), owner.uid.as_str()), ("Pod", "uid-1"));
    }
}
