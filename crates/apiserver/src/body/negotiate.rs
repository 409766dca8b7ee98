//! Which form an answer takes: media type and transformation, from `Accept`.

use api_meta::status::Status;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

/// Media types of ordinary bodies, in both directions.
pub const MEDIA_TYPES: &[&str] = &["application/json", "application/yaml"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Yaml,
}

impl Format {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    None,
    /// `Table` of this version of `meta.k8s.io`.
    Table(&'static str),
    PartialObjectMetadata(&'static str),
    PartialObjectMetadataList(&'static str),
    /// Aggregated discovery.
    ApiGroupDiscoveryList(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub format: Format,
    pub transform: Transform,
    pub pretty: bool,
}

/// Where transformed answers are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// One object: Table and PartialObjectMetadata.
    Object,
    /// A list or watch: Table, PartialObjectMetadata(List).
    List,
    /// Plain objects only.
    Plain,
    Discovery,
}

/// Picks the first acceptable entry of the `Accept` headers.
pub fn accept(headers: &HeaderMap, pretty: Option<&str>, offer: Offer) -> Result<Accepted, Status> {
    let entries = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|entry| !entry.is_empty());
    let mut any = false;
    for entry in entries {
        any = true;
        if let Some((format, transform, entry_pretty)) = acceptable(entry, offer) {
            let pretty = wants_pretty(headers, pretty, entry_pretty);
            return Ok(Accepted { format, transform, pretty });
        }
    }
    if any {
        return Err(Status::not_acceptable(MEDIA_TYPES));
    }
    let pretty = wants_pretty(headers, pretty, false);
    Ok(Accepted { format: Format::Json, transform: Transform::None, pretty })
}

fn acceptable(entry: &str, offer: Offer) -> Option<(Format, Transform, bool)> {
    let mut parts = entry.split(';').map(str::trim);
    let format = match parts.next()? {
        "application/json" | "*/*" | "application/*" => Format::Json,
        "application/yaml" => Format::Yaml,
        _ => return None,
    };
    let (mut target, mut group, mut version, mut pretty) = ("", "", "", false);
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        match key {
            "as" => target = value,
            "g" => group = value,
            "v" => version = value,
            "pretty" => pretty = value == "1",
            _ => {}
        }
    }
    if target.is_empty() {
        return Some((format, Transform::None, pretty));
    }
    let meta_version = match (group, version) {
        ("meta.k8s.io", "v1") => "v1",
        ("meta.k8s.io", "v1beta1") => "v1beta1",
        ("apidiscovery.k8s.io", "v2") => "v2",
        _ => return None,
    };
    let transform = match (target, offer) {
        ("Table", Offer::Object | Offer::List) => Transform::Table(meta_version),
        ("PartialObjectMetadata", Offer::Object) => Transform::PartialObjectMetadata(meta_version),
        ("PartialObjectMetadataList", Offer::List) => {
            Transform::PartialObjectMetadataList(meta_version)
        }
        ("APIGroupDiscoveryList", Offer::Discovery) => {
            Transform::ApiGroupDiscoveryList(meta_version)
        }
        _ => return None,
    };
    Some((format, transform, pretty))
}

/// People who look with a browser or curl get line breaks.
fn wants_pretty(headers: &HeaderMap, query: Option<&str>, entry: bool) -> bool {
    match query {
        Some("0" | "false") => false,
        Some(_) => true,
        None if entry => true,
        None => {
            let agent = headers.get(http::header::USER_AGENT).and_then(|agent| agent.to_str().ok());
            agent.is_some_and(|agent| {
                ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
            })
        }
    }
}

/// The body's media type without parameters; `None` when the header is absent or empty.
pub fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().unwrap_or("invalid");
    let media = value.split(';').next().unwrap_or_default().trim();
    (!media.is_empty()).then_some(media)
}
