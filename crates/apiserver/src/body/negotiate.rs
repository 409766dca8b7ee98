//! Content negotiation: the media type and transformation of a response, from `Accept`.

use api_meta::status::Status;
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};

/// The media types of ordinary bodies, in both directions.
const MEDIA_TYPES: &[&str] =
    &["application/json", "application/yaml", kubernetes_protobuf::MEDIA_TYPE];
/// The media types of watches.
const WATCH_MEDIA_TYPES: &[&str] =
    &["application/json;stream=watch", kubernetes_protobuf::WATCH_MEDIA_TYPE];

/// Media type of aggregated discovery; clients decide by its parameters how to read the body.
pub const AGGREGATED_MEDIA_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether a path supports protobuf beyond JSON and YAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// The kind is built into Kubernetes and has a protobuf encoding.
    Yes,
    /// The path only supports JSON and YAML.
    No,
}

impl Typed {
    /// The media types of ordinary bodies, in both directions.
    pub fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Yes => MEDIA_TYPES,
            Self::No => &MEDIA_TYPES[..2],
        }
    }

    /// The media types of watches.
    pub fn watch_media_types(self) -> &'static [&'static str] {
        match self {
            Self::Yes => WATCH_MEDIA_TYPES,
            Self::No => &WATCH_MEDIA_TYPES[..1],
        }
    }
}

impl From<bool> for Typed {
    fn from(has_protobuf: bool) -> Self {
        if has_protobuf { Self::Yes } else { Self::No }
    }
}

/// The encoding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFormat {
    Json,
    Yaml,
    Protobuf,
}

impl ResponseFormat {
    /// The media type, as in `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => kubernetes_protobuf::MEDIA_TYPE,
        }
    }
}

/// The transformation of a response, with the version of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// The object as it is.
    None,
    /// `Table` of this version of `meta.k8s.io`.
    Table(&'static str),
    /// Metadata alone, of this version of `meta.k8s.io`.
    PartialObjectMetadata(&'static str),
    /// A list of metadata, of this version of `meta.k8s.io`.
    PartialObjectMetadataList(&'static str),
    /// Aggregated discovery, of this version of `apidiscovery.k8s.io`.
    ApiGroupDiscoveryList(&'static str),
}

/// The negotiated representation of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub format: ResponseFormat,
    pub transform: Transform,
    /// JSON is indented.
    pub pretty: bool,
    /// The client accepts a body in gzip.
    pub gzip: bool,
}

/// Which transformations a path supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// One object: Table and PartialObjectMetadata.
    Object,
    /// A list or watch: Table, PartialObjectMetadata(List).
    List,
    /// Plain objects only.
    Plain,
    /// Discovery documents: aggregated ones.
    Discovery,
}

/// Negotiates the representation: the first acceptable entry of the `Accept` headers with the
/// highest `q`; JSON without such headers. `pretty` is the query parameter.
///
/// # Errors
/// 406 when no entry is acceptable.
pub fn accept(
    headers: &HeaderMap,
    pretty: Option<&str>,
    offer: Offer,
    typed: Typed,
) -> Result<Accepted, Status> {
    let entries = entries(headers);
    let any = !entries.is_empty();
    let gzip = accepts_gzip(headers);
    for entry in entries {
        if let Some((format, transform, entry_pretty)) = match_entry(entry, offer, typed) {
            let pretty = is_pretty(headers, pretty, entry_pretty);
            return Ok(Accepted { format, transform, pretty, gzip });
        }
    }
    if any {
        return Err(Status::not_acceptable(typed.media_types()));
    }
    let pretty = is_pretty(headers, pretty, false);
    Ok(Accepted { format: ResponseFormat::Json, transform: Transform::None, pretty, gzip })
}

/// Picks the offer that the `Accept` headers prefer, by media type alone; the first one without
/// such headers. `None` when no offer is acceptable.
pub fn choose<T: Copy>(headers: &HeaderMap, offers: &[(&str, T)]) -> Option<T> {
    let mut preferred = entries(headers);
    if preferred.is_empty() {
        preferred.push("*/*");
    }
    // Of equally preferred entries, a name precedes a wildcard.
    preferred.sort_by(|one, other| {
        let stars = |entry: &str| media(entry).matches('*').count();
        quality(other).total_cmp(&quality(one)).then(stars(one).cmp(&stars(other)))
    });
    preferred.into_iter().find_map(|entry| {
        let entry = media(entry);
        let (kind, subkind) = entry.split_once('/').unwrap_or((entry, entry));
        let fits = |requested: &str, offered: &str| requested == "*" || requested == offered;
        offers.iter().find_map(|(media, offer)| {
            let (offered, suboffered) = media.split_once('/')?;
            (fits(kind, offered) && fits(subkind, suboffered)).then_some(*offer)
        })
    })
}

/// The media type of an entry, without parameters.
fn media(entry: &str) -> &str {
    entry.split(';').next().unwrap_or_default().trim()
}

/// Whether `Accept-Encoding` contains gzip.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.split(';').next().is_some_and(|coding| coding.trim() == "gzip"))
}

