//! Malicious input is refused, in bounded time, stack and memory.

use proptest::prelude::*;

use super::filled::Filler;
use crate::wire::{put_bytes, put_nested};
use crate::{DEPTH_MAX, DecodeError, FieldError, MAGIC, VALUES_MAX, decode, encode, kinds};

fn enveloped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    put_nested(&mut bytes, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
    });
    put_bytes(&mut bytes, 2, raw);
    bytes
}

fn problem(bytes: &[u8]) -> FieldError {
    match decode(bytes, None) {
        Err(DecodeError::Field { problem, .. }) => problem,
        other => panic!("not refused for a field: {other:?}"),
    }
}

/// `spec.versions[0].schema.openAPIV3Schema` with `field` nested in itself.
fn nested_schema(levels: usize, field: u32, with: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let mut schema = Vec::new();
    for _ in 0..levels {
        let mut outer = Vec::new();
        put_bytes(&mut outer, field, &with(schema));
        schema = outer;
    }
    let wrap = |number, inner: Vec<u8>| {
        let mut outer = Vec::new();
        put_bytes(&mut outer, number, &inner);
        outer
    };
    let raw = wrap(2, wrap(7, wrap(4, wrap(1, schema))));
    enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", &raw)
}

#[test]
fn deep_nesting_is_refused_on_a_small_stack() {
    const NOT: u32 = 28;
    const ITEMS: u32 = 24;
    let run = || {
        let fits = nested_schema(DEPTH_MAX - 20, NOT, |inner| inner);
        assert!(decode(&fits, None).is_ok(), "{:?}", decode(&fits, None));
        let deep = nested_schema(2_000, NOT, |inner| inner);
        assert!(matches!(problem(&deep), FieldError::Depth));
        let items = nested_schema(2_000, ITEMS, |inner| {
            let mut alternative = Vec::new();
            put_bytes(&mut alternative, 1, &inner);
            alternative
        });
        assert!(matches!(problem(&items), FieldError::Depth));
    };
    // The stack size of the server's threads.
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(run).unwrap().join().unwrap();
}

#[test]
fn deep_json_is_refused_on_a_small_stack() {
    let run = || {
        for (open, close) in [("{\"items\":", "}"), ("{\"not\":", "}"), ("{\"oneOf\":[", "]}")] {
            let schema = format!("{}{{}}{}", open.repeat(100_000), close.repeat(100_000));
            let object = format!(
                "{{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\",\
                 \"spec\":{{\"versions\":[{{\"schema\":{{\"openAPIV3Schema\":{schema}}}}}]}}}}"
            );
            assert!(encode(object.as_bytes()).unwrap_err().to_string().contains("recursion"));
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(run).unwrap().join().unwrap();
}

#[test]
fn embedded_json_counts_for_the_depth() {
    let revision = |levels: usize| {
        let mut raw = Vec::new();
        let json = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        put_nested(&mut raw, 2, |out| put_bytes(out, 1, json.as_bytes()));
        enveloped("apps/v1", "ControllerRevision", &raw)
    };
    assert!(decode(&revision(DEPTH_MAX - 1), None).is_ok());
    assert!(matches!(problem(&revision(DEPTH_MAX)), FieldError::Depth));
    assert!(matches!(problem(&revision(100_000)), FieldError::Json(_)));
}

#[test]
fn a_small_body_cannot_become_a_large_object() {
    // Each container takes two bytes here and hundreds in memory.
    let mut containers = Vec::new();
    for _ in 0..VALUES_MAX {
        put_bytes(&mut containers, 2, b"");
    }
    let mut raw = Vec::new();
    put_bytes(&mut raw, 2, &containers);
    assert!(matches!(problem(&enveloped("v1", "Pod", &raw)), FieldError::Size));
}

#[test]
fn a_duplicate_field_or_one_of_a_wrong_type_is_refused() {
    let twice = enveloped("v1", "ConfigMap", b"\x0a\x00\x0a\x00");
    assert!(matches!(problem(&twice), FieldError::Twice));
    let number = enveloped("v1", "ConfigMap", b"\x08\x01");
    assert!(matches!(problem(&number), FieldError::WireType));
    let latin = enveloped("v1", "ConfigMap", b"\x12\x06\x0a\x01a\x12\x01\xfc");
    assert!(matches!(problem(&latin), FieldError::Text));
    let group = enveloped("v1", "ConfigMap", b"\xf3\x06\xf4\x06");
    assert!(matches!(problem(&group), FieldError::Malformed(_)));
    let unknown = enveloped("v1", "ConfigMap", b"\xf8\x06\x01");
    assert!(decode(&unknown, None).is_ok());
}

#[test]
fn bytes_that_are_no_object_are_refused_with_a_reason() {
    assert!(matches!(decode(b"", None), Err(DecodeError::NoMagic)));
    assert!(matches!(decode(b"{}", Some(("v1", "Pod"))), Err(DecodeError::NoMagic)));
    let custom = enveloped("example.org/v1", "Thing", b"");
    assert!(matches!(decode(&custom, None), Err(DecodeError::UnknownKind { .. })));
    let mut packed = enveloped("v1", "Pod", b"");
    put_bytes(&mut packed, 3, b"gzip");
    assert!(matches!(decode(&packed, None), Err(DecodeError::ContentEncoding(_))));
    let mut json = enveloped("v1", "Pod", b"{}");
    put_bytes(&mut json, 4, b"application/json");
    assert!(matches!(decode(&json, None), Err(DecodeError::ContentType(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_are_decoded_or_refused(raw: Vec<u8>, nth in 0..1000_usize) {
        let kind = kinds().nth(nth % kinds().count()).unwrap();
        let _ = decode(&raw, None);
        let _ = decode(&enveloped(kind.api_version, kind.kind, &raw), None);
    }

    #[test]
    fn changed_bytes_are_decoded_or_refused(
        seed: u64,
        nth in 0..1000_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut: prop::sample::Index,
    ) {
        let kind = kinds().nth(nth % kinds().count()).unwrap();
        let object = Filler::some(seed).object(kind);
        let mut bytes = encode(object.to_string().as_bytes()).unwrap();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(back) = decode(&bytes, None) {
            // A decoded object can be encoded again.
            prop_assert!(encode(back.to_string().as_bytes()).is_ok());
        }
        let _ = decode(&bytes[..cut.index(bytes.len())], None);
    }
}
