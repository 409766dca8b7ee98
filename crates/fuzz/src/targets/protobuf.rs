//! Built-in kinds in protobuf.

use kubernetes_protobuf as protobuf;
use serde_json::Value;

use super::parts;

/// The kind of a body that does not name its kind.
const DEFAULT: (&str, &str) = ("v1", "Pod");

/// A decoded message can be encoded, and then survives a round trip.
pub fn decoded(input: &[u8]) {
    let Ok(object) = protobuf::decode(input, Some(DEFAULT)) else { return };
    settles(&object);
}

/// A kind on the first line (`apps/v1 Deployment`), JSON after it. The encoded message can be
/// decoded.
pub fn encoded(input: &[u8]) {
    let Some([kind, json]) = parts::<2>(input) else { return };
    let Some((api_version, kind)) =
        std::str::from_utf8(kind).ok().and_then(|kind| kind.split_once(' '))
    else {
        return;
    };
    let Ok(bytes) = protobuf::encode_as(api_version, kind, json) else { return };
    if let Ok(object) = protobuf::decode(&bytes, None) {
        settles(&object);
    }
}

fn settles(object: &Value) {
    let bytes = protobuf::encode(object.to_string().as_bytes());
    let bytes = bytes.unwrap_or_else(|error| panic!("{object}: {error}"));
    let again = protobuf::decode(&bytes, None);
    let again = again.unwrap_or_else(|error| panic!("{object}: {error}"));
    assert_eq!(without_nulls(&again), without_nulls(object));
    let twice = protobuf::encode(again.to_string().as_bytes());
    assert_eq!(twice.ok().as_ref(), Some(&bytes), "{object}");
}

/// An empty time decodes to `null`, and a `null` time is not encoded.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.iter().filter(|(_, member)| !member.is_null());
            present.map(|(name, member)| (name.clone(), without_nulls(member))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// The type of an event on the first line, an encoded object after it. A frame has its length,
/// and both parts are decoded unchanged.
pub fn watch_frame(input: &[u8]) {
    let Some([event, object]) = parts::<2>(input) else { return };
    let Ok(event) = std::str::from_utf8(event) else { return };
    let frame = protobuf::watch_frame(event, object);
    let (length, body) = frame.split_at(4);
    let length = u32::from_be_bytes(length.try_into().expect("split at four"));
    assert_eq!(usize::try_from(length).ok(), Some(body.len()));
    // Three fields, each before one length: the type, the extension around the bytes, the bytes.
    let (kind, rest) = field(body, 1);
    let (extension, rest) = field(rest, 2);
    assert_eq!((kind, rest), (event.as_bytes(), &[][..]));
    assert_eq!(field(extension, 1), (object, &[][..]));
}

/// The bytes of the first field, which must be `number`, and the rest.
fn field(bytes: &[u8], number: u8) -> (&[u8], &[u8]) {
    const LENGTH_DELIMITED: u8 = 2;
    assert_eq!(bytes[0], number << 3 | LENGTH_DELIMITED);
    let mut length = 0;
    for (index, byte) in bytes[1..].iter().enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return bytes[index + 2..].split_at(length);
        }
    }
    panic!("a length without an end");
}
