//! What needs no driver: options, records, and what is to be done.

use api_management::Cluster;
use api_management::cluster::ENGINE_CONFIG;
use driver_contract::types::ClusterInfo;
use serde_json::{Value, json};

use super::access;
use super::options;
use super::record::{ClusterRecord, ProvisioningStep, RecordStatus, StoredCluster, next_step};

fn cluster(config: &Value) -> Cluster {
    let object = json!({
        "metadata": {"name": "c-1"},
        "spec": {"displayName": "one", ENGINE_CONFIG: config},
    });
    serde_json::from_value(object).unwrap()
}

#[test]
fn options_are_sorted_by_type_and_nested_objects_are_flattened() {
    let config = json!({
        "driverName": "kd-1",
        "region": "west",
        "diskSizeGb": 20,
        "cores": 1.9,
        "private": false,
        "zones": ["a", 1, "b"],
        "none": [],
        "unset": null,
        "labels": {"a": "1", "b": "2"},
        "network": {"cidr": "10.0.0.0/8", "deep": {"mtu": 9000}},
    });
    let found = options::of_cluster(&config, &cluster(&config));
    let texts = &found.string_options;
    assert_eq!(texts["driverName"], "kd-1");
    assert_eq!(texts["region"], "west");
    assert_eq!(texts["cidr"], "10.0.0.0/8");
    assert_eq!((texts["name"].as_str(), texts["displayName"].as_str()), ("c-1", "one"));
    assert_eq!(found.int_options["diskSizeGb"], 20);
    assert_eq!(found.int_options["cores"], 1);
    assert_eq!(found.int_options["mtu"], 9000);
    assert!(!found.bool_options["private"]);
    assert_eq!(found.string_slice_options["zones"].value, ["a", "b"]);
    assert_eq!(found.string_slice_options["labels"].value, ["a=1", "b=2"]);
    assert!(!found.string_slice_options.contains_key("none"));
    assert!(!texts.contains_key("unset"));
}

#[test]
fn options_that_changed_are_known_by_name() {
    let applied = json!({"region": "west", "nodeCount": 2, "zone": null, "labels": {"a": "1"}});
    let config = json!({"region": "east", "nodeCount": 2, "token": "t", "labels": {"a": "2"}});
    let changed = options::changed(&applied, &config);
    assert_eq!(Vec::from_iter(changed), ["labels", "region", "token"]);
}

#[test]
fn an_update_adds_what_is_known_where_the_cluster_does_not_say_it() {
    let config = json!({"region": "east", "name": "other"});
    let mut found = options::of_cluster(&config, &cluster(&config));
    let state = json!({
        "region": "west", "projectId": "p", "nodeCount": 3, "tags": {"team": "a"}, "on": true,
    });
    let metadata = [
        ("state".to_owned(), state.to_string()),
        ("zone".to_owned(), "z".to_owned()),
        ("broken".to_owned(), "{".to_owned()),
    ];
    options::add_for_update(&mut found, &metadata.into());
    assert_eq!(found.string_options["region"], "east");
    assert_eq!(found.string_options["name"], "c-1");
    assert_eq!(found.string_options["projectId"], "p");
    assert_eq!(found.string_options["zone"], "z");
    assert_eq!(found.int_options["nodeCount"], 3);
    assert!(found.bool_options["on"]);
    assert_eq!(found.string_slice_options["tags"].value, ["team=a"]);
    assert!(!found.string_options.contains_key("state"));
    let mut again = options::of_cluster(&config, &cluster(&config));
    options::add_for_create(&mut again, &[("state".to_owned(), state.to_string())].into());
    assert_eq!(again.string_options["state"], state.to_string());
}

#[test]
fn secrets_are_found_by_the_word_of_the_driver_and_by_their_names() {
    let config = json!({
        "region": "west-1", "code": "sesame", "accessToken": "token-1", "private-key": "key-of-me",
        "secretKey": "abc",
    });
    let found = options::of_cluster(&config, &cluster(&config));
    let mut secrets = options::secrets(&found, &["code".to_owned()]);
    secrets.sort();
    // Three letters are everywhere in a log.
    assert_eq!(secrets, ["key-of-me", "sesame", "token-1"]);
    let log = super::log::redact("sent token-1 to west-1", &secrets);
    assert_eq!(log, "sent (secret) to west-1");
}

