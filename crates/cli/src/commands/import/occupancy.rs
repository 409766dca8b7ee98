//! What already manages the cluster to import: an entry of this server, or the agent of another
//! server. Applying the manifest would replace that agent, so this is checked before.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api as KubeApi;
use serde_json::Value;

use super::target::AGENT_NAMESPACE;
use crate::api::{Api, encode, text};
use crate::apply;
use crate::error::{CliError, Failure};

/// The agent's Deployment, of Drover and of servers like it.
const AGENT: &str = "cattle-cluster-agent";
/// Its environment variable with the URL of its server.
const AGENT_SERVER: &str = "CATTLE_SERVER";
/// Key in the Secret with its credentials: the id of its entry on that server.
const ENTRY_KEY: &str = "namespace";

/// What an import does with a cluster that is managed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Refuse it.
    Join,
    /// Resume the import of the entry of this name.
    Resume,
    /// Give the entry of this name a new agent.
    Adopt,
    /// Treat it as a clone.
    AsNew,
}

/// What manages the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Id and name of the entries that the user may see.
    pub entries: Vec<(String, String)>,
    /// Number of the entries that the user may not see.
    pub hidden: u64,
    /// URL of another server whose agent is in the cluster.
    pub other_server: Option<String>,
}

/// Reads what manages the cluster: its uid, the entries with that uid on this server, and the agent
/// in it.
pub async fn find(api: &Api, target: &kube::Client) -> Result<Occupancy, CliError> {
    let namespaces = KubeApi::<Namespace>::all(target.clone());
    let system = namespaces.get_opt("kube-system").await;
    let system = system.map_err(|e| apply::refusal("reading namespace \"kube-system\"", &e))?;
    let uid = system.and_then(|namespace| namespace.metadata.uid);
    let mut occupancy = match uid {
        Some(uid) => entries_of(api, &uid).await?,
        None => Occupancy::default(),
    };
    if let Some(agent) = agent(target).await?
        && !is_of_this_server(api, &agent).await
    {
        occupancy.other_server = Some(agent.server);
    }
    Ok(occupancy)
}

async fn entries_of(api: &Api, uid: &str) -> Result<Occupancy, CliError> {
    let path = format!("/v3/import-check?kubeSystemUid={}", encode(uid));
    let what = "checking whether the server manages the cluster already";
    let response = api.call(http::Method::GET, &path, None, what).await?;
    let entry = |entry: &Value| (text(entry, "id").to_owned(), text(entry, "name").to_owned());
    let entries = response["clusters"].as_array().into_iter().flatten().map(entry).collect();
    let hidden = response["hiddenClusters"].as_u64().unwrap_or_default();
    Ok(Occupancy { entries, hidden, other_server: None })
}

/// The agent in the cluster.
struct Agent {
    /// URL of its server.
    server: String,
    /// Id of its entry on that server.
    entry: String,
}

/// The agent in the cluster, if there is one.
async fn agent(target: &kube::Client) -> Result<Option<Agent>, CliError> {
    let deployments = KubeApi::<Deployment>::namespaced(target.clone(), AGENT_NAMESPACE);
    let found = deployments.get_opt(AGENT).await;
    let found =
        found.map_err(|e| apply::refusal(&format!("reading Deployment \"{AGENT}\""), &e))?;
    let Some(pod) = found.and_then(|it| it.spec).and_then(|spec| spec.template.spec) else {
        return Ok(None);
    };
    let mut variables = pod.containers.into_iter().flat_map(|it| it.env.unwrap_or_default());
    let server = variables.find(|variable| variable.name == AGENT_SERVER);
    let Some(server) = server.and_then(|variable| variable.value).filter(|url| !url.is_empty())
    else {
        return Ok(None);
    };
    let mut volumes = pod.volumes.unwrap_or_default().into_iter();
    let secret = volumes.find_map(|volume| volume.secret?.secret_name);
    let secrets = KubeApi::<Secret>::namespaced(target.clone(), AGENT_NAMESPACE);
    let entry = match secret {
        Some(name) => secrets.get_opt(&name).await.ok().flatten(),
        None => None,
    };
    let entry = entry.and_then(|secret| secret.data?.remove(ENTRY_KEY));
    let entry = entry.and_then(|id| String::from_utf8(id.0).ok()).unwrap_or_default();
    Ok(Some(Agent { server, entry }))
}

/// Compares the URL of the agent with that of the login and the one that the server gives to its
/// agents. If that setting has changed, compares the entry.
async fn is_of_this_server(api: &Api, agent: &Agent) -> bool {
    let plain = |url: &str| url.trim_end_matches('/').to_ascii_lowercase();
    if plain(api.url()) == plain(&agent.server) {
        return true;
    }
    let setting = api.get("settings", "server-url", "reading the server's URL").await;
    if setting.is_ok_and(|setting| plain(text(&setting, "value")) == plain(&agent.server)) {
        return true;
    }
    !agent.entry.is_empty()
        && api.get("clusters", &agent.entry, "reading the agent's entry").await.is_ok()
}

