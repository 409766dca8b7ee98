//! The scale subresource of a custom resource: a view of three of its fields.

mod ownership;

use std::sync::Weak;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::registry::{Registry, WriteOptions, WriteTarget, Written};
use apiserver::resource::{Call, Endpoint};
use apiserver::strategy::Operation;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use structural_schema::JsonPath;

/// The resource and the fields of a scale subresource.
pub struct ScaleTarget {
    /// The group of the custom resource.
    pub group: String,
    /// The version that declares the subresource.
    pub version: String,
    /// The plural of the custom resource.
    pub plural: String,
    /// The fields that the scale shows.
    pub paths: ScalePaths,
}

/// The paths of the fields.
#[derive(Clone, Debug)]
pub struct ScalePaths {
    spec_replicas: Vec<String>,
    status_replicas: Vec<String>,
    selector: Option<Vec<String>>,
}

impl ScalePaths {
    /// Parses `subresources.scale` of a version of a definition; `None` when it is absent.
    pub fn parse(scale: &Value) -> Option<Self> {
        let path = |key: &str| JsonPath::parse(scale[key].as_str()?).ok()?.fields();
        Some(Self {
            spec_replicas: path("specReplicasPath")?,
            status_replicas: path("statusReplicasPath")?,
            selector: path("labelSelectorPath"),
        })
    }

    /// Builds the `Scale` of an object.
    ///
    /// # Errors
    /// 500 when the desired count is absent, like in Kubernetes.
    pub fn scale_of(&self, object: &Value) -> Result<Value, Status> {
        let Some(replicas) = self.replicas(object) else {
            let path = self.spec_replicas.join(".");
            let text = format!("the spec replicas field \".{path}\" does not exist");
            return Err(Status::internal(text));
        };
        Ok(self.scale_with(object, replicas))
    }

    /// The desired count.
    fn replicas(&self, object: &Value) -> Option<i64> {
        value_at(object, &self.spec_replicas).and_then(Value::as_i64)
    }

    fn scale_with(&self, object: &Value, replicas: i64) -> Value {
        let mut metadata = Map::new();
        for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = object["metadata"].get(key) {
                metadata.insert(key.to_owned(), value.clone());
            }
        }
        let spec = if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) };
        let current = value_at(object, &self.status_replicas).and_then(Value::as_i64).unwrap_or(0);
        let mut status = json!({"replicas": current});
        let selector = self.selector.as_ref().and_then(|path| value_at(object, path)?.as_str());
        if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
            status["selector"] = selector.into();
        }
        json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": metadata, "spec": spec, "status": status,
        })
    }

    /// Applies the configuration of a call to the `Scale` of an object; returns the result.
    ///
    /// # Errors
    /// The errors of server-side apply, such as 409 for a conflict.
    pub fn apply_configuration(
        &self,
        scale: &Value,
        object: &Value,
        call: &Call,
    ) -> Result<Value, Status> {
        let (path, manager) = (&self.spec_replicas, &call.manager);
        let mut applied = ownership::apply(scale, object, path, &call.body, manager, call.force)?;
        if call.body.resource_version().is_empty() {
            // No other write may occur in between.
            applied.set_meta("resourceVersion", object.resource_version());
        }
        Ok(applied)
    }

    /// Writes a `Scale` that [`ScalePaths::apply_configuration`] returned into its object, with its
    /// field owners.
    ///
    /// # Errors
    /// As [`ScalePaths::apply`].
    pub fn apply_owned(&self, scale: &Value, object: &mut Value) -> Result<(), Status> {
        let entries =
            ownership::bring_back(object, &self.spec_replicas, &scale["metadata"]["managedFields"]);
        self.apply(scale, object)?;
        object.set_meta("managedFields", entries);
        Ok(())
    }

    /// Writes the count of a `Scale` into its object, and the resource version at which it was
    /// read.
    ///
    /// # Errors
    /// 400 for a count that is no integer, 422 for a negative one.
    pub fn apply(&self, scale: &Value, object: &mut Value) -> Result<(), Status> {
        let desired = &scale["spec"]["replicas"];
        let replicas = match desired {
            Value::Null => 0,
            value => value.as_i64().ok_or_else(|| {
                Status::bad_request("scale has a spec.replicas that is not an integer")
            })?,
        };
        if replicas < 0 {
            let detail = "must be greater than or equal to 0";
            let cause = api_meta::status::Cause::invalid("spec.replicas", desired, detail);
            return Err(Status::invalid("autoscaling", "Scale", object.name(), vec![cause]));
        }
        let version = scale.resource_version();
        if !version.is_empty() {
            object.set_meta("resourceVersion", version);
        }
        set(object, &self.spec_replicas, replicas.into());
        Ok(())
    }
}