/// The encoding of a refusal. It is never transformed. It is JSON for clients that accept no
/// supported type.
pub fn refusal(headers: &HeaderMap) -> ResponseFormat {
    let first =
        entries(headers).into_iter().find_map(|entry| match_entry(entry, Offer::Plain, Typed::Yes));
    first.map_or(ResponseFormat::Json, |(format, _, _)| format)
}

/// The entries of the `Accept` headers in the order of preference.
fn entries(headers: &HeaderMap) -> Vec<&str> {
    let mut entries: Vec<&str> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .collect();
    // Stable: of equal entries the first precedes.
    entries.sort_by(|one, other| quality(other).total_cmp(&quality(one)));
    entries
}

/// The `q` of an entry; 1 when it is absent or invalid.
fn quality(entry: &str) -> f32 {
    let mut parameters = entry.split(';').skip(1).filter_map(|part| part.trim().split_once('='));
    let quality = parameters.find(|(key, _)| *key == "q").and_then(|(_, q)| q.parse().ok());
    quality.filter(|quality: &f32| quality.is_finite()).unwrap_or(1.0)
}

fn match_entry(
    entry: &str,
    offer: Offer,
    typed: Typed,
) -> Option<(ResponseFormat, Transform, bool)> {
    let mut parts = entry.split(';').map(str::trim);
    let format = match parts.next()? {
        "application/json" | "*/*" | "application/*" => ResponseFormat::Json,
        "application/yaml" => ResponseFormat::Yaml,
        kubernetes_protobuf::MEDIA_TYPE => ResponseFormat::Protobuf,
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
        let plain = format != ResponseFormat::Protobuf || typed == Typed::Yes;
        return plain.then_some((format, Transform::None, pretty));
    }
    let meta_version = match (group, version) {
        ("meta.k8s.io", "v1") => "v1",
        ("meta.k8s.io", "v1beta1") => "v1beta1",
        ("apidiscovery.k8s.io", "v2") => "v2",
        _ => return None,
    };
    let transform = match (target, offer) {
        // Cells have no types, so a Table has no protobuf encoding.
        ("Table", Offer::Object | Offer::List) if format != ResponseFormat::Protobuf => {
            Transform::Table(meta_version)
        }
        ("PartialObjectMetadata", Offer::Object) => Transform::PartialObjectMetadata(meta_version),
        ("PartialObjectMetadataList", Offer::List) => {
            Transform::PartialObjectMetadataList(meta_version)
        }
        ("APIGroupDiscoveryList", Offer::Discovery) if format != ResponseFormat::Protobuf => {
            Transform::ApiGroupDiscoveryList(meta_version)
        }
        _ => return None,
    };
    Some((format, transform, pretty))
}

/// Whether JSON is indented. It is for browsers and curl.
fn is_pretty(headers: &HeaderMap, query: Option<&str>, entry: bool) -> bool {
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

/// The media type of the request body, without parameters; `None` when the header is absent or
/// empty.
pub fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().unwrap_or("invalid");
    let media = value.split(';').next().unwrap_or_default().trim();
    (!media.is_empty()).then_some(media)
}
