//! Job and CronJob.

use api_meta::object::ObjectExt;
use api_meta::status::Cause;
use api_meta::time;
use serde_json::{Value, json};

use super::cells::{self, number};
use super::fields::{Object, child, ensure, items, map, preset, str_of, text};
use super::kind::{AGE, Hooks, Kind, NAME};
use super::normal::quantity_problem;
use super::{old_annotations, pod, template};
use crate::strategy::{Operation, Write};

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The same before the prefix came; still written.
const OLD_CONTROLLER_UID: &str = "controller-uid";
const OLD_JOB_NAME: &str = "job-name";

pub fn job() -> Kind {
    Kind {
        categories: &["all"],
        columns: &[
            NAME,
            ("Status", "string", "", 0),
            ("Completions", "string", "", 0),
            ("Duration", "string", "", 0),
            AGE,
            ("Containers", "string", "", 1),
            ("Images", "string", "", 1),
            ("Selector", "string", "", 1),
        ],
        fields: &[("status.successful", "status.succeeded")],
        orphans: true,
        orphan_warning: Some(
            "child pods are preserved by default when jobs are deleted; set \
             propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
             suppress this warning",
        ),
        hooks: Hooks {
            default: default_job,
            prepare: prepare_job,
            validate: validate_job,
            warnings: |object, old| old_annotations::of_template("spec.template", object, old),
            decode_problem: |object| quantity_problem(&object["spec"]),
            cells: job_row,
            ..Hooks::default()
        },
        ..Kind::new("batch", "jobs", "job", "Job").with_status().counted()
    }
}

pub fn cron_job() -> Kind {
    Kind {
        short_names: &["cj"],
        categories: &["all"],
        columns: &[
            NAME,
            ("Schedule", "string", "", 0),
            ("Timezone", "string", "", 0),
            ("Suspend", "boolean", "", 0),
            ("Active", "integer", "", 0),
            ("Last Schedule", "string", "", 0),
            AGE,
            ("Containers", "string", "", 1),
            ("Images", "string", "", 1),
            ("Selector", "string", "", 1),
        ],
        hooks: Hooks {
            default: default_cron_job,
            validate: validate_cron_job,
            warnings: |object, old| {
                old_annotations::of_template("spec.jobTemplate.spec.template", object, old)
            },
            decode_problem: |object| quantity_problem(&object["spec"]),
            cells: cron_job_row,
            ..Hooks::default()
        },
        ..Kind::new("batch", "cronjobs", "cronjob", "CronJob").with_status().counted()
    }
}

fn default_job(object: &mut Value) {
    let Some(object) = map(object) else { return };
    ensure(object, "status");
    let Some(spec) = ensure(object, "spec") else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".to_owned(), 1.into());
    }
    preset(spec, "parallelism", 1);
    preset(spec, "backoffLimit", 6);
    preset(spec, "completionMode", "NonIndexed");
    preset(spec, "suspend", false);
    preset(spec, "manualSelector", false);
    let replacement =
        if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    preset(spec, "podReplacementPolicy", replacement);
    template_without_policy(spec);
}

/// A job must choose its restart policy: the common default is not given.
fn template_without_policy(spec: &mut Object) {
    let chosen = child(spec, "template")
        .and_then(|template| child(template, "spec"))
        .is_some_and(|pod| !text(pod, "restartPolicy").is_empty());
    template::default(spec);
    if !chosen
        && let Some(pod) = child(spec, "template").and_then(|template| child(template, "spec"))
    {
        pod.insert("restartPolicy".to_owned(), "Always".into());
    }
}

