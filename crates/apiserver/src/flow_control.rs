//! Priority and fairness: which requests execute when more arrive than can be served.
//!
//! A request matches a FlowSchema ([`classify`]), which assigns it to a priority level. Each level
//! has its own seats ([`borrow`]). Within a level, flows wait in fair queues ([`queue_set`],
//! [`shuffle`]). A request executes while it holds a seat ([`level`]). A client that floods the
//! server therefore fills only its own queues; leader elections, nodes and administrators are still
//! served. The objects are those of Kubernetes: [`follow`] applies the stored ones to the running
//! levels, [`bootstrap`] holds the initial ones.

pub mod bootstrap;
pub mod borrow;
pub mod classify;
pub mod follow;
pub mod level;
pub mod queue_set;
pub mod shuffle;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use api_meta::object::ObjectExt;
use arc_swap::ArcSwap;
use http::HeaderValue;
use k8s_openapi::api::flowcontrol::v1::{
    FlowSchemaSpec, LimitedPriorityLevelConfiguration, PriorityLevelConfigurationSpec,
};
use level::{PriorityLevel, Rejection, Seat};
use queue_set::QueueShape;
use serde_json::Value;

use crate::attributes::UserInfo;
use crate::metrics::{Counted, FlowCounts, LevelSeats, Metrics};
use crate::request::RequestInfo;

/// The API group of FlowSchemas and priority levels.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// Read requests that execute at once.
pub const READS_MAX: u32 = 400;
/// Mutating requests that execute at once.
pub const WRITES_MAX: u32 = 200;
/// Seats of the whole server, divided among the limited priority levels.
pub const SEATS: u32 = READS_MAX + WRITES_MAX;
/// Most queues of one level, whatever its object says: each queue costs memory and time.
pub const QUEUES_MAX: usize = 1024;
/// Most seats that one request takes.
pub const REQUEST_SEATS_MAX: u32 = 10;
/// Objects that a list may read for each of its seats.
const OBJECTS_PER_SEAT: usize = 100;
/// Milliseconds between two measurements of demand, after which seats move between levels.
const ADJUST_EVERY_MILLIS: u64 = 1_000;
/// Part of the earlier demand that still counts at each measurement, so that a level holds borrowed
/// seats for a while after its demand has fallen.
const DEMAND_DECAY: f64 = 0.9;

/// Seats of a list of this many objects: one for each 100 objects, from 1 to [`REQUEST_SEATS_MAX`].
pub fn list_seats(objects: usize) -> u32 {
    let seats = objects.div_ceil(OBJECTS_PER_SEAT);
    u32::try_from(seats).unwrap_or(u32::MAX).clamp(1, REQUEST_SEATS_MAX)
}

/// The priority levels of one server and the FlowSchemas that assign requests to them. Shared in an
/// `Arc`.
pub struct FlowControl {
    in_force: ArcSwap<InForce>,
    hasher: RandomState,
    metrics: Arc<Metrics>,
    begun: Instant,
    /// Milliseconds after `begun` at which seats were last moved.
    adjusted: AtomicU64,
}

/// The FlowSchemas by precedence, and the levels by name.
struct InForce {
    schemas: Vec<ActiveFlowSchema>,
    levels: BTreeMap<String, Configured>,
}

struct ActiveFlowSchema {
    name: String,
    uid: HeaderValue,
    spec: FlowSchemaSpec,
    level: Configured,
    counts: FlowCounts,
}

/// A running level with the settings of its object.
#[derive(Clone)]
struct Configured {
    name: Arc<str>,
    uid: HeaderValue,
    shares: borrow::Shares,
    level: Arc<PriorityLevel>,
    /// Seats, smoothed over the measurements so far.
    demand: Arc<parking_lot::Mutex<f64>>,
}

/// A request that holds its seats. Dropping it releases them and ends its execution for the
/// metrics.
pub struct Admitted {
    /// Sent with the response.
    pub headers: FlowSchemaHeaders,
    _seat: Seat,
    _counted: [Counted; 2],
}

/// The response headers that name how a request was classified: `X-Kubernetes-PF-FlowSchema-UID`
/// and `X-Kubernetes-PF-PriorityLevel-UID`. The values are empty for built-in objects that are not
/// stored.
#[derive(Clone, Debug)]
pub struct FlowSchemaHeaders {
    pub flow_schema_uid: HeaderValue,
    pub priority_level_uid: HeaderValue,
}

