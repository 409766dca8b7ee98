//! Tables without a cluster: that all can be read and name what is there.

use std::collections::BTreeSet;

use rest_view::{FieldType, Mapper};
use serde_json::{Map, json};

use crate::host_path::HostPathKind;

#[test]
fn every_table_is_read_and_its_nested_types_are_there() {
    let descriptors = crate::descriptors();
    assert_eq!(descriptors.len(), crate::CLUSTER_TYPES.len() + crate::PROJECT_TYPES.len());
    for descriptor in &descriptors {
        let known: BTreeSet<&str> = descriptor.types.iter().map(|kind| kind.id.as_str()).collect();
        let own = descriptor.fields.values();
        let fields = own.chain(descriptor.types.iter().flat_map(|kind| &kind.fields));
        for field in fields {
            if let FieldType::Struct(id) = field.kind.innermost() {
                assert!(known.contains(id.as_str()), "{}: no type {id}", descriptor.id);
            }
        }
    }
}

#[test]
fn the_kind_of_a_path_has_two_names() {
    let mut stored = json!({"spec": {"hostPath": {"path": "/data", "kind": "Directory"}}});
    HostPathKind.to_stored(&Map::new(), &mut stored);
    assert_eq!(stored["spec"]["hostPath"], json!({"path": "/data", "type": "Directory"}));
    let mut fields = Map::new();
    fields.insert("hostPath".to_owned(), json!({"path": "/data"}));
    HostPathKind.to_view(&stored, &mut fields);
    assert_eq!(fields["hostPath"], json!({"path": "/data", "kind": "Directory"}));
}
