//! The life of one cluster: made, made again, changed, removed, removed again. Each step has a
//! process of its own, as managers do it.

use std::time::Duration;

use driver_contract::types::{
    Capabilities, ClusterInfo, CreateRequest, DriverOptions, UpdateRequest,
};
use driver_contract::{Capability, DriverClient};
use driver_host::{DriverProgram, RunningDriver};
use driver_sdk::service_account;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use tonic::Code;

use crate::{CLUSTER_NAME, CheckOutcome, ConformanceReport, within};

/// Clouds need up to half an hour for one.
const CLUSTER_TIME_MAX: Duration = Duration::from_secs(3600);
/// What drivers remember.
const STATE: &str = "state";

/// Makes a cluster with the options, and removes what the driver reported, also when a later step
/// fails.
pub(crate) async fn check(
    program: &DriverProgram,
    options: &DriverOptions,
    capabilities: &Capabilities,
    report: &mut ConformanceReport,
) {
    let mut options = options.clone();
    for name in ["name", "displayName"] {
        options.string_options.insert(name.to_owned(), CLUSTER_NAME.to_owned());
    }
    let created = create(program, &options, None, "Create", report).await;
    let info = match created {
        Created::Whole(info) => info,
        // What the driver says that it left is not left to whom it costs money.
        Created::Part(info) => return remove(program, &info, &["Remove"], report).await,
        Created::Nothing => return,
    };
    let info = post_check(program, info, report).await;
    let again = create(program, &options, Some(info.clone()), "Create again", report).await;
    if let Created::Whole(again) = again {
        let outcome = if again.endpoint == info.endpoint {
            CheckOutcome::Passed(again.endpoint)
        } else {
            CheckOutcome::Failed(format!(
                "\"{}\" is another cluster than \"{}\"",
                again.endpoint, info.endpoint
            ))
        };
        report.add("the second attempt finds the same cluster", outcome);
    }
    update(program, &options, &info, report).await;
    optional_calls(program, &info, capabilities, report).await;
    remove(program, &info, &["Remove", "Remove again"], report).await;
}

