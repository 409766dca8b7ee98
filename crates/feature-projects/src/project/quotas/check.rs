//! Whether what a namespace requests of the quota of its project fits. Pure. What got past it, by
//! two requests at once or in the cluster itself, the allocation still cuts.

use api_management::{Project, keys};
use api_meta::status::Cause;
use serde_json::Value;

use super::allocation::Quantities;
use super::request::ProjectLimits;
use super::validation::{container_limits, exceeded, missing, parse};

/// The annotations of a namespace about quota and limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Annotations<'a> {
    pub quota: Option<&'a str>,
    pub containers: Option<&'a str>,
}

fn field(key: &str) -> String {
    format!("metadata.annotations[{key}]")
}

/// What is wrong with the `new` annotations of a namespace that is or gets into `project`. `old`:
/// those that it has in the project already.
pub(crate) fn check_request(
    project: &Project,
    new: Annotations<'_>,
    old: Option<Annotations<'_>>,
) -> Vec<Cause> {
    if old == Some(new) {
        return Vec::new();
    }
    let mut causes = containers(new.containers);
    let limits = ProjectLimits::of(project);
    if limits.total.is_empty() {
        return causes;
    }
    if let Some(annotation) = new.quota {
        causes.extend(names(annotation, &limits));
    }
    if causes.is_empty() {
        causes.extend(excesses(project, &limits, new, old));
    }
    causes
}

fn containers(annotation: Option<&str>) -> Vec<Cause> {
    let Some(text) = annotation else { return Vec::new() };
    let field = field(keys::CONTAINER_LIMITS);
    match serde_json::from_str::<Value>(text) {
        Ok(limits) if limits.is_object() || limits.is_null() => {
            container_limits(&field, limits.as_object())
        }
        _ => {
            let detail = "must be JSON like {\"limitsCpu\":\"500m\"}";
            vec![Cause::invalid(field, &Value::from(text), detail)]
        }
    }
}

fn names(annotation: &str, limits: &ProjectLimits) -> Vec<Cause> {
    let field = field(keys::RESOURCE_QUOTA);
    let quota = match serde_json::from_str::<Value>(annotation) {
        Ok(quota) if quota.is_object() || quota.is_null() => quota,
        _ => {
            let detail = "must be JSON like {\"limit\":{\"pods\":\"10\"}}";
            return vec![Cause::invalid(field, &Value::from(annotation), detail)];
        }
    };
    let mut causes = Vec::new();
    let requested = parse(&field, quota["limit"].as_object(), &mut causes);
    // No limits at all are the default.
    if !causes.is_empty() || requested.is_empty() {
        return causes;
    }
    let detail = "a namespace must limit the resources that its project limits";
    causes.extend(missing(&field, &requested, &limits.total, detail));
    let others = requested.keys().filter(|resource| !limits.total.contains_key(*resource));
    causes.extend(others.map(|resource| {
        let known: Vec<&str> = limits.total.keys().map(String::as_str).collect();
        Cause::not_supported(format!("{field}.{resource}"), &resource.as_str().into(), &known)
    }));
    causes
}

fn excesses(
    project: &Project,
    limits: &ProjectLimits,
    new: Annotations<'_>,
    old: Option<Annotations<'_>>,
) -> Vec<Cause> {
    let requested = limits.requested(new.quota);
    let held = old.map(|old| limits.requested(old.quota)).unwrap_or_default();
    let used = project.status.used_limit.iter();
    let used: Quantities =
        used.filter_map(|(name, text)| Some((name.clone(), text.parse().ok()?))).collect();
    let mut causes = Vec::new();
    for (resource, amount) in &requested {
        let before = held.get(resource);
        // To have less is always allowed.
        if before.is_some_and(|before| amount <= before) {
            continue;
        }
        let Some(total) = limits.total.get(resource) else { continue };
        let others = match (used.get(resource), before) {
            (Some(used), Some(before)) => Some(used.minus(before)),
            (used, _) => used.copied(),
        };
        let left = others.map_or(*total, |others| total.minus(&others));
        if *amount > left {
            let by = amount.minus(&left);
            let field = format!("{}.{resource}", field(keys::RESOURCE_QUOTA));
            let detail = format!(
                "exceeds what is left of the limit of its project by {by}: {left} of {total} is left; set \
                 less, or have the limit of the project raised"
            );
            causes.push(exceeded(field, amount, &detail));
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use api_management::project::QuotaLimits;

    use super::*;

    /// Limits of 10 pods and 4 secrets, of which 7 and none are used; 2 and 1 are the default.
    fn project() -> Project {
        let limits = |list: &[(&str, &str)]| {
            let all = list.iter().map(|(name, it)| ((*name).to_owned(), Some((*it).to_owned())));
            Some(QuotaLimits { limit: all.collect() })
        };
        let mut project = Project::default();
        project.spec.resource_quota = limits(&[("pods", "10"), ("secrets", "4")]);
        project.spec.namespace_default_resource_quota = limits(&[("pods", "2"), ("secrets", "1")]);
        project.status.used_limit.insert("pods".to_owned(), "7".to_owned());
        project
    }

    fn said(quota: Option<&str>, old: Option<&str>) -> String {
        let of = |quota| Annotations { quota, containers: None };
        let old = old.map(|old| of(Some(old)));
        format!("{:?}", check_request(&project(), of(quota), old))
    }

    fn pods(pods: &str) -> String {
        format!(r#"{{"limit":{{"pods":"{pods}","secrets":"1"}}}}"#)
    }

    #[test]
    fn what_fits_into_the_rest_is_accepted() {
        assert_eq!(said(None, None), "[]");
        assert_eq!(said(Some(&pods("3")), None), "[]");
        let over = said(Some(&pods("5")), None);
        assert!(over.contains("by 2: 3 of 10 is left") && over.contains("MaxLimit"), "{over}");
    }

    #[test]
    fn what_a_namespace_has_already_does_not_count_twice() {
        assert_eq!(said(Some(&pods("7")), Some(&pods("4"))), "[]");
        assert!(said(Some(&pods("8")), Some(&pods("4"))).contains("by 1: 7 of 10"));
        assert_eq!(said(Some(&pods("19")), Some(&pods("20"))), "[]");
    }

    #[test]
    fn a_namespace_limits_what_its_project_limits() {
        let missing = said(Some(r#"{"limit":{"pods":"1"}}"#), None);
        assert!(missing.contains("FieldValueRequired") && missing.contains("secrets"), "{missing}");
        let other = said(Some(r#"{"limit":{"pods":"1","secrets":"1","services":"1"}}"#), None);
        assert!(other.contains("NotSupported"), "{other}");
        for broken in ["{", "7", r#"{"limit":{"pods":"many","secrets":"1"}}"#] {
            assert!(said(Some(broken), None).contains("Invalid"), "{broken}");
        }
        assert_eq!(said(Some(r#"{"limit":{"pods":""}}"#), None), "[]");
    }

    #[test]
    fn limits_of_containers_are_checked_in_every_project() {
        let new = Annotations { quota: None, containers: Some(r#"{"limitsCpu":"much"}"#) };
        assert_eq!(check_request(&Project::default(), new, None).len(), 1);
        assert!(check_request(&Project::default(), new, Some(new)).is_empty());
    }
}
