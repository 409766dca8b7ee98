//! The resources and verbs that are tried, and their requests.

use anyhow::Result;
use e2e::http::{Body, body, empty};
use http::{Method, Request};
use serde_json::{Value, json};

use super::Place;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

pub const VERBS: [Verb; 8] = [
    Verb::Get,
    Verb::List,
    Verb::Watch,
    Verb::Create,
    Verb::Update,
    Verb::Patch,
    Verb::Delete,
    Verb::DeleteCollection,
];

impl Verb {
    /// As rules have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    fn method(self) -> Method {
        match self {
            Self::Get | Self::List | Self::Watch => Method::GET,
            Self::Create => Method::POST,
            Self::Update => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete | Self::DeleteCollection => Method::DELETE,
        }
    }
}

/// A resource of a cluster. The cluster need not serve it: it decides about rights first.
pub struct Resource {
    /// Empty: the core group.
    pub group: &'static str,
    version: &'static str,
    pub plural: &'static str,
    /// Empty: the resource itself.
    subresource: &'static str,
    pub is_namespaced: bool,
    verbs: &'static [Verb],
}

const fn namespaced(group: &'static str, version: &'static str, plural: &'static str) -> Resource {
    Resource { group, version, plural, subresource: "", is_namespaced: true, verbs: &VERBS }
}

const fn of_cluster(group: &'static str, version: &'static str, plural: &'static str) -> Resource {
    Resource { is_namespaced: false, ..namespaced(group, version, plural) }
}

const fn part(
    group: &'static str,
    plural: &'static str,
    subresource: &'static str,
    verbs: &'static [Verb],
) -> Resource {
    Resource { subresource, verbs, ..namespaced(group, "v1", plural) }
}

const RBAC: &str = "rbac.authorization.k8s.io";

