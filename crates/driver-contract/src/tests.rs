//! The numbers of the fields, as existing drivers have them: what they send must be understood, and
//! the other way round.

use prost::Message;

use crate::Capability;
use crate::types::{
    Capabilities, ClusterInfo, CreateRequest, Default as FlagDefault, DriverOptions, Flag,
    K8sCapabilities, LoadBalancerCapabilities, SaveEtcdSnapshotRequest, StringSlice, UpdateRequest,
};

/// A field with a text or a message: its number and its bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap();
    [&[number << 3 | 2, length], bytes].concat()
}

#[test]
fn a_flag_has_its_default_and_its_secrecy_after_the_fields_of_old_drivers() {
    let flag = Flag {
        r#type: "int".to_owned(),
        usage: "u".to_owned(),
        value: "v".to_owned(),
        default: Some(FlagDefault {
            default_bool: true,
            default_string: "s".to_owned(),
            default_string_slice: Some(StringSlice { value: vec!["l".to_owned()] }),
            default_int: 100,
        }),
        password: true,
    };
    let default =
        [&[1 << 3, 1][..], &field(2, b"s"), &field(3, &field(1, b"l")), &[4 << 3, 100]].concat();
    let expected =
        [field(1, b"int"), field(2, b"u"), field(3, b"v"), field(4, &default), vec![5 << 3, 1]];
    assert_eq!(flag.encode_to_vec(), expected.concat());
    // A driver of 2018 ends after the third.
    let old = Flag::decode(expected[..3].concat().as_slice()).unwrap();
    assert_eq!((old.default, old.password), (None, false));
}

#[test]
fn a_cluster_has_twelve_fields_in_the_order_of_existing_drivers() {
    let info = ClusterInfo {
        version: "v".to_owned(),
        service_account_token: "t".to_owned(),
        endpoint: "e".to_owned(),
        username: "u".to_owned(),
        password: "p".to_owned(),
        root_ca_certificate: "r".to_owned(),
        client_certificate: "c".to_owned(),
        client_key: "k".to_owned(),
        node_count: 3,
        metadata: [("state".to_owned(), "{}".to_owned())].into(),
        status: "s".to_owned(),
        create_error: "x".to_owned(),
    };
    let texts = b"vteuprck".iter().zip(1u8..).flat_map(|(text, number)| field(number, &[*text]));
    let expected: Vec<u8> = texts
        .chain([9 << 3, 3])
        .chain(field(10, &[field(1, b"state"), field(2, b"{}")].concat()))
        .chain(field(11, b"s"))
        .chain(field(12, b"x"))
        .collect();
    assert_eq!(info.encode_to_vec(), expected);
}

#[test]
fn the_requests_have_cluster_and_options_in_different_orders() {
    let info = || Some(ClusterInfo { version: "v".to_owned(), ..ClusterInfo::default() });
    let options = || {
        let string_options = [("name".to_owned(), "n".to_owned())].into();
        Some(DriverOptions { string_options, ..DriverOptions::default() })
    };
    let sent_info = field(1, b"v");
    let sent_options = field(2, &[field(1, b"name"), field(2, b"n")].concat());
    let create = CreateRequest { driver_options: options(), cluster_info: info() };
    assert_eq!(create.encode_to_vec(), [field(1, &sent_options), field(2, &sent_info)].concat());
    let update = UpdateRequest { cluster_info: info(), driver_options: options() };
    assert_eq!(update.encode_to_vec(), [field(1, &sent_info), field(2, &sent_options)].concat());
    let save = SaveEtcdSnapshotRequest {
        info: info(),
        driver_options: options(),
        snapshot_name: "s".to_owned(),
    };
    let expected = [field(1, &sent_info), field(2, &sent_options), field(3, b"s")].concat();
    assert_eq!(save.encode_to_vec(), expected);
}

#[test]
fn capabilities_are_numbers_and_those_of_clusters_are_fields() {
    let capabilities = Capabilities::of(&[Capability::EtcdBackup]);
    assert!(capabilities.has(Capability::EtcdBackup) && !capabilities.has(Capability::GetVersion));
    assert_eq!(capabilities.encode_to_vec(), field(1, &[1 << 3, 4, 2 << 3, 1]));
    let of_cluster = K8sCapabilities {
        l4_load_balancer: Some(LoadBalancerCapabilities {
            enabled: true,
            provider: "p".to_owned(),
            protocols_supported: vec!["TCP".to_owned()],
            health_check_supported: true,
        }),
        node_pool_scaling_supported: true,
        node_port_range: "r".to_owned(),
        ..K8sCapabilities::default()
    };
    let balancer = [vec![1 << 3, 1], field(2, b"p"), field(3, b"TCP"), vec![4 << 3, 1]].concat();
    let expected = [field(1, &balancer), vec![3 << 3, 1], field(4, b"r")].concat();
    assert_eq!(of_cluster.encode_to_vec(), expected);
}
