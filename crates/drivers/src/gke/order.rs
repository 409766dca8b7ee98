//! The cluster as Google's API wants it described.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use super::LABEL;
use super::options::GkeOptions;
use crate::cloud::pairs;

/// As Google calls the pool of a cluster that names none.
pub const DEFAULT_POOL: &str = "default-pool";

/// The cluster of these options. Fields that users left empty are not in it: Google's defaults
/// hold.
///
/// # Errors
/// An option has a form that Google would not take.
pub fn of(options: &GkeOptions) -> Result<Value> {
    ensure!(options.node_count > 0, "the option node-count needs at least 1");
    options.location()?;
    let mut labels = pairs("resource-labels", &options.resource_labels)?;
    labels.insert(LABEL.to_owned(), options.name.as_str().into());
    let is_on = |option: Option<bool>| option.unwrap_or(true);
    let service =
        |option, name: &str| if is_on(option) { name.to_owned() } else { "none".to_owned() };
    Ok(without_empty(json!({
        "name": options.name,
        "description": options.description,
        "resourceLabels": labels,
        "initialClusterVersion": options.master_version,
        "enableKubernetesAlpha": options.enable_alpha_feature,
        "legacyAbac": {"enabled": options.enable_legacy_abac},
        "loggingService":
            service(options.enable_stackdriver_logging, "logging.googleapis.com/kubernetes"),
        "monitoringService":
            service(options.enable_stackdriver_monitoring, "monitoring.googleapis.com/kubernetes"),
        "addonsConfig": {
            "horizontalPodAutoscaling":
                {"disabled": !is_on(options.enable_horizontal_pod_autoscaling)},
            "httpLoadBalancing": {"disabled": !is_on(options.enable_http_load_balancing)},
            "networkPolicyConfig": {"disabled": !is_on(options.enable_network_policy_config)},
        },
        "masterAuth": {
            "clientCertificateConfig":
                {"issueClientCertificate": options.issue_client_certificate},
        },
        "maintenancePolicy": maintenance(&options.maintenance_window),
        "masterAuthorizedNetworksConfig": authorized_networks(options),
        "network": options.network,
        "subnetwork": options.sub_network,
        "clusterIpv4Cidr": options.cluster_ipv4_cidr,
        "locations": options.locations,
        "privateClusterConfig": private(options),
        "ipAllocationPolicy": addresses(options),
        "nodePools": [pool(options)?],
    })))
}

fn pool(options: &GkeOptions) -> Result<Value> {
    let name = match options.node_pool.as_str() {
        "" => DEFAULT_POOL,
        name => name,
    };
    let taints = options.taints.iter().map(|text| taint(text)).collect::<Result<Vec<_>>>()?;
    let scaling = options.enable_nodepool_autoscaling.then(|| {
        json!({
            "enabled": true,
            "minNodeCount": options.min_node_count,
            "maxNodeCount": options.max_node_count,
        })
    });
    if options.enable_nodepool_autoscaling {
        let (least, most) = (options.min_node_count, options.max_node_count);
        ensure!(
            0 < least && least <= most,
            "with enable-nodepool-autoscaling, min-node-count has to be at least 1, and \
             max-node-count not below it"
        );
    }
    Ok(json!({
        "name": name,
        "initialNodeCount": options.node_count,
        "version": options.node_version,
        "autoscaling": scaling,
        "management": {
            "autoRepair": options.enable_auto_repair,
            "autoUpgrade": options.enable_auto_upgrade,
        },
        "config": {
            "machineType": options.machine_type,
            "imageType": options.image_type,
            "diskSizeGb": options.disk_size_gb,
            "diskType": options.disk_type,
            "localSsdCount": options.local_ssd_count,
            "preemptible": options.preemptible,
            "labels": pairs("labels", &options.labels)?,
            "taints": taints,
            "serviceAccount": options.service_account,
            "oauthScopes": options.oauth_scopes,
        },
    }))
}

/// `EFFECT:KEY=VALUE`, with the effects of Google or of Kubernetes.
fn taint(text: &str) -> Result<Value> {
    let parts =
        text.split_once(':').and_then(|(effect, rest)| Some((effect, rest.split_once('=')?)));
    let (effect, (key, value)) = parts.with_context(|| {
        format!("the option taints needs EFFECT:KEY=VALUE, and \"{text}\" is none")
    })?;
    let effect = match effect.to_ascii_uppercase().replace('_', "").as_str() {
        "NOSCHEDULE" => "NO_SCHEDULE",
        "PREFERNOSCHEDULE" => "PREFER_NO_SCHEDULE",
        "NOEXECUTE" => "NO_EXECUTE",
        _ => bail!(
            "\"{effect}\" in the option taints is no effect: there are NoSchedule, PreferNoSchedule and NoExecute"
        ),
    };
    Ok(json!({"effect": effect, "key": key, "value": value}))
}

fn maintenance(start: &str) -> Value {
    match start {
        "" => Value::Null,
        start => json!({"window": {"dailyMaintenanceWindow": {"startTime": start}}}),
    }
}

