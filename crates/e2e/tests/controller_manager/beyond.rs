//! The part of a round that is about kinds beyond workloads: certificates, evictions, volumes,
//! claims of devices, scaling, and owners of a kind that is defined while the controllers run.

use std::time::Duration;

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::{eventually, wait::within};
use serde_json::{Value, json};

use super::Round;

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The garbage collector checks for new kinds every 30 seconds.
const NEW_KINDS: Duration = Duration::from_secs(120);
/// The autoscaler runs every 15 seconds.
const SCALED: Duration = Duration::from_secs(90);

/// A certificate request in PEM.
fn request(user: &str, group: &str) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::OrganizationName, group);
    parameters.distinguished_name.push(rcgen::DnType::CommonName, user);
    STANDARD.encode(parameters.serialize_request(&key).unwrap().pem().unwrap())
}

impl Round<'_> {
    pub fn beyond_workloads(&self) {
        self.certificates();
        self.evictions();
        self.replication_controller();
        self.volumes();
        self.claims();
        self.autoscaler();
        self.defined_owner();
    }

    fn certificate_request(&self, name: &str, signer: &str, user: &str, group: &str) {
        self.cluster_wide(json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": name},
            "spec": {
                "request": request(user, group), "signerName": signer,
                "usages": ["digital signature", "client auth"],
            },
        }));
    }

    fn issued(&self, name: &str) -> Result<()> {
        let request = self.json(&format!("get csr {name}"))?;
        let certificate =
            STANDARD.decode(request["status"]["certificate"].as_str().unwrap_or(""))?;
        ensure!(certificate.starts_with(b"-----BEGIN CERTIFICATE-----"), "{}", request["status"]);
        Ok(())
    }

    /// A client's request waits for approval; that of a node is approved by a controller.
    fn certificates(&self) {
        let (client, node) =
            (format!("client-{}", self.namespace), format!("node-{}", self.namespace));
        self.certificate_request(&client, CLIENT_SIGNER, "jane", "devs");
        self.certificate_request(&node, KUBELET_SIGNER, "system:node:sim-node-0", "system:nodes");
        eventually("the node has its certificate", || self.issued(&node));
        self.issued(&client).unwrap_err();
        self.kubectl(&format!("certificate approve {client}")).unwrap();
        eventually("the client has its certificate", || self.issued(&client));
        self.kubectl(&format!("delete csr {client} {node}")).unwrap();
    }

    /// One of two pods may be evicted; the other remains until there are two again.
    fn evictions(&self) {
        self.deploy("kept", 2);
        eventually("two pods run", || self.running("kept", 2));
        self.kubectl("create poddisruptionbudget kept --selector=app=kept --min-available=2")
            .unwrap();
        eventually("none may go", || -> Result<()> {
            let budget = self.json("get poddisruptionbudget kept")?;
            ensure!(budget["status"]["currentHealthy"] == 2, "{budget}");
            Ok(())
        });
        let pods = self.running("kept", 2).unwrap();
        let name = pods["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
        let eviction = [json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace},
        })];
        let path = format!("/api/v1/namespaces/{}/pods/{name}/eviction", self.namespace);
        let evict = || self.kubectl.with_file(&eviction, &["create", "--raw", &path, "-f"]);
        let refusal = evict().unwrap_err().to_string();
        assert!(refusal.contains("disruption budget"), "{refusal}");
        self.kubectl("patch poddisruptionbudget kept -p {\"spec\":{\"minAvailable\":1}}").unwrap();
        eventually("one may go, and goes", evict);
        eventually("another one comes", || -> Result<()> {
            let pods = self.running("kept", 2)?;
            let mut all = pods["items"].as_array().into_iter().flatten();
            ensure!(!all.any(|pod| pod["metadata"]["name"] == *name), "it is still there");
            Ok(())
        });
        self.kubectl("delete deployment,poddisruptionbudget kept").unwrap();
        eventually("all go", || self.left("pods", &[]));
    }

    fn replication_controller(&self) {
        self.apply(json!({
            "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "old"},
            "spec": {
                "replicas": 2, "selector": {"app": "old"},
                "template": super::template("old", json!({"name": "c", "image": "web:1"})),
            },
        }));
        eventually("two pods run", || self.running("old", 2));
        self.kubectl("delete replicationcontroller old --cascade=foreground").unwrap();
        eventually("they go", || self.left("pods", &[]));
    }

    /// A claim is bound to the matching volume, which is released with it.
    fn volumes(&self) {
        let volume = format!("disk-{}", self.namespace);
        self.cluster_wide(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": self.namespace}, "provisioner": "kubernetes.io/no-provisioner",
        }));
        self.cluster_wide(json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain", "storageClassName": self.namespace,
                "hostPath": {"path": "/nowhere"},
            },
        }));
        self.apply(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": self.namespace,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }));
        let phase = |kind: &str, expected: &str| -> Result<()> {
            let object = self.json(&format!("get {kind}"))?;
            ensure!(object["status"]["phase"] == expected, "{object}");
            Ok(())
        };
        eventually("the claim is bound", || phase("pvc data", "Bound"));
        self.kubectl("delete pvc data").unwrap();
        eventually("the volume is released", || phase(&format!("pv {volume}"), "Released"));
        self.kubectl(&format!("delete pv {volume}")).unwrap();
        self.kubectl(&format!("delete storageclass {}", self.namespace)).unwrap();
    }

    /// A pod's claim is created from its template, and deleted with the pod.
    fn claims(&self) {
        self.apply(json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
            "metadata": {"name": "gpu"},
            "spec": {"spec": {"devices": {"requests": [
                {"name": "one", "exactly": {"deviceClassName": "gpu.example.com"}},
            ]}}},
        }));
        self.apply(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"},
            "spec": {
                "containers": [{
                    "name": "c", "image": "web:1", "resources": {"claims": [{"name": "gpu"}]},
                }],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            },
        }));
        eventually("the pod has its claim", || -> Result<()> {
            let claims = self.json("get resourceclaims")?;
            ensure!(
                claims["items"][0]["metadata"]["ownerReferences"][0]["name"] == "user",
                "{claims}"
            );
            Ok(())
        });
        self.kubectl("delete pod user").unwrap();
        eventually("the claim goes", || self.left("resourceclaims", &[]));
    }

    /// Without metrics nothing is scaled by load, but the minimum still applies.
    fn autoscaler(&self) {
        self.deploy("scaled", 1);
        eventually("one pod runs", || self.running("scaled", 1));
        self.kubectl("autoscale deployment scaled --min=2 --max=3 --cpu=50%").unwrap();
        within(SCALED, "two pods run", || self.running("scaled", 2));
        self.kubectl("delete hpa,deployment scaled").unwrap();
        eventually("they go", || self.left("pods", &[]));
    }

    /// The garbage collector discovers a kind that did not exist when it started. The definition
    /// remains for the next rounds: the collector never stops watching a kind.
    fn defined_owner(&self) {
        let group = "owners.example.com";
        let plural = format!("keepers.{group}");
        self.cluster_wide(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": plural},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"plural": "keepers", "singular": "keeper", "kind": "Keeper"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        }));
        self.kubectl(&format!("wait --for=condition=Established crd/{plural} --timeout=60s"))
            .unwrap();
        let keeper = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Keeper", "metadata": {"name": "k"},
        });
        eventually("its objects are taken", || {
            let mut keeper = keeper.clone();
            keeper["metadata"]["namespace"] = self.namespace.clone().into();
            self.kubectl.apply(&[keeper])
        });
        let uid = self.json(&format!("get {plural} k")).unwrap()["metadata"]["uid"].clone();
        self.apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept-by", "ownerReferences": [{
                "apiVersion": format!("{group}/v1"), "kind": "Keeper", "name": "k", "uid": uid,
            }]},
        }));
        self.kubectl(&format!("delete {plural} k")).unwrap();
        within(NEW_KINDS, "what it owned goes", || -> Result<()> {
            let maps: Value = self.json("get configmaps")?;
            let mut all = maps["items"].as_array().into_iter().flatten();
            ensure!(!all.any(|map| map["metadata"]["name"] == "kept-by"), "it is still there");
            Ok(())
        });
    }
}
