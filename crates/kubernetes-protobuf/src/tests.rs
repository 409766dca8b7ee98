//! Round trips for every kind, and hostile input.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

mod filled;
mod go;
mod hostile;

use filled::Filler;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{decode, encode, kinds};

fn round_trip(object: &Value) -> Value {
    decode(&encode(object.to_string().as_bytes()).unwrap(), None).unwrap()
}

#[test]
fn every_kind_with_every_field_survives_a_round_trip() {
    for kind in kinds() {
        let object = Filler::everything(1).object(kind);
        assert_eq!(round_trip(&object), object, "{kind:?}");
    }
}

#[test]
fn a_pod_is_encoded_as_the_format_specifies() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "a", "creationTimestamp": null, "labels": {"z": "1", "b": ""}},
    });
    let metadata = b"\x0a\x01a\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x38\x00\x42\x00\
        \x5a\x05\x0a\x01b\x12\x00\x5a\x06\x0a\x01z\x12\x011";
    let mut expected = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12".to_vec();
    expected.push(u8::try_from(metadata.len()).unwrap() + 2 + 2 + 4);
    expected.extend([0x0a, u8::try_from(metadata.len()).unwrap()]);
    expected.extend(metadata);
    expected.extend(b"\x12\x00\x1a\x02\x0a\x00\x1a\x00\x22\x00");
    assert_eq!(encode(pod.to_string().as_bytes()).unwrap(), expected);
}

#[test]
fn values_that_protobuf_omits_are_decoded_like_go_does() {
    let empty = |kind: &str| {
        let bytes = encode(json!({"apiVersion": "v1", "kind": kind}).to_string().as_bytes());
        decode(&bytes.unwrap(), None).unwrap()
    };
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": null}, "status": {},
    });
    assert_eq!(empty("Pod"), pod);
    assert_eq!(
        empty("ConfigMap"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
    );
    let event = empty("Event");
    assert_eq!(event["eventTime"], Value::Null);
    assert_eq!(event["firstTimestamp"], Value::Null);
    assert!(event["metadata"].get("creationTimestamp").is_none(), "{event}");
}

#[test]
fn a_default_kind_completes_the_envelope() {
    let untyped = b"k8s\0\x12\x00";
    let object = decode(untyped, Some(("v1", "ConfigMap"))).unwrap();
    assert_eq!(object["kind"], "ConfigMap");
    assert!(decode(untyped, None).is_err());
}

#[test]
fn members_that_the_kind_does_not_have_are_omitted() {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "unknown": {"deep": [1]},
    });
    let mut expected = object.clone();
    expected.as_object_mut().unwrap().remove("unknown");
    assert_eq!(round_trip(&object), expected);
}

#[test]
fn a_value_that_does_not_fit_the_kind_is_refused_with_its_path() {
    let refused = |object: Value| encode(object.to_string().as_bytes()).unwrap_err().to_string();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "no base64"}});
    assert!(refused(secret).contains("base64"));
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"hostNetwork": "yes"}});
    assert!(refused(pod).contains("expected a boolean"));
    let scale =
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3e9 as i64}});
    assert!(refused(scale).contains("32 bits"));
    let table = json!({"apiVersion": "meta.k8s.io/v1", "kind": "Table"});
    assert!(refused(table).contains("no protobuf encoding"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// With any combination of fields set, nothing is lost, and encoding again gives the same
    /// bytes.
    #[test]
    fn objects_with_some_fields_survive_a_round_trip(seed: u64, nth in 0..1000_usize) {
        let all: Vec<_> = { let mut all: Vec<_> = kinds().collect(); all.sort(); all };
        let object = Filler::some(seed).object(all[nth % all.len()]);
        let bytes = encode(object.to_string().as_bytes()).unwrap();
        let back = decode(&bytes, None).unwrap();
        prop_assert!(contains(&back, &object), "{object}\n{back}");
        prop_assert_eq!(encode(back.to_string().as_bytes()).unwrap(), bytes);
    }
}

/// Whether `whole` has everything that `part` has. Additions are values that Go writes although
/// they are empty.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len()
                && whole.iter().zip(part).all(|(one, other)| contains(one, other))
        }
        _ => whole == part,
    }
}
