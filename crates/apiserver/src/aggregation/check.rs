//! Checks whether another server is available, with the steps, reasons and messages of
//! kube-apiserver.

use http::Method;
use serde_json::Value;

use super::remote::authority;
use super::{Api, Remote};
use crate::fields::{items, str_of};
use crate::registry::{ListQuery, Registry};

/// The number of requests before the server counts as not responding.
const ATTEMPTS: u32 = 2;
/// The label that ties an EndpointSlice to its Service.
pub(super) const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// The result of the check: status, reason and message of the condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Availability {
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}

impl Availability {
    /// The result of a failed check.
    pub(super) fn unavailable(reason: &'static str, message: String) -> Self {
        Self { status: "False", reason, message }
    }

    /// Whether all checks passed.
    pub(super) fn is_available(&self) -> bool {
        self.status == "True"
    }
}

/// Checks the Service and its endpoints, then requests the discovery document of the server.
pub(super) async fn availability(registry: &Registry, api: &Api, remote: &Remote) -> Availability {
    if let Err(unavailability) = check_service(registry, remote).await {
        return unavailability;
    }
    let mut result = Ok(());
    for _ in 0..ATTEMPTS {
        result = check_discovery(registry, api, remote).await;
        if result.is_ok() {
            break;
        }
    }
    match result {
        Ok(()) => Availability {
            status: "True",
            reason: "Passed",
            message: "all checks passed".to_owned(),
        },
        Err(message) => Availability::unavailable("FailedDiscoveryCheck", message),
    }
}

async fn check_service(registry: &Registry, remote: &Remote) -> Result<(), Availability> {
    let (namespace, name) = (&remote.namespace, &remote.service);
    let description = format!("service/{name} in {namespace:?}");
    let missing =
        || Availability::unavailable("ServiceNotFound", format!("{description} is not present"));
    let unknown = |reason, message| Availability { status: "Unknown", reason, message };
    let services = registry.find("", "services").ok_or_else(missing)?;
    let service = match registry.get(&services, namespace, name).await {
        Ok(service) => service.value(),
        Err(status) if status.code == 404 => return Err(missing()),
        Err(status) => {
            let message = format!("{description} cannot be checked due to: {}", status.message);
            return Err(unknown("ServiceAccessError", message));
        }
    };
    let spec = &service["spec"];
    if spec["type"] != "ClusterIP" {
        return Ok(());
    }
    let port = items(&spec["ports"]).iter().find(|port| port["port"] == remote.port);
    let Some(port) = port else {
        let message = format!("{description} is not listening on port {}", remote.port);
        return Err(Availability::unavailable("ServicePortError", message));
    };
    let Some(slices) = registry.find("discovery.k8s.io", "endpointslices") else { return Ok(()) };
    let mut query = ListQuery::all(namespace);
    query.labels = api_meta::labels::LabelSelector::from_labels([(SERVICE_LABEL, name.as_str())]);
    let slices = registry.list(&slices, &query).await.map_err(|status| {
        let text =
            format!("endpointslices for {description} cannot be accessed: {}", status.message);
        unknown("EndpointsAccessError", text)
    })?;
    if slices.items.is_empty() {
        let message = format!("cannot find endpointslices for {description}");
        return Err(Availability::unavailable("EndpointsNotFound", message));
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
    let text =
        format!("endpointslices for {description} have no addresses with port name {port_name:?}");
    Err(Availability::unavailable("MissingEndpoints", text))
}

async fn check_discovery(registry: &Registry, api: &Api, remote: &Remote) -> Result<(), String> {
    let path = api.path();
    let target = remote.target(registry).await;
    let host = target.map_or_else(|_| String::new(), |target| authority(&target));
    let url = format!("https://{host}{path}");
    let failed = |problem: String| format!("failing or missing response from {url}: {problem}");
    match remote.request(registry, Method::GET, &path, &[]).await {
        Err(error) => Err(failed(format!("Get {url:?}: {error}"))),
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => {
            Err(failed(format!("bad status from {url}: {}", response.status().as_u16())))
        }
    }
}
