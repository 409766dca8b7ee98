//! The types that a driver's options become: an embedded type with a field per option, and the
//! field of clusters that has this type.

use std::collections::HashMap;

use api_management::{DynamicSchema, KontainerDriver};
use driver_contract::types::Flag;
use driver_contract::{FlagType, InvalidFlag, field_name};
use feature_kit::ownership::owner_reference;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

/// Label of both objects: the name of the driver.
const LABEL: &str = "io.cattle.kontainer_driver.name";
/// The type that has the configurations of drivers.
const EMBEDDED_IN: &str = "cluster";
/// The field that names the driver.
const DRIVER_NAME: &str = "driverName";

/// The object names of the type of a driver, and of its field in clusters, in the order in which
/// they are to be deleted.
pub fn names(config_type: &str) -> [String; 2] {
    let name = config_type.to_lowercase();
    let embedding = format!("{EMBEDDED_IN}-{name}");
    [name, embedding]
}

/// The name of the driver that a type belongs to.
pub fn driver_of(schema: &DynamicSchema) -> Option<&str> {
    schema.metadata.labels.as_ref()?.get(LABEL).map(String::as_str)
}

/// Both objects, for an installed driver with these create options, in the order in which they are
/// to be created: whoever sees the type can use the field.
///
/// # Errors
/// An option cannot be a field.
pub fn schemas(
    driver: &KontainerDriver,
    config_type: &str,
    flags: &HashMap<String, Flag>,
) -> Result<[DynamicSchema; 2], InvalidFlag> {
    let mut fields = Map::new();
    for (name, flag) in flags {
        fields.insert(field_name(name)?, field(name, flag)?);
    }
    let object_name = driver.name_any();
    fields.insert(
        DRIVER_NAME.to_owned(),
        json!({
            "type": "string", "create": true, "update": true,
            "default": {"stringValue": object_name},
        }),
    );
    let embedding = json!({
        "embed": true,
        "embedType": EMBEDDED_IN,
        "resourceFields": {
            config_type: {"type": config_type, "create": true, "update": true, "nullable": true},
        },
    });
    let own = json!({ "schemaName": config_type, "resourceFields": fields });
    let [name, embedding_name] = names(config_type);
    Ok([object(driver, embedding_name, embedding), object(driver, name, own)])
}

fn object(driver: &KontainerDriver, name: String, spec: Value) -> DynamicSchema {
    let mut schema = DynamicSchema::default();
    schema.metadata.name = Some(name);
    schema.metadata.owner_references = Some(vec![owner_reference(driver)]);
    let labels = [
        (driver.name_any(), driver.status.display_name.clone()),
        (LABEL.to_owned(), driver.status.display_name.clone()),
    ];
    schema.metadata.labels = Some(labels.into());
    if let Value::Object(spec) = spec {
        schema.spec = spec;
    }
    schema
}

fn field(name: &str, flag: &Flag) -> Result<Value, InvalidFlag> {
    let (kind, default) = match flag.flag_type(name)? {
        FlagType::String => {
            let kind = if flag.password { "password" } else { "string" };
            (kind, json!({"stringValue": flag.default_string()}))
        }
        FlagType::Int | FlagType::IntPtr => ("int", json!({"intValue": flag.default_int()})),
        FlagType::Bool | FlagType::BoolPtr => {
            ("boolean", json!({"boolValue": flag.default_bool()}))
        }
        FlagType::StringSlice => {
            // No list is not an empty one: a client that sends labels as an object expects one.
            let list = flag.default_list().filter(|list| !list.is_empty());
            ("array[string]", json!({"stringSliceValue": list}))
        }
    };
    Ok(json!({
        "type": kind,
        "create": true,
        "update": true,
        "description": flag.usage,
        "default": default,
    }))
}

#[cfg(test)]
mod tests {
    use driver_contract::types::{Default, StringSlice};

    use super::*;

    #[test]
    fn options_become_the_fields_of_a_type() {
        let mut driver = KontainerDriver::default();
        driver.metadata.name = Some("kd-1".to_owned());
        driver.metadata.uid = Some("u".to_owned());
        driver.status.display_name = "example".to_owned();
        let disk = Flag {
            r#type: "int".to_owned(),
            usage: "Size of the disk".to_owned(),
            default: Some(Default { default_int: 100, ..Default::default() }),
            ..Flag::default()
        };
        let token = Flag { r#type: "string".to_owned(), password: true, ..Flag::default() };
        let none =
            Default { default_string_slice: Some(StringSlice::default()), ..Default::default() };
        let zones =
            Flag { r#type: "stringSlice".to_owned(), default: Some(none), ..Flag::default() };
        let flags = [("disk-size-gb", disk), ("access-token", token), ("zones", zones)];
        let flags = flags.into_iter().map(|(name, flag)| (name.to_owned(), flag)).collect();
        let [embedding, own] = schemas(&driver, "exampleEngineConfig", &flags).unwrap();
        assert_eq!(own.name_any(), "exampleengineconfig");
        assert_eq!(own.labels()["kd-1"], "example");
        assert_eq!(
            Value::from(own.spec),
            json!({
                "schemaName": "exampleEngineConfig",
                "resourceFields": {
                    "accessToken": {
                        "type": "password", "create": true, "update": true, "description": "",
                        "default": {"stringValue": ""},
                    },
                    "diskSizeGb": {
                        "type": "int", "create": true, "update": true,
                        "description": "Size of the disk", "default": {"intValue": 100},
                    },
                    "driverName": {
                        "type": "string", "create": true, "update": true,
                        "default": {"stringValue": "kd-1"},
                    },
                    "zones": {
                        "type": "array[string]", "create": true, "update": true, "description": "",
                        "default": {"stringSliceValue": null},
                    },
                },
            })
        );
        assert_eq!(embedding.spec["embedType"], "cluster");
        let field = &embedding.spec["resourceFields"]["exampleEngineConfig"];
        assert_eq!(field["type"], "exampleEngineConfig");
    }

    #[test]
    fn an_option_of_an_unknown_type_is_named() {
        let flags = [("x".to_owned(), Flag { r#type: "float".to_owned(), ..Flag::default() })];
        let refused = schemas(&KontainerDriver::default(), "a", &flags.into()).unwrap_err();
        assert!(refused.to_string().contains("flag \"x\" has the type \"float\""), "{refused}");
    }
}
