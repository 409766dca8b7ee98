//! Which kinds a place serves, read as the caller and remembered for a while.
//!
//! What is remembered is no secret to whoever may use the place at all, and all that is done with
//! it is a request to the place as the caller. For a type that is not known it is read again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rest_view::{ApiError, Context};
use serde_json::Value;

use crate::kinds::Kinds;
use crate::path::Place;

/// How long the kinds of a place are used before they are read again.
const KINDS_AGE_MAX: Duration = Duration::from_secs(30);
/// Places whose kinds are remembered; some 50 KB each.
const PLACES_MAX: usize = 200;
/// Groups of APIs that are read of a cluster without aggregated discovery (before 1.27).
const GROUP_VERSIONS_MAX: usize = 500;
/// All groups in one response; without it, the older list of groups.
const ACCEPT: &str = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,\
    application/json;v=v2beta1;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,application/json";

struct Remembered {
    since: Instant,
    kinds: Arc<Kinds>,
}

/// The kinds of all places that were used lately.
#[derive(Default)]
pub struct Discovery {
    places: Mutex<HashMap<Place, Remembered>>,
}

impl Discovery {
    /// The kinds of the place, at most [`KINDS_AGE_MAX`] old. `context` has a client of the place.
    ///
    /// # Errors
    /// The caller may not use the place, or it does not respond.
    pub async fn kinds(
        &self,
        context: &Context<'_>,
        place: &Place,
    ) -> Result<Arc<Kinds>, ApiError> {
        let known =
            self.places.lock().get(place).and_then(|known| {
                (known.since.elapsed() < KINDS_AGE_MAX).then(|| known.kinds.clone())
            });
        match known {
            Some(kinds) => Ok(kinds),
            None => self.kinds_now(context, place).await,
        }
    }

    /// The kinds of the place now.
    ///
    /// # Errors
    /// As for [`Self::kinds`].
    pub async fn kinds_now(
        &self,
        context: &Context<'_>,
        place: &Place,
    ) -> Result<Arc<Kinds>, ApiError> {
        let kinds = Arc::new(read(context).await?);
        let mut places = self.places.lock();
        places.retain(|_, known| known.since.elapsed() < KINDS_AGE_MAX);
        if places.len() < PLACES_MAX {
            let remembered = Remembered { since: Instant::now(), kinds: kinds.clone() };
            places.insert(place.clone(), remembered);
        }
        Ok(kinds)
    }
}

async fn read(context: &Context<'_>) -> Result<Kinds, ApiError> {
    let mut kinds = Kinds::default();
    let (core, groups) = tokio::try_join!(get(context, "/api"), get(context, "/apis"))?;
    if core["kind"] == "APIGroupDiscoveryList" && groups["kind"] == "APIGroupDiscoveryList" {
        kinds.add_aggregated(&core);
        kinds.add_aggregated(&groups);
        return Ok(kinds.without_moved());
    }
    for (group, version) in group_versions(&core, &groups) {
        let path = match group.as_str() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        match get(context, &path).await {
            Ok(list) => kinds.add_listed(&group, &version, &list),
            // A group whose own server is away is missing, and not all the others with it.
            Err(error) if [404, 503].contains(&error.status) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(kinds.without_moved())
}

/// Groups and versions, those first that their group prefers.
fn group_versions(core: &Value, groups: &Value) -> Vec<(String, String)> {
    let mut found: Vec<(String, String, bool)> = Vec::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_core = core["versions"].as_array().into_iter().flatten();
    found.extend(of_core.map(|version| (String::new(), text(version), true)));
    for group in groups["groups"].as_array().into_iter().flatten() {
        let preferred = text(&group["preferredVersion"]["version"]);
        for version in group["versions"].as_array().into_iter().flatten() {
            let version = text(&version["version"]);
            let is_preferred = version == preferred;
            found.push((text(&group["name"]), version, is_preferred));
        }
    }
    found.sort_by_key(|(_, _, is_preferred)| !is_preferred);
    found.truncate(GROUP_VERSIONS_MAX);
    found.into_iter().map(|(group, version, _)| (group, version)).collect()
}

async fn get(context: &Context<'_>, path: &str) -> Result<Value, ApiError> {
    let request = http::Request::get(path).header(http::header::ACCEPT, ACCEPT).body(Vec::new());
    let request = request.map_err(ApiError::server_error)?;
    Ok(context.client.request(request).await?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn preferred_versions_come_first() {
        let groups = json!({"groups": [{
            "name": "example.io", "preferredVersion": {"version": "v2"},
            "versions": [{"version": "v1"}, {"version": "v2"}],
        }]});
        let found = group_versions(&json!({"versions": ["v1"]}), &groups);
        let of = |group: &str, version: &str| (group.to_owned(), version.to_owned());
        let expected = [of("", "v1"), of("example.io", "v2"), of("example.io", "v1")];
        assert_eq!(found, expected);
    }
}
