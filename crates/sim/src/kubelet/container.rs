//! One container of a pod: its properties that logs and commands depend on.

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use jiff::Timestamp;
use serde_json::Value;

use crate::agent::container::{expand, list, pod_field, text};

/// Default working directory and search path of a container.
const WORKING_DIRECTORY: &str = "/";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The properties of a simulated container.
#[derive(Clone, Debug)]
pub struct Container {
    pub namespace: String,
    pub pod: String,
    pub pod_uid: String,
    pub node: String,
    pub name: String,
    pub image: String,
    /// The command that would run; empty when only the image defines it.
    pub command: Vec<String>,
    pub ports: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub user: String,
    pub working_directory: String,
    /// Whether it reads its input.
    pub stdin: bool,
    pub phase: String,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

impl Container {
    /// The container named `name`, or the only one.
    ///
    /// # Errors
    /// 400, with kube-apiserver's messages: there is no container of that name, there are several
    /// to choose from, or the pod has no node yet.
    pub fn choose(pod: &Value, name: &str) -> Result<Self, Status> {
        let spec = &pod["spec"];
        let fields = ["containers", "initContainers", "ephemeralContainers"];
        let all: Vec<&Value> = fields.iter().flat_map(|field| list(&spec[*field])).collect();
        let names = |field: &str| -> Vec<&str> {
            list(&spec[field]).iter().map(|container| text(&container["name"])).collect()
        };
        let pod_name = pod.name();
        let chosen = match (name, names("containers").as_slice()) {
            ("", [only]) => *only,
            ("", choices) => {
                let mut words = format!(
                    "a container name must be specified for pod {pod_name}, choose one of: [{}]",
                    choices.join(" ")
                );
                if let inits @ [_, ..] = names("initContainers").as_slice() {
                    words += &format!(" or one of the init containers: [{}]", inits.join(" "));
                }
                return Err(Status::bad_request(words));
            }
            (name, _) => name,
        };
        let found = all.into_iter().find(|container| container["name"] == chosen);
        let container = found.ok_or_else(|| {
            let words = format!("container {chosen} is not valid for pod {pod_name}");
            Status::bad_request(words)
        })?;
        if text(&spec["nodeName"]).is_empty() {
            let words = format!("pod {pod_name} does not have a host assigned");
            return Err(Status::bad_request(words));
        }
        Ok(Self::of(pod, container))
    }

    fn of(pod: &Value, container: &Value) -> Self {
        let name = text(&container["name"]);
        let status = container_status(&pod["status"], name);
        let state = &status["state"];
        let running = &state["running"];
        let terminated = &state["terminated"];
        let point = |value: &Value| text(value).parse::<Timestamp>().ok();
        let environment = environment(pod, container);
        let words = list(&container["command"]).iter().chain(list(&container["args"]));
        let user = &container["securityContext"]["runAsUser"];
        let user = if user.is_null() { &pod["spec"]["securityContext"]["runAsUser"] } else { user };
        let directory = container["workingDir"].as_str().unwrap_or(WORKING_DIRECTORY);
        Self {
            namespace: pod.namespace().to_owned(),
            pod: pod.name().to_owned(),
            pod_uid: pod.uid().to_owned(),
            node: text(&pod["spec"]["nodeName"]).to_owned(),
            name: name.to_owned(),
            image: text(&container["image"]).to_owned(),
            command: words.map(|word| expand(text(word), &environment)).collect(),
            ports: list(&container["ports"]).iter().map(port).collect(),
            environment,
            user: user.as_i64().map_or_else(|| "root".to_owned(), |user| user.to_string()),
            working_directory: directory.to_owned(),
            stdin: container["stdin"] == true,
            phase: text(&pod["status"]["phase"]).to_owned(),
            started_at: point(&running["startedAt"]).or_else(|| point(&terminated["startedAt"])),
            finished_at: point(&terminated["finishedAt"]),
        }
    }

    /// Whether a command could run in it now.
    pub fn is_running(&self) -> bool {
        self.started_at.is_some() && self.finished_at.is_none()
    }

    /// The name of its first process.
    pub fn program(&self) -> String {
        if !self.command.is_empty() {
            return self.command.join(" ");
        }
        let image = self.image.rsplit('/').next().unwrap_or_default();
        image.split([':', '@']).next().unwrap_or_default().to_owned()
    }
}

fn container_status<'a>(status: &'a Value, name: &str) -> &'a Value {
    let fields = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let mut all = fields.iter().flat_map(|field| list(&status[*field]));
    all.find(|status| status["name"] == name).unwrap_or(&Value::Null)
}

fn port(port: &Value) -> String {
    let protocol = port["protocol"].as_str().unwrap_or("TCP").to_ascii_lowercase();
    format!("{}/{protocol}", port["containerPort"])
}

/// Variables with a value in the pod itself. Those from Secrets and ConfigMaps are omitted: users
/// who may run commands must not read here what they have no right to read there.
fn environment(pod: &Value, container: &Value) -> Vec<(String, String)> {
    let mut environment = vec![
        ("PATH".to_owned(), PATH.to_owned()),
        ("HOSTNAME".to_owned(), pod.name().to_owned()),
        ("KUBERNETES_SERVICE_HOST".to_owned(), "kubernetes.default.svc".to_owned()),
        ("KUBERNETES_SERVICE_PORT".to_owned(), "443".to_owned()),
    ];
    for variable in list(&container["env"]) {
        let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            Some(path) => pod_field(pod, path),
            None if variable["valueFrom"].is_null() => {
                expand(text(&variable["value"]), &environment)
            }
            None => continue,
        };
        environment.push((text(&variable["name"]).to_owned(), value));
    }
    environment.push(("HOME".to_owned(), "/root".to_owned()));
    environment
}
