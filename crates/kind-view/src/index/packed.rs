//! Objects in little memory: compressed, with some objects of the kind as a dictionary.

use std::sync::Arc;

use api_meta::time::human_duration;
use jiff::Timestamp;
use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use serde_json::Value;

/// Bytes of the objects that others are compressed with.
const DICTIONARY_BYTES: usize = 16 * 1024;

/// What all objects of one kind are packed with.
#[derive(Debug, Default)]
pub struct Packing {
    dictionary: Vec<u8>,
    /// The cell that says how long ago an object was made.
    age_cell: Option<usize>,
}

/// A packed object.
#[derive(Clone, Debug)]
pub struct PackedRow {
    packing: Arc<Packing>,
    bytes: Arc<[u8]>,
    /// Bytes of the object as JSON.
    len: usize,
}

impl Packing {
    /// For a kind with such columns, some of whose objects are `samples`.
    pub fn new<'a>(columns: &[Value], samples: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut dictionary = Vec::new();
        for sample in samples {
            if dictionary.len() >= DICTIONARY_BYTES {
                break;
            }
            dictionary.extend(sample.to_string().into_bytes());
        }
        dictionary.truncate(DICTIONARY_BYTES);
        let age_cell = columns.iter().position(|column| column["name"] == "Age");
        Self { dictionary, age_cell }
    }
}

impl PackedRow {
    /// Packs an object.
    pub fn new(packing: &Arc<Packing>, object: &Value) -> Self {
        let text = object.to_string();
        let bytes = compress_with_dict(text.as_bytes(), &packing.dictionary);
        Self { packing: packing.clone(), bytes: bytes.into(), len: text.len() }
    }

    /// The object as it was packed.
    pub fn unpack(&self) -> Value {
        let text = decompress_with_dict(&self.bytes, self.len, &self.packing.dictionary);
        let object = text.ok().and_then(|text| serde_json::from_slice(&text).ok());
        // Nobody else writes these bytes.
        object.expect("an object can be unpacked as it was packed")
    }

    /// The object with the age that it has now.
    pub fn unpack_at(&self, now: Timestamp) -> Value {
        let mut object = self.unpack();
        let created = object["metadata"]["creationTimestamp"].as_str();
        let created = created.and_then(|text| text.parse::<Timestamp>().ok());
        let fields = object.pointer_mut("/metadata/fields").and_then(Value::as_array_mut);
        let cell = self.packing.age_cell.and_then(|index| fields?.get_mut(index));
        if let (Some(cell), Some(created)) = (cell, created) {
            *cell = human_duration(now.as_second() - created.as_second()).into();
        }
        object
    }

    /// Bytes of the object as JSON.
    pub fn json_bytes(&self) -> usize {
        self.len
    }

    /// Bytes of memory.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str) -> Value {
        json!({
            "metadata": {"name": name, "creationTimestamp": "2026-11-27T10:00:00Z",
                "labels": {"app.kubernetes.io/name": "web", "pod-template-hash": "5d9c7b8f6d"},
                "fields": [name, "1/1", "Running", "3s"]},
            "spec": {"containers": [{"image": "registry.example/web:1.2.3", "name": "web"}]},
        })
    }

    #[test]
    fn objects_like_the_samples_need_little_memory_and_come_back_whole() {
        let columns = [json!({"name": "Name"}), json!({"name": "Ready"})];
        let packing = Arc::new(Packing::new(&columns, [&pod("a")]));
        let packed = PackedRow::new(&packing, &pod("b"));
        assert_eq!(packed.unpack(), pod("b"));
        assert!(packed.size() * 4 < pod("b").to_string().len(), "{}", packed.size());
    }

    #[test]
    fn an_age_is_that_of_now() {
        let columns = ["Name", "Ready", "Status", "Age"].map(|name| json!({"name": name}));
        let packed = PackedRow::new(&Arc::new(Packing::new(&columns, [])), &pod("a"));
        let object = packed.unpack_at("2026-11-27T12:00:00Z".parse().unwrap());
        assert_eq!(object["metadata"]["fields"], json!(["a", "1/1", "Running", "120m"]));
        let none = json!({"metadata": {"name": "a", "fields": []}});
        let packed = PackedRow::new(&Arc::new(Packing::new(&columns, [])), &none);
        assert_eq!(packed.unpack_at(Timestamp::now()), none);
    }
}