fn prepare_job(write: &Write<'_>, object: &mut Value, _old: Option<&Value>) {
    if write.operation != Operation::Create || object["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (object.uid().to_owned(), object.name().to_owned());
    let Some(object) = map(object) else { return };
    if let Some(spec) = child(object, "spec") {
        spec.insert("selector".to_owned(), json!({"matchLabels": {CONTROLLER_UID: uid}}));
        let metadata = child(spec, "template").and_then(|t| ensure(t, "metadata"));
        if let Some(labels) = metadata.and_then(|metadata| ensure(metadata, "labels")) {
            labels.insert(CONTROLLER_UID.to_owned(), uid.clone().into());
            labels.insert(OLD_CONTROLLER_UID.to_owned(), uid.into());
            labels.insert(JOB_NAME.to_owned(), name.clone().into());
            labels.insert(OLD_JOB_NAME.to_owned(), name.into());
        }
    }
    // Without labels of its own a job takes those of its pods.
    let own = object.get("metadata").map(|metadata| metadata["labels"].is_object());
    if own == Some(false) {
        let labels = object["spec"]["template"]["metadata"]["labels"].clone();
        if let Some(metadata) = child(object, "metadata") {
            metadata.insert("labels".to_owned(), labels);
        }
    }
}

fn validate_job(write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    if write.operation == Operation::UpdateStatus {
        return Vec::new();
    }
    let spec = &object["spec"];
    let mut causes = Vec::new();
    for field in ["parallelism", "completions", "backoffLimit"] {
        causes.extend(template::not_negative(&format!("spec.{field}"), &spec[field]));
    }
    if spec["selector"].is_null() {
        causes.push(Cause::required("spec.selector", ""));
    }
    causes.extend(template::selected("spec.template", spec));
    causes.extend(template_problems("spec.template", &spec["template"]));
    if let Some(old) = old {
        for field in ["selector", "completionMode", "template"] {
            let suspended = old["spec"]["suspend"] == true && field == "template";
            if spec[field] != old["spec"][field] && !suspended {
                let path = format!("spec.{field}");
                causes.push(Cause::invalid(path, &spec[field], "field is immutable"));
            }
        }
    }
    causes
}

fn template_problems(field: &str, template: &Value) -> Vec<Cause> {
    let mut causes = pod::validate::template(field, template);
    let (path, policy) =
        (format!("{field}.spec.restartPolicy"), &template["spec"]["restartPolicy"]);
    match str_of(policy) {
        "OnFailure" | "Never" => {}
        "" | "Always" => {
            causes.push(Cause::required(path, "valid values: \"OnFailure\", \"Never\""));
        }
        _ => causes.push(Cause::not_supported(path, policy, &["OnFailure", "Never"])),
    }
    causes
}

fn default_cron_job(object: &mut Value) {
    let Some(object) = map(object) else { return };
    ensure(object, "status");
    let Some(spec) = ensure(object, "spec") else { return };
    preset(spec, "concurrencyPolicy", "Allow");
    preset(spec, "suspend", false);
    preset(spec, "successfulJobsHistoryLimit", 3);
    preset(spec, "failedJobsHistoryLimit", 1);
    if let Some(job) = ensure(spec, "jobTemplate") {
        ensure(job, "metadata");
        if let Some(job) = ensure(job, "spec") {
            template_without_policy(job);
        }
    }
}

fn validate_cron_job(write: &Write<'_>, object: &Value, _old: Option<&Value>) -> Vec<Cause> {
    if write.operation == Operation::UpdateStatus {
        return Vec::new();
    }
    let spec = &object["spec"];
    let mut causes = Vec::new();
    if str_of(&spec["schedule"]).is_empty() {
        causes.push(Cause::required("spec.schedule", ""));
    }
    let field = "spec.jobTemplate.spec.template";
    causes.extend(template_problems(field, &spec["jobTemplate"]["spec"]["template"]));
    causes
}

fn job_row(object: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let is = |kind: &str| {
        items(&status["conditions"]).iter().any(|c| c["type"] == kind && c["status"] == "True")
    };
    let word = if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if api_meta::object::ObjectExt::is_terminating(object) {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    let succeeded = number(&status["succeeded"]);
    let completions = match (spec["completions"].as_i64(), spec["parallelism"].as_i64()) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, Some(parallel)) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        _ => format!("{succeeded}/1"),
    };
    let started = time::parse_seconds(str_of(&status["startTime"]));
    let ended = time::parse_seconds(str_of(&status["completionTime"])).unwrap_or(now);
    let duration = started.map(|started| time::human_duration(ended - started));
    let (names, images) = cells::containers(&spec["template"]["spec"]);
    vec![
        cells::name(object),
        word.into(),
        completions.into(),
        duration.unwrap_or_default().into(),
        cells::age(object, now),
        names,
        images,
        cells::selector(&spec["selector"]),
    ]
}

fn cron_job_row(object: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let job = &spec["jobTemplate"]["spec"];
    let last = match str_of(&status["lastScheduleTime"]) {
        "" => cells::NONE.to_owned(),
        at => cells::since(at, now),
    };
    let suspended = if spec["suspend"] == true { "True" } else { "False" };
    let (names, images) = cells::containers(&job["template"]["spec"]);
    vec![
        cells::name(object),
        str_of(&spec["schedule"]).into(),
        cells::or_none(str_of(&spec["timeZone"])),
        suspended.into(),
        items(&status["active"]).len().into(),
        last.into(),
        cells::age(object, now),
        names,
        images,
        cells::selector(&job["selector"]),
    ]
}
