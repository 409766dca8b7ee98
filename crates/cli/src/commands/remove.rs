//! `drover cluster rm` and `drover cluster detach`.

mod unresponsive;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::api::{self, Api, text};
use crate::args::{DetachArgs, RemoveArgs, ServerArgs};
use crate::checklist::Checklist;
use crate::error::{CliError, Failure};
use crate::prompt;
use unresponsive::{Choice, Silence, decide};

/// Annotation that makes the server skip what it cannot reach.
const FORCE: &str = api_management::keys::FORCE_REMOVE;
/// Poll interval.
const POLL_EVERY: Duration = Duration::from_millis(150);

/// Annotation that makes the server leave the workloads and machines of the cluster unchanged.
const DETACH: &str = api_management::keys::DETACH;

/// Removes a cluster and the objects that Drover created in it, and shows the progress.
///
/// # Errors
/// The user declines, or the removal fails or is not done before the timeout.
pub async fn remove(args: RemoveArgs) -> Result<(), CliError> {
    let removal = Removal::find(&args.server, &args.cluster, "removing").await?;
    let question =
        format!("Remove cluster {} and the objects that Drover created in it?", removal.title());
    let choice = removal.choose((args.force, args.wait), args.yes, "rm", &question)?;
    let marks: &[&str] = match choice {
        Choice::Wait => &[],
        Choice::Force => &[FORCE],
        Choice::Detach => &[FORCE, DETACH],
    };
    removal.mark(marks).await?;
    removal.follow(args.timeout).await
}

/// Ends the management of a cluster, whose workloads stay unchanged, and shows the progress.
///
/// # Errors
/// The user declines, the cluster is `local`, or the removal fails or is not done in time.
pub async fn detach(args: DetachArgs) -> Result<(), CliError> {
    let removal = Removal::find(&args.server, &args.cluster, "detaching").await?;
    if removal.id() == api_management::ids::LOCAL_CLUSTER {
        let message = "cluster \"local\" is the management API itself and cannot be detached";
        return Err(CliError::new(Failure::Forbidden, message));
    }
    let question =
        format!("Stop managing cluster {}? Its workloads stay unchanged.", removal.title());
    let choice = removal.choose((args.force, args.wait), args.yes, "detach", &question)?;
    let marks: &[&str] = match choice {
        Choice::Wait => &[DETACH],
        Choice::Force | Choice::Detach => &[FORCE, DETACH],
    };
    removal.mark(marks).await?;
    removal.follow(args.timeout).await?;
    notify!("kubeconfigs of this server for it no longer work; use one of its own");
    Ok(())
}

/// The removal of a cluster.
struct Removal {
    api: Api,
    cluster: Value,
    /// `removing`, `detaching`.
    verb: &'static str,
}

impl Removal {
    async fn find(
        server: &ServerArgs,
        cluster: &str,
        verb: &'static str,
    ) -> Result<Self, CliError> {
        let api = Api::open(server.name())?;
        let cluster = api.resolve(&api::CLUSTER, cluster).await?;
        Ok(Self { api, cluster, verb })
    }

    fn id(&self) -> &str {
        text(&self.cluster, "id")
    }
    fn title(&self) -> String {
        format!("{} ({})", text(&self.cluster, "name"), self.id())
    }

    /// Decides how to remove the cluster, with a prompt before anything is changed. A cluster that
    /// does not respond has a prompt of its own.
    fn choose(
        &self,
        flags: (bool, bool),
        yes: bool,
        command: &str,
        question: &str,
    ) -> Result<Choice, CliError> {
        let silence = Silence::of(&self.cluster);
        if let Some(silence) = &silence {
            notify!("{}", silence.describe(&self.title(), Timestamp::now()));
        }
        let has_decided = flags.0 || flags.1;
        let choice = match silence {
            Some(_) => decide(flags, yes, command, text(&self.cluster, "name"))?,
            None if flags.0 => Choice::Force,
            None => Choice::Wait,
        };
        // A choice at the prompt needs no second confirmation.
        let must_confirm = has_decided || silence.is_none();
        if must_confirm && !yes && !prompt::confirm(question, "--yes")? {
            return Err(CliError::new(Failure::Other, "nothing was changed"));
        }
        Ok(choice)
    }

    /// Sets exactly these marks. Annotations are sent as a whole: omitted ones are removed.
    async fn mark(&self, marks: &[&str]) -> Result<(), CliError> {
        let before = self.cluster["annotations"].as_object().cloned().unwrap_or_default();
        let mut annotations = before.clone();
        annotations.retain(|key, _| ![FORCE, DETACH].contains(&key.as_str()));
        annotations.extend(marks.iter().map(|mark| ((*mark).to_owned(), "true".into())));
        if annotations == before {
            return Ok(());
        }
        let path = format!("/v3/clusters/{}", api::encode(self.id()));
        let body = json!({"annotations": annotations});
        let what = format!("{} cluster \"{}\"", self.verb, self.id());
        self.api.call(http::Method::PUT, &path, Some(&body), &what).await?;
        Ok(())
    }

