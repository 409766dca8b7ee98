//! Cloud credentials: keys of a cloud, each a Secret with data keys
//! `<driver>credentialConfig-<field>`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use feature_kit::table;
use rest_view::{Descriptor, Mapper};
use serde_json::{Map, Value};

const TYPE: &str = "cloudCredential";
/// Prefix of the names of such Secrets.
const NAME_PREFIX: &str = "cc-";
/// The configuration that needs no driver.
const S3: &str = "s3credentialConfig";
/// Its field that is written, and never shown.
const S3_SECRET: &str = "secretKey";

/// The type `cloudCredential` under `/v3`.
pub fn view() -> Descriptor {
    let mut descriptor = table::descriptor(TYPE);
    NAME_PREFIX.clone_into(&mut descriptor.name_prefix);
    descriptor.mapper(S3Fields)
}

/// Maps the fields of [`S3`] to the data of the Secret.
struct S3Fields;

impl Mapper for S3Fields {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>) {
        let data = stored["data"].as_object().into_iter().flatten();
        let shown: Map<String, Value> = data
            .filter_map(|(key, value)| {
                let field = key.strip_prefix(S3)?.strip_prefix('-')?;
                let bytes = BASE64_STANDARD.decode(value.as_str()?).ok()?;
                let text = String::from_utf8(bytes).ok()?;
                (field != S3_SECRET).then(|| (field.to_owned(), text.into()))
            })
            .collect();
        if !shown.is_empty() {
            fields.insert(S3.to_owned(), shown.into());
        }
    }

    /// A field that is not sent stays: clients never see the secret one, and send back what they
    /// saw.
    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        let sent = input.get(S3).and_then(Value::as_object).into_iter().flatten();
        for (field, value) in sent {
            let key = format!("{S3}-{field}");
            match value.as_str() {
                Some(text) => stored["data"][&key] = BASE64_STANDARD.encode(text).into(),
                None => {
                    if let Some(data) = stored["data"].as_object_mut() {
                        data.remove(&key);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_secret_key_is_never_shown_and_stays_when_it_is_not_sent() {
        let mut stored = json!({});
        let sent = json!({S3: {"accessKey": "AK", "secretKey": "SK", "defaultFolder": "f"}});
        S3Fields.to_stored(sent.as_object().unwrap(), &mut stored);
        let sent = json!({S3: {"accessKey": "AK2", "defaultFolder": null}});
        S3Fields.to_stored(sent.as_object().unwrap(), &mut stored);
        let data =
            json!({"s3credentialConfig-accessKey": "QUsy", "s3credentialConfig-secretKey": "U0s="});
        assert_eq!(stored["data"], data);
        let mut fields = Map::new();
        S3Fields.to_view(&stored, &mut fields);
        assert_eq!(fields[S3], json!({"accessKey": "AK2"}));
    }
}
