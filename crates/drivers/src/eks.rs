//! `amazonElasticContainerService`: clusters of Amazon Elastic Kubernetes Service (EKS), each a
//! stack of CloudFormation.

mod api;
mod options;
mod template;

use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use driver_sdk::types::{ClusterInfo, K8sCapabilities, LoadBalancerCapabilities};
use driver_sdk::{Capability, ClusterRequest, Driver, service_account, state};

use self::api::{Aws, Stack};
use self::options::{EksChanges, EksOptions};
use crate::cloud;

/// Its name among the drivers.
pub const NAME: &str = "amazonElasticContainerService";

/// A cluster takes a quarter of an hour, and a new version of all nodes hours.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(4 * 3600);
/// Tag of the stack: which cluster of the manager it is.
const TAG: &str = "drover-cluster";
const IN_PROGRESS: &str = "_IN_PROGRESS";
/// States of a stack that was never complete: nothing can be done with it but to remove it.
const NEVER_COMPLETE: [&str; 3] = ["ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"];
/// What AWS says of parts that were stopped because another failed.
const CANCELLED: &str = "cancelled";
/// What AWS says of a stack when a change begins.
const BEGIN: &str = "User Initiated";

/// Has no settings of its own.
#[derive(Clone, Copy, Debug)]
pub struct AmazonElasticContainerService;

impl Driver for AmazonElasticContainerService {
    type CreateOptions = EksOptions;
    type UpdateOptions = EksChanges;

    async fn create(
        &self,
        request: ClusterRequest<EksOptions>,
        info: &mut ClusterInfo,
    ) -> Result<()> {
        let options = EksOptions { name: request.name, ..request.options };
        options.check()?;
        // Name, region and key are all that is needed to remove what comes next.
        state::store(info, &options)?;
        let aws = Aws::open(&options)?;
        let mut found = settled(&aws).await?;
        if let Some(stack) = &found {
            let (name, region) = (&options.name, &options.region);
            ensure!(
                stack.has_tag(TAG, name),
                "the region {region} has a stack {name} that is not of this manager"
            );
            if NEVER_COMPLETE.contains(&stack.status.as_str()) {
                println!("what an earlier attempt left is removed: {}", stack.reason);
                remove(&aws, &options.name).await?;
                found = None;
            }
        }
        if found.is_none() {
            println!("stack {} is ordered", options.name);
            let ordered = aws.create(&template::of(&options), (TAG, &options.name)).await;
            ordered.context("the cluster is not made")?;
        } else {
            change(&aws, &options).await.context("the cluster is not completed")?;
        }
        complete(&aws).await?;
        Ok(())
    }

    async fn update(
        &self,
        request: ClusterRequest<EksChanges>,
        info: &mut ClusterInfo,
    ) -> Result<()> {
        let mut options: EksOptions = state::load(info)?;
        request.options.apply(&mut options);
        options.check()?;
        state::store(info, &options)?;
        apply(&options).await
    }

    async fn post_check(&self, info: &mut ClusterInfo) -> Result<()> {
        let options: EksOptions = state::load(info)?;
        let aws = Aws::open(&options)?;
        // Also one whose last change was taken back works.
        let stack =
            settled(&aws).await?.context("the stack of the cluster does not exist any more")?;
        let (endpoint, authority) =
            (stack.output(template::ENDPOINT)?, stack.output(template::AUTHORITY)?);
        cloud::fill_by_token(info, endpoint, authority, &aws.token()?).await
    }

    async fn remove(&self, info: &ClusterInfo) -> Result<()> {
        let Some(options) = state::load_if_present::<EksOptions>(info)? else { return Ok(()) };
        remove(&Aws::open(&options)?, &options.name).await
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![Capability::GetVersion, Capability::SetVersion]
    }

    async fn kubernetes_capabilities(&self, _: EksOptions) -> Result<K8sCapabilities> {
        Ok(K8sCapabilities {
            l4_load_balancer: Some(LoadBalancerCapabilities {
                enabled: true,
                provider: "ELB".to_owned(),
                protocols_supported: vec!["TCP".to_owned()],
                health_check_supported: true,
            }),
            ..K8sCapabilities::default()
        })
    }