    /// Deletes the cluster, waits until it is deleted, and prints the report.
    async fn follow(&self, timeout: Duration) -> Result<(), CliError> {
        let what = format!("{} cluster \"{}\"", self.verb, text(&self.cluster, "name"));
        self.api.delete("clusters", self.id(), &what).await?;
        let mut list = Checklist::on_stderr();
        list.begin(&what);
        match self.wait_until_deleted(timeout, &mut list).await {
            Ok(()) => {
                list.done("");
                report(&self.api, self.id()).await;
                Ok(())
            }
            Err(error) => {
                list.fail();
                Err(error)
            }
        }
    }

    async fn wait_until_deleted(
        &self,
        timeout: Duration,
        list: &mut Checklist<std::io::Stderr>,
    ) -> Result<(), CliError> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.api.get("clusters", self.id(), "watching the removal").await {
                Ok(cluster) => {
                    let message = removal_message(&cluster);
                    list.detail(message.lines().next().unwrap_or_default());
                }
                // A caller that may no longer see it gets 403.
                Err(error) if matches!(error.failure, Failure::NotFound | Failure::Forbidden) => {
                    return Ok(());
                }
                Err(error) if error.failure == Failure::Unreachable => list.detail(&error.message),
                Err(error) => return Err(error),
            }
            if Instant::now() >= deadline {
                let seconds = timeout.as_secs();
                let text = format!("cluster {} still exists after {seconds} s", self.title());
                let hint = "the server continues the removal, and ends it with or without the cluster; \
                            \"drover cluster get\" shows its progress";
                return Err(CliError::new(Failure::Timeout, text).hint(hint));
            }
            sleep(POLL_EVERY).await;
        }
    }
}

/// Prints the report on the removal, if the server stored it and the caller may read it.
async fn report(api: &Api, id: &str) {
    let namespace = api_management::keys::SYSTEM_NS;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/removal-{}", api::encode(id));
    let Ok(configmap) = api.call(http::Method::GET, &path, None, "reading the report").await else {
        notify!("the server stores the report of the removal; you may not read it");
        return;
    };
    let report = serde_json::from_str(text(&configmap["data"], "report.json")).unwrap_or_default();
    notify!("{}", report_text(&report));
}

/// The report in a few lines.
fn report_text(report: &Value) -> String {
    let entries = |field: &str| report[field].as_array().map_or(&[][..], Vec::as_slice);
    let removed = entries("removed").len();
    let left = entries("left");
    if left.is_empty() {
        let rest = match text(report, "mode") {
            "detach" => "everything else in it is unchanged",
            _ => "nothing is left",
        };
        if entries("removed").iter().any(|entry| entry["kind"] == "Cluster") {
            return format!("its driver removed it at the provider; {rest}");
        }
        return format!("{removed} objects of Drover were removed from it; {rest}");
    }
    let mut lines =
        vec![format!("{removed} objects of Drover were removed from it; these are left:")];
    lines.extend(left.iter().map(|entry| {
        let place = match text(entry, "namespace") {
            "" => text(entry, "name").to_owned(),
            namespace => format!("{namespace}/{}", text(entry, "name")),
        };
        let (kind, whose, why) = (text(entry, "kind"), text(entry, "cluster"), text(entry, "why"));
        format!("  {kind} {place} ({whose}): {why}")
    }));
    lines.join("\n")
}

/// The message of the condition `Removed`, else the summary.
fn removal_message(cluster: &Value) -> &str {
    let conditions = cluster["conditions"].as_array().into_iter().flatten();
    let mut removed = conditions.filter(|c| text(c, "type") == api_management::cluster::REMOVED);
    match removed.next().map_or("", |condition| text(condition, "message")) {
        "" => text(cluster, "transitioningMessage"),
        message => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_says_what_is_left_and_why() {
        let report = json!({
            "removed": [{"kind": "Namespace", "name": "cattle-system"}],
            "left": [
                {"cluster": "downstream", "kind": "ClusterRole", "name": "r", "why": "no answer"},
                {"cluster": "management", "kind": "Node", "namespace": "c-1", "name": "n",
                 "why": "forbidden"},
            ],
        });
        insta::assert_snapshot!(report_text(&report));
        let clean = report_text(&json!({"removed": [], "left": []}));
        assert_eq!(clean, "0 objects of Drover were removed from it; nothing is left");
        let made = json!({"removed": [{"kind": "Cluster", "name": "made"}], "left": []});
        let made = report_text(&made);
        assert_eq!(made, "its driver removed it at the provider; nothing is left");
        let detached = report_text(&json!({"mode": "detach", "removed": [], "left": []}));
        assert_eq!(
            detached,
            "0 objects of Drover were removed from it; everything else in it is unchanged"
        );
    }
}