impl Occupancy {
    /// Checks whether the import may continue.
    ///
    /// `name`: of the entry. `file`: of the kubeconfig, for the commands that are suggested.
    ///
    /// # Errors
    /// Something manages the cluster already, and the intent does not allow that. Nothing was
    /// changed.
    pub fn permit(&self, intent: Intent, name: &str, file: &str) -> Result<(), CliError> {
        let is_named = |(id, shown): &&(String, String)| id == name || shown == name;
        let own = self.entries.iter().find(is_named);
        let command = |name: &str| format!("drover cluster import {name} --kubeconfig {file}");
        let conflict = |what: String| CliError::new(Failure::Conflict, what);
        let as_new = "if it is a clone of that cluster, add --as-new";
        match intent {
            Intent::AsNew => Ok(()),
            Intent::Adopt | Intent::Resume if own.is_some() => Ok(()),
            Intent::Adopt if self.entries.is_empty() && self.hidden == 0 => {
                let what = format!(
                    "the kubeconfig does not reach the cluster that \"{name}\" is the entry of, so \
                     nothing was applied"
                );
                Err(conflict(what).hint(format!(
                    "use a kubeconfig of that cluster; to continue an import that did not finish: {} \
                     --resume",
                    command(name)
                )))
            }
            _ => match (self.entries.first(), self.hidden, &self.other_server) {
                (Some((id, shown)), _, _) => {
                    Err(conflict(format!("this cluster is managed already, as {shown} ({id})")).hint(
                        format!(
                            "to give {shown} a new agent: {} --adopt; {as_new}; to import it anew, first: \
                             drover cluster rm {shown}",
                            command(shown)
                        ),
                    ))
                }
                (None, 1.., _) => Err(conflict(
                    "this cluster is already managed by an entry that you may not see".to_owned(),
                )
                .hint(format!("ask an administrator; {as_new}"))),
                (None, 0, Some(url)) => Err(conflict(format!(
                    "the agent of another server, {url}, is in this cluster; the import would replace it"
                ))
                .hint(format!(
                    "remove the cluster there first; if that server no longer exists, or this is a clone, add \
                     --as-new: {} --as-new",
                    command(name)
                ))),
                (None, 0, None) => Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "edge.yaml";

    fn entry(id: &str, name: &str) -> (String, String) {
        (id.to_owned(), name.to_owned())
    }

    fn refusal_of(occupancy: &Occupancy, intent: Intent, name: &str) -> (String, String) {
        let error = occupancy.permit(intent, name, FILE).unwrap_err();
        assert_eq!(error.failure, Failure::Conflict);
        (error.message, error.hint.unwrap_or_default())
    }

    #[test]
    fn a_cluster_of_a_visible_entry_is_refused_by_name_and_adopted_by_that_name_alone() {
        let managed = Occupancy { entries: vec![entry("c-1", "edge")], ..Occupancy::default() };
        let (message, hint) = refusal_of(&managed, Intent::Join, "other");
        assert_eq!(message, "this cluster is managed already, as edge (c-1)");
        assert!(
            hint.contains("drover cluster import edge --kubeconfig edge.yaml --adopt"),
            "{hint}"
        );
        assert!(managed.permit(Intent::Adopt, "edge", FILE).is_ok());
        assert!(managed.permit(Intent::Adopt, "c-1", FILE).is_ok());
        refusal_of(&managed, Intent::Adopt, "other");
        assert!(managed.permit(Intent::AsNew, "other", FILE).is_ok());
        assert!(managed.permit(Intent::Resume, "edge", FILE).is_ok(), "its own import goes on");
        refusal_of(&managed, Intent::Join, "edge");
        refusal_of(&managed, Intent::Resume, "other");
    }

    #[test]
    fn an_entry_that_the_user_may_not_see_is_not_named() {
        let managed = Occupancy { hidden: 1, ..Occupancy::default() };
        let (message, hint) = refusal_of(&managed, Intent::Join, "other");
        assert!(message.contains("an entry that you may not see"), "{message}");
        assert!(hint.contains("ask an administrator"), "{hint}");
        refusal_of(&managed, Intent::Adopt, "other");
    }

    #[test]
    fn the_agent_of_another_server_is_named_by_its_url() {
        let url = "https://old.example";
        let managed = Occupancy { other_server: Some(url.to_owned()), ..Occupancy::default() };
        let (message, hint) = refusal_of(&managed, Intent::Join, "edge");
        assert!(message.contains(url) && hint.contains("--as-new"), "{message} {hint}");
        assert!(managed.permit(Intent::AsNew, "edge", FILE).is_ok());
    }

    #[test]
    fn adopting_needs_the_kubeconfig_of_that_very_cluster() {
        let (message, _) = refusal_of(&Occupancy::default(), Intent::Adopt, "edge");
        assert!(message.contains("does not reach the cluster"), "{message}");
        assert!(Occupancy::default().permit(Intent::Join, "edge", FILE).is_ok());
    }
}