fn authorized_networks(options: &GkeOptions) -> Value {
    if !options.enable_master_authorized_network {
        return Value::Null;
    }
    let blocks = options.master_authorized_network_cidr_blocks.iter();
    let blocks: Vec<Value> = blocks.map(|block| json!({"cidrBlock": block})).collect();
    json!({"enabled": true, "cidrBlocks": blocks})
}

fn private(options: &GkeOptions) -> Value {
    if !options.enable_private_nodes && !options.enable_private_endpoint {
        return Value::Null;
    }
    json!({
        "enablePrivateNodes": options.enable_private_nodes,
        "enablePrivateEndpoint": options.enable_private_endpoint,
        "masterIpv4CidrBlock": options.master_ipv4_cidr_block,
    })
}

fn addresses(options: &GkeOptions) -> Value {
    // Private clusters exist with addresses of the network only.
    if !options.use_ip_aliases && !options.enable_private_nodes {
        return Value::Null;
    }
    json!({
        "useIpAliases": true,
        "createSubnetwork": options.ip_policy_create_subnetwork,
        "subnetworkName": options.ip_policy_subnetwork_name,
        "clusterSecondaryRangeName": options.ip_policy_cluster_secondary_range_name,
        "servicesSecondaryRangeName": options.ip_policy_services_secondary_range_name,
        "clusterIpv4CidrBlock": options.ip_policy_cluster_ipv4_cidr_block,
        "nodeIpv4CidrBlock": options.ip_policy_node_ipv4_cidr_block,
        "servicesIpv4CidrBlock": options.ip_policy_services_ipv4_cidr_block,
    })
}

/// Without fields that are null, empty, or 0, at any depth.
fn without_empty(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) => false,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, without_empty(value)));
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect::<Map<_, _>>())
        }
        Value::Array(list) => list.into_iter().map(without_empty).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use driver_sdk::Options as _;
    use driver_sdk::types::DriverOptions;

    use super::*;

    fn options() -> GkeOptions {
        let mut given = DriverOptions::default();
        for (name, value) in
            [("project-id", "p"), ("credential", "{}"), ("zone", "z"), ("name", "c-1")]
        {
            given.string_options.insert(name.to_owned(), value.to_owned());
        }
        GkeOptions::read(&given).unwrap()
    }

    #[test]
    fn an_order_has_what_was_given_and_the_defaults() {
        let order = of(&options()).unwrap();
        assert_eq!(order["resourceLabels"], json!({"drover-cluster": "c-1"}));
        assert_eq!(order["nodePools"][0]["initialNodeCount"], 3);
        assert_eq!(order["nodePools"][0]["config"]["diskSizeGb"], 100);
        assert_eq!(order["addonsConfig"]["httpLoadBalancing"]["disabled"], false);
        assert_eq!(order["loggingService"], "logging.googleapis.com/kubernetes");
        for left_out in ["privateClusterConfig", "ipAllocationPolicy", "network", "locations"] {
            assert_eq!(order[left_out], Value::Null, "{left_out}");
        }
    }

    #[test]
    fn options_that_belong_together_are_ordered_together() {
        let order = of(&GkeOptions {
            enable_private_nodes: true,
            master_ipv4_cidr_block: "172.16.0.0/28".to_owned(),
            enable_master_authorized_network: true,
            master_authorized_network_cidr_blocks: vec!["203.0.113.0/24".to_owned()],
            enable_nodepool_autoscaling: true,
            min_node_count: 1,
            max_node_count: 5,
            taints: vec!["NoSchedule:dedicated=gpu".to_owned()],
            maintenance_window: "03:00".to_owned(),
            ..options()
        })
        .unwrap();
        assert_eq!(order["ipAllocationPolicy"]["useIpAliases"], true);
        let networks = &order["masterAuthorizedNetworksConfig"];
        assert_eq!(networks["cidrBlocks"][0]["cidrBlock"], "203.0.113.0/24");
        assert_eq!(order["nodePools"][0]["autoscaling"]["maxNodeCount"], 5);
        let taint = json!({"effect": "NO_SCHEDULE", "key": "dedicated", "value": "gpu"});
        assert_eq!(order["nodePools"][0]["config"]["taints"], json!([taint]));
    }

    #[test]
    fn wrong_options_are_named() {
        let wrong = [
            (GkeOptions { region: "r".to_owned(), ..options() }, "one of the options zone"),
            (GkeOptions { node_count: 0, ..options() }, "node-count"),
            (GkeOptions { taints: vec!["a=b".to_owned()], ..options() }, "taints"),
            (GkeOptions { taints: vec!["Never:a=b".to_owned()], ..options() }, "\"Never\""),
            (GkeOptions { labels: vec!["a".to_owned()], ..options() }, "labels"),
            (GkeOptions { enable_nodepool_autoscaling: true, ..options() }, "min-node-count"),
        ];
        for (options, said) in wrong {
            let error = of(&options).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
