//! A served driver, called over gRPC as a manager calls it.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::future::Future;
use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Result, bail};
use driver_contract::types::driver_client::DriverClient;
use driver_contract::types::{
    ClusterInfo, CreateRequest, DriverOptions, Empty, SaveEtcdSnapshotRequest, UpdateRequest,
};
use driver_sdk::{Capability, ClusterRequest, Driver, Options, state};
use serde::{Deserialize, Serialize};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

const START_TIME_MAX: Duration = Duration::from_secs(10);

struct Paper;

#[derive(Clone, Debug, Options)]
struct PaperOptions {
    /// Number of sheets
    #[flag(default = 3)]
    sheets: i64,
    /// What goes wrong
    mishap: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Sheets {
    made: i64,
}

impl Driver for Paper {
    type CreateOptions = PaperOptions;
    type UpdateOptions = ();

    async fn create(
        &self,
        request: ClusterRequest<PaperOptions>,
        info: &mut ClusterInfo,
    ) -> Result<()> {
        state::store(info, &Sheets { made: request.options.sheets })?;
        match request.options.mishap.as_str() {
            "fire" => bail!("{} burnt", request.display_name),
            "panic" => panic!("out of paper"),
            _ => Ok(()),
        }
    }

    async fn update(&self, _: ClusterRequest<()>, info: &mut ClusterInfo) -> Result<()> {
        let Sheets { made } = state::load(info)?;
        info.node_count = made;
        Ok(())
    }

    async fn post_check(&self, _: &mut ClusterInfo) -> Result<()> {
        Ok(())
    }

    async fn remove(&self, _: &ClusterInfo) -> Result<()> {
        Ok(())
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![Capability::SetNodeCount]
    }
}

fn on_client<F: Future<Output = ()>>(test: impl FnOnce(DriverClient<Channel>) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let served = tokio::spawn(driver_sdk::serve(Paper, port));
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
        let client = DriverClient::new(endpoint.connect_lazy());
        let serves = async {
            while client.clone().get_capabilities(Empty {}).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(START_TIME_MAX, serves).await.expect("the driver serves");
        test(client).await;
        served.abort();
    });
}

fn request(mishap: &str) -> CreateRequest {
    let texts = [("name", "c-abcde"), ("displayName", "Atlas"), ("mishap", mishap)];
    let texts = texts.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned()));
    let options = DriverOptions { string_options: texts.collect(), ..DriverOptions::default() };
    CreateRequest { driver_options: Some(options), cluster_info: None }
}

#[test]
fn what_was_made_before_a_failure_comes_back_with_the_reason() {
    on_client(async |mut client| {
        let info = client.create(request("fire")).await.unwrap().into_inner();
        assert_eq!(info.create_error, "Atlas burnt");
        assert_eq!(state::load::<Sheets>(&info).unwrap(), Sheets { made: 3 });
        // The next attempt begins without the reason of the last.
        let retry = CreateRequest { cluster_info: Some(info), ..request("") };
        let info = client.create(retry).await.unwrap().into_inner();
        assert_eq!(info.create_error, "");
    });
}

#[test]
fn a_panic_ends_the_call_and_not_the_driver() {
    on_client(async |mut client| {
        let info = client.create(request("panic")).await.unwrap().into_inner();
        assert!(info.create_error.contains("panicked"), "{}", info.create_error);
        assert!(info.metadata.contains_key("state"));
        let capabilities = client.get_capabilities(Empty {}).await.unwrap().into_inner();
        assert!(capabilities.has(Capability::SetNodeCount));
    });
}

#[test]
fn a_request_without_a_name_or_state_is_refused() {
    on_client(async |mut client| {
        let info = client.create(CreateRequest::default()).await.unwrap().into_inner();
        assert_eq!(info.create_error, "the request has no name for the cluster");
        let CreateRequest { driver_options, .. } = request("");
        let update = UpdateRequest { cluster_info: None, driver_options };
        let status = client.update(update).await.unwrap_err();
        assert_eq!(status.code(), Code::Unknown);
        assert_eq!(status.message(), "the cluster has no state of this driver");
    });
}

#[test]
fn what_a_driver_leaves_out_is_said_to_be_unsupported() {
    on_client(async |mut client| {
        let status = client.get_version(ClusterInfo::default()).await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented);
        let CreateRequest { driver_options, .. } = request("");
        let save = SaveEtcdSnapshotRequest { driver_options, ..Default::default() };
        let status = client.etcd_save(save).await.unwrap_err();
        assert_eq!(status.message(), "this driver does not support snapshots of etcd");
        client.remove_legacy_service_account(ClusterInfo::default()).await.unwrap();
        client.get_k8s_capabilities(DriverOptions::default()).await.unwrap();
    });
}
