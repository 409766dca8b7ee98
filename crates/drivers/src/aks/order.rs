//! The cluster as Azure's API wants it described.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::TAG;
use super::api::ResourcePath;
use super::options::AksOptions;
use crate::cloud::pairs;

/// Kinds of SSH keys that Azure takes.
const KEY_KINDS: [&str; 2] = ["ssh-rsa", "ssh-ed25519"];

/// The cluster of these options; `workspace` is the id of that for logs.
///
/// # Errors
/// An option has a form that Azure would not take.
pub fn of(options: &AksOptions, workspace: Option<String>) -> Result<Value> {
    ensure!(options.count > 0, "the option count needs at least 1");
    check_key(&options.ssh_public_key_contents)?;
    let routing = options.enable_http_application_routing.unwrap_or_default();
    let mut addons = json!({"httpApplicationRouting": {"enabled": routing}});
    addons["omsagent"] = match workspace {
        Some(id) => json!({"enabled": true, "config": {"logAnalyticsWorkspaceResourceID": id}}),
        None => json!({"enabled": false}),
    };
    let prefix = match options.master_dns_prefix.as_str() {
        "" => options.name.as_str(),
        prefix => prefix,
    };
    let mut properties = json!({
        "dnsPrefix": prefix,
        "enableRBAC": true,
        "agentPoolProfiles": [pool(options)],
        "linuxProfile": {
            "adminUsername": options.admin_username,
            "ssh": {"publicKeys": [{"keyData": options.ssh_public_key_contents.trim()}]},
        },
        "servicePrincipalProfile":
            {"clientId": options.client_id, "secret": options.client_secret},
        "addonProfiles": addons,
        "networkProfile": network(options),
    });
    if !options.kubernetes_version.is_empty() {
        properties["kubernetesVersion"] = options.kubernetes_version.as_str().into();
    }
    if let Some(profile) = users(options)? {
        properties["aadProfile"] = profile;
    }
    let mut tags = pairs("tags", &options.tags)?;
    tags.insert(TAG.to_owned(), options.name.as_str().into());
    Ok(json!({"location": options.location, "tags": tags, "properties": properties}))
}

fn pool(options: &AksOptions) -> Value {
    let mut pool = json!({
        "name": options.agent_pool_name,
        "count": options.count,
        "vmSize": options.agent_vm_size,
        "maxPods": options.max_pods,
        "osType": "Linux",
        "mode": "System",
        "type": "VirtualMachineScaleSets",
    });
    if options.agent_osdisk_size > 0 {
        pool["osDiskSizeGB"] = options.agent_osdisk_size.into();
    }
    if !options.kubernetes_version.is_empty() {
        pool["orchestratorVersion"] = options.kubernetes_version.as_str().into();
    }
    if !options.virtual_network.is_empty() {
        let group = match options.virtual_network_resource_group.as_str() {
            "" => &options.resource_group,
            group => group,
        };
        let network = ResourcePath {
            path: format!(
                "resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/{}/subnets/{}",
                options.virtual_network, options.subnet
            ),
            version: "",
        };
        pool["vnetSubnetID"] = network.id(options).into();
    }
    pool
}

fn network(options: &AksOptions) -> Value {
    let is_kubenet = options.network_plugin == "kubenet";
    let fields = [
        ("networkPlugin", &options.network_plugin),
        ("networkPolicy", &options.network_policy),
        ("serviceCidr", &options.service_cidr),
        ("dnsServiceIP", &options.dns_service_ip),
        ("loadBalancerSku", &options.load_balancer_sku),
    ];
    let pods = is_kubenet.then_some(("podCidr", &options.pod_cidr));
    let given = fields.into_iter().chain(pods).filter(|(_, value)| !value.is_empty());
    given
        .map(|(name, value)| (name.to_owned(), value.as_str().into()))
        .collect::<Map<_, _>>()
        .into()
}

fn users(options: &AksOptions) -> Result<Option<Value>> {
    let all =
        [&options.aad_client_app_id, &options.aad_server_app_id, &options.aad_server_app_secret];
    if all.iter().all(|text| text.is_empty()) {
        return Ok(None);
    }
    ensure!(
        all.iter().all(|text| !text.is_empty()),
        "give all of the options aad-client-app-id, aad-server-app-id and aad-server-app-secret, or \
         none of them"
    );
    let tenant = match options.aad_tenant_id.as_str() {
        "" => &options.tenant_id,
        tenant => tenant,
    };
    Ok(Some(json!({
        "clientAppID": options.aad_client_app_id,
        "serverAppID": options.aad_server_app_id,
        "serverAppSecret": options.aad_server_app_secret,
        "tenantID": tenant,
    })))
}

fn check_key(key: &str) -> Result<()> {
    let mut parts = key.split_whitespace();
    let (kind, data) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_key = KEY_KINDS.contains(&kind)
        && BASE64_STANDARD.decode(data).is_ok_and(|data| !data.is_empty());
    is_key.then_some(()).context(
        "the option ssh-public-key-contents needs a public key, a line such as \"ssh-rsa AAAA… name\"",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> AksOptions {
        AksOptions {
            name: "c-1".to_owned(),
            subscription_id: "s".to_owned(),
            resource_group: "g".to_owned(),
            count: 2,
            network_plugin: "azure".to_owned(),
            pod_cidr: "172.244.0.0/16".to_owned(),
            ssh_public_key_contents: "ssh-rsa AAAAB3Nz someone".to_owned(),
            ..AksOptions::default()
        }
    }

    #[test]
    fn an_order_has_what_was_given() {
        let order = of(&options(), None).unwrap();
        assert_eq!(order["tags"], json!({"drover-cluster": "c-1"}));
        let properties = &order["properties"];
        assert_eq!(properties["dnsPrefix"], "c-1");
        assert_eq!(properties["networkProfile"], json!({"networkPlugin": "azure"}));
        assert_eq!(properties["addonProfiles"]["omsagent"]["enabled"], false);
        for left_out in ["aadProfile", "kubernetesVersion"] {
            assert_eq!(properties[left_out], Value::Null, "{left_out}");
        }
        let order = of(
            &AksOptions {
                virtual_network: "n".to_owned(),
                subnet: "t".to_owned(),
                network_plugin: "kubenet".to_owned(),
                ..options()
            },
            Some("/w".to_owned()),
        );
        let properties = &order.unwrap()["properties"];
        assert_eq!(
            properties["agentPoolProfiles"][0]["vnetSubnetID"],
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n/subnets/t"
        );
        assert_eq!(properties["networkProfile"]["podCidr"], "172.244.0.0/16");
        let agent = &properties["addonProfiles"]["omsagent"];
        assert_eq!(agent["config"]["logAnalyticsWorkspaceResourceID"], "/w");
    }

    #[test]
    fn wrong_options_are_named() {
        let wrong = [
            (AksOptions { count: 0, ..options() }, "count"),
            (AksOptions { ssh_public_key_contents: "key".to_owned(), ..options() }, "ssh-public"),
            (AksOptions { aad_client_app_id: "a".to_owned(), ..options() }, "aad-server-app-id"),
            (AksOptions { tags: vec!["a".to_owned()], ..options() }, "tags"),
        ];
        for (options, said) in wrong {
            let error = of(&options, None).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
