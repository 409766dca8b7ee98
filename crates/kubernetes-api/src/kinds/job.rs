//! Job and CronJob.

mod cron;
mod failure_policy;
mod indexes;
mod schedule;
mod status;
mod success_policy;
mod time_zone;
mod update;
mod validate;

use api_meta::object::ObjectExt;
use api_meta::status::Cause;
use api_meta::time;
use apiserver::fields::{Object, child, each, ensure, items, map, preset, str_of, text};
use apiserver::kind::cells::{self, number};
use apiserver::kind::default_conditions;
use apiserver::kind::normal::quantity_problem;
use apiserver::kind::{AGE, FieldSpec, Hooks, Kind, NAME};
use apiserver::strategy::{Operation, Write};
use serde_json::Value;

use super::{old_annotations, template};

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The same label before the prefix was introduced; still written.
const OLD_CONTROLLER_UID: &str = "controller-uid";
const OLD_JOB_NAME: &str = "job-name";

/// The kind Job of the group `batch`: namespaced, with the defaults, validation, columns and
/// selectable fields of kube-apiserver.
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
        fields: vec![FieldSpec::named("status.successful", "status.succeeded").unset("0")],
        orphans: true,
        orphan_warning: Some(
            "child pods are preserved by default when jobs are deleted; set \
             propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
             suppress this warning",
        ),
        hooks: Hooks {
            default: default_job,
            prepare: prepare_job,
            validate: |_, object, old| validate_job(object, old),
            validate_status: status::validate,
            warnings: |object, old| old_annotations::of_template("spec.template", object, old),
            decode_problem: |object| quantity_problem(&object["spec"]),
            cells: job_row,
            ..Hooks::default()
        },
        // Like upstream, sets the labels that the server generates after validation.
        allocate: Some(Box::new(|_, object, _| {
            label_as_pods(object);
            Box::pin(std::future::ready(Ok(())))
        })),
        ..Kind::new("batch", "jobs", "job", "Job").with_status().counted()
    }
}

/// The kind CronJob of the group `batch`: namespaced, with the defaults, validation and columns of
/// kube-apiserver.
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
            validate: |_, object, old| cron::problems(object, old),
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
    if let Some(status) = ensure(object, "status") {
        default_conditions(status, &["lastProbeTime"]);
    }
    let Some(spec) = ensure(object, "spec") else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".to_owned(), 1.into());
    }
    preset(spec, "parallelism", 1);
    // With a limit for each index, the job as a whole has none.
    let limit = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    preset(spec, "backoffLimit", limit);
    preset(spec, "completionMode", "NonIndexed");
    preset(spec, "suspend", false);
    preset(spec, "manualSelector", false);
    let replacement =
        if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    preset(spec, "podReplacementPolicy", replacement);
    default_failure_policy(spec);
    template_without_policy(spec);
}

fn default_failure_policy(spec: &mut Object) {
    let Some(policy) = child(spec, "podFailurePolicy") else { return };
    each(policy, "rules", |rule| {
        each(rule, "onPodConditions", |pattern| {
            if text(pattern, "status").is_empty() {
                pattern.insert("status".to_owned(), "True".into());
            }
        });
    });
}

/// Removes the common default: a job must choose its restart policy.
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
    let were_labelled = object["spec"]["template"]["metadata"]["labels"].is_object();
    if write.operation == Operation::Create && object["spec"]["manualSelector"] != true {
        generate_selector(object);
    }
    if were_labelled {
        label_as_pods(object);
    }
}

/// Selects the job's pods by its uid. Existing values stay; validation refuses them if they do not
/// match.
fn generate_selector(object: &mut Value) {
    let (uid, name) = (object.uid().to_owned(), object.name().to_owned());
    let Some(spec) = map(object).and_then(|object| child(object, "spec")) else { return };
    let labels = ensure(spec, "selector").and_then(|selector| ensure(selector, "matchLabels"));
    if let Some(labels) = labels {
        preset(labels, CONTROLLER_UID, uid.clone());
    }
    let metadata = child(spec, "template").and_then(|template| ensure(template, "metadata"));
    if let Some(labels) = metadata.and_then(|metadata| ensure(metadata, "labels")) {
        preset(labels, CONTROLLER_UID, uid.clone());
        preset(labels, OLD_CONTROLLER_UID, uid);
        preset(labels, JOB_NAME, name.clone());
        preset(labels, OLD_JOB_NAME, name);
    }
}

/// A job without labels gets those of its pods.
fn label_as_pods(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let metadata = map(object).and_then(|object| child(object, "metadata"));
    let Some(metadata) = metadata.filter(|_| labels.is_object()) else { return };
    if child(metadata, "labels").is_none_or(|own| own.is_empty()) {
        metadata.insert("labels".to_owned(), labels);
    }
}

fn validate_job(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = validate::job(object, old);
    causes.extend(old.into_iter().flat_map(|old| update::validate(object, old)));
    causes
}

fn default_cron_job(object: &mut Value) {
    let Some(object) = map(object) else { return };
    ensure(object, "status");
    let Some(spec) = ensure(object, "spec") else { return };
    if text(spec, "concurrencyPolicy").is_empty() {
        spec.insert("concurrencyPolicy".to_owned(), "Allow".into());
    }
    preset(spec, "suspend", false);
    preset(spec, "successfulJobsHistoryLimit", 3);
    preset(spec, "failedJobsHistoryLimit", 1);
    if let Some(job) = ensure(spec, "jobTemplate") {
        ensure(job, "metadata");
        if let Some(job) = ensure(job, "spec") {
            default_failure_policy(job);
            template_without_policy(job);
        }
    }
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
        (Some(completions), _) => format!("{succeeded}/{completions}"),
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
