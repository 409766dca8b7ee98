//! The condition `Effective` in the REST view, for unimplemented types whose schema has no
//! conditions: without it such an object would look as if it had an effect.
//! `api_management::unimplemented` sets it.

use api_management::table::TypeTable;
use api_management::unimplemented;
use rest_view::{Descriptor, Mapper};
use serde_json::{Map, Value};

const CONDITIONS: &str = "conditions";

/// Shows the condition if the type does not do so itself.
pub fn with_condition(descriptor: Descriptor, table: &TypeTable) -> Descriptor {
    if table.is_unimplemented && !descriptor.fields.contains_key(CONDITIONS) {
        descriptor.mapper(Effective)
    } else {
        descriptor
    }
}

struct Effective;

impl Mapper for Effective {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>) {
        let all = stored["status"][CONDITIONS].as_array().into_iter().flatten();
        let effective = all.filter(|condition| condition["type"] == unimplemented::EFFECTIVE);
        fields.insert(CONDITIONS.to_owned(), effective.cloned().collect());
    }

    /// Clients cannot set it.
    fn to_stored(&self, _: &Map<String, Value>, _: &mut Value) {}
}
