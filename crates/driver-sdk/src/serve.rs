//! Serves a driver over gRPC, as the contract says: on 127.0.0.1, at the port that is the only
//! argument of the program.

use std::future::Future;
use std::net::Ipv4Addr;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use anyhow::Context;
use driver_contract::types::driver_server::{Driver as Service, DriverServer};
use driver_contract::types::{
    Capabilities, ClusterInfo, CreateRequest, DriverFlags, DriverOptions, Empty, K8sCapabilities,
    KubernetesVersion, NodeCount, RemoveEtcdSnapshotRequest, RestoreEtcdSnapshotRequest,
    SaveEtcdSnapshotRequest, SetNodeCountRequest, SetVersionRequest, UpdateRequest,
};
use futures::FutureExt;
use tonic::{Request, Response, Status};

use crate::driver::{ClusterRequest, Driver, NotSupported};
use crate::options::Options;

/// Exit code of a wrong command line.
const EXIT_USAGE: u8 = 2;

/// The `main` of a driver: serves it at the port that is the only argument, until the process is
/// ended.
pub fn run<D: Driver>(driver: D) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let port = match (arguments.next().map(|text| text.parse::<u16>()), arguments.next()) {
        (Some(Ok(port)), None) if port > 0 => port,
        _ => {
            eprintln!(
                "error: a cluster driver is started by a cluster manager, with a port as its only \
                 argument\nNext: add this file to the manager as a driver, or check it with \
                 `drover driver conformance FILE`"
            );
            return ExitCode::from(EXIT_USAGE);
        }
    };
    run_at(driver, port)
}

/// Like [`run`], at a port that was given in another way.
pub fn run_at<D: Driver>(driver: D, port: u16) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let served = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        runtime.block_on(serve(driver, port)).context("the driver cannot be served")
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Serves the driver at this port of 127.0.0.1 until the future is dropped.
///
/// # Errors
/// Another program has the port.
pub async fn serve<D: Driver>(driver: D, port: u16) -> Result<(), tonic::transport::Error> {
    let service = DriverServer::new(Served(driver));
    let address = (Ipv4Addr::LOCALHOST, port).into();
    tonic::transport::Server::builder().add_service(service).serve(address).await
}

struct Served<D>(D);

/// Returns what the driver returned; a panic ends the call, and not the driver.
async fn perform<T>(call: impl Future<Output = anyhow::Result<T>>) -> Result<T, Status> {
    match AssertUnwindSafe(call).catch_unwind().await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(status(&error)),
        Err(_) => Err(Status::internal("the driver panicked; its log says where")),
    }
}

/// Managers show the message of the code `UNKNOWN` alone.
fn status(error: &anyhow::Error) -> Status {
    let text = format!("{error:#}");
    if error.is::<NotSupported>() { Status::unimplemented(text) } else { Status::unknown(text) }
}

fn request<O: Options>(options: Option<DriverOptions>) -> anyhow::Result<ClusterRequest<O>> {
    let options = options.unwrap_or_default();
    let text = |name: &str| options.string_options.get(name).filter(|text| !text.is_empty());
    let name = text("name").context("the request has no name for the cluster")?.clone();
    let display_name = text("display-name").or_else(|| text("displayName")).cloned();
    Ok(ClusterRequest {
        display_name: display_name.unwrap_or_else(|| name.clone()),
        name,
        options: O::read(&options)?,
    })
}

#[tonic::async_trait]
impl<D: Driver> Service for Served<D> {
    async fn create(&self, sent: Request<CreateRequest>) -> Result<Response<ClusterInfo>, Status> {
        let CreateRequest { driver_options, cluster_info } = sent.into_inner();
        let mut info = cluster_info.unwrap_or_default();
        info.create_error.clear();
        let made = perform(async { self.0.create(request(driver_options)?, &mut info).await });
        // What the driver wrote before it failed goes back with the error, or it would be lost.
        if let Err(failure) = made.await {
            failure.message().clone_into(&mut info.create_error);
        }
        Ok(Response::new(info))
    }

    async fn update(&self, sent: Request<UpdateRequest>) -> Result<Response<ClusterInfo>, Status> {
        let UpdateRequest { cluster_info, driver_options } = sent.into_inner();
        let mut info = cluster_info.unwrap_or_default();
        perform(async { self.0.update(request(driver_options)?, &mut info).await }).await?;
        Ok(Response::new(info))
    }

