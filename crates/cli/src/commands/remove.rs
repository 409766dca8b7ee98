//! `drover cluster rm`.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::api::{self, Api, text};
use crate::args::RemoveArgs;
use crate::checklist::Checklist;
use crate::error::{CliError, Failure};
use crate::prompt;

/// Annotation that has the server not wait for what cannot be reached.
const FORCE: &str = api_management::keys::FORCE_REMOVE;
/// Between two looks.
const POLL_EVERY: Duration = Duration::from_millis(150);

pub async fn remove(args: RemoveArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.server.as_deref())?;
    let cluster = api.resolve(&api::CLUSTER, &args.cluster).await?;
    let (id, name) = (text(&cluster, "id").to_owned(), text(&cluster, "name").to_owned());
    let question = format!("Remove cluster {name} ({id}) and what was put into it?");
    if !args.yes && !prompt::confirm(&question, "--yes")? {
        return Err(CliError::new(Failure::Other, "nothing was removed"));
    }
    if args.force {
        force(&api, &cluster).await?;
    }
    let what = format!("removing cluster \"{name}\"");
    api.delete("clusters", &id, &what).await?;

    let mut list = Checklist::on_stderr();
    list.begin(&what);
    match wait_until_gone(&api, &id, &args, &mut list).await {
        Ok(()) => {
            list.done("");
            report(&api, &id).await;
            Ok(())
        }
        Err(error) => {
            list.fail();
            Err(error)
        }
    }
}

/// Annotations are sent whole: what is left out would be removed.
async fn force(api: &Api, cluster: &Value) -> Result<(), CliError> {
    let mut annotations = cluster["annotations"].as_object().cloned().unwrap_or_default();
    annotations.insert(FORCE.to_owned(), "true".into());
    let path = format!("/v3/clusters/{}", api::encode(text(cluster, "id")));
    let body = json!({"annotations": annotations});
    let what = "asking for a forced removal";
    api.call(http::Method::PUT, &path, Some(&body), what).await?;
    Ok(())
}

/// Says what was left, as far as the server kept it and the caller may read it.
async fn report(api: &Api, id: &str) {
    let namespace = api_management::keys::SYSTEM_NS;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/removal-{}", api::encode(id));
    let Ok(kept) = api.call(http::Method::GET, &path, None, "reading the report").await else {
        eprintln!("the removal's report is kept by the server; you may not read it");
        return;
    };
    let report = serde_json::from_str(text(&kept["data"], "report.json")).unwrap_or_default();
    eprintln!("{}", report_text(&report));
}

/// The report in a few lines.
fn report_text(report: &Value) -> String {
    let entries = |field: &str| report[field].as_array().map_or(&[][..], Vec::as_slice);
    let removed = entries("removed").len();
    let left = entries("left");
    if left.is_empty() {
        return format!("{removed} objects of ours were removed from it; nothing is left");
    }
    let mut lines =
        vec![format!("{removed} objects of ours were removed from it; these are left:")];
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

/// Follows the removal to its end.
async fn wait_until_gone(
    api: &Api,
    id: &str,
    args: &RemoveArgs,
    list: &mut Checklist<std::io::Stderr>,
) -> Result<(), CliError> {
    let deadline = Instant::now() + args.timeout;
    loop {
        match api.get("clusters", id, "watching the removal").await {
            Ok(cluster) => {
                let said = removal_message(&cluster);
                list.detail(said.lines().next().unwrap_or_default());
            }
            // Who may no longer see it is told so instead.
            Err(error) if matches!(error.failure, Failure::NotFound | Failure::Forbidden) => {
                return Ok(());
            }
            Err(error) if error.failure == Failure::Unreachable => list.detail(&error.message),
            Err(error) => return Err(error),
        }
        if Instant::now() >= deadline {
            let seconds = args.timeout.as_secs();
            let text = format!("cluster \"{}\" is still there after {seconds} s", args.cluster);
            let hint = if args.force {
                "the removal goes on in the server; look at \"drover cluster get\""
            } else {
                "if the cluster cannot be reached, add --force"
            };
            return Err(CliError::new(Failure::Timeout, text).hint(hint));
        }
        sleep(POLL_EVERY).await;
    }
}

/// What the condition `Removed` says, else the summary.
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
        assert_eq!(clean, "0 objects of ours were removed from it; nothing is left");
    }
}
