//! Which feature serves which kind and which type: each exactly one.

use std::collections::BTreeSet;

use api_management::table::Stored;
use api_management::types;
use test_kit::World;

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_and_every_type_belongs_to_one_feature() {
    let world = World::start().await;
    let rules = world.features.iter().flat_map(|feature| &feature.kinds);
    let mut kinds: Vec<String> = rules.map(|rules| rules.kind.to_owned()).collect();
    let crds = api_management::crds().into_iter();
    let mut defined: Vec<String> = crds.map(|crd| crd.spec.names.kind).collect();
    kinds.sort();
    defined.sort();
    assert_eq!(kinds, defined);

    let specs = world.features.iter().flat_map(|feature| &feature.views);
    let mut served = BTreeSet::new();
    for descriptor in specs.flat_map(|spec| spec.descriptors(&world.context)) {
        let path = (descriptor.version.clone(), descriptor.id.clone());
        assert!(served.insert(path), "{} {}", descriptor.version, descriptor.id);
    }
    for table in types::tables().filter(|table| table.stored != Stored::Nowhere) {
        assert!(served.contains(&("/v3".to_owned(), table.id.to_owned())), "{}", table.id);
    }
}
