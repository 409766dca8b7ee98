//! Which form an answer takes: media type and transformation, from `Accept`.

use api_meta::status::Status;
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};

/// Media types of ordinary bodies, in both directions.
const MEDIA_TYPES: &[&str] =
    &["application/json", "application/yaml", kubernetes_protobuf::MEDIA_TYPE];
/// Media types of watches.
const WATCH_MEDIA_TYPES: &[&str] =
    &["application/json;stream=watch", kubernetes_protobuf::WATCH_MEDIA_TYPE];

/// Media type of aggregated discovery; clients decide by its parameters how to read the body.
pub const AGGREGATED_MEDIA_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What a path speaks beyond JSON and YAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// Its kind is one of Kubernetes' own, which have a protobuf form.
    Yes,
    No,
}

impl Typed {
    /// Media types of ordinary bodies, in both directions.
    pub fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Yes => MEDIA_TYPES,
            Self::No => &MEDIA_TYPES[..2],
        }
    }

    /// Media types of watches.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Yaml,
    Protobuf,
}

impl Format {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => kubernetes_protobuf::MEDIA_TYPE,
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
    /// The client takes a compressed body.
    pub gzip: bool,
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

/// Picks the first acceptable entry of the `Accept` headers, of those with the highest `q`.
pub fn accept(
    headers: &HeaderMap,
    pretty: Option<&str>,
    offer: Offer,
    typed: Typed,
) -> Result<Accepted, Status> {
    let entries = entries(headers);
    let any = !entries.is_empty();
    let gzip = takes_gzip(headers);
    for entry in entries {
        if let Some((format, transform, entry_pretty)) = acceptable(entry, offer, typed) {
            let pretty = wants_pretty(headers, pretty, entry_pretty);
            return Ok(Accepted { format, transform, pretty, gzip });
        }
    }
    if any {
        return Err(Status::not_acceptable(typed.media_types()));
    }
    let pretty = wants_pretty(headers, pretty, false);
    Ok(Accepted { format: Format::Json, transform: Transform::None, pretty, gzip })
}

/// The offer that the `Accept` headers want most, by media types alone; the first one when there
/// are no such headers. `None`: they want something else.
pub fn choose<T: Copy>(headers: &HeaderMap, offers: &[(&str, T)]) -> Option<T> {
    let mut wanted = entries(headers);
    if wanted.is_empty() {
        wanted.push("*/*");
    }
    // Of those wanted equally, a name counts before what stands for many.
    wanted.sort_by(|one, other| {
        let stars = |entry: &str| media(entry).matches('*').count();
        quality(other).total_cmp(&quality(one)).then(stars(one).cmp(&stars(other)))
    });
    wanted.into_iter().find_map(|entry| {
        let entry = media(entry);
        let (kind, subkind) = entry.split_once('/').unwrap_or((entry, entry));
        let fits = |wanted: &str, offered: &str| wanted == "*" || wanted == offered;
        offers.iter().find_map(|(media, offer)| {
            let (offered, suboffered) = media.split_once('/')?;
            (fits(kind, offered) && fits(subkind, suboffered)).then_some(*offer)
        })
    })
}

/// An entry without its parameters.
fn media(entry: &str) -> &str {
    entry.split(';').next().unwrap_or_default().trim()
}

/// Whether `Accept-Encoding` names gzip.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.split(';').next().is_some_and(|coding| coding.trim() == "gzip"))
}

/// The form of a refusal. It is never transformed, and JSON for those who take nothing that there is.
pub fn refusal(headers: &HeaderMap) -> Format {
    let first =
        entries(headers).into_iter().find_map(|entry| acceptable(entry, Offer::Plain, Typed::Yes));
    first.map_or(Format::Json, |(format, _, _)| format)
}

/// The entries of the `Accept` headers, most wanted first.
fn entries(headers: &HeaderMap) -> Vec<&str> {
    let mut entries: Vec<&str> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .collect();
    // Stable: of equals the first counts.
    entries.sort_by(|one, other| quality(other).total_cmp(&quality(one)));
    entries
}

/// The `q` of an entry; 1 when it has none that can be read.
fn quality(entry: &str) -> f32 {
    let mut parameters = entry.split(';').skip(1).filter_map(|part| part.trim().split_once('='));
    let quality = parameters.find(|(key, _)| *key == "q").and_then(|(_, q)| q.parse().ok());
    quality.filter(|quality: &f32| quality.is_finite()).unwrap_or(1.0)
}

fn acceptable(entry: &str, offer: Offer, typed: Typed) -> Option<(Format, Transform, bool)> {
    let mut parts = entry.split(';').map(str::trim);
    let format = match parts.next()? {
        "application/json" | "*/*" | "application/*" => Format::Json,
        "application/yaml" => Format::Yaml,
        kubernetes_protobuf::MEDIA_TYPE => Format::Protobuf,
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
        let plain = format != Format::Protobuf || typed == Typed::Yes;
        return plain.then_some((format, Transform::None, pretty));
    }
    let meta_version = match (group, version) {
        ("meta.k8s.io", "v1") => "v1",
        ("meta.k8s.io", "v1beta1") => "v1beta1",
        ("apidiscovery.k8s.io", "v2") => "v2",
        _ => return None,
    };
    let transform = match (target, offer) {
        // Cells have no types, so a Table has no protobuf form.
        ("Table", Offer::Object | Offer::List) if format != Format::Protobuf => {
            Transform::Table(meta_version)
        }
        ("PartialObjectMetadata", Offer::Object) => Transform::PartialObjectMetadata(meta_version),
        ("PartialObjectMetadataList", Offer::List) => {
            Transform::PartialObjectMetadataList(meta_version)
        }
        ("APIGroupDiscoveryList", Offer::Discovery) if format != Format::Protobuf => {
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
