//! `GET /v3/auditevents`: the audit log, newest first, for those who may read it.
//!
//! Events are no objects: they have no schema, no links and no watch, and are searched in the log's
//! files. Who may `list` `auditevents.management.cattle.io` reads all of them; administrators may.
//! Who may update a cluster reads those of that cluster: requests to it, its agents, and requests
//! for its object.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api_meta::audit as names;
use api_meta::status::Status;
use apiserver::attributes::{Attributes, Decision};
use apiserver::audit::Audit;
use apiserver::audit::read::{Accept, Position, Search, SearchError, search};
use apiserver::request::Query;
use apiserver::{ApiServer, UserInfo};
use http::{Method, request};
use jiff::Timestamp;
use rest_view::Urls;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Where it is.
pub const PATH: &str = "/v3/auditevents";
const GROUP: &str = "management.cattle.io";
/// Events of one page unless the request says otherwise, and at most.
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1000;
/// Longest time of one search; then the page has what was found, and the next page continues.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(3);
/// Searches at once, of all callers: each takes a core.
const SEARCHES_MAX: usize = 2;
/// Time that a search waits for others to end.
const QUEUE_TIME_MAX: Duration = Duration::from_secs(5);
/// When to try again after that time, in seconds.
const RETRY_SECONDS: u32 = 5;
/// How far an event may be from its place in the order of `stageTimestamp`, in which they are
/// nearly written.
const DISORDER_MAX: Duration = Duration::from_secs(60);
/// `event` of requests to the management API, which have no annotation.
const API: &str = "api";

/// Responds to searches. See the module.
pub struct AuditView {
    audit: Option<Arc<Audit>>,
    api: ApiServer,
    searches: Arc<Semaphore>,
}

/// The query of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Filter {
    user: Option<String>,
    cluster: Option<String>,
    event: Option<String>,
    verb: Option<String>,
    /// `403`, or `4xx`.
    status: Option<String>,
    address: Option<IpAddr>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    limit: usize,
    marker: Option<Position>,
}

impl AuditView {
    /// Reads the log that `api` writes, if it writes one.
    pub fn new(api: &ApiServer) -> Self {
        let searches = Arc::new(Semaphore::new(SEARCHES_MAX));
        Self { audit: api.audit().cloned(), api: api.clone(), searches }
    }

    /// A page for `user`, who has the groups of their roles. `only`: the one cluster that their
    /// token is valid for.
    ///
    /// # Errors
    /// 400 for a filter that cannot be parsed or a marker whose file was removed, 403, 404 when
    /// nothing is recorded, 405, and 503 when too many search.
    pub async fn page(
        &self,
        request::Parts { method, uri, headers, .. }: &request::Parts,
        user: UserInfo,
        only: Option<&str>,
    ) -> Result<Value, Status> {
        if method != Method::GET {
            return Err(Status::method_not_allowed());
        }
        let query = Query::parse(uri.query());
        let filter = Filter::parse(&query)?;
        self.authorize(user, filter.cluster.as_deref(), only)?;
        let Some(audit) = self.audit.clone() else {
            let text =
                "the audit log is switched off; start the server without --audit-log-path none";
            return Err(Status::new(404, "NotFound", text));
        };
        let permit =
            tokio::time::timeout(QUEUE_TIME_MAX, self.searches.clone().acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            let text = format!(
                "{SEARCHES_MAX} searches of the audit log are running; try again in {RETRY_SECONDS} s"
            );
            return Err(Status::unavailable(text).retry_after(RETRY_SECONDS));
        };
        let searched = filter.clone();
        let found = tokio::task::spawn_blocking(move || {
            // A search goes on when its client has gone, and counts until it ends.
            let _permit = permit;
            let accept = |event: &Value| searched.accept(event);
            let search_for = Search {
                before: searched.marker,
                limit: searched.limit,
                deadline: Instant::now() + SEARCH_TIME_MAX,
                texts: searched.texts(),
                accept: &accept,
            };
            search(audit.path(), &search_for)
        });
        let found = found.await.map_err(|_| Status::internal("the search failed"))?;
        let found = found.map_err(|error| match error {
            SearchError::Removed => Status::bad_request(error.to_string()),
            SearchError::Io(_) => {
                tracing::error!(%error, "searching the audit log");
                Status::internal("the audit log cannot be read; the server's log says why")
            }
        })?;
        let own = format!("{}{PATH}", Urls::of_request(headers, uri).base());
        let next = found.next.map(|next| {
            let others = uri.query().unwrap_or_default().split('&');
            let others = others.filter(|pair| !pair.is_empty() && !pair.starts_with("marker="));
            let marker = format!("marker={next}");
            let pairs: Vec<&str> = others.chain([marker.as_str()]).collect();
            format!("{own}?{}", pairs.join("&"))
        });
        let data: Vec<Value> =
            found.events.into_iter().map(|(at, event)| shown(&at.to_string(), event)).collect();
        Ok(json!({
            "type": "collection",
            "resourceType": "auditEvent",
            "links": {"self": own},
            "pagination": {"limit": filter.limit, "partial": next.is_some(), "next": next},
            "data": data,
        }))
    }

