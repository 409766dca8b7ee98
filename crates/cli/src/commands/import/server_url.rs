//! Checks whether the cluster's agent can reach the server by its address, the setting
//! `server-url`. Warns of a loopback address before anything is created.

use std::net::IpAddr;
use std::time::Duration;

use api_management::setting::SERVER_URL;
use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::api::{Api, text};

/// Timeout of the name resolution.
const RESOLVE_WITHIN: Duration = Duration::from_secs(2);
/// Names that resolve to a loopback address on every machine.
const OWN_NAMES: [&str; 2] = ["localhost", "localhost.localdomain"];
/// Suffix of the versions of simulated clusters. Their agents are processes on the same machine.
const SIMULATED: &str = ".sim";
const HTTPS_PORT: u16 = 443;

/// Warns if the agent of a cluster cannot reach the server, with the command that helps.
pub async fn warn(api: &Api, cluster_url: &str, version: &str) {
    if let Some((warning, hint)) = warning(api, cluster_url, version).await {
        notify!("warning: {warning}");
        notify!("hint: {hint}");
    }
}

async fn warning(api: &Api, cluster_url: &str, version: &str) -> Option<(String, String)> {
    let setting = api.get("settings", SERVER_URL, "reading the server's address").await;
    // Without the right to read it, nothing can be said.
    let url = setting.ok().map(|setting| text(&setting, "value").to_owned())?;
    let why = loopback_reason(&url).await?;
    if version.ends_with(SIMULATED) && loopback_reason(cluster_url).await.is_some() {
        return None;
    }
    let uri = url.parse::<http::Uri>().unwrap_or_default();
    let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
    let better = format!("https://NAME{port}");
    let warning = format!(
        "the agent is to reach the server at {url} (the setting \"{SERVER_URL}\"), and {why}; \
         from a pod or another machine, it does not lead to the server"
    );
    let hint = format!(
        "run \"drover settings set {SERVER_URL} {better}\" with a name that the cluster resolves; \
         if the server's certificate does not have that name, start it with --server-url {better}"
    );
    Some((warning, hint))
}

/// Why a URL leads each machine to itself; none if it does not.
async fn loopback_reason(url: &str) -> Option<String> {
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
    let is_loopback = addresses.all(is_own);
    is_loopback.then(|| format!("\"{host}\" is this machine's name for itself"))
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
            let why = loopback_reason(url).await.unwrap_or_else(|| panic!("{url} was not found"));
            assert!(why.contains(said), "{url}: {why}");
        }
    }

    #[tokio::test]
    async fn urls_that_others_may_reach_are_let_pass() {
        // The last cannot be resolved here; the cluster may have a name for it.
        for url in
            ["https://10.0.0.1:8443", "https://[2001:db8::1]", "", "https://drover.invalid:8443"]
        {
            assert_eq!(loopback_reason(url).await, None, "{url}");
        }
    }
}
