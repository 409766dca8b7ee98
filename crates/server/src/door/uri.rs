//! Path and query as they are recorded: without what opens doors. Pure.
//!
//! Of a query only values of parameters stay that are known to hold no secrets. A path is whole,
//! but for import manifests, whose path holds a registration token, for what looks like a token's
//! key, and for what is below a service or pod that a request is proxied to.

use http::Uri;

/// Where manifests of agents are.
const IMPORT: &str = "/v3/import/";
/// In place of what is left out.
const REDACTED: &str = "[redacted]";
/// Characters of what is recorded; the rest is cut.
const LENGTH_MAX: usize = 2048;
/// Characters from which on a part of a path after a colon is taken for a key. Names are shorter by
/// habit, keys have 54.
const KEY_LENGTH_MIN: usize = 40;

/// Parameters whose values are recorded: those of the Kubernetes API, and those of lists and
/// actions in the view.
const PARAMETERS: [&str; 55] = [
    "action",
    "address",
    "allowWatchBookmarks",
    "clusterId",
    "command",
    "container",
    "dryRun",
    "event",
    "fieldManager",
    "fieldSelector",
    "fieldValidation",
    "follow",
    "force",
    "gracePeriodSeconds",
    "id",
    "insecureSkipTLSVerifyBackend",
    "labelSelector",
    "limit",
    "limitBytes",
    "link",
    "marker",
    "name",
    "namespace",
    "namespaceId",
    "order",
    "orphanDependents",
    "ports",
    "pretty",
    "previous",
    "projectId",
    "propagationPolicy",
    "resourceTypes",
    "resourceVersion",
    "resourceVersionMatch",
    "reverse",
    "sendInitialEvents",
    "since",
    "sinceSeconds",
    "sinceTime",
    "sort",
    "status",
    "stderr",
    "stdin",
    "stdout",
    "stream",
    "tailLines",
    "timeout",
    "timeoutSeconds",
    "timestamps",
    "tty",
    "type",
    "until",
    "user",
    "verb",
    "watch",
];

/// See the module.
pub fn recorded(uri: &Uri) -> String {
    let mut text = path(uri.path());
    let is_proxied = text.ends_with(REDACTED) && uri.path().contains("/proxy/");
    for (index, pair) in uri.query().iter().flat_map(|query| query.split('&')).enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) if is_proxied || PARAMETERS.binary_search(&name).is_err() => {
                text.push_str(name);
                text.push('=');
                text.push_str(REDACTED);
            }
            Some(_) => text.push_str(pair),
            // A name alone may be anything.
            None if !pair.is_empty() && PARAMETERS.binary_search(&pair).is_err() => {
                text.push_str(REDACTED);
            }
            None => text.push_str(pair),
        }
        if text.len() > LENGTH_MAX {
            break;
        }
    }
    text.truncate(text.floor_char_boundary(LENGTH_MAX));
    text
}

fn path(path: &str) -> String {
    if let Some(name) = path.strip_prefix(IMPORT) {
        let cluster = name.strip_suffix(".yaml").and_then(|name| name.split_once('_'));
        return match cluster {
            Some((_, cluster)) if is_cluster_id(cluster) => {
                format!("{IMPORT}{REDACTED}_{cluster}.yaml")
            }
            _ => format!("{IMPORT}{REDACTED}"),
        };
    }
    // Paths below a pod or service follow its own rules.
    let own = path.find("/proxy/").filter(|_| path.starts_with(crate::router::CLUSTERS));
    let (kept, rest) = match own {
        Some(at) => (&path[..at + "/proxy/".len()], REDACTED),
        None => (path, ""),
    };
    let segments: Vec<String> = kept.split('/').map(segment).collect();
    segments.join("/") + rest
}

fn is_cluster_id(text: &str) -> bool {
    text == "local"
        || text.strip_prefix("c-").is_some_and(|rest| {
            rest.len() <= 16 && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        })
}

/// A part of a path, without a token's key.
fn segment(text: &str) -> String {
    let colon = text.find(':').map(|at| (at, 1));
    let escaped = || text.to_ascii_lowercase().find("%3a").map(|at| (at, 3));
    match colon.or_else(escaped) {
        Some((at, length)) if text.len() - at - length >= KEY_LENGTH_MIN => {
            format!("{}:{REDACTED}", &text[..at])
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attacker_who_reads_the_log_learns_no_secret_of_an_address() {
        assert!(PARAMETERS.is_sorted());
        let secret = "bcdfghjklmnpqrstvwxz2456789bcdfghjklmnpqrstvwxz2456789bcd";
        for (uri, expected) in [
            ("/v3/import/SECRET.yaml", "/v3/import/[redacted]"),
            ("/v3/import/SECRET_c-12345.yaml", "/v3/import/[redacted]_c-12345.yaml"),
            ("/v3/import/x_SECRET.yaml", "/v3/import/[redacted]"),
            ("/v3/import/SECRET", "/v3/import/[redacted]"),
            ("/v3/tokens/token-abc:SECRET", "/v3/tokens/token-abc:[redacted]"),
            ("/v3/tokens/token-abc%3ASECRET", "/v3/tokens/token-abc:[redacted]"),
            ("/v3/clusters?token=SECRET&limit=2", "/v3/clusters?token=[redacted]&limit=2"),
            ("/v3/clusters?SECRET", "/v3/clusters?[redacted]"),
            ("/v3/clusters?limit", "/v3/clusters?limit"),
            (
                "/k8s/clusters/c-1/api/v1/namespaces/a/services/b/proxy/SECRET?limit=SECRET",
                "/k8s/clusters/c-1/api/v1/namespaces/a/services/b/proxy/[redacted]?limit=[redacted]",
            ),
            (
                "/k8s/clusters/c-1/api/v1/pods?watch=true&labelSelector=a%3Db&continue=SECRET",
                "/k8s/clusters/c-1/api/v1/pods?watch=true&labelSelector=a%3Db&continue=[redacted]",
            ),
            ("/v3/projects/c-1:p-1", "/v3/projects/c-1:p-1"),
        ] {
            let uri: Uri = uri.replace("SECRET", secret).parse().unwrap();
            assert_eq!(recorded(&uri), expected);
        }
    }

    #[test]
    fn what_is_recorded_of_an_address_has_a_limit() {
        let uri: Uri = format!("/v3/{}?limit={}", "ä".repeat(10), "1".repeat(20_000))
            .replace('ä', "%C3%A4")
            .parse()
            .unwrap();
        assert_eq!(recorded(&uri).len(), LENGTH_MAX);
    }
}
