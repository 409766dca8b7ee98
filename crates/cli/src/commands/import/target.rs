//! The cluster to import, through the user's kubeconfig.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::time::timeout;

use crate::apply;
use crate::error::{CliError, Failure};

/// Namespace of the agent in the cluster.
pub const AGENT_NAMESPACE: &str = api_management::keys::SYSTEM_NS;
/// Timeout of the first response of the cluster.
const REACH_WITHIN: Duration = Duration::from_secs(10);

/// A client for one context of a kubeconfig file, and the address of the server named there.
pub async fn client(
    file: &Path,
    context: Option<&str>,
) -> Result<(kube::Client, String), CliError> {
    let wrong = |why: String| {
        let text = format!("kubeconfig \"{}\": {why}", file.display());
        CliError::new(Failure::Usage, text)
    };
    let kubeconfig = Kubeconfig::read_from(file).map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        wrong(cause.unwrap_or_else(|| error.to_string()))
            .hint("give a file that kubectl --kubeconfig accepts")
    })?;
    let names: Vec<&str> = kubeconfig.contexts.iter().map(|c| c.name.as_str()).collect();
    let name = context.or(kubeconfig.current_context.as_deref()).unwrap_or_default();
    if !names.contains(&name) {
        let hint = match names.as_slice() {
            [] => "it has no contexts".to_owned(),
            names => format!("choose one with --context: {}", names.join(", ")),
        };
        return Err(match name {
            "" => wrong("it has no current context".to_owned()),
            name => wrong(format!("it has no context \"{name}\"")),
        }
        .hint(hint));
    }
    let options =
        KubeConfigOptions { context: Some(name.to_owned()), ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| wrong(error.to_string()))?;
    let url = config.cluster_url.to_string();
    let client = kube::Client::try_from(config).map_err(|error| wrong(error.to_string()))?;
    Ok((client, url))
}

/// Reads the cluster's version.
pub async fn reach(target: &kube::Client, url: &str) -> Result<String, CliError> {
    match timeout(REACH_WITHIN, target.apiserver_version()).await {
        Ok(Ok(version)) => Ok(version.git_version),
        Ok(Err(error)) => {
            let what = format!("reading the version of the cluster at {url}");
            Err(apply::refusal(&what, &error))
        }
        Err(_) => {
            let seconds = REACH_WITHIN.as_secs();
            let text = format!("the cluster at {url} did not respond within {seconds} s");
            Err(CliError::new(Failure::Unreachable, text).hint(apply::UNREACHABLE_HINT))
        }
    }
}

/// Whether the cluster has any node; none if that cannot be read.
pub async fn has_nodes(target: &kube::Client) -> Option<bool> {
    let nodes = kube::Api::<Node>::all(target.clone());
    let found = nodes.list_metadata(&ListParams::default().limit(1)).await;
    found.ok().map(|found| !found.items.is_empty())
}

/// Checks beforehand for the right that is missing most often.
pub async fn may_bind_roles(target: &kube::Client) -> Result<(), CliError> {
    let attributes = ResourceAttributes {
        group: Some("rbac.authorization.k8s.io".to_owned()),
        resource: Some("clusterrolebindings".to_owned()),
        verb: Some("create".to_owned()),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews = kube::Api::<SelfSubjectAccessReview>::all(target.clone());
    match reviews.create(&PostParams::default(), &review).await {
        Ok(response) if response.status.as_ref().is_some_and(|status| status.allowed) => Ok(()),
        Ok(_) => Err(CliError::new(
            Failure::Forbidden,
            "the kubeconfig's user may not create cluster role bindings, which the agent needs",
        )
        .hint("use a kubeconfig of a cluster administrator")),
        // A cluster without access reviews refuses the binding itself, if it does.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => Ok(()),
        Err(error) => Err(apply::refusal("checking your rights in the cluster", &error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;

    async fn refusal_of(file: &Path, context: Option<&str>) -> CliError {
        match client(file, context).await {
            Ok(_) => panic!("{} was accepted", file.display()),
            Err(error) => error,
        }
    }

    #[tokio::test]
    async fn a_wrong_context_lists_the_right_ones() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "deleted",
            "contexts": [
                {"name": "one", "context": {"cluster": "c", "user": "u"}},
                {"name": "two", "context": {"cluster": "c", "user": "u"}},
            ],
        });
        file.write_all(config.to_string().as_bytes()).unwrap();
        for (context, said) in [(None, "no context \"deleted\""), (Some("three"), "\"three\"")] {
            let error = refusal_of(file.path(), context).await;
            assert_eq!(error.failure, Failure::Usage);
            assert!(error.message.contains(said), "{}", error.message);
            assert_eq!(error.hint.as_deref(), Some("choose one with --context: one, two"));
        }
    }

    #[tokio::test]
    async fn a_file_that_is_no_kubeconfig_is_refused_with_its_name() {
        let error = refusal_of(Path::new("/nonexistent/file"), None).await;
        assert!(error.message.contains("/nonexistent/file"), "{}", error.message);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"[not a kubeconfig").unwrap();
        assert_eq!(refusal_of(file.path(), None).await.failure, Failure::Usage);
    }
}
