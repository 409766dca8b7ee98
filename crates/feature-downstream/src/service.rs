//! Services, as they are (`service`) and as names for something else (`dnsRecord`).
//!
//! A `dnsRecord` is a Service that is either another name of a host, or, headless, the name of the
//! pods that a selector finds. Addresses, other records and workloads as targets would need a
//! controller that maintains the endpoints of the Service. There is none: they are refused.

use rest_view::{ApiError, Mapper, Presentation};
use serde_json::{Map, Value};

pub const SERVICE: &str = "service";
pub const DNS_RECORD: &str = "dnsRecord";

/// Fields whose targets no controller would follow.
const NOT_FOLLOWED: [&str; 3] = ["ipAddresses", "targetDnsRecordIds", "targetWorkloadIds"];
/// What a record can be a name for.
const TARGETS: [&str; 2] = ["hostname", "selector"];

fn is_given(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(entries)) => !entries.is_empty(),
        Some(_) => true,
    }
}

/// Refuses targets that no controller follows, in both types.
///
/// # Errors
/// 422, naming the field.
pub fn check_service(
    _: &Presentation<'_>,
    input: &Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), ApiError> {
    match NOT_FOLLOWED.iter().find(|name| is_given(input.get(**name))) {
        Some(name) => {
            let text =
                format!("targets by \"{name}\" are not offered; use a selector or a host name");
            Err(ApiError::invalid_field("InvalidOption", name, text))
        }
        None => Ok(()),
    }
}

/// A record is a name for exactly one thing, and stays one of its kind.
///
/// # Errors
/// 422, naming the field.
pub fn check_record(
    context: &Presentation<'_>,
    input: &Map<String, Value>,
    stored: Option<&Value>,
) -> Result<(), ApiError> {
    check_service(context, input, stored)?;
    let given: Vec<&str> = TARGETS.into_iter().filter(|name| is_given(input.get(*name))).collect();
    let is_host = stored.map(|stored| stored["spec"]["type"] == "ExternalName");
    let wrong =
        |code: &str, field: &str, text: &str| Err(ApiError::invalid_field(code, field, text));
    match (given.as_slice(), is_host) {
        ([], None) => wrong("MissingRequired", "hostname", "give a hostname or a selector"),
        ([_, second, ..], _) => wrong(
            "InvalidOption",
            second,
            "a record is a name for a hostname or for a selector, not both",
        ),
        (["hostname"], Some(false)) | (["selector"], Some(true)) => wrong(
            "InvalidOption",
            given[0],
            "what a record is a name for stays of its kind; make another record",
        ),
        _ => Ok(()),
    }
}

/// Makes a new record the Service that it is.
pub struct Record;

impl Mapper for Record {
    fn to_view(&self, _: &Value, _: &mut Map<String, Value>) {}

    fn to_stored(&self, _: &Map<String, Value>, stored: &mut Value) {
        let spec = &mut stored["spec"];
        if spec["type"].is_string() {
            return;
        }
        if spec["externalName"].is_string() {
            spec["type"] = "ExternalName".into();
        } else {
            spec["type"] = "ClusterIP".into();
            spec["clusterIP"] = "None".into();
        }
    }
}