fn stored(status: RecordStatus, applied: Option<&Value>) -> StoredCluster {
    let record = ClusterRecord { status, ..ClusterRecord::default() };
    StoredCluster { record, applied: applied.cloned(), ..StoredCluster::default() }
}

#[test]
fn what_is_to_be_done_follows_from_the_record_and_the_options() {
    let (old, new) = (json!({"n": 1}), json!({"n": 2}));
    let step = |status, applied| next_step(Some(&stored(status, applied)), &new);
    assert_eq!(next_step(None, &new), ProvisioningStep::Create);
    assert_eq!(step(RecordStatus::Creating, None), ProvisioningStep::Create);
    assert_eq!(step(RecordStatus::PreCreating, None), ProvisioningStep::Create);
    assert_eq!(step(RecordStatus::Error, None), ProvisioningStep::Create);
    assert_eq!(step(RecordStatus::PostChecking, Some(&new)), ProvisioningStep::PostCheck);
    assert_eq!(step(RecordStatus::PostChecking, Some(&old)), ProvisioningStep::Update);
    assert_eq!(step(RecordStatus::Running, Some(&new)), ProvisioningStep::Nothing);
    assert_eq!(step(RecordStatus::Running, Some(&old)), ProvisioningStep::Update);
    // Even if the options are those of before again: what the driver did is not known.
    assert_eq!(step(RecordStatus::Updating, Some(&new)), ProvisioningStep::Update);
}

#[test]
fn a_record_has_the_form_of_rancher_and_survives_incomplete_replies() {
    let state = "{\"a\": 1,  \"b\":\"\\u00e9\"}";
    let info = ClusterInfo {
        endpoint: "https://1.2.3.4".to_owned(),
        root_ca_certificate: "Q0E=".to_owned(),
        node_count: 3,
        metadata: [("state".to_owned(), state.to_owned())].into(),
        status: "a phase of the cloud".to_owned(),
        ..ClusterInfo::default()
    };
    let mut record = ClusterRecord { status: RecordStatus::PostChecking, ..Default::default() };
    record.take(info);
    let json = serde_json::to_value(&record).unwrap();
    assert_eq!(json["status"], "Post-Checking");
    assert_eq!(json["rootCACert"], "Q0E=");
    let mut again: ClusterRecord = serde_json::from_value(json).unwrap();
    assert_eq!(again, record);
    again.take(ClusterInfo::default());
    assert_eq!(again, record);
    let sent = again.to_info();
    assert_eq!(sent.metadata["state"], state);
    assert_eq!(sent.status, "Post-Checking");
}

#[test]
fn an_endpoint_has_a_host_and_nothing_else_that_could_be_lost() {
    let record = |endpoint: &str| ClusterRecord {
        endpoint: endpoint.to_owned(),
        root_ca_cert: "Q0E=".to_owned(),
        service_account_token: " token\n".to_owned(),
        ..ClusterRecord::default()
    };
    for (endpoint, address) in [
        ("https://1.2.3.4", "1.2.3.4:443"),
        ("1.2.3.4:6443", "1.2.3.4:6443"),
        ("https://cluster.example.com:8443/", "cluster.example.com:8443"),
        ("https://[fd00::1]:6443", "[fd00::1]:6443"),
    ] {
        let found = access::endpoint(&record(endpoint)).unwrap();
        assert_eq!(found.address.to_string(), address);
    }
    for endpoint in
        ["", "https://", "http://1.2.3.4", "https://a/b", "https://a?x", "a b", "a:99999"]
    {
        assert!(access::endpoint(&record(endpoint)).is_err(), "{endpoint}");
    }
    let with = |authority: &str| {
        let root_ca_cert = authority.to_owned();
        access::endpoint(&ClusterRecord { root_ca_cert, ..record("1.2.3.4") })
    };
    assert!(with("").unwrap().ca_pem.is_empty(), "the machine's authorities are trusted");
    assert!(with("not base64!").is_err());
}