    async fn version(&self, info: &ClusterInfo) -> Result<String> {
        let client = service_account::connect(info).await?;
        let version = client.apiserver_version().await;
        Ok(version.context("cannot read the version of the cluster")?.git_version)
    }

    async fn set_version(&self, info: &ClusterInfo, version: String) -> Result<()> {
        let known: EksOptions = state::load(info)?;
        apply(&EksOptions { kubernetes_version: version, ..known }).await
    }
}

async fn apply(options: &EksOptions) -> Result<()> {
    let aws = Aws::open(options)?;
    settled(&aws).await?.context("the stack of the cluster does not exist any more")?;
    if change(&aws, options).await.context("the cluster is not changed")? {
        println!("a change of stack {} is ordered", options.name);
        complete(&aws).await?;
    }
    Ok(())
}

/// Orders a change once AWS makes no other. Whether there is one.
async fn change(aws: &Aws<'_>, options: &EksOptions) -> Result<bool> {
    let template = &template::of(options);
    let look = move || async move {
        match aws.update(template).await {
            Ok(is_ordered) => Ok(ControlFlow::Break(is_ordered)),
            Err(error) if error.to_string().contains(IN_PROGRESS) => {
                Ok(ControlFlow::Continue(error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    };
    cloud::until("the change", CHANGE_TIME_MAX, look).await
}

/// The stack once AWS does nothing with it; nothing if it does not exist.
async fn settled(aws: &Aws<'_>) -> Result<Option<Stack>> {
    let look = move || async move {
        Ok(match aws.stack().await? {
            Some(stack) if stack.status.ends_with(IN_PROGRESS) => {
                ControlFlow::Continue(words(&stack.status))
            }
            stack => ControlFlow::Break(stack),
        })
    };
    cloud::until("the stack", CHANGE_TIME_MAX, look).await
}

/// The stack, which is as the template last given says.
async fn complete(aws: &Aws<'_>) -> Result<Stack> {
    let stack = settled(aws).await?;
    let stack = stack.context("the stack of the cluster does not exist any more")?;
    if matches!(stack.status.as_str(), "CREATE_COMPLETE" | "UPDATE_COMPLETE") {
        return Ok(stack);
    }
    bail!("AWS could not do it: {}", reason(aws, &stack).await)
}

/// Why a stack failed: what AWS says of the part that failed first.
async fn reason(aws: &Aws<'_>, stack: &Stack) -> String {
    // The newest come first, and behind the begin of the last change those of earlier ones.
    let events = aws.events().await.unwrap_or_default().into_iter();
    let of_last = events.take_while(|event| event.reason != BEGIN);
    let failed = of_last.filter(|event| {
        event.status.ends_with("_FAILED") && !event.reason.to_lowercase().contains(CANCELLED)
    });
    let first = failed.reduce(|_, earlier| earlier);
    match first {
        Some(event) => format!("{}: {}", event.part, event.reason),
        None => format!("the stack is in the state {}: {}", words(&stack.status), stack.reason),
    }
}

/// `CREATE_IN_PROGRESS` in words.
fn words(status: &str) -> String {
    status.to_lowercase().replace('_', " ")
}

async fn remove(aws: &Aws<'_>, name: &str) -> Result<()> {
    let mut is_ordered = false;
    loop {
        match settled(aws).await? {
            None => return Ok(()),
            Some(stack) if stack.status == "DELETE_COMPLETE" => return Ok(()),
            Some(stack) if !stack.has_tag(TAG, name) => {
                println!("stack {name} is not of this manager, and stays");
                return Ok(());
            }
            Some(stack) if is_ordered => {
                bail!("AWS could not remove it: {}", reason(aws, &stack).await)
            }
            Some(_) => {
                aws.delete().await.context("the stack is not removed")?;
                println!("its removal is ordered");
                is_ordered = true;
            }
        }
    }
}
