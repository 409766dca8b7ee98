//! Clusters of the clouds whose drivers are part of Drover, at stand-ins of their APIs: the life of
//! a cluster, and what the clouds do wrong.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use anyhow::{Context, Result, ensure};
use e2e::cloud_world::{Clouds, world};
use e2e::{DriverWorld, eventually};
use serde_json::{Value, json};

/// One cloud with its driver.
struct Cloud {
    name: &'static str,
    driver: &'static str,
    /// A change of the number of nodes to 3, and of the version.
    scaled: fn() -> Value,
    upgraded: fn() -> Value,
    /// The version in what exists at the cloud.
    version: fn(&[Value]) -> Value,
    /// A wrong secret, and what its refusal says.
    wrong_secret: (fn() -> Value, &'static str),
    /// A place that does not exist, and what its refusal says.
    wrong_place: (fn() -> Value, &'static str),
    /// What the refusal of a quota says.
    quota: &'static str,
}

const GOOGLE: Cloud = Cloud {
    name: "google",
    driver: "googleKubernetesEngine",
    scaled: || json!({"nodeCount": 3}),
    upgraded: || json!({"masterVersion": "1.36.1-gke.7", "nodeVersion": "1.36.1-gke.7"}),
    version: |all| all[0]["cluster"]["currentMasterVersion"].clone(),
    wrong_secret: (|| json!({"credential": "{}"}), "credential is no key of a service account"),
    wrong_place: (|| json!({"zone": "us-centrall1-a"}), "\"us-centrall1-a\" does not exist"),
    quota: "Insufficient regional quota",
};

const AMAZON: Cloud = Cloud {
    name: "amazon",
    driver: "amazonElasticContainerService",
    scaled: || json!({"desiredNodes": 3}),
    upgraded: || json!({"kubernetesVersion": "1.36"}),
    version: |all| all[0]["template"]["Resources"]["Cluster"]["Properties"]["Version"].clone(),
    wrong_secret: (|| json!({"secretKey": "wrong"}), "SignatureDoesNotMatch"),
    wrong_place: (|| json!({"region": "us-wets-2"}), "cloudformation.us-wets-2.amazonaws.com"),
    quota: "Nodes: You've reached your quota",
};

const MICROSOFT: Cloud = Cloud {
    name: "microsoft",
    driver: "azureKubernetesService",
    scaled: || json!({"count": 3}),
    upgraded: || json!({"kubernetesVersion": "1.36.1"}),
    version: |all| cluster_of(all)["properties"]["kubernetesVersion"].clone(),
    wrong_secret: (|| json!({"clientSecret": "wrong"}), "AADSTS7000215"),
    wrong_place: (|| json!({"location": "eastsu"}), "'eastsu' is not available"),
    quota: "Insufficient regional vcpu quota",
};

/// The cluster among the resources of Azure.
fn cluster_of(all: &[Value]) -> &Value {
    let is_cluster = |one: &&Value| one["path"].as_str().unwrap().contains("managedClusters");
    all.iter().find(is_cluster).map_or(&Value::Null, |one| &one["resource"])
}

fn nodes(world: &DriverWorld, name: &str) -> Result<usize> {
    let list = world.cli.kubectl(name)?.json(&["get", "nodes", "-o", "json"])?;
    Ok(list["items"].as_array().context("no list")?.len())
}

fn merged(mut options: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("no options") };
    options.as_object_mut().unwrap().extend(more);
    options
}

/// Nothing of any cluster is left at the cloud, nor at the provider of its clusters.
fn assert_nothing_left(clouds: &Clouds, cloud: &Cloud) {
    eventually("nothing is left", || {
        let (state, made) = (clouds.state(cloud.name)?, clouds.provider.clusters()?);
        ensure!(state.is_empty() && made.is_empty(), "{state:?} {made:?}");
        Ok(())
    });
}

fn life(cloud: &Cloud) {
    let (clouds, world) = world(cloud.driver).unwrap();
    let id = world.create("made", &clouds.options(cloud.name).unwrap()).unwrap();
    let made = world.wait_for(&id, "active", "");
    assert_eq!(made["driver"], cloud.driver);
    assert!(made["capabilities"]["loadBalancerCapabilities"]["enabled"] == true, "{made}");
    assert_eq!(nodes(&world, "made").unwrap(), 2);

    world.change(&id, &(cloud.scaled)()).unwrap();
    eventually("there is one more node", || {
        let found = nodes(&world, "made")?;
        ensure!(found == 3, "there are {found}");
        Ok(())
    });
    let upgraded = (cloud.upgraded)();
    world.change(&id, &upgraded).unwrap();
    eventually("the version has changed", || {
        let version = (cloud.version)(&clouds.state(cloud.name)?);
        let fields = upgraded.as_object().context("no options")?;
        ensure!(fields.values().any(|new| *new == version), "it is {version}");
        Ok(())
    });
    world.wait_for(&id, "active", "");

    let secrets = clouds.options(cloud.name).unwrap();
    let log = world.log(&id).unwrap();
    for secret in ["credential", "secretKey", "clientSecret"] {
        let value = secrets[secret].as_str().unwrap_or("no such option");
        assert!(!log.contains(value), "the log has {secret}");
        let shown = &made[&world.field][secret];
        assert!(shown.is_null(), "{secret} is shown: {shown}");
    }
    world.remove(&id).unwrap();
    assert_nothing_left(&clouds, cloud);
}

/// A cluster is made although the cloud throttles, fails, cuts connections and is busy.
fn moods(cloud: &Cloud) {
    let (clouds, world) = world(cloud.driver).unwrap();
    let bad = json!({"throttle": 1, "unavailable": 1, "reset": 1, "busy": 1});
    clouds.fail(&bad).unwrap();
    let id = world.create("made", &clouds.options(cloud.name).unwrap()).unwrap();
    world.wait_for(&id, "active", "");
    let log = world.log(&id).unwrap();
    assert!(log.contains("failed, the next follows: "), "{log}");
    assert_eq!(clouds.provider.clusters().unwrap().len(), 1);

    clouds.fail(&bad).unwrap();
    world.change(&id, &(cloud.scaled)()).unwrap();
    eventually("there is one more node", || {
        let found = nodes(&world, "made")?;
        ensure!(found == 3, "there are {found}");
        Ok(())
    });
    world.wait_for(&id, "active", "");
    clouds.fail(&bad).unwrap();
    world.remove(&id).unwrap();
    assert_nothing_left(&clouds, cloud);
}

/// What is wrong is named; once it is right, the cluster is made, and what was half made is not
/// forgotten.
fn mistakes(cloud: &Cloud) {
    let (clouds, world) = world(cloud.driver).unwrap();
    let right = clouds.options(cloud.name).unwrap();
    for (name, (wrong, said)) in [("secret", cloud.wrong_secret), ("place", cloud.wrong_place)] {
        let id = world.create(name, &merged(right.clone(), wrong())).unwrap();
        world.wait_for(&id, "provisioning", said);
        world.change(&id, &right).unwrap();
        world.wait_for(&id, "active", "");
        world.remove(&id).unwrap();
    }

    clouds.fail(&json!({"quota": 1})).unwrap();
    let id = world.create("quota", &right).unwrap();
    world.wait_for(&id, "provisioning", cloud.quota);
    world.change(&id, &(cloud.scaled)()).unwrap();
    world.wait_for(&id, "active", "");
    world.remove(&id).unwrap();

    // Half made, and never completed.
    clouds.fail(&json!({"quota": 1})).unwrap();
    let id = world.create("left", &right).unwrap();
    world.wait_for(&id, "provisioning", cloud.quota);
    world.remove(&id).unwrap();
    assert_nothing_left(&clouds, cloud);
}

/// The options that the Terraform provider sends beside those of [`Clouds::options`], for a
/// resource with all that it requires. Labels are objects, and not the lists that their flags are.
fn of_terraform(cloud: &Cloud) -> Value {
    match cloud.name {
        "google" => json!({
            "clusterIpv4Cidr": "10.4.0.0/14",
            "diskSizeGb": 100,
            "diskType": "pd-ssd",
            "enableHorizontalPodAutoscaling": true,
            "enableHttpLoadBalancing": true,
            "enableNetworkPolicyConfig": true,
            "enableStackdriverLogging": true,
            "enableStackdriverMonitoring": true,
            "imageType": "COS_CONTAINERD",
            "ipPolicyClusterIpv4CidrBlock": "10.8.0.0/14",
            "ipPolicyClusterSecondaryRangeName": "pods",
            "ipPolicyNodeIpv4CidrBlock": "10.12.0.0/20",
            "ipPolicyServicesIpv4CidrBlock": "10.16.0.0/20",
            "ipPolicyServicesSecondaryRangeName": "services",
            "ipPolicySubnetworkName": "sub",
            "labels": {"team": "a"},
            "locations": ["us-central1-a"],
            "machineType": "e2-standard-4",
            "maintenanceWindow": "03:00",
            "masterIpv4CidrBlock": "172.16.0.0/28",
            "network": "default",
            "nodePool": "workers",
            "nodeVersion": "1.35.2-gke.100",
            "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
            "resourceLabels": {"cost": "b"},
            "serviceAccount": "nodes@drover-project.iam.gserviceaccount.com",
            "subNetwork": "default",
            "taints": ["NO_SCHEDULE:dedicated=gpu"],
        }),
        "amazon" => json!({
            "associateWorkerNodePublicIp": true,
            "ebsEncryption": true,
            "instanceType": "t2.medium",
            "maximumNodes": 4,
            "minimumNodes": 1,
            "nodeVolumeSize": 20,
        }),
        _ => json!({
            "adminUsername": "azureuser",
            "agentDnsPrefix": "agents",
            "agentPoolName": "agentpool0",
            "agentVmSize": "Standard_D1_v2",
            "authBaseUrl": "https://login.microsoftonline.com/",
            "baseUrl": "https://management.azure.com/",
            "dnsServiceIp": "10.0.0.10",
            "dockerBridgeCidr": "172.17.0.1/16",
            "enableMonitoring": true,
            "masterDnsPrefix": "made",
            "maxPods": 110,
            "networkPlugin": "azure",
            "podCidr": "172.244.0.0/16",
            "serviceCidr": "10.0.0.0/16",
            "subnet": "nodes",
            "tags": ["team=a"],
            "virtualNetwork": "net",
            "virtualNetworkResourceGroup": "nets",
        }),
    }
}

/// An apply, the reads of a plan, which must show nothing, an apply of a change, and a destroy: the
/// requests of the Terraform provider, whose kinds of clusters these are.
fn terraform(cloud: &Cloud) {
    let (clouds, world) = world(cloud.driver).unwrap();
    let secrets = ["credential", "accessKey", "secretKey", "clientSecret"];
    // The provider knows this prefix of an agent by heart, and no driver does.
    let unknown = ["agentDnsPrefix"];
    let assert_empty_plan = |shown: &Value, sent: &Value| {
        for (option, value) in sent.as_object().unwrap() {
            if !secrets.contains(&option.as_str()) && !unknown.contains(&option.as_str()) {
                assert_eq!(shown[option], *value, "{option}");
            }
        }
        assert_eq!(shown["driverName"], world.driver.as_str());
    };
    let mut options = merged(clouds.options(cloud.name).unwrap(), of_terraform(cloud));
    options["driverName"] = world.driver.as_str().into();
    let id = world.create("made", &options).unwrap();
    let made = world.wait_for(&id, "active", "");
    let action = format!("/v3/clusters/{id}?action=generateKubeconfig");
    world.api.post(&action, &json!({})).unwrap().success().unwrap();
    assert_empty_plan(&made[&world.field], &options);

    // A change sends all options again, also the secrets.
    let changed = merged(options, (cloud.scaled)());
    let body = json!({"name": "made", &world.field: changed});
    world.api.put(&format!("/v3/clusters/{id}"), &body).unwrap().success().unwrap();
    eventually("there is one more node", || {
        let found = nodes(&world, "made")?;
        ensure!(found == 3, "there are {found}");
        Ok(())
    });
    let made = world.wait_for(&id, "active", "");
    assert_empty_plan(&made[&world.field], &changed);
    if cloud.name == "google" {
        let state = clouds.state(cloud.name).unwrap();
        let cluster = &state[0]["cluster"];
        assert_eq!(cluster["resourceLabels"]["cost"], "b");
        assert_eq!(cluster["nodePools"][0]["config"]["labels"], json!({"team": "a"}));
    }
    world.remove(&id).unwrap();
    assert_nothing_left(&clouds, cloud);
}

/// What has the name of a cluster and not its label is somebody else's, and stays.
#[test]
fn clusters_of_others_stay() {
    for cloud in [&GOOGLE, &AMAZON, &MICROSOFT] {
        let (clouds, world) = world(cloud.driver).unwrap();
        let id = world.create("made", &clouds.options(cloud.name).unwrap()).unwrap();
        world.wait_for(&id, "active", "");
        let before = clouds.state(cloud.name).unwrap().len();
        clouds.disown().unwrap();
        world.remove(&id).unwrap();
        assert_eq!(clouds.state(cloud.name).unwrap().len(), before);
        assert_eq!(clouds.provider.clusters().unwrap().len(), 1);
    }
}

#[test]
fn terraform_plans_nothing_for_clusters_of_google() {
    terraform(&GOOGLE);
}

#[test]
fn terraform_plans_nothing_for_clusters_of_amazon() {
    terraform(&AMAZON);
}

#[test]
fn terraform_plans_nothing_for_clusters_of_microsoft() {
    terraform(&MICROSOFT);
}

#[test]
fn google_makes_changes_and_removes_a_cluster() {
    life(&GOOGLE);
}

#[test]
fn google_in_a_bad_mood_makes_one_cluster() {
    moods(&GOOGLE);
}

#[test]
fn mistakes_at_google_are_named_and_mended() {
    mistakes(&GOOGLE);
}

#[test]
fn amazon_makes_changes_and_removes_a_cluster() {
    life(&AMAZON);
}

#[test]
fn amazon_in_a_bad_mood_makes_one_cluster() {
    moods(&AMAZON);
}

#[test]
fn mistakes_at_amazon_are_named_and_mended() {
    mistakes(&AMAZON);
}

#[test]
fn microsoft_makes_changes_and_removes_a_cluster() {
    life(&MICROSOFT);
}

#[test]
fn microsoft_in_a_bad_mood_makes_one_cluster() {
    moods(&MICROSOFT);
}

#[test]
fn mistakes_at_microsoft_are_named_and_mended() {
    mistakes(&MICROSOFT);
}