    fn authorize(
        &self,
        user: UserInfo,
        cluster: Option<&str>,
        only: Option<&str>,
    ) -> Result<(), Status> {
        let name = user.name.clone();
        let may = |verb: &str, resource: &str, name: &str| {
            let attributes = Attributes {
                user: user.clone(),
                verb: verb.to_owned(),
                is_resource: true,
                group: GROUP.to_owned(),
                version: "v3".to_owned(),
                resource: resource.to_owned(),
                name: name.to_owned(),
                ..Attributes::default()
            };
            matches!(self.api.authorizer().authorize(&attributes), Decision::Allow { .. })
        };
        let is_within = only.is_none() || cluster == only;
        let is_allowed = is_within
            && (may("list", "auditevents", "")
                || cluster.is_some_and(|cluster| may("update", "clusters", cluster)));
        if is_allowed {
            return Ok(());
        }
        let what = match cluster {
            Some(cluster) => format!("of cluster \"{cluster}\""),
            None => "of all clusters; name one of yours with clusterId".to_owned(),
        };
        let text = format!("user \"{name}\" may not read audit events {what}");
        Err(Status::new(403, "Forbidden", text))
    }
}

impl Filter {
    fn parse(query: &Query) -> Result<Self, Status> {
        let text =
            |name: &str| query.get(name).filter(|value| !value.is_empty()).map(str::to_owned);
        let wrong = |name: &str, what: &str| {
            Status::bad_request(format!("query parameter \"{name}\" must be {what}"))
        };
        let time = |name: &str| {
            let parsed = text(name).map(|value| value.parse::<Timestamp>()).transpose();
            parsed.map_err(|_| wrong(name, "a time such as 2026-01-02T03:04:05Z"))
        };
        let limit = text("limit").map(|limit| limit.parse::<usize>()).transpose();
        let limit = limit.map_err(|_| wrong("limit", "a number"))?.unwrap_or(LIMIT);
        let marker = text("marker").map(|marker| marker.parse()).transpose();
        let address = text("address").map(|address| address.parse::<IpAddr>()).transpose();
        Ok(Self {
            user: text("user"),
            cluster: text("clusterId"),
            event: text("event"),
            verb: text("verb"),
            status: text("status"),
            address: address.map_err(|_| wrong("address", "an IP address"))?,
            since: time("since")?,
            until: time("until")?,
            limit: limit.clamp(1, LIMIT_MAX),
            marker: marker.map_err(|()| wrong("marker", "the id of an event"))?,
        })
    }

    /// See [`Search::texts`].
    fn texts(&self) -> Vec<String> {
        let event = self.event.clone().filter(|event| event != API);
        let address = self.address.map(|address| address.to_string());
        [self.user.clone(), self.cluster.clone(), self.verb.clone(), event, address]
            .into_iter()
            .flatten()
            .map(|text| {
                let quoted = Value::from(text.as_str()).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            })
            .collect()
    }

