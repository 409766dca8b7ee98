//! The ResourceQuota and the LimitRange of a namespace. Pure.

use std::collections::BTreeMap;

use api_management::keys;
use api_management::project::QUOTA_RESOURCES;
use api_meta::quantity::Quantity;
use controller::Projection;
use k8s_openapi::api::core::v1::{
    LimitRange, LimitRangeItem, LimitRangeSpec, ResourceQuota, ResourceQuotaSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
use kube::api::ObjectMeta;

use super::allocation::Quantities;

/// Name of both objects in each namespace.
pub(crate) const NAME: &str = "default-drover";

fn metadata(namespace: &str) -> ObjectMeta {
    let labels = [
        (keys::DEFAULT_QUOTA.to_owned(), "true".to_owned()),
        (keys::DOWNSTREAM_OWNED.to_owned(), keys::OWNED_PROJECT_QUOTA.to_owned()),
    ];
    ObjectMeta {
        name: Some(NAME.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some(labels.into()),
        ..ObjectMeta::default()
    }
}

/// The quota that gives a namespace `limit` of what `project` has. It names the project, since the
/// namespace may move, and has nothing of the next one yet.
pub(crate) fn resource_quota(project: &str, namespace: &str, limit: &Quantities) -> ResourceQuota {
    let hard = QUOTA_RESOURCES.iter().filter_map(|(name, kube)| {
        Some(((*kube).to_owned(), KubeQuantity(limit.get(*name)?.to_string())))
    });
    let of_project = [(keys::PROJECT_ID.to_owned(), project.to_owned())];
    ResourceQuota {
        metadata: ObjectMeta { annotations: Some(of_project.into()), ..metadata(namespace) },
        spec: Some(ResourceQuotaSpec { hard: Some(hard.collect()), ..Default::default() }),
        status: None,
    }
}

/// The project whose quota it shares.
pub(crate) fn project_of(quota: &ResourceQuota) -> Option<&str> {
    quota.metadata.annotations.as_ref()?.get(keys::PROJECT_ID).map(String::as_str)
}

/// What a quota in the cluster gives, in the names of `/v3`.
pub(crate) fn held(quota: &ResourceQuota) -> Quantities {
    let hard = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    let of = |kube: &str| hard?.get(kube)?.0.parse().ok();
    QUOTA_RESOURCES
        .iter()
        .filter_map(|(name, kube)| Some(((*name).to_owned(), of(kube)?)))
        .collect()
}

/// The limits of containers that set none; `None` without any. What has a limit and no request
/// gets the limit as request, as Kubernetes fills it in.
pub(crate) fn limit_range(namespace: &str, limits: &Quantities) -> Option<LimitRange> {
    let of = |cpu: &str, memory: &str| -> BTreeMap<String, Quantity> {
        let both = [("cpu", limits.get(cpu)), ("memory", limits.get(memory))];
        both.into_iter().filter_map(|(name, value)| Some((name.to_owned(), *value?))).collect()
    };
    let default = of("limitsCpu", "limitsMemory");
    let mut default_request = default.clone();
    default_request.extend(of("requestsCpu", "requestsMemory"));
    if default_request.is_empty() {
        return None;
    }
    let text = |amounts: BTreeMap<String, Quantity>| {
        let texts = amounts.into_iter().map(|(name, it)| (name, KubeQuantity(it.to_string())));
        Some(texts.collect::<BTreeMap<_, _>>()).filter(|texts| !texts.is_empty())
    };
    let item = LimitRangeItem {
        type_: "Container".to_owned(),
        default: text(default),
        default_request: text(default_request),
        ..LimitRangeItem::default()
    };
    Some(LimitRange {
        metadata: metadata(namespace),
        spec: Some(LimitRangeSpec { limits: vec![item] }),
    })
}

/// Caches of a quota what Drover writes: its use, which changes with every pod, is none of it.
pub(crate) struct WrittenQuota;

impl Projection for WrittenQuota {
    type Object = ResourceQuota;
    type Projected = ResourceQuota;
    fn project(mut quota: ResourceQuota) -> ResourceQuota {
        quota.status = None;
        quota.metadata = written(quota.metadata);
        quota
    }
}

/// Caches of a LimitRange what Drover writes.
pub(crate) struct WrittenLimits;

impl Projection for WrittenLimits {
    type Object = LimitRange;
    type Projected = LimitRange;
    fn project(mut range: LimitRange) -> LimitRange {
        range.metadata = written(range.metadata);
        range
    }
}

fn written(metadata: ObjectMeta) -> ObjectMeta {
    let ObjectMeta { name, namespace, labels, owner_references, annotations, .. } = metadata;
    ObjectMeta { name, namespace, labels, owner_references, annotations, ..ObjectMeta::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[(&str, &str)]) -> Quantities {
        list.iter().map(|(name, text)| ((*name).to_owned(), text.parse().unwrap())).collect()
    }

    #[test]
    fn a_quota_has_the_names_of_kubernetes() {
        let limit = of(&[("servicesNodePorts", "1"), ("limitsCpu", "2000m"), ("pods", "10")]);
        let quota = resource_quota("p-1", "a", &limit);
        assert_eq!(held(&quota), limit);
        let hard = quota.spec.unwrap().hard.unwrap();
        let hard: Vec<_> = hard.iter().map(|(name, it)| (name.as_str(), it.0.as_str())).collect();
        assert_eq!(hard, [("limits.cpu", "2"), ("pods", "10"), ("services.nodeports", "1")]);
    }

    #[test]
    fn containers_without_limits_get_those_of_the_project() {
        assert_eq!(limit_range("a", &Quantities::new()), None);
        let limits = of(&[("limitsCpu", "1"), ("requestsMemory", "64Mi")]);
        let item = limit_range("a", &limits).unwrap().spec.unwrap().limits.remove(0);
        assert_eq!(item.default.unwrap()["cpu"].0, "1");
        let request = item.default_request.unwrap();
        assert_eq!((request["cpu"].0.as_str(), request["memory"].0.as_str()), ("1", "64Mi"));
    }
}