fn value_at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}

/// Sets a nested field; creates the objects on its path.
fn set(object: &mut Value, path: &[String], value: Value) {
    let mut target = object;
    for name in path {
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        target = &mut target[name.as_str()];
    }
    *target = value;
}

/// Writes the `Scale` of a call into the object behind it.
///
/// # Errors
/// As [`ScalePaths::apply`], and those of the write.
pub async fn write(
    registry: &Registry,
    target: &WriteTarget<'_>,
    paths: &ScalePaths,
    call: &Call,
) -> Result<Written, Status> {
    let is_applied = call.applied;
    let change = |old: &Value| {
        let mut new = old.clone();
        match is_applied {
            true => paths.apply_owned(&call.body, &mut new)?,
            false => paths.apply(&call.body, &mut new)?,
        }
        Ok(new)
    };
    // Admission has already seen the scale, in place of the object.
    let options = WriteOptions {
        dry_run: call.dry_run,
        manager: call.manager.clone(),
        subresource: "scale",
        admitted: true,
        ..WriteOptions::of(call.user.clone())
    };
    match is_applied {
        true => registry.modify_applied(target, &options, &change).await,
        false => registry.modify(target, Operation::Update, &options, &change).await,
    }
}

/// The handler of a scale subresource, which reads and writes through the registry.
pub struct ScaleEndpoint {
    /// The registry; without it requests get a 503.
    pub registry: Weak<Registry>,
    /// The resource and the fields.
    pub target: ScaleTarget,
}

impl ScaleEndpoint {
    async fn handle(&self, call: Call) -> Result<Value, Status> {
        let unavailable = || Status::unavailable("the server is shutting down");
        let registry = self.registry.upgrade().ok_or_else(unavailable)?;
        let ScaleTarget { group, version, plural, paths } = &self.target;
        let catalog = registry.catalog();
        let resource = catalog.get(group, version, plural).ok_or_else(Status::unknown_resource)?;
        let (namespace, name) = (call.namespace.as_str(), call.name.as_str());
        if matches!(call.verb, "get" | "patch") {
            let object = registry.get(resource, namespace, name).await?;
            let object = registry.serve_one(resource, object).await?.value();
            // The patch may set the absent count.
            return if call.verb == "patch" {
                Ok(paths.scale_with(&object, paths.replicas(&object).unwrap_or(0)))
            } else {
                paths.scale_of(&object)
            };
        }
        if call.verb == "apply" {
            let object = registry.get(resource, namespace, name).await?;
            let object = registry.serve_one(resource, object).await?.value();
            let replicas = paths.replicas(&object).unwrap_or(0);
            return paths.apply_configuration(&paths.scale_with(&object, replicas), &object, &call);
        }
        let target = WriteTarget { resource, namespace, name };
        let written = write(&registry, &target, paths, &call).await?;
        paths.scale_of(&registry.serve_one(resource, written.object).await?.value())
    }
}

impl Endpoint for ScaleEndpoint {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        Box::pin(async move { self.handle(call).await.map(|scale| (200, scale)) })
    }

    fn is_applied(&self) -> bool {
        true
    }
}
