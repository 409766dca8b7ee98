//! The texts of both directions. Pure.

use rest_view::Key;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A message of a client: it begins a subscription, or ends one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscribeMessage {
    pub resource_type: String,
    /// Empty, `0` or `-1`: all objects that are there are reported first.
    pub resource_version: String,
    pub namespace: String,
    /// Of one object: `name`, or `namespace/name`.
    pub id: String,
    /// For labels.
    pub selector: String,
    pub stop: bool,
}

/// What tells the subscriptions of a socket apart.
pub type SubscriptionKey = [String; 4];

impl SubscribeMessage {
    /// Reads a message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let message: Self = serde_json::from_str(text)
            .map_err(|error| format!("the message cannot be read: {error}"))?;
        if message.resource_type.is_empty() {
            return Err("the message has no resourceType".to_owned());
        }
        Ok(message)
    }

    /// What tells it apart from others.
    pub fn key(&self) -> SubscriptionKey {
        [&self.resource_type, &self.namespace, &self.id, &self.selector].map(String::clone)
    }

    /// The version from which changes are reported; `None`: all objects are.
    pub fn since(&self) -> Option<&str> {
        Some(self.resource_version.as_str()).filter(|version| !["", "0", "-1"].contains(version))
    }

    /// The one object, if it is about one.
    pub fn object(&self) -> Option<Key> {
        if self.id.is_empty() {
            return None;
        }
        let (namespace, name) = self.id.rsplit_once('/').unwrap_or((&self.namespace, &self.id));
        Some(Key { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// A frame about this subscription.
    pub fn frame(&self, name: &str) -> Map<String, Value> {
        let mut frame = Map::new();
        frame.insert("name".to_owned(), name.into());
        for (field, value) in [
            ("resourceType", &self.resource_type),
            ("namespace", &self.namespace),
            ("id", &self.id),
            ("selector", &self.selector),
        ] {
            if !value.is_empty() {
                frame.insert(field.to_owned(), value.clone().into());
            }
        }
        frame
    }

    /// A frame with an error.
    pub fn error(&self, text: &str) -> String {
        let mut frame = self.frame("resource.error");
        frame.insert("data".to_owned(), json!({"error": text}));
        Value::Object(frame).to_string()
    }

    /// A frame without data.
    pub fn bare(&self, name: &str) -> String {
        Value::Object(self.frame(name)).to_string()
    }

    /// A frame with an object as it is shown.
    pub fn object_frame(&self, name: &str, object: Value) -> String {
        let mut frame = self.frame(name);
        let metadata = &object["metadata"];
        for (field, value) in
            [("revision", &metadata["resourceVersion"]), ("namespace", &metadata["namespace"])]
        {
            if !value.is_null() {
                frame.insert(field.to_owned(), value.clone());
            }
        }
        frame.insert("resourceType".to_owned(), object["type"].clone());
        frame.insert("data".to_owned(), object);
        Value::Object(frame).to_string()
    }
}

/// The frame that says that the socket works.
pub fn ping() -> String {
    json!({"name": "ping", "data": {"version": env!("CARGO_PKG_VERSION")}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: Value) -> SubscribeMessage {
        SubscribeMessage::parse(&body.to_string()).unwrap()
    }

    #[test]
    fn a_message_names_a_type_and_a_part_of_its_objects() {
        let all = message(json!({"resourceType": "pods", "resourceVersion": "7", "more": 1}));
        assert_eq!((all.since(), all.object()), (Some("7"), None));
        let one = message(json!({"resourceType": "pod", "id": "web/a", "resourceVersion": "-1"}));
        let key = Key { namespace: "web".into(), name: "a".into() };
        assert_eq!((one.since(), one.object()), (None, Some(key.clone())));
        let beside = message(json!({"resourceType": "pod", "id": "a", "namespace": "web"}));
        assert_eq!(beside.object(), Some(key));
        assert_ne!(one.key(), beside.key());
    }

    #[test]
    fn what_is_no_message_says_why() {
        for (text, why) in [
            ("", "cannot be read"),
            ("[]", "no resourceType"),
            ("{}", "no resourceType"),
            ("{\"resourceType\": 7}", "cannot be read"),
            ("{\"resourceType\": \"pod\", \"stop\": \"yes\"}", "cannot be read"),
        ] {
            let error = SubscribeMessage::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_frame_has_the_type_the_namespace_and_the_revision_of_its_object() {
        let own = message(json!({"resourceType": "pods", "selector": "app=a"}));
        let object =
            json!({"type": "pod", "metadata": {"namespace": "web", "resourceVersion": "7"}});
        let frame: Value =
            serde_json::from_str(&own.object_frame("resource.change", object.clone())).unwrap();
        let expected = json!({"name": "resource.change", "resourceType": "pod", "selector": "app=a",
            "namespace": "web", "revision": "7", "data": object});
        assert_eq!(frame, expected);
    }
}