    async fn post_check(
        &self,
        sent: Request<ClusterInfo>,
    ) -> Result<Response<ClusterInfo>, Status> {
        let mut info = sent.into_inner();
        perform(self.0.post_check(&mut info)).await?;
        Ok(Response::new(info))
    }

    async fn remove(&self, sent: Request<ClusterInfo>) -> Result<Response<Empty>, Status> {
        let info = sent.into_inner();
        perform(self.0.remove(&info)).await?;
        Ok(Response::new(Empty {}))
    }

    async fn get_driver_create_options(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<DriverFlags>, Status> {
        Ok(Response::new(D::CreateOptions::flags()))
    }

    async fn get_driver_update_options(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<DriverFlags>, Status> {
        Ok(Response::new(D::UpdateOptions::flags()))
    }

    async fn get_version(
        &self,
        sent: Request<ClusterInfo>,
    ) -> Result<Response<KubernetesVersion>, Status> {
        let info = sent.into_inner();
        let version = perform(self.0.version(&info)).await?;
        Ok(Response::new(KubernetesVersion { version }))
    }

    async fn set_version(
        &self,
        sent: Request<SetVersionRequest>,
    ) -> Result<Response<Empty>, Status> {
        let SetVersionRequest { info, version } = sent.into_inner();
        let version = version.unwrap_or_default().version;
        perform(self.0.set_version(&info.unwrap_or_default(), version)).await?;
        Ok(Response::new(Empty {}))
    }

    async fn get_node_count(
        &self,
        sent: Request<ClusterInfo>,
    ) -> Result<Response<NodeCount>, Status> {
        let info = sent.into_inner();
        let count = perform(self.0.node_count(&info)).await?;
        Ok(Response::new(NodeCount { count }))
    }

    async fn set_node_count(
        &self,
        sent: Request<SetNodeCountRequest>,
    ) -> Result<Response<Empty>, Status> {
        let SetNodeCountRequest { info, count } = sent.into_inner();
        let count = count.unwrap_or_default().count;
        perform(self.0.set_node_count(&info.unwrap_or_default(), count)).await?;
        Ok(Response::new(Empty {}))
    }

    async fn get_capabilities(&self, _: Request<Empty>) -> Result<Response<Capabilities>, Status> {
        Ok(Response::new(Capabilities::of(&self.0.capabilities())))
    }

    async fn get_k8s_capabilities(
        &self,
        sent: Request<DriverOptions>,
    ) -> Result<Response<K8sCapabilities>, Status> {
        let given = sent.into_inner();
        let capabilities = perform(async {
            let options = D::CreateOptions::read(&given)?;
            self.0.kubernetes_capabilities(options).await
        });
        Ok(Response::new(capabilities.await?))
    }

    async fn remove_legacy_service_account(
        &self,
        sent: Request<ClusterInfo>,
    ) -> Result<Response<Empty>, Status> {
        let info = sent.into_inner();
        perform(self.0.remove_legacy_service_account(&info)).await?;
        Ok(Response::new(Empty {}))
    }

    async fn etcd_save(
        &self,
        sent: Request<SaveEtcdSnapshotRequest>,
    ) -> Result<Response<Empty>, Status> {
        let sent = sent.into_inner();
        let (info, name) = (sent.info.unwrap_or_default(), sent.snapshot_name);
        let options = sent.driver_options;
        perform(async { self.0.save_snapshot(request(options)?, &info, name).await }).await?;
        Ok(Response::new(Empty {}))
    }

    async fn etcd_restore(
        &self,
        sent: Request<RestoreEtcdSnapshotRequest>,
    ) -> Result<Response<ClusterInfo>, Status> {
        let sent = sent.into_inner();
        let (mut info, name) = (sent.info.unwrap_or_default(), sent.snapshot_name);
        let options = sent.driver_options;
        perform(async { self.0.restore_snapshot(request(options)?, &mut info, name).await })
            .await?;
        Ok(Response::new(info))
    }

    async fn etcd_remove_snapshot(
        &self,
        sent: Request<RemoveEtcdSnapshotRequest>,
    ) -> Result<Response<Empty>, Status> {
        let sent = sent.into_inner();
        let (info, name) = (sent.info.unwrap_or_default(), sent.snapshot_name);
        let options = sent.driver_options;
        perform(async { self.0.remove_snapshot(request(options)?, &info, name).await }).await?;
        Ok(Response::new(Empty {}))
    }
}