/// A rejected request: the caller responds with 429.
#[derive(Debug)]
pub struct Refused {
    pub headers: FlowSchemaHeaders,
    pub rejection: Rejection,
}

impl FlowControl {
    /// Returns a control with the mandatory initial objects in force.
    pub fn new(metrics: Arc<Metrics>) -> Arc<Self> {
        let empty = InForce { schemas: Vec::new(), levels: BTreeMap::new() };
        let control = Self {
            in_force: ArcSwap::from_pointee(empty),
            hasher: RandomState::new(),
            metrics,
            begun: Instant::now(),
            adjusted: AtomicU64::new(0),
        };
        control.configure(&[], &[]);
        Arc::new(control)
    }

    /// Waits until the request gets its `seats` of the level that its FlowSchema names. Dropping
    /// the future gives up its queue slot.
    ///
    /// # Errors
    /// [`Refused`] when the level has neither a free seat nor a free queue slot, or when the wait
    /// reached [`level::QUEUE_WAIT_MAX`]. The caller responds with 429 and the headers.
    pub async fn admit(
        &self,
        user: &UserInfo,
        info: &RequestInfo,
        seats: u32,
    ) -> Result<Admitted, Refused> {
        self.adjust_when_due();
        let in_force = self.in_force.load();
        let schema = in_force.schema(user, info);
        let distinguisher = classify::distinguisher(&schema.spec, user, info);
        let flow = self.hasher.hash_one((schema.name.as_str(), distinguisher));
        let headers = FlowSchemaHeaders {
            flow_schema_uid: schema.uid.clone(),
            priority_level_uid: schema.level.uid.clone(),
        };
        let (level, counts) = (schema.level.level.clone(), schema.counts.clone());
        drop(in_force);
        let arrived = Instant::now();
        let waiting = counts.wait();
        let admitted = level.admit(flow, seats).await;
        drop(waiting);
        match admitted {
            Ok(seat) => {
                let counted = counts.count_dispatch(arrived.elapsed(), seats);
                Ok(Admitted { headers, _seat: seat, _counted: counted })
            }
            Err(rejection) => {
                self.metrics.count_rejection(&counts, rejection.as_str(), arrived.elapsed());
                Err(Refused { headers, rejection })
            }
        }
    }

    /// Replaces the objects in force. Mandatory objects that are missing are added with their
    /// initial spec. A level whose queues are unchanged keeps its waiting and executing requests;
    /// objects that cannot be decoded are ignored.
    pub fn configure(&self, schemas: &[Value], levels: &[Value]) {
        let before = self.in_force.load_full();
        let mandatory = |given: &[Value], initial: Vec<Value>| {
            let missing = move |object: &Value| {
                bootstrap::is_mandatory(object.name())
                    && !given.iter().any(|other| other.name() == object.name())
            };
            initial.into_iter().filter(missing).collect::<Vec<_>>()
        };
        let added = mandatory(levels, bootstrap::priority_levels());
        let levels: BTreeMap<String, Configured> = levels
            .iter()
            .chain(&added)
            .filter_map(|object| {
                let earlier = before.levels.get(object.name());
                Some((object.name().to_owned(), build_level(object, earlier)?))
            })
            .collect();
        let added = mandatory(schemas, bootstrap::flow_schemas());
        let schema = |object: &Value| {
            let spec: FlowSchemaSpec = serde_json::from_value(object["spec"].clone()).ok()?;
            let level = levels.get(&spec.priority_level_configuration.name)?.clone();
            let name = object.name().to_owned();
            let counts = self.metrics.flow(&name, &level.name);
            Some(ActiveFlowSchema { name, uid: header(object.uid()), spec, level, counts })
        };
        let mut schemas: Vec<ActiveFlowSchema> =
            schemas.iter().chain(&added).filter_map(schema).collect();
        // The catch-all is last, and takes what falls under no other.
        let precedence =
            |schema: &ActiveFlowSchema| schema.spec.matching_precedence.unwrap_or(1000);
        schemas.sort_by(|a, b| (precedence(a), &a.name).cmp(&(precedence(b), &b.name)));
        let in_force = InForce { schemas, levels };
        in_force.share(&self.metrics, false);
        self.in_force.store(Arc::new(in_force));
    }

    /// Measures the demand since the last call and moves seats to the levels that need them.
    pub fn adjust(&self) {
        self.in_force.load().share(&self.metrics, true);
    }

