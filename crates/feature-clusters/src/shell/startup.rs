//! What a person reads until the pod of their shell runs.

use k8s_openapi::api::core::v1::Pod;

/// Reasons of containers that will not go away by waiting.
const PULL_FAILURES: [&str; 4] =
    ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"];

/// How far a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PodStartup {
    Runs,
    /// What it waits for, for the person; nothing new is empty.
    Waits(String),
    /// It will never run; with the next step.
    Fails(String),
}

/// How far the pod is. Pure.
pub(super) fn progress(pod: &Pod, image: &str) -> PodStartup {
    let status = pod.status.clone().unwrap_or_default();
    if matches!(status.phase.as_deref(), Some("Failed" | "Succeeded")) {
        let message = status.message.or(status.reason).unwrap_or_default();
        return PodStartup::Fails(format!(
            "the pod of the shell ended before it was used. {message}"
        ));
    }
    let container = status.container_statuses.into_iter().flatten().next();
    let state = container.and_then(|container| container.state).unwrap_or_default();
    if state.running.is_some() {
        return PodStartup::Runs;
    }
    if let Some(waiting) = state.waiting {
        let reason = waiting.reason.unwrap_or_default();
        let message = waiting.message.unwrap_or_default();
        if PULL_FAILURES.contains(&reason.as_str()) {
            return PodStartup::Fails(format!(
                "the nodes cannot pull the image \"{image}\" ({reason}: {message}). Push it to a \
                 registry that they reach, and name it in the setting shell-image"
            ));
        }
        return match reason.as_str() {
            "" | "ContainerCreating" => PodStartup::Waits(String::new()),
            reason => PodStartup::Waits(format!("The pod waits: {reason} {message}")),
        };
    }
    let conditions = status.conditions.into_iter().flatten();
    let unscheduled = conditions
        .filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
        .find_map(|condition| condition.message);
    match unscheduled {
        Some(message) => PodStartup::Waits(format!("No node takes the pod yet: {message}")),
        None => PodStartup::Waits(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(status: Value) -> PodStartup {
        let pod = json!({"metadata": {"name": "p"}, "status": status});
        progress(&serde_json::from_value(pod).unwrap(), "shell:1")
    }
    fn waiting(reason: &str) -> Value {
        let state = json!({"waiting": {"reason": reason, "message": "why"}});
        json!({"phase": "Pending", "containerStatuses": [{
            "name": "shell", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": state,
        }]})
    }

    #[test]
    fn an_image_that_cannot_be_pulled_says_what_to_do() {
        let PodStartup::Fails(text) = of(waiting("ErrImagePull")) else { panic!() };
        for part in ["shell:1", "ErrImagePull", "why", "shell-image"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn waiting_is_reported_with_its_reason() {
        assert_eq!(of(json!({})), PodStartup::Waits(String::new()));
        assert_eq!(of(waiting("ContainerCreating")), PodStartup::Waits(String::new()));
        let PodStartup::Waits(text) = of(waiting("CreateContainerConfigError")) else { panic!() };
        assert!(text.contains("CreateContainerConfigError why"));
        let condition = json!({"type": "PodScheduled", "status": "False", "message": "no room"});
        let PodStartup::Waits(text) = of(json!({"conditions": [condition]})) else { panic!() };
        assert!(text.contains("no room"));
    }

    #[test]
    fn a_pod_that_ended_fails_and_one_that_runs_runs() {
        assert!(matches!(of(json!({"phase": "Failed", "message": "evicted"})),
            PodStartup::Fails(text) if text.contains("evicted")));
        let mut status = waiting("");
        status["containerStatuses"][0]["state"] = json!({"running": {}});
        assert_eq!(of(status), PodStartup::Runs);
    }
}
