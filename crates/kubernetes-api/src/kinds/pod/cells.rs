//! The row that `kubectl get pods` prints. Its status word is derived from many fields.

use api_meta::object::ObjectExt;
use apiserver::fields::{items, str_of};
use apiserver::kind::cells::{NONE, age, name, number, or_none, since};
use serde_json::Value;

/// The cells of a pod's row, like kube-apiserver. `now` is in seconds since 1970.
pub fn row(pod: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let mut word = match str_of(&status["reason"]) {
        "" => str_of(&status["phase"]).to_owned(),
        reason => reason.to_owned(),
    };
    let gated = items(&status["conditions"]).iter().any(|condition| {
        condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated"
    });
    if gated {
        word = "SchedulingGated".to_owned();
    }
    let mut tally = Tally::default();
    match initializing(spec, status, &mut tally) {
        Some(initializing) => word = initializing,
        None => running(status, &mut tally, &mut word),
    }
    if pod.is_terminating() {
        if str_of(&status["reason"]) == "NodeLost" {
            word = "Unknown".to_owned();
        } else if !matches!(str_of(&status["phase"]), "Failed" | "Succeeded") {
            word = "Terminating".to_owned();
        }
    }
    let total = items(&spec["containers"]).len() + tally.sidecars;
    let gates = items(&spec["readinessGates"]);
    let open = gates.iter().filter(|gate| {
        items(&status["conditions"]).iter().any(|condition| {
            condition["type"] == gate["conditionType"] && condition["status"] == "True"
        })
    });
    let gates_cell = match gates.len() {
        0 => NONE.to_owned(),
        count => format!("{}/{count}", open.count()),
    };
    let ip = str_of(&status["podIP"]);
    vec![
        name(pod),
        format!("{}/{total}", tally.ready).into(),
        word.into(),
        tally.restarts_text(now).into(),
        age(pod, now),
        or_none(ip),
        or_none(str_of(&spec["nodeName"])),
        or_none(str_of(&status["nominatedNodeName"])),
        gates_cell.into(),
    ]
}

#[derive(Default)]
struct Tally {
    ready: usize,
    restarts: i64,
    sidecars: usize,
    last_restart: String,
}

impl Tally {
    fn count(&mut self, container: &Value) {
        self.restarts += number(&container["restartCount"]);
        let at = str_of(&container["lastState"]["terminated"]["finishedAt"]);
        if at > self.last_restart.as_str() {
            at.clone_into(&mut self.last_restart);
        }
    }
    fn restarts_text(&self, now: i64) -> String {
        if self.restarts > 0 && !self.last_restart.is_empty() {
            return format!("{} ({} ago)", self.restarts, since(&self.last_restart, now));
        }
        self.restarts.to_string()
    }
}

/// The status word while init containers are not complete; `None` afterwards.
fn initializing(spec: &Value, status: &Value, tally: &mut Tally) -> Option<String> {
    let declared = items(&spec["initContainers"]);
    let is_sidecar = |name: &Value| {
        declared.iter().any(|c| c["name"] == *name && str_of(&c["restartPolicy"]) == "Always")
    };
    tally.sidecars = declared.iter().filter(|c| is_sidecar(&c["name"])).count();
    for (index, container) in items(&status["initContainerStatuses"]).iter().enumerate() {
        tally.count(container);
        let state = &container["state"];
        let sidecar = is_sidecar(&container["name"]);
        if sidecar && container["ready"] == true {
            tally.ready += 1;
        }
        let terminated = &state["terminated"];
        if terminated.is_object() && number(&terminated["exitCode"]) == 0 {
            continue;
        }
        if sidecar && container["started"] == true {
            continue;
        }
        let waiting = str_of(&state["waiting"]["reason"]);
        return Some(if terminated.is_object() {
            format!("Init:{}", exit_word(terminated))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", declared.len())
        });
    }
    None
}

fn exit_word(terminated: &Value) -> String {
    match (str_of(&terminated["reason"]), number(&terminated["signal"])) {
        ("", 0) => format!("ExitCode:{}", number(&terminated["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn running(status: &Value, tally: &mut Tally, word: &mut String) {
    let mut any_running = false;
    for container in items(&status["containerStatuses"]).iter().rev() {
        tally.count(container);
        let state = &container["state"];
        let waiting = str_of(&state["waiting"]["reason"]);
        if !waiting.is_empty() {
            waiting.clone_into(word);
        } else if state["terminated"].is_object() {
            *word = exit_word(&state["terminated"]);
        } else if container["ready"] == true && state["running"].is_object() {
            any_running = true;
            tally.ready += 1;
        }
    }
    if any_running && word == "Completed" {
        let ready = items(&status["conditions"])
            .iter()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        *word = if ready { "Running" } else { "NotReady" }.to_owned();
    }
}