pub const RESOURCES: [Resource; 39] = [
    namespaced("", "v1", "pods"),
    part("", "pods", "log", &[Verb::Get]),
    part("", "pods", "exec", &[Verb::Create]),
    part("", "pods", "eviction", &[Verb::Create]),
    namespaced("", "v1", "replicationcontrollers"),
    namespaced("apps", "v1", "deployments"),
    part("apps", "deployments", "scale", &[Verb::Get, Verb::Update, Verb::Patch]),
    namespaced("apps", "v1", "daemonsets"),
    namespaced("batch", "v1", "jobs"),
    namespaced("autoscaling", "v2", "horizontalpodautoscalers"),
    namespaced("policy", "v1", "poddisruptionbudgets"),
    namespaced("", "v1", "services"),
    namespaced("", "v1", "endpoints"),
    namespaced("networking.k8s.io", "v1", "ingresses"),
    namespaced("networking.k8s.io", "v1", "networkpolicies"),
    namespaced("networking.istio.io", "v1", "gateways"),
    namespaced("", "v1", "configmaps"),
    namespaced("", "v1", "secrets"),
    namespaced("", "v1", "serviceaccounts"),
    part("", "serviceaccounts", "token", &[Verb::Create]),
    namespaced("", "v1", "persistentvolumeclaims"),
    namespaced("", "v1", "resourcequotas"),
    namespaced("", "v1", "limitranges"),
    namespaced("", "v1", "events"),
    namespaced(RBAC, "v1", "roles"),
    namespaced(RBAC, "v1", "rolebindings"),
    namespaced("metrics.k8s.io", "v1beta1", "pods"),
    namespaced("monitoring.coreos.com", "v1", "prometheusrules"),
    namespaced("catalog.cattle.io", "v1", "apps"),
    namespaced("example.com", "v1", "widgets"),
    of_cluster("", "v1", "namespaces"),
    of_cluster("", "v1", "nodes"),
    of_cluster("", "v1", "persistentvolumes"),
    of_cluster("storage.k8s.io", "v1", "storageclasses"),
    of_cluster("catalog.cattle.io", "v1", "clusterrepos"),
    of_cluster("apiregistration.k8s.io", "v1", "apiservices"),
    of_cluster("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
    of_cluster(RBAC, "v1", "clusterroles"),
    of_cluster(RBAC, "v1", "clusterrolebindings"),
];

/// Of these the proxy decides too: a namespace is of a project.
pub const NAMESPACES: &str = "namespaces";

impl Resource {
    /// As rules have it.
    pub fn in_rules(&self) -> String {
        match self.subresource {
            "" => self.plural.to_owned(),
            subresource => format!("{}/{subresource}", self.plural),
        }
    }

    /// With its group.
    pub fn name(&self) -> String {
        match self.group {
            "" => self.in_rules(),
            group => format!("{}.{group}", self.in_rules()),
        }
    }

    pub fn is_namespaces(&self) -> bool {
        self.group.is_empty() && self.plural == NAMESPACES
    }

    /// What can be tried there.
    pub fn verbs(&self, place: Place) -> Vec<Verb> {
        let over_all = [Verb::List, Verb::Watch];
        let is_there = |verb: &Verb| match place {
            Place::Cluster => !self.is_namespaced || over_all.contains(verb),
            Place::Project | Place::OtherProject if self.is_namespaces() => {
                matches!(verb, Verb::Get | Verb::Create | Verb::Patch | Verb::Delete)
            }
            Place::Project | Place::OtherProject => self.is_namespaced,
            Place::OtherCluster => {
                matches!(verb, Verb::Get | Verb::List | Verb::Create | Verb::Delete)
            }
        };
        self.verbs.iter().copied().filter(is_there).collect()
    }

    /// A request that changes nothing: its body is not valid, the object does not exist, or it is a
    /// dry run.
    pub fn request(
        &self,
        verb: Verb,
        cluster: &str,
        namespace: Option<&str>,
        project: &str,
    ) -> Result<Request<Body>> {
        let root = match self.group {
            "" => format!("/k8s/clusters/{cluster}/api/{}", self.version),
            group => format!("/k8s/clusters/{cluster}/apis/{group}/{}", self.version),
        };
        let namespace = namespace.filter(|_| self.is_namespaced || self.is_namespaces());
        let collection = match namespace {
            Some(namespace) if self.is_namespaced => {
                format!("{root}/namespaces/{namespace}/{}", self.plural)
            }
            _ => format!("{root}/{}", self.plural),
        };
        let name = namespace.filter(|_| self.is_namespaces()).unwrap_or("absent");
        let object = match self.subresource {
            "" => format!("{collection}/{name}"),
            subresource => format!("{collection}/{name}/{subresource}"),
        };
        let path = match verb {
            Verb::List => collection,
            // Not valid for a watch, so that it ends at once.
            Verb::Watch => format!("{collection}?watch=true&resourceVersionMatch=Exact"),
            Verb::Create if self.subresource.is_empty() => format!("{collection}?dryRun=All"),
            Verb::DeleteCollection => format!("{collection}?dryRun=All"),
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete => {
                format!("{object}?dryRun=All")
            }
            Verb::Get => object,
        };
        let request = Request::builder().method(verb.method()).uri(path);
        let sent = match verb {
            Verb::Create if self.is_namespaces() => {
                let project = (namespace == Some(super::OWN_NAMESPACE)).then_some(project);
                Some(self::namespace("tried", project))
            }
            Verb::Patch if self.is_namespaces() => Some(json!({})),
            // No object.
            Verb::Create | Verb::Update | Verb::Patch => Some(json!([])),
            _ => None,
        };
        let Some(sent) = sent else { return Ok(request.body(empty())?) };
        let kind = match verb {
            Verb::Patch => "application/merge-patch+json",
            _ => "application/json",
        };
        Ok(request.header("content-type", kind).body(body(sent.to_string()))?)
    }
}

/// A namespace of a project, if one is given.
pub fn namespace(name: &str, project: Option<&str>) -> Value {
    let mut namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    if let Some(project) = project {
        namespace["metadata"]["annotations"] = json!({"field.cattle.io/projectId": project});
    }
    namespace
}