    fn accept(&self, event: &Value) -> Accept {
        let ended = event["stageTimestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
        if let (Some(since), Some(ended)) = (self.since, ended)
            && ended < since
        {
            let is_over = since.duration_since(ended).unsigned_abs() > DISORDER_MAX;
            return if is_over { Accept::End } else { Accept::No };
        }
        let code = event["responseStatus"]["code"].as_u64().unwrap_or_default().to_string();
        let fits =
            |filter: &Option<String>, has: &dyn Fn(&str) -> bool| filter.as_deref().is_none_or(has);
        let is_found = self.until.is_none_or(|until| ended.is_none_or(|ended| ended <= until))
            && fits(&self.user, &|user| is_of_user(event, user))
            && fits(&self.cluster, &|cluster| cluster_of(event) == Some(cluster))
            && fits(&self.event, &|kind| kind_of(event) == kind)
            && fits(&self.verb, &|verb| event["verb"] == verb)
            && fits(&self.status, &|filter| {
                filter.strip_suffix("xx").map_or(filter == code, |class| code.starts_with(class))
            })
            && self.address.is_none_or(|address| is_from(event, address));
        if is_found { Accept::Yes } else { Accept::No }
    }
}

fn kind_of(event: &Value) -> &str {
    event["annotations"][names::EVENT].as_str().unwrap_or(API)
}

fn is_from(event: &Value, address: IpAddr) -> bool {
    let mut addresses = event["sourceIPs"].as_array().into_iter().flatten();
    addresses.any(|known| known.as_str().and_then(|known| known.parse().ok()) == Some(address))
}

/// By id or login name; of a failed login, by the name that was given.
fn is_of_user(event: &Value, user: &str) -> bool {
    event["user"]["username"] == user
        || event["user"]["extra"]["username"][0] == user
        || event["annotations"][names::LOGIN_NAME] == user
}

/// The cluster that an event belongs to: its owners may read it.
fn cluster_of(event: &Value) -> Option<&str> {
    let annotated = event["annotations"][names::CLUSTER].as_str();
    let of_object = || {
        let object = &event["objectRef"];
        let is_cluster = object["resource"] == "clusters" && object["apiGroup"] == GROUP;
        is_cluster.then(|| object["name"].as_str()).flatten()
    };
    annotated.or_else(of_object)
}

/// An event as the response has it. Without bodies: a policy may record objects that not everybody
/// who reads events may read.
fn shown(id: &str, mut event: Value) -> Value {
    let (kind, cluster) = (kind_of(&event).to_owned(), cluster_of(&event).map(str::to_owned));
    let Some(fields) = event.as_object_mut() else { return event };
    for omitted in ["kind", "apiVersion", "requestObject", "responseObject"] {
        fields.remove(omitted);
    }
    let created = fields.get("stageTimestamp").cloned().unwrap_or_default();
    for (name, value) in [
        ("id", id.into()),
        ("type", "auditEvent".into()),
        ("baseType", "auditEvent".into()),
        ("links", json!({})),
        ("created", created),
        ("event", kind.into()),
        ("clusterId", cluster.into()),
    ] {
        fields.insert(name.to_owned(), value);
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(query: &str) -> Filter {
        Filter::parse(&Query::parse(Some(query))).unwrap()
    }

    #[test]
    fn an_owner_of_a_cluster_is_shown_no_event_of_another() {
        let of = |event: Value| cluster_of(&event).map(str::to_owned);
        let own = Some("c-1".to_owned());
        assert_eq!(of(json!({"annotations": {"drover.io/cluster": "c-1"}})), own);
        let object = json!({"resource": "clusters", "apiGroup": GROUP, "name": "c-1"});
        assert_eq!(of(json!({"objectRef": object})), own);
        // What is in the cluster's namespace may be hidden from its owner, and other groups have
        // clusters, too.
        let inside = json!({"resource": "secrets", "namespace": "c-1", "name": "c-1"});
        assert_eq!(of(json!({"objectRef": inside})), None);
        let other = json!({"resource": "clusters", "apiGroup": "example.com", "name": "c-1"});
        assert_eq!(of(json!({"objectRef": other})), None);
        let proxied = json!({"annotations": {"drover.io/cluster": "c-2"}, "objectRef": object});
        assert_eq!(of(proxied), Some("c-2".to_owned()));
    }

    #[test]
    fn filters_narrow_and_an_old_event_ends_the_search() {
        let event = json!({
            "verb": "get", "stageTimestamp": "2026-01-02T03:04:05.000000Z",
            "user": {"username": "u-1", "extra": {"username": ["ann"]}},
            "responseStatus": {"code": 403}, "sourceIPs": ["203.0.113.9", "2001:db8::1"],
            "annotations": {"drover.io/event": "proxied", "drover.io/cluster": "c-1"},
        });
        for (query, accepted) in [
            ("", Accept::Yes),
            ("user=ann&clusterId=c-1&event=proxied&verb=get&status=403", Accept::Yes),
            ("user=u-1&status=4xx&since=2026-01-02T03:04:05Z", Accept::Yes),
            ("address=203.0.113.9&address=", Accept::Yes),
            ("address=2001:DB8:0::1", Accept::Yes),
            ("address=203.0.113.1", Accept::No),
            ("user=an", Accept::No),
            ("status=5xx", Accept::No),
            ("event=api", Accept::No),
            ("until=2026-01-02T03:04:04Z", Accept::No),
            ("since=2026-01-02T03:04:30Z", Accept::No),
            ("since=2026-01-02T03:06:00Z", Accept::End),
        ] {
            let filter = filter(query);
            assert_eq!(filter.accept(&event), accepted, "{query}");
            let line = event.to_string();
            let is_possible = filter.texts().iter().all(|text| line.contains(text));
            assert!(is_possible || accepted != Accept::Yes, "{query}");
        }
        assert_eq!(filter("limit=100000").limit, LIMIT_MAX);
        for wrong in ["limit=x", "since=yesterday", "marker=x", "address=here"] {
            assert_eq!(Filter::parse(&Query::parse(Some(wrong))).unwrap_err().code, 400, "{wrong}");
        }
    }
}