    /// Calls [`FlowControl::adjust`] when it is due. Requests trigger it: without requests there is
    /// nothing to move.
    fn adjust_when_due(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.adjusted.load(Ordering::Relaxed);
        let due = now.saturating_sub(last) >= ADJUST_EVERY_MILLIS;
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        if due && self.adjusted.compare_exchange(last, now, set, get).is_ok() {
            self.adjust();
        }
    }

    /// The name and the current load of each level, ordered by name.
    pub fn loads(&self) -> Vec<(Arc<str>, level::Load)> {
        let in_force = self.in_force.load();
        let load = |level: &Configured| (level.name.clone(), level.level.load());
        in_force.levels.values().map(load).collect()
    }
}

impl InForce {
    fn schema(&self, user: &UserInfo, info: &RequestInfo) -> &ActiveFlowSchema {
        let matching = self.schemas.iter().find(|s| classify::matches(&s.spec, user, info));
        let catch_all = || self.schemas.iter().find(|s| s.name == bootstrap::CATCH_ALL);
        matching.or_else(catch_all).expect("the mandatory FlowSchemas are always in force")
    }

    /// Divides the seats among the levels again. With `measure_demand`, by the demand since the
    /// last measurement; otherwise by the demand measured before.
    fn share(&self, metrics: &Metrics, measure_demand: bool) {
        let limited: Vec<&Configured> =
            self.levels.values().filter(|level| !level.level.exempt).collect();
        let shares: Vec<borrow::Shares> = limited.iter().map(|level| level.shares).collect();
        let mut limits = borrow::limits(SEATS, &shares);
        for (level, limits) in limited.iter().zip(&mut limits) {
            let mut demand = level.demand.lock();
            if measure_demand {
                *demand = f64::from(level.level.take_demand()).max(*demand * DEMAND_DECAY);
            }
            limits.demand = demand.round() as u32;
        }
        let seats = borrow::allocate(SEATS, &limits);
        for ((level, limits), seats) in limited.iter().zip(&limits).zip(seats) {
            if level.level.load().seats != seats {
                level.level.set_seats(seats);
            }
            let &borrow::SeatLimits { nominal, least, most, .. } = limits;
            let seats = LevelSeats { nominal, least, most, current: seats };
            metrics.level_seats(&level.name, seats);
        }
    }
}

/// The level of an object. The running level is reused when the shape of its queues is unchanged.
/// `None` when the object cannot be decoded.
fn build_level(object: &Value, earlier: Option<&Configured>) -> Option<Configured> {
    let spec: PriorityLevelConfigurationSpec =
        serde_json::from_value(object["spec"].clone()).ok()?;
    let exempt = spec.type_ == "Exempt";
    let (shape, shares) = match (&spec.limited, exempt) {
        (Some(limited), false) => (shape(limited), shares(limited)),
        (None, false) => return None,
        (_, true) => (
            QueueShape { queues: 0, hand: 0, length_max: 0 },
            borrow::Shares { shares: 0, lendable_percent: 0, borrowing_percent: Some(0) },
        ),
    };
    let reused = earlier.filter(|old| old.level.shape == shape && old.level.exempt == exempt);
    Some(Configured {
        name: object.name().into(),
        uid: header(object.uid()),
        shares,
        level: reused.map_or_else(|| PriorityLevel::new(exempt, shape, 0), |old| old.level.clone()),
        demand: reused.map(|old| old.demand.clone()).unwrap_or_default(),
    })
}

fn shape(limited: &LimitedPriorityLevelConfiguration) -> QueueShape {
    let queuing = limited.limit_response.as_ref().and_then(|response| response.queuing.as_ref());
    let Some(queuing) = queuing else { return QueueShape { queues: 0, hand: 0, length_max: 0 } };
    let number = |value: Option<i32>, absent: usize| {
        value.and_then(|value| usize::try_from(value).ok()).unwrap_or(absent)
    };
    QueueShape {
        queues: number(queuing.queues, 64).clamp(1, QUEUES_MAX),
        hand: number(queuing.hand_size, 8),
        length_max: number(queuing.queue_length_limit, 50),
    }
}

fn shares(limited: &LimitedPriorityLevelConfiguration) -> borrow::Shares {
    let number = |value: Option<i32>| value.and_then(|value| u32::try_from(value).ok());
    borrow::Shares {
        shares: number(limited.nominal_concurrency_shares).unwrap_or(30),
        lendable_percent: number(limited.lendable_percent).unwrap_or(0),
        borrowing_percent: number(limited.borrowing_limit_percent),
    }
}

fn header(uid: &str) -> HeaderValue {
    HeaderValue::from_str(uid).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests;
