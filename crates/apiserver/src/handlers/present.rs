//! Objects in the representation that the client requested: as they are, as a Table, or metadata
//! only.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use bytes::{BufMut, Bytes, BytesMut};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::body::negotiate::{Accepted, Transform};
use crate::body::respond::{self, Body};
use crate::registry::{ObjectList, served_as_stored, served_bytes, served_tree};
use crate::request::Query;
use crate::resource::Resource;
use crate::stored::Stored;

/// What a Table row contains of its object: `includeObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    Metadata,
    Object,
}

/// Parses `includeObject`; the default is the metadata.
///
/// # Errors
/// 400 for unknown values.
pub fn include_object(query: &Query) -> Result<IncludeObject, Status> {
    match query.text("includeObject") {
        "" | "Metadata" => Ok(IncludeObject::Metadata),
        "None" => Ok(IncludeObject::None),
        "Object" => Ok(IncludeObject::Object),
        other => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: \"{other}\": \
             must be 'Metadata', 'Object', 'None', or empty"
        ))),
    }
}

/// One object as a response.
///
/// # Errors
/// 400 when `includeObject` is unknown.
pub fn object(
    resource: &Resource,
    object: &Arc<Stored>,
    code: StatusCode,
    accepted: Accepted,
    query: &Query,
) -> Result<Response<Body>, Status> {
    match accepted.transform {
        Transform::Table(version) => {
            let include = include_object(query)?;
            let mut table = table_head(resource, version);
            table["metadata"]["resourceVersion"] = object.revision.to_string().into();
            table["rows"] = vec![row(resource, object, include, version, unix_now())].into();
            Ok(respond::value(code, accepted, &table))
        }
        Transform::PartialObjectMetadata(version) => {
            let bytes = partial_metadata(object, version, true);
            Ok(respond::bytes(code, accepted, bytes))
        }
        _ => Ok(respond::bytes(code, accepted, served_bytes(resource, object))),
    }
}

/// The JSON of a `PartialObjectMetadata`; `typed` adds kind and API version.
pub fn partial_metadata(object: &Stored, version: &str, typed: bool) -> Bytes {
    let metadata = object.metadata_json();
    let mut bytes = BytesMut::with_capacity(metadata.len() + 80);
    bytes.put_slice(b"{");
    if typed {
        let head =
            format!("\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/{version}\",");
        bytes.put_slice(head.as_bytes());
    }
    bytes.put_slice(b"\"metadata\":");
    bytes.put_slice(metadata.as_bytes());
    bytes.put_slice(b"}");
    bytes.freeze()
}

/// The current time in unix seconds.
pub fn unix_now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// A Table without rows, with the columns of the resource.
pub fn table_head(resource: &Resource, version: &str) -> Value {
    let columns: Vec<Value> = resource
        .columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name,
                "type": column.kind,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            })
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": {},
        "columnDefinitions": columns,
        "rows": [],
    })
}

/// A row of a Table of `version` of `meta.k8s.io`; partial metadata has the same version. `now` is
/// unix seconds, for ages.
pub fn row(
    resource: &Resource,
    object: &Stored,
    include: IncludeObject,
    version: &str,
    now: i64,
) -> Value {
    let tree = served_tree(resource, object);
    let cells = resource.strategy.cells(&tree, now);
    let object = match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => tree,
        IncludeObject::Metadata => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": format!("meta.k8s.io/{version}"),
            "metadata": tree["metadata"],
        }),
    };
    json!({ "cells": cells, "object": object })
}

/// The metadata of a list: revision, continue token, number of remaining items.
pub fn list_metadata(resource: &Resource, list: &ObjectList) -> Value {
    let mut metadata = json!({ "resourceVersion": list.revision.to_string() });
    // Lists of custom resources are not typed, so `continue` is present even when it is empty.
    if resource.custom {
        metadata["continue"] = "".into();
    }
    if let Some(token) = &list.continue_token {
        metadata["continue"] = token.clone().into();
    }
    if let Some(remaining) = list.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}

/// A list as a response.
///
/// # Errors
/// 400 when `includeObject` is unknown.
pub fn list(
    resource: &Resource,
    list: &ObjectList,
    accepted: Accepted,
    query: &Query,
) -> Result<Response<Body>, Status> {
    let bytes = match accepted.transform {
        Transform::Table(version) => {
            let include = include_object(query)?;
            let mut table = table_head(resource, version);
            table["metadata"] = list_metadata(resource, list);
            if list.continue_token.is_none()
                && let Some(metadata) = table["metadata"].as_object_mut()
            {
                metadata.remove("continue");
            }
            let now = unix_now();
            let rows = list.items.iter().map(|object| row(resource, object, include, version, now));
            table["rows"] = rows.collect::<Vec<_>>().into();
            crate::stored::to_bytes(&table)
        }
        Transform::PartialObjectMetadataList(version) => join_items(
            resource,
            "PartialObjectMetadataList",
            &format!("meta.k8s.io/{version}"),
            list,
            |object, bytes| bytes.put_slice(&partial_metadata(object, version, true)),
        ),
        _ => {
            let api_version = resource.api_version();
            join_items(resource, &resource.list_kind, &api_version, list, |object, bytes| {
                put_item(resource, &api_version, object, bytes);
            })
        }
    };
    Ok(respond::bytes(StatusCode::OK, accepted, bytes))
}

/// The JSON of a list, joined from the JSON of its items.
fn join_items(
    resource: &Resource,
    kind: &str,
    api_version: &str,
    list: &ObjectList,
    put: impl Fn(&Arc<Stored>, &mut BytesMut),
) -> Bytes {
    let size: usize = list.items.iter().map(|object| object.bytes.len() + 1).sum();
    let mut bytes = BytesMut::with_capacity(size + 256);
    let head = format!(
        "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{},\"items\":[",
        list_metadata(resource, list)
    );
    bytes.put_slice(head.as_bytes());
    for (index, object) in list.items.iter().enumerate() {
        if index > 0 {
            bytes.put_u8(b',');
        }
        put(object, &mut bytes);
    }
    bytes.put_slice(b"]}\n");
    bytes.freeze()
}

/// Appends an item of a list. Lists of built-in kinds are typed: their items do not name their
/// type.
fn put_item(resource: &Resource, api_version: &str, object: &Stored, bytes: &mut BytesMut) {
    if resource.custom {
        return bytes.put_slice(&served_bytes(resource, object));
    }
    let stored = served_as_stored(resource).then(|| object.untyped(api_version, &resource.kind));
    if let Some([first, second]) = stored.flatten() {
        bytes.put_u8(b'{');
        bytes.put_slice(first);
        return bytes.put_slice(second);
    }
    let mut value = served_tree(resource, object);
    drop_type(&mut value);
    bytes.put_slice(&crate::stored::to_bytes(&value));
}

fn drop_type(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
}

/// The list of trees that are no longer stored (deletecollection).
pub fn value_list(resource: &Resource, items: Vec<Value>, metadata: Value) -> Value {
    let mut items = items;
    for item in &mut items {
        if !resource.custom {
            drop_type(item);
        } else if item.api_version().is_empty() {
            item["apiVersion"] = resource.api_version().into();
        }
    }
    json!({
        "kind": resource.list_kind,
        "apiVersion": resource.api_version(),
        "metadata": metadata,
        "items": items,
    })
}
