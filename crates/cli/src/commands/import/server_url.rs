//! Whether the cluster's agent can reach the server by the address that it is given: the setting
//! `server-url`. One that leads each machine to itself is warned of before anything is made.

use std::net::IpAddr;
use std::time::Duration;

use api_management::setting::SERVER_URL;
use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::api::{Api, text};

/// Longest wait for the addresses of a name.
const RESOLVE_WITHIN: Duration = Duration::from_secs(2);
/// Names that lead every machine to itself.
const OWN_NAMES: [&str; 2] = ["localhost", "localhost.localdomain"];
/// What the versions of simulated clusters end with. Their agents are processes beside them.
const SIMULATED: &str = ".sim";
const HTTPS_PORT: u16 = 443;

/// Says what keeps the agent of a cluster from the server, and which command helps.
pub async fn warn(api: &Api, cluster_url: &str, version: &str) {
    if let Some((warning, hint)) = warning(api, cluster_url, version).await {
        tell!("warning: {warning}");
        tell!("hint: {hint}");
    }
}

async fn warning(api: &Api, cluster_url: &str, version: &str) -> Option<(String, String)> {
    let setting = api.get("settings", SERVER_URL, "reading the server's address").await;
    // Who may not read it is told nothing wrong.
    let url = setting.ok().map(|setting| text(&setting, "value").to_owned())?;
    let why = leads_home(&url).await?;
    if version.ends_with(SIMULATED) && leads_home(cluster_url).await.is_some() {
        return None;
    }
    let uri = url.parse::<http::Uri>().unwrap_or_default();
    let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
    let better = format!("https://NAME{port}");
    let warning = format!(
        "the agent is to reach the server at {url} (the setting \"{SERVER_URL}\"), and {why}; \
         from a pod, or from another machine, it leads elsewhere"
    );
    let hint = format!(
        "run \"drover settings set {SERVER_URL} {better}\" with a name that the cluster resolves; \
         if the server's certificate does not have that name, start it with --server-url {better}"
    );
    Some((warning, hint))
}

/// Why a URL leads each machine to itself, if it does.
async fn leads_home(url: &str) -> Option<String> {
    let uri = url.parse::<http::Uri>().ok()?;
    let host = uri.host()?.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    if let Ok(address) = host.parse::<IpAddr>() {
        let is_own = is_own(address);
        return is_own.then(|| format!("{address} is every machine's own address"));
    }
    if OWN_NAMES.contains(&host.as_str()) || host.ends_with(".localhost") {
        return Some(format!("\"{host}\" is every machine's own name"));
    }
    let port = uri.port_u16().unwrap_or(HTTPS_PORT);
    let found = timeout(RESOLVE_WITHIN, lookup_host((host.as_str(), port))).await;
    let mut addresses = found.ok()?.ok()?.map(|address| address.ip()).peekable();
    addresses.peek()?;
    let is_home = addresses.all(is_own);
    is_home.then(|| format!("\"{host}\" is this machine's name for itself"))
}

fn is_own(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn urls_that_lead_each_machine_to_itself_are_found() {
        for (url, said) in [
            ("https://localhost:8443", "\"localhost\" is every machine's own name"),
            ("https://LOCALHOST.", "every machine's own name"),
            ("https://drover.localhost", "\"drover.localhost\" is every"),
            ("https://127.0.0.2:8443", "127.0.0.2 is every machine's own address"),
            ("https://[::1]:8443", "::1 is every machine's own address"),
            ("https://0.0.0.0", "own address"),
        ] {
            let why = leads_home(url).await.unwrap_or_else(|| panic!("{url} was not found"));
            assert!(why.contains(said), "{url}: {why}");
        }
    }

    #[tokio::test]
    async fn urls_that_others_may_reach_are_let_pass() {
        // The last cannot be resolved here; the cluster may have a name for it.
        for url in
            ["https://10.0.0.1:8443", "https://[2001:db8::1]", "", "https://drover.invalid:8443"]
        {
            assert_eq!(leads_home(url).await, None, "{url}");
        }
    }
}
