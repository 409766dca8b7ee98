//! `drover cluster create --driver|update|logs|pause|resume`: clusters that a driver makes.

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::api::{self, Api, encode, id, text};
use crate::args::{CreateClusterArgs, UpdateClusterArgs, WaitArgs};
use crate::commands::cluster;
use crate::commands::driver_options::DriverOptions;
use crate::commands::wait::POLL_EVERY;
use crate::error::{CliError, Failure};
use crate::output;

/// Annotation that keeps the driver from doing anything.
const PAUSED: &str = "drover.io/paused";

/// Creates a cluster with a driver. Its log goes to stderr while the command waits, its id to
/// stdout.
///
/// # Errors
/// An option is wrong, a request fails, or the driver does while the command waits.
pub async fn create(args: CreateClusterArgs) -> Result<(), CliError> {
    let api = Api::open(args.output.server.name())?;
    let driver = args.driver.as_deref().unwrap_or_default();
    let options = DriverOptions::of_driver(&api, driver).await?;
    let given = options.parse(args.options.options_file.as_deref(), &args.options.options)?;
    let mut body = cluster::body(&args);
    body[&options.field] = given.into();
    let what = format!("creating cluster \"{}\"", args.name);
    let mut made = api.create("clusters", &body, &what).await?;
    if args.wait.wait {
        let log = LogReader::new(id(&made));
        made = until_provisioned(&api, &made, log, &args.wait).await?;
    } else {
        notify!(
            "driver {driver} makes cluster {0}; \"drover cluster logs {0} --follow\" shows how it goes",
            args.name
        );
    }
    output::print_created(args.output.output, &made)
}

/// Changes options of a cluster that a driver made.
///
/// # Errors
/// As [`create`].
pub async fn update(args: UpdateClusterArgs) -> Result<(), CliError> {
    let api = Api::open(args.output.server.name())?;
    let found = api.resolve(&api::CLUSTER, &args.cluster).await?;
    let options = DriverOptions::of_cluster(&api, &found).await?;
    let given = options.parse(args.options.options_file.as_deref(), &args.options.options)?;
    if given.is_empty() {
        let flags: Vec<String> = options.flags().collect();
        return Err(CliError::usage("nothing to change")
            .hint(format!("options of its driver: --{}", flags.join(", --"))));
    }
    // Secrets are not shown, and stay when they are not sent.
    let mut config = found[&options.field].clone();
    for (field, value) in given {
        config[field] = value;
    }
    let mut log = LogReader::new(id(&found));
    if args.wait.wait {
        // What comes after it is about this change.
        log.next(&api).await?;
    }
    let what = format!("changing cluster \"{}\"", args.cluster);
    let mut changed =
        api.update("clusters", id(&found), &json!({options.field: config}), &what).await?;
    if args.wait.wait {
        changed = until_provisioned(&api, &changed, log, &args.wait).await?;
    } else {
        notify!(
            "its driver changes cluster {0}; \"drover cluster logs {0} --follow\" shows how it goes",
            args.cluster
        );
    }
    output::print_created(args.output.output, &changed)
}

/// Prints the provisioning log; with `follow` until the driver is done.
///
/// # Errors
/// The cluster does not exist, no driver makes it, or a request fails.
pub async fn logs(name: &str, follow: bool, server: Option<&str>) -> Result<(), CliError> {
    let api = Api::open(server)?;
    let found = api.resolve(&api::CLUSTER, name).await?;
    let mut log = LogReader::new(id(&found));
    loop {
        let is_done = !follow || is_done(&api, id(&found)).await?;
        // After the look, so that the last lines are there.
        for line in log.next(&api).await? {
            output::print(&line)?;
        }
        if is_done {
            return Ok(());
        }
        sleep(POLL_EVERY).await;
    }
}

