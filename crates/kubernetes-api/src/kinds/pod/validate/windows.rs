//! Pods for Windows: fields that only they have, and fields that they cannot have.

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::str_of;
use serde_json::Value;

use super::{every_container, require_text};

const SYSTEMS: [&str; 2] = ["linux", "windows"];
/// Fields of a pod that Windows does not support, in the order of their causes.
const NOT_OF_PODS: [&str; 15] = [
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];
const NOT_OF_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];
const CREDENTIALS_SIZE_MAX: usize = 64 * 1024;
const USER_LENGTH_MAX: usize = 104;
const DOMAIN_LENGTH_MAX: usize = 256;
const NETBIOS_LENGTH_MAX: usize = 15;
const USER_REFUSED: &str = "\"/\\:;|=,+*?<>@[]";
const NETBIOS_REFUSED: &str = "\\/:*?\"<>|";

/// Validates the `windowsOptions` of a pod or container.
pub fn options(path: &str, options: &Value, causes: &mut Vec<Cause>) {
    let name = &options["gmsaCredentialSpecName"];
    if name.is_string() {
        super::name(
            &format!("{path}.gmsaCredentialSpecName"),
            name,
            names::dns1123_subdomain,
            causes,
        );
    }
    let mut refuse = |name: &str, why: &str| {
        causes.push(Cause::invalid(format!("{path}.{name}"), &options[name], why));
    };
    if let Value::String(text) = &options["gmsaCredentialSpec"] {
        if text.is_empty() {
            refuse("gmsaCredentialSpec", "gmsaCredentialSpec cannot be an empty string");
        } else if text.len() > CREDENTIALS_SIZE_MAX {
            refuse("gmsaCredentialSpec", "gmsaCredentialSpec size must be under 64 KiB");
        }
    }
    if let Value::String(text) = &options["runAsUserName"] {
        for why in user_problems(text) {
            refuse("runAsUserName", &format!("runAsUserName{why}"));
        }
    }
}

/// The messages about `[domain\]user`.
fn user_problems(text: &str) -> Vec<String> {
    if text.is_empty() {
        return vec![" cannot be an empty string".to_owned()];
    }
    if text.chars().any(|character| character.is_ascii_control()) {
        return vec![" cannot contain control characters".to_owned()];
    }
    let parts: Vec<&str> = text.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec![" cannot contain more than one backslash".to_owned()],
    };
    let mut problems = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= DOMAIN_LENGTH_MAX {
            problems.push(format!("'s Domain length must be under {DOMAIN_LENGTH_MAX} characters"));
        }
        if !is_netbios(domain) && !is_domain(domain) {
            problems.push("'s Domain doesn't match the NetBios nor the DNS format".to_owned());
        }
    }
    if user.is_empty() {
        problems.push("'s User cannot be empty".to_owned());
    } else if user.len() > USER_LENGTH_MAX {
        problems
            .push(format!("'s User length must not be longer than {USER_LENGTH_MAX} characters"));
    }
    if !user.is_empty() && user.chars().all(|character| matches!(character, '.' | ' ')) {
        problems.push("'s User cannot contain only periods or spaces".to_owned());
    }
    if user.chars().any(|character| USER_REFUSED.contains(character)) {
        problems.push(format!("'s User cannot contain the following characters: {USER_REFUSED}"));
    }
    problems
}

fn is_netbios(domain: &str) -> bool {
    (1..=NETBIOS_LENGTH_MAX).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.chars().any(|character| NETBIOS_REFUSED.contains(character))
}

fn is_domain(domain: &str) -> bool {
    names::dns1123_subdomain(&domain.to_lowercase()).is_empty()
}

/// Validates host process containers: all of a pod's containers are, or none is.
pub fn host_processes(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let of_pod = &spec["securityContext"]["windowsOptions"]["hostProcess"];
    let containers = every_container(field, spec);
    let mut count = 0;
    for (path, container) in &containers {
        let own = &container["securityContext"]["windowsOptions"]["hostProcess"];
        if own.is_boolean() && of_pod.is_boolean() && own != of_pod {
            let text = format!(
                "pod hostProcess value must be identical if both are specified, was {of_pod}"
            );
            let path = format!("{path}.securityContext.windowsOptions.hostProcess");
            causes.push(Cause::invalid(path, own, &text));
        }
        let effective = if own.is_boolean() { own } else { of_pod };
        count += usize::from(effective == true);
    }
    if count == 0 {
        return;
    }
    if count != containers.len() {
        let text = "If pod contains any hostProcess containers then all containers must be \
                    HostProcess containers";
        causes.push(Cause::invalid(field, &"".into(), text));
    }
    if spec["hostNetwork"] != true {
        let text = "hostNetwork must be true if pod contains any hostProcess containers";
        causes.push(Cause::invalid(format!("{field}.hostNetwork"), &false.into(), text));
    }
}

/// Validates `os` and the fields that the operating system does not support.
pub fn operating_system(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    if !spec["os"].is_object() {
        return;
    }
    let name = &spec["os"]["name"];
    if require_text(&format!("{field}.os.name"), name, causes) {
        super::require_one_of(&format!("{field}.os"), name, &SYSTEMS, causes);
    }
    let containers = every_container(field, spec);
    match str_of(name) {
        "linux" => {
            let all = containers.iter().map(|(path, container)| (path.as_str(), *container));
            for (path, owner) in [(field, spec)].into_iter().chain(all) {
                if !owner["securityContext"]["windowsOptions"].is_null() {
                    let text = "windows options cannot be set for a linux pod";
                    let path = format!("{path}.securityContext.windowsOptions");
                    causes.push(Cause::forbidden(path, text));
                }
            }
        }
        "windows" => not_windows(field, spec, &containers, causes),
        _ => {}
    }
}

fn not_windows(
    field: &str,
    spec: &Value,
    containers: &[(String, &Value)],
    causes: &mut Vec<Cause>,
) {
    let text = "cannot be set for a windows pod";
    for path in NOT_OF_PODS {
        let value = path.split('.').fold(spec, |value, part| &value[part]);
        // Plain values in Go: false counts as absent.
        let is_plain = matches!(path, "hostPID" | "hostIPC");
        let is_unset = value.is_null() || (is_plain && value == false);
        if !is_unset {
            causes.push(Cause::forbidden(format!("{field}.{path}"), text));
        }
    }
    for (path, container) in containers {
        let context = &container["securityContext"];
        for name in NOT_OF_CONTAINERS.iter().filter(|name| !context[name].is_null()) {
            causes.push(Cause::forbidden(format!("{path}.securityContext.{name}"), text));
        }
    }
}
