//! Names that begin with the domain of their owner: `acme.io/foo`.

use api_meta::names;
use api_meta::status::Cause;

const PATH_TEXT: &str =
    "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";

/// Causes for a text at `field` that is not a domain with a path.
pub fn problems(field: &str, text: &str) -> Vec<Cause> {
    if text.is_empty() {
        return vec![Cause::required(field, "")];
    }
    let parts = text.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty());
    let Some((host, path)) = parts else {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![Cause::invalid(field, &text.into(), why)];
    };
    let cause = |why: String| Cause::invalid(field, &host.into(), &why);
    let mut causes: Vec<Cause> = names::dns1123_subdomain(host).into_iter().map(cause).collect();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !path.bytes().all(fits) {
        causes.push(Cause::invalid(field, &path.into(), PATH_TEXT));
    }
    causes
}