/// Pauses the driver of a cluster, or lets it go on.
///
/// # Errors
/// The cluster does not exist, or a request fails.
pub async fn pause(name: &str, is_paused: bool, server: Option<&str>) -> Result<(), CliError> {
    let api = Api::open(server)?;
    let found = api.resolve(&api::CLUSTER, name).await?;
    let mut annotations = found["annotations"].clone();
    if annotations.is_null() {
        annotations = json!({});
    }
    annotations[PAUSED] = if is_paused { "true".into() } else { Value::Null };
    let what = format!("changing cluster \"{name}\"");
    api.update("clusters", id(&found), &json!({"annotations": annotations}), &what).await?;
    notify!("{} the driver of cluster {name}", if is_paused { "paused" } else { "resumed" });
    Ok(())
}

/// Reads a log as it grows.
struct LogReader<'a> {
    cluster: &'a str,
    /// Number of the line after the last one that was read.
    next: u64,
}

impl<'a> LogReader<'a> {
    fn new(cluster: &'a str) -> Self {
        Self { cluster, next: 0 }
    }

    async fn next(&mut self, api: &Api) -> Result<Vec<String>, CliError> {
        let path = format!("/v3/clusters/{}/provisioninglog", encode(self.cluster));
        let log = match api.call(Method::GET, &path, None, "reading the provisioning log").await {
            Ok(log) => log,
            Err(error) if error.failure == Failure::NotFound => {
                return Err(error.hint("only clusters that a driver makes have such a log"));
            }
            Err(error) => return Err(error),
        };
        let first = log["first"].as_u64().unwrap_or_default();
        let lines = log["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
        let end = first + lines.len() as u64;
        if end < self.next {
            // Another server, or the same after a restart, counts anew.
            self.next = end;
        }
        let skipped = usize::try_from(self.next.saturating_sub(first)).unwrap_or(usize::MAX);
        self.next = end;
        let new = lines.iter().skip(skipped).filter_map(Value::as_str);
        Ok(new.map(str::to_owned).collect())
    }
}

/// How far the driver came, as the object says it.
async fn progress(api: &Api, cluster: &str) -> Result<(Value, bool), CliError> {
    let path = format!("/apis/management.cattle.io/v3/clusters/{}", encode(cluster));
    let object = api.call(Method::GET, &path, None, "reading the cluster").await?;
    let reported = object["status"]["provisioning"].clone();
    let is_current = reported["generation"] == object["metadata"]["generation"];
    Ok((reported, is_current))
}

async fn is_done(api: &Api, cluster: &str) -> Result<bool, CliError> {
    match progress(api, cluster).await {
        Ok((reported, is_current)) => {
            let stage = text(&reported, "stage");
            Ok(is_current && (stage == "Provisioned" || stage.ends_with("Failed")))
        }
        Err(error) if error.failure == Failure::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Waits until the driver has done what the cluster says and the cluster is active. Shows the rest
/// of the log.
async fn until_provisioned(
    api: &Api,
    cluster: &Value,
    mut log: LogReader<'_>,
    wait: &WaitArgs,
) -> Result<Value, CliError> {
    let (deadline, name) = (Instant::now() + wait.timeout, api::name(cluster));
    loop {
        let (reported, is_current) = progress(api, id(cluster)).await?;
        for line in log.next(api).await? {
            notify!("{line}");
        }
        let (stage, message) = (text(&reported, "stage"), text(&reported, "message"));
        if is_current && stage.ends_with("Failed") {
            let text = format!("cluster {name}: {message}");
            let hint = format!(
                "\"drover cluster update {name} --OPTION VALUE\" changes an option, \"drover cluster rm \
                 {name}\" removes the cluster"
            );
            return Err(CliError::new(Failure::Other, text).hint(hint));
        }
        let now = api.get("clusters", id(cluster), "reading the cluster").await?;
        let state = text(&now, "state");
        if is_current && stage == "Provisioned" && state == "active" {
            notify!("cluster {name} is active");
            return Ok(now);
        }
        if Instant::now() >= deadline {
            let limit = wait.timeout.as_secs();
            let text = format!("cluster {name} is {state} after {limit} s; its driver goes on");
            return Err(CliError::new(Failure::Timeout, text)
                .hint(format!("\"drover cluster logs {name} --follow\" shows how it goes")));
        }
        sleep(POLL_EVERY).await;
    }
}
