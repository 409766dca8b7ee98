//! `import`: a cluster that already exists, by its kubeconfig. It makes and removes nothing but the
//! service account of the manager.

use anyhow::{Context, Result, bail};
use driver_sdk::types::ClusterInfo;
use driver_sdk::{Capability, ClusterRequest, Driver, NotSupported, Options, service_account};
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Its name among the drivers.
pub const NAME: &str = "import";

/// Keys of the metadata, as the driver of this name has always had them.
const CONFIG: &str = "Config";
const ENDPOINT: &str = "Endpoint";
const ROOT_CA: &str = "RootCA";

/// Has no settings of its own.
#[derive(Clone, Copy, Debug)]
pub struct Import;

/// Which cluster, as one of two kinds of kubeconfig.
#[derive(Clone, Debug, Options)]
pub struct ImportOptions {
    /// The text of a kubeconfig, whose current context is used
    #[flag(name = "kubeConfig", password)]
    pub kube_config: String,
    /// A file with the kubeconfig, where the driver runs
    #[flag(name = "kubeConfigPath")]
    pub kube_config_path: String,
}

impl ImportOptions {
    fn kubeconfig(&self) -> Result<String> {
        match (self.kube_config.as_str(), self.kube_config_path.as_str()) {
            ("", "") => bail!("one of the options kubeConfig and kubeConfigPath is required"),
            ("", path) => std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the kubeconfig \"{path}\"")),
            (text, _) => Ok(text.to_owned()),
        }
    }
}

impl Driver for Import {
    type CreateOptions = ImportOptions;
    type UpdateOptions = ();

    async fn create(
        &self,
        request: ClusterRequest<ImportOptions>,
        info: &mut ClusterInfo,
    ) -> Result<()> {
        let text = request.options.kubeconfig()?;
        info.endpoint = endpoint(&text).await?;
        info.metadata.insert(CONFIG.to_owned(), text);
        Ok(())
    }

    async fn update(&self, _: ClusterRequest<()>, _: &mut ClusterInfo) -> Result<()> {
        Err(NotSupported("changing a cluster that it did not make").into())
    }

    async fn post_check(&self, info: &mut ClusterInfo) -> Result<()> {
        let text = info.metadata.get(CONFIG).context("the cluster has no kubeconfig any more")?;
        service_account::fill_from_kubeconfig(info, &text.clone()).await?;
        info.metadata.insert(ENDPOINT.to_owned(), info.endpoint.clone());
        info.metadata.insert(ROOT_CA.to_owned(), info.root_ca_certificate.clone());
        Ok(())
    }

    async fn remove(&self, _: &ClusterInfo) -> Result<()> {
        // The cluster was there before, and stays.
        Ok(())
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![Capability::GetVersion]
    }

    async fn version(&self, info: &ClusterInfo) -> Result<String> {
        let client = service_account::connect(info).await?;
        let version = client.apiserver_version().await;
        Ok(version.context("cannot read the version of the cluster")?.git_version)
    }
}

/// The address of the cluster in a kubeconfig that can be used.
async fn endpoint(text: &str) -> Result<String> {
    let kubeconfig = Kubeconfig::from_yaml(text).context("the kubeconfig is no valid YAML")?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.context("the kubeconfig cannot be used")?;
    Ok(config.cluster_url.to_string().trim_end_matches('/').to_owned())
}
