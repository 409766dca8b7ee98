//! Resolves the address behind the Service of a webhook or an aggregated server.

use serde_json::Value;

use crate::fields::{items, str_of};
use crate::registry::{ListQuery, Registry};
use crate::webhook::{ClientConfig, WebhookLocation};

/// Label of an EndpointSlice with the name of its Service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

impl Registry {
    /// Host or address and port to connect to; see [`Registry::service_target`] for Services.
    ///
    /// # Errors
    /// The reason of the failed call, for the client.
    pub(crate) async fn webhook_target(
        &self,
        config: &ClientConfig,
    ) -> Result<(String, u16), String> {
        match &config.location {
            WebhookLocation::Service { namespace, name, port } => {
                self.service_target(namespace, name, *port).await
            }
            WebhookLocation::Url { .. } => config.host_and_port(),
        }
    }

    /// Host or address and port behind a port of a Service.
    ///
    /// One of the ready endpoints of the Service, since nothing routes cluster addresses to the
    /// host of this server; without ready endpoints, its cluster address. For a Service of type
    /// ExternalName, that name.
    ///
    /// # Errors
    /// The Service or port does not exist: the reason of the failed call, for the client.
    pub(crate) async fn service_target(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<(String, u16), String> {
        let not_found = || format!("service {name:?} not found");
        let services = self.find("", "services").ok_or_else(not_found)?;
        let service = match self.get(&services, namespace, name).await {
            Ok(service) => service.value(),
            Err(status) if status.code == 404 => return Err(not_found()),
            Err(status) => return Err(status.message),
        };
        let spec = &service["spec"];
        if spec["type"] == "ExternalName" {
            return Ok((str_of(&spec["externalName"]).to_owned(), port));
        }
        let port_number = i64::from(port);
        let found = items(&spec["ports"]).iter().find(|one| one["port"] == port_number);
        let found =
            found.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        if let Some(endpoint) = self.ready_endpoint(namespace, name, &found["name"]).await? {
            return Ok(endpoint);
        }
        match str_of(&spec["clusterIP"]) {
            "" | "None" => Err(format!("no endpoints available for service {name:?}")),
            address => Ok((address.to_owned(), port)),
        }
    }

    /// A random ready endpoint of a Service, with its port of that name.
    async fn ready_endpoint(
        &self,
        namespace: &str,
        service: &str,
        port_name: &Value,
    ) -> Result<Option<(String, u16)>, String> {
        let Some(slices) = self.find("discovery.k8s.io", "endpointslices") else {
            return Ok(None);
        };
        let mut query = ListQuery::all(namespace);
        query.labels = api_meta::labels::LabelSelector::from_labels([(SERVICE_LABEL, service)]);
        let list = self.list(&slices, &query).await.map_err(|status| status.message)?;
        let mut found = Vec::new();
        for slice in list.items.iter().map(|slice| slice.value()) {
            let same = |port: &&Value| str_of(&port["name"]) == str_of(port_name);
            let port = items(&slice["ports"]).iter().find(same);
            let port = port.and_then(|port| port["port"].as_u64()?.try_into().ok());
            let Some(port) = port else { continue };
            let ready = |endpoint: &&Value| endpoint["conditions"]["ready"] != false;
            for endpoint in items(&slice["endpoints"]).iter().filter(ready) {
                let addresses = items(&endpoint["addresses"]).iter().filter_map(Value::as_str);
                found.extend(addresses.map(|address| (address.to_owned(), port)));
            }
        }
        if found.is_empty() {
            return Ok(None);
        }
        let chosen = rand::random_range(0..found.len());
        Ok(Some(found.swap_remove(chosen)))
    }
}
