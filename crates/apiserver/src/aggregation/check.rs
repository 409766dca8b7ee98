//! Whether another server is there, in the steps, reasons and words of Kubernetes.

use http::Method;
use serde_json::Value;

use super::remote::authority;
use super::{Api, Remote};
use crate::fields::{items, str_of};
use crate::registry::{ListQuery, Registry};

/// Questions until it counts as not answering.
const ATTEMPTS: u32 = 2;
/// The label that ties an EndpointSlice to its Service.
pub(super) const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// What the condition says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}

impl Verdict {
    pub(super) fn no(reason: &'static str, message: String) -> Self {
        Self { status: "False", reason, message }
    }

    pub(super) fn passed(&self) -> bool {
        self.status == "True"
    }
}

/// Looks for the Service and its endpoints, then asks the server.
pub(super) async fn availability(registry: &Registry, api: &Api, remote: &Remote) -> Verdict {
    if let Err(verdict) = service(registry, remote).await {
        return verdict;
    }
    let mut outcome = Ok(());
    for _ in 0..ATTEMPTS {
        outcome = discovery(registry, api, remote).await;
        if outcome.is_ok() {
            break;
        }
    }
    match outcome {
        Ok(()) => {
            Verdict { status: "True", reason: "Passed", message: "all checks passed".to_owned() }
        }
        Err(message) => Verdict::no("FailedDiscoveryCheck", message),
    }
}

async fn service(registry: &Registry, remote: &Remote) -> Result<(), Verdict> {
    let (namespace, name) = (&remote.namespace, &remote.service);
    let place = format!("service/{name} in {namespace:?}");
    let missing = || Verdict::no("ServiceNotFound", format!("{place} is not present"));
    let unknown = |reason, message| Verdict { status: "Unknown", reason, message };
    let services = registry.find("", "services").ok_or_else(missing)?;
    let service = match registry.get(&services, namespace, name).await {
        Ok(service) => service.value(),
        Err(status) if status.code == 404 => return Err(missing()),
        Err(status) => {
            let message = format!("{place} cannot be checked due to: {}", status.message);
            return Err(unknown("ServiceAccessError", message));
        }
    };
    let spec = &service["spec"];
    if spec["type"] != "ClusterIP" {
        return Ok(());
    }
    let port = items(&spec["ports"]).iter().find(|port| port["port"] == remote.port);
    let Some(port) = port else {
        let message = format!("{place} is not listening on port {}", remote.port);
        return Err(Verdict::no("ServicePortError", message));
    };
    let Some(slices) = registry.find("discovery.k8s.io", "endpointslices") else { return Ok(()) };
    let mut query = ListQuery::all(namespace);
    query.labels = api_meta::labels::LabelSelector::from_labels([(SERVICE_LABEL, name.as_str())]);
    let slices = registry.list(&slices, &query).await.map_err(|status| {
        let text = format!("endpointslices for {place} cannot be accessed: {}", status.message);
        unknown("EndpointsAccessError", text)
    })?;
    if slices.items.is_empty() {
        let message = format!("cannot find endpointslices for {place}");
        return Err(Verdict::no("EndpointsNotFound", message));
    }
    let port_name = str_of(&port["name"]);
    let serves = |slice: &Value| {
        let named = items(&slice["ports"]).iter().any(|port| str_of(&port["name"]) == port_name);
        let ready = |endpoint: &Value| endpoint["conditions"]["ready"] != false;
        named && items(&slice["endpoints"]).iter().any(ready)
    };
    if slices.items.iter().any(|slice| serves(&slice.value())) {
        return Ok(());
    }
    let text = format!("endpointslices for {place} have no addresses with port name {port_name:?}");
    Err(Verdict::no("MissingEndpoints", text))
}

async fn discovery(registry: &Registry, api: &Api, remote: &Remote) -> Result<(), String> {
    let path = api.path();
    let target = remote.target(registry).await;
    let host = target.map_or_else(|_| String::new(), |target| authority(&target));
    let url = format!("https://{host}{path}");
    let failed = |problem: String| format!("failing or missing response from {url}: {problem}");
    match remote.ask(registry, Method::GET, &path, &[]).await {
        Err(error) => Err(failed(format!("Get {url:?}: {error}"))),
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(failed(format!("bad status from {url}: {}", answer.status().as_u16()))),
    }
}
