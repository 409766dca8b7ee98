//! A refusal by the roles of a cluster names the command that explains it, in a `Warning` header,
//! which kubectl prints. The body stays as the cluster sent it.

use apiserver::request::{Query, RequestInfo};
use apiserver::warnings;
use http::{Method, Request, Response, StatusCode, Uri};

use crate::router::CLUSTERS;

/// A request to a cluster, should it be refused. Cheap to make: most are not.
pub struct Deniable {
    method: Method,
    uri: Uri,
}

impl Deniable {
    /// `None` for a request that acts as somebody else, about whom the caller may know nothing.
    pub fn of<B>(request: &Request<B>) -> Option<Self> {
        let mut names = request.headers().keys();
        let acts_as_another = names.any(|name| name.as_str().starts_with("impersonate-"));
        let deniable = || Self { method: request.method().clone(), uri: request.uri().clone() };
        (!acts_as_another).then(deniable)
    }

    /// Adds the header to a refusal; leaves other responses as they are.
    pub fn explain<B>(&self, response: &mut Response<B>) {
        if response.status() == StatusCode::FORBIDDEN
            && let Some(command) = self.command()
        {
            let text = format!("which right is missing shows: {command}");
            warnings::add(response.headers_mut(), &[text]);
        }
    }

    fn command(&self) -> Option<String> {
        let (cluster, path) = self.uri.path().strip_prefix(CLUSTERS)?.split_once('/')?;
        let query = Query::parse(self.uri.query());
        let info = RequestInfo::parse(&self.method, &format!("/{path}"), &query);
        let mut words = vec!["drover access why me", info.verb];
        let what = what(&info);
        words.push(&what);
        if !info.name.is_empty() {
            words.push(&info.name);
        }
        words.extend(["--cluster", cluster]);
        if !info.namespace.is_empty() {
            words.extend(["-n", &info.namespace]);
        }
        Some(words.join(" "))
    }
}

/// The resource as the command accepts it: `deployments.apps/scale`, or a path.
fn what(info: &RequestInfo) -> String {
    if !info.is_resource {
        return info.path.clone();
    }
    let group = if info.group.is_empty() { String::new() } else { format!(".{}", info.group) };
    let subresource =
        if info.subresource.is_empty() { String::new() } else { format!("/{}", info.subresource) };
    format!("{}{group}{subresource}", info.resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, uri: &str) -> Request<()> {
        Request::builder().method(method).uri(uri).body(()).unwrap()
    }

    fn command(method: Method, uri: &str) -> Option<String> {
        Deniable::of(&request(method, uri)).and_then(|it| it.command())
    }

    #[test]
    fn the_command_explains_the_request_that_was_refused() {
        for (method, uri, expected) in [
            (Method::GET, "/k8s/clusters/c-1/api/v1/pods", "list pods --cluster c-1"),
            (
                Method::GET,
                "/k8s/clusters/c-1/api/v1/namespaces/a/pods/x/log",
                "get pods/log x --cluster c-1 -n a",
            ),
            (
                Method::PATCH,
                "/k8s/clusters/c-1/apis/apps/v1/namespaces/a/deployments/x/scale",
                "patch deployments.apps/scale x --cluster c-1 -n a",
            ),
            (Method::GET, "/k8s/clusters/c-1/metrics", "get /metrics --cluster c-1"),
        ] {
            let expected = format!("drover access why me {expected}");
            assert_eq!(command(method, uri), Some(expected), "{uri}");
        }
        assert_eq!(command(Method::GET, "/v3/clusters"), None);
    }

    #[test]
    fn who_acts_as_somebody_else_gets_no_explanation_of_themselves() {
        let mut request = request(Method::GET, "/k8s/clusters/c-1/api/v1/pods");
        assert!(Deniable::of(&request).is_some());
        request.headers_mut().insert("impersonate-user", "u-2".parse().unwrap());
        assert!(Deniable::of(&request).is_none());
    }
}
