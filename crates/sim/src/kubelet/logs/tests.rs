//! Selection and formatting of log lines.

use apiserver::request::Query;
use jiff::ToSpan;
use serde_json::json;

use super::simulated::{SIGN_OF_LIFE_EVERY, SIGNS_OF_LIFE_MAX};
use super::*;

const STARTED: &str = "2026-01-01T00:00:00Z";

fn container(state: &serde_json::Value) -> Container {
    let pod = json!({
        "metadata": {"namespace": "shop", "name": "web-1", "uid": "u"},
        "spec": {
            "nodeName": "sim-node-0",
            "containers": [{
                "name": "web", "image": "nginx:1.27", "command": ["nginx"], "args": ["-g", "x"],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
            }],
        },
        "status": {"containerStatuses": [{"name": "web", "state": state}]},
    });
    Container::choose(&pod, "web").unwrap()
}

fn started() -> Timestamp {
    STARTED.parse().unwrap()
}

fn shown(query: &str, age: jiff::Span) -> String {
    let now = started() + age;
    let container = container(&json!({"running": {"startedAt": STARTED}}));
    let options = LogOptions::parse(&Query::parse(Some(query)), now).unwrap();
    let text = text_of(&options, simulated::lines(&container, now));
    String::from_utf8(text.to_vec()).unwrap()
}

#[test]
fn a_simulated_log_describes_the_container_and_shows_that_it_runs() {
    assert_eq!(
        shown("", 31.seconds()),
        "container \"web\" of image nginx:1.27 started on node sim-node-0 (simulated: nothing is \
         executed)\nwould run: nginx -g x\nlistening on 80/tcp (simulated: an echo)\n\
         still running, up 15s (simulated)\nstill running, up 30s (simulated)\n"
    );
    let lines = shown("", 100.hours()).lines().count();
    assert_eq!(lines, 3 + usize::try_from(SIGNS_OF_LIFE_MAX).unwrap());
}

#[test]
fn tail_since_limit_and_timestamps_select_and_mark_lines() {
    assert_eq!(shown("tailLines=1", 46.seconds()), "still running, up 45s (simulated)\n");
    assert_eq!(shown("tailLines=0", 46.seconds()), "");
    assert_eq!(
        shown("sinceSeconds=20&timestamps=true", 91.seconds()),
        "2026-01-01T00:01:15.000000000Z still running, up 1m15s (simulated)\n\
         2026-01-01T00:01:30.000000000Z still running, up 1m30s (simulated)\n"
    );
    let since = "sinceTime=2026-01-01T01:00:00Z";
    assert_eq!(shown(since, 1.hour()), "still running, up 1h00m00s (simulated)\n");
    assert_eq!(shown("limitBytes=9", 1.second()), "container");
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    for (query, name) in [
        ("tailLines=-1", "tailLines"),
        ("limitBytes=0", "limitBytes"),
        ("sinceSeconds=soon", "sinceSeconds"),
        ("sinceTime=yesterday", "sinceTime"),
        ("sinceSeconds=1&sinceTime=2026-01-01T01:00:00Z", "at most one"),
    ] {
        let status = LogOptions::parse(&Query::parse(Some(query)), started()).unwrap_err();
        assert_eq!(status.code, 400, "{query}");
        assert!(status.message.contains(name), "{query}: {}", status.message);
    }
}

#[test]
fn a_running_container_writes_more_lines_and_a_finished_one_does_not() {
    let running = container(&json!({"running": {"startedAt": STARTED}}));
    let now = started() + 20.seconds();
    let next = simulated::next_line(&running, now).unwrap();
    assert_eq!(next.at, started() + SIGN_OF_LIFE_EVERY + SIGN_OF_LIFE_EVERY);
    let after = simulated::next_line(&running, next.at).unwrap();
    assert_eq!(after.text, "still running, up 45s (simulated)");

    let terminated = json!({"terminated": {
        "startedAt": STARTED, "finishedAt": "2026-01-01T00:00:16Z",
    }});
    let finished = container(&terminated);
    assert_eq!(simulated::next_line(&finished, now), None);
    let lines = simulated::lines(&finished, now + 1.hour());
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let end = ["still running, up 15s (simulated)", "completed with exit code 0 (simulated)"];
    assert_eq!(texts[3..], end);
}

#[test]
fn a_pod_with_several_containers_requires_a_container_name() {
    let named = |name: &str| json!({"name": name, "image": "i"});
    let pod = json!({
        "metadata": {"name": "two"},
        "spec": {"nodeName": "n", "containers": [named("a"), named("b")],
                 "initContainers": [named("first")]},
    });
    let refused = |name| Container::choose(&pod, name).unwrap_err().message;
    assert_eq!(
        refused(""),
        "a container name must be specified for pod two, choose one of: [a b] or one of the init \
         containers: [first]"
    );
    assert_eq!(refused("c"), "container c is not valid for pod two");
    assert_eq!(Container::choose(&pod, "first").unwrap().name, "first");
    let waiting = json!({"metadata": {"name": "one"}, "spec": {"containers": [named("a")]}});
    let status = Container::choose(&waiting, "a").unwrap_err();
    assert_eq!(status.message, "pod one does not have a host assigned");
}