/// Once for each name.
async fn remove(
    program: &DriverProgram,
    info: &ClusterInfo,
    names: &[&'static str],
    report: &mut ConformanceReport,
) {
    for name in names {
        let sent = info.clone();
        let outcome =
            match call(program, report, async |mut client| client.remove(sent).await).await {
                Ok(_) => CheckOutcome::Passed("removed".to_owned()),
                Err(error) => CheckOutcome::Failed(error.message().to_owned()),
            };
        report.add(name, outcome);
    }
}

/// What a call of `Create` left.
enum Created {
    /// A cluster.
    Whole(ClusterInfo),
    /// It failed, and this is what has to be removed.
    Part(ClusterInfo),
    /// It failed without saying what is left.
    Nothing,
}

/// One call to a driver of its own, whose log goes into the report.
async fn call<T>(
    program: &DriverProgram,
    report: &mut ConformanceReport,
    perform: impl AsyncFnOnce(DriverClient) -> Result<tonic::Response<T>, tonic::Status>,
) -> Result<T, tonic::Status> {
    let driver = RunningDriver::start(program).await;
    let driver = driver.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
    let response = within(CLUSTER_TIME_MAX, perform(driver.client())).await;
    let log = driver.log().clone();
    driver.end().await;
    report.log.extend(log.lines());
    response
}

async fn create(
    program: &DriverProgram,
    options: &DriverOptions,
    known: Option<ClusterInfo>,
    name: &'static str,
    report: &mut ConformanceReport,
) -> Created {
    let request = CreateRequest { driver_options: Some(options.clone()), cluster_info: known };
    let response = call(program, report, async |mut client| client.create(request).await).await;
    let (created, outcome) = match response {
        Ok(info) if info.create_error.is_empty() => {
            (Created::Whole(info), CheckOutcome::Passed("made".to_owned()))
        }
        Ok(mut info) => {
            let reason = std::mem::take(&mut info.create_error);
            (Created::Part(info), CheckOutcome::Failed(reason))
        }
        Err(status) => (Created::Nothing, CheckOutcome::Failed(status.message().to_owned())),
    };
    report.add(name, outcome);
    created
}

async fn post_check(
    program: &DriverProgram,
    made: ClusterInfo,
    report: &mut ConformanceReport,
) -> ClusterInfo {
    let before = made.clone();
    let response = call(program, report, async |mut client| client.post_check(made).await).await;
    let info = match response {
        Ok(info) => info,
        Err(status) => {
            report.add("PostCheck", CheckOutcome::Failed(status.message().to_owned()));
            return before;
        }
    };
    let outcome = if info.service_account_token.is_empty() {
        CheckOutcome::Failed("it returned no token: the manager cannot reach the cluster".into())
    } else if info.metadata.get(STATE) != before.metadata.get(STATE) {
        CheckOutcome::Warning("it changed the state that Create returned".to_owned())
    } else {
        CheckOutcome::Passed(format!("nodes: {}", info.node_count))
    };
    report.add("PostCheck", outcome);
    report.add("the token is an administrator's", token_rights(&info).await);
    info
}

/// Whether the returned token may do everything in the cluster.
async fn token_rights(info: &ClusterInfo) -> CheckOutcome {
    let with_token = ClusterInfo {
        endpoint: info.endpoint.clone(),
        root_ca_certificate: info.root_ca_certificate.clone(),
        service_account_token: info.service_account_token.clone(),
        ..ClusterInfo::default()
    };
    let client = match service_account::connect(&with_token).await {
        Ok(client) => client,
        Err(error) => return CheckOutcome::Failed(format!("{error:#}")),
    };
    let every = || Some("*".to_owned());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: every(),
                resource: every(),
                verb: every(),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    match Api::all(client).create(&PostParams::default(), &review).await {
        Ok(review) if review.status.as_ref().is_some_and(|status| status.allowed) => {
            CheckOutcome::Passed("may do everything".to_owned())
        }
        Ok(_) => CheckOutcome::Failed("it may not do everything in the cluster".to_owned()),
        Err(error) => {
            let error = anyhow::Error::from(error);
            CheckOutcome::Failed(format!("the cluster refuses it: {error:#}"))
        }
    }
}

async fn update(
    program: &DriverProgram,
    options: &DriverOptions,
    info: &ClusterInfo,
    report: &mut ConformanceReport,
) {
    let request =
        UpdateRequest { cluster_info: Some(info.clone()), driver_options: Some(options.clone()) };
    let outcome = match call(program, report, async |mut client| client.update(request).await).await
    {
        Ok(updated) if updated.endpoint.is_empty() => CheckOutcome::Failed(
            "it returned no endpoint: what a driver returns replaces all that was stored".into(),
        ),
        Ok(_) => CheckOutcome::Passed("nothing to change".to_owned()),
        Err(status) if status.code() == Code::Unimplemented => {
            CheckOutcome::Warning(status.message().to_owned())
        }
        Err(status) => CheckOutcome::Failed(status.message().to_owned()),
    };
    report.add("Update without changes", outcome);
}

async fn optional_calls(
    program: &DriverProgram,
    info: &ClusterInfo,
    capabilities: &Capabilities,
    report: &mut ConformanceReport,
) {
    if capabilities.has(Capability::GetVersion) {
        let sent = info.clone();
        let response =
            call(program, report, async |mut client| client.get_version(sent).await).await;
        report.add("GetVersion", named(response.map(|found| found.version)));
    }
    if capabilities.has(Capability::GetNodeCount) {
        let sent = info.clone();
        let response =
            call(program, report, async |mut client| client.get_node_count(sent).await).await;
        report.add("GetNodeCount", named(response.map(|found| found.count.to_string())));
    }
}

/// What a call returned that the driver says it has.
fn named(response: Result<String, tonic::Status>) -> CheckOutcome {
    match response {
        Ok(text) if text.is_empty() => CheckOutcome::Failed("returned nothing".to_owned()),
        Ok(text) => CheckOutcome::Passed(text),
        Err(status) => CheckOutcome::Failed(status.message().to_owned()),
    }
}
