//! Keys of a cloud: a Secret whose keys are `<driver>credentialConfig-<field>`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rest_view::{Descriptor, Mapper};
use serde_json::{Map, Value};

/// What the names of such Secrets begin with.
pub const PREFIX: &str = "cc-";
/// The one that needs no driver.
const S3: &str = "s3credentialConfig";
/// Written, and never shown.
const S3_SECRET: &str = "secretKey";

pub fn view(mut descriptor: Descriptor) -> Descriptor {
    PREFIX.clone_into(&mut descriptor.name_prefix);
    descriptor.mapper(InData)
}

struct InData;

impl Mapper for InData {
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
    /// see.
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
