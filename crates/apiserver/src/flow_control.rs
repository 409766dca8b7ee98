//! Priority and fairness: who gets in when more ask than can be served.
//!
//! A request falls under a FlowSchema ([`classify`]), which sends it to a priority level. Each level
//! has seats of its own ([`borrow`]), in it flows have fair queues ([`queue_set`], [`shuffle`]); a
//! request executes while it holds a seat ([`level`]). So one client that floods fills its own
//! queues, and elections, nodes and administrators go on. The objects are Kubernetes' own;
//! [`follow`] keeps what is in force here in step with them, [`bootstrap`] is what there is from the
//! start.

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
use level::{Level, Rejection, Seat};
use queue_set::Shape;
use serde_json::Value;

use crate::attributes::UserInfo;
use crate::metrics::{Counted, FlowCounts, LevelSeats, Metrics};
use crate::request::RequestInfo;

/// The API group of FlowSchemas and priority levels.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// Requests that only read, at once.
pub const READS_MAX: u32 = 400;
/// Requests that change something, at once.
pub const WRITES_MAX: u32 = 200;
/// Seats of the whole server.
pub const SEATS: u32 = READS_MAX + WRITES_MAX;
/// Queues that one level really has, whatever its object says: each takes memory and time.
pub const QUEUES_MAX: usize = 1024;
/// Seats that the widest request takes.
pub const REQUEST_SEATS_MAX: u32 = 10;
/// Objects that a list may look at for each of its seats.
const OBJECTS_PER_SEAT: usize = 100;
/// Pause between looks at who needs seats and who could lend some.
const ADJUST_EVERY_MILLIS: u64 = 1_000;
/// What is kept, of the demand of before, at each look: a level keeps what it borrowed for a while.
const DEMAND_KEPT: f64 = 0.9;

/// Seats of a request: a list of many objects takes more.
pub fn list_seats(objects: usize) -> u32 {
    let seats = objects.div_ceil(OBJECTS_PER_SEAT);
    u32::try_from(seats).unwrap_or(u32::MAX).clamp(1, REQUEST_SEATS_MAX)
}

/// See the module. Share it in an `Arc`.
pub struct FlowControl {
    in_force: ArcSwap<InForce>,
    hasher: RandomState,
    metrics: Arc<Metrics>,
    begun: Instant,
    /// Milliseconds after `begun` at which seats were last moved.
    adjusted: AtomicU64,
}

/// The FlowSchemas by precedence, and the levels.
struct InForce {
    schemas: Vec<Schema>,
    levels: BTreeMap<String, Configured>,
}

struct Schema {
    name: String,
    uid: HeaderValue,
    spec: FlowSchemaSpec,
    level: Configured,
    counts: FlowCounts,
}

/// A level at work, and its object.
#[derive(Clone)]
struct Configured {
    name: Arc<str>,
    uid: HeaderValue,
    shares: borrow::Shares,
    level: Arc<Level>,
    /// Smoothed, of the looks so far.
    demand: Arc<parking_lot::Mutex<f64>>,
}

/// A request that was let in. Dropping it ends its execution.
pub struct Admitted {
    pub marks: Marks,
    _seat: Seat,
    _counted: [Counted; 2],
}

/// By what a request was classified: goes with its answer.
#[derive(Clone, Debug)]
pub struct Marks {
    pub flow_schema_uid: HeaderValue,
    pub priority_level_uid: HeaderValue,
}

/// A request that was not.
#[derive(Debug)]
pub struct Refused {
    pub marks: Marks,
    pub rejection: Rejection,
}

impl FlowControl {
    /// With the initial objects in force.
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

    /// Lets a request in when it is its turn.
    ///
    /// # Errors
    /// The level has no place for it, or the wait was too long.
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
        let marks = Marks {
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
                let counted = counts.dispatched(arrived.elapsed(), seats);
                Ok(Admitted { marks, _seat: seat, _counted: counted })
            }
            Err(rejection) => {
                self.metrics.rejected(&counts, rejection.as_str(), arrived.elapsed());
                Err(Refused { marks, rejection })
            }
        }
    }

    /// Puts objects in force. Mandatory ones that are missing are as they should be.
    pub fn configure(&self, schemas: &[Value], levels: &[Value]) {
        let before = self.in_force.load_full();
        let mandatory = |given: &[Value], initial: Vec<Value>| {
            let missing = move |wanted: &Value| {
                bootstrap::is_mandatory(wanted.name())
                    && !given.iter().any(|object| object.name() == wanted.name())
            };
            initial.into_iter().filter(missing).collect::<Vec<_>>()
        };
        let added = mandatory(levels, bootstrap::priority_levels());
        let levels: BTreeMap<String, Configured> = levels
            .iter()
            .chain(&added)
            .filter_map(|object| {
                let earlier = before.levels.get(object.name());
                Some((object.name().to_owned(), configured(object, earlier)?))
            })
            .collect();
        let added = mandatory(schemas, bootstrap::flow_schemas());
        let schema = |object: &Value| {
            let spec: FlowSchemaSpec = serde_json::from_value(object["spec"].clone()).ok()?;
            let level = levels.get(&spec.priority_level_configuration.name)?.clone();
            let name = object.name().to_owned();
            let counts = self.metrics.flow(&name, &level.name);
            Some(Schema { name, uid: header(object.uid()), spec, level, counts })
        };
        let mut schemas: Vec<Schema> = schemas.iter().chain(&added).filter_map(schema).collect();
        // The catch-all is last, and takes what falls under no other.
        let precedence = |schema: &Schema| schema.spec.matching_precedence.unwrap_or(1000);
        schemas.sort_by(|a, b| (precedence(a), &a.name).cmp(&(precedence(b), &b.name)));
        let in_force = InForce { schemas, levels };
        in_force.share(&self.metrics, false);
        self.in_force.store(Arc::new(in_force));
    }

    /// Moves seats to the levels that need them.
    pub fn adjust(&self) {
        self.in_force.load().share(&self.metrics, true);
    }

    /// Adjusts when it is time to. Requests do it on their way: without them there is nothing to move.
    fn adjust_when_due(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.adjusted.load(Ordering::Relaxed);
        let due = now.saturating_sub(last) >= ADJUST_EVERY_MILLIS;
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        if due && self.adjusted.compare_exchange(last, now, set, get).is_ok() {
            self.adjust();
        }
    }

    /// Each level's name and load.
    pub fn loads(&self) -> Vec<(Arc<str>, level::Load)> {
        let in_force = self.in_force.load();
        let load = |level: &Configured| (level.name.clone(), level.level.load());
        in_force.levels.values().map(load).collect()
    }
}

impl InForce {
    fn schema(&self, user: &UserInfo, info: &RequestInfo) -> &Schema {
        let matching = self.schemas.iter().find(|s| classify::matches(&s.spec, user, info));
        let catch_all = || self.schemas.iter().find(|s| s.name == bootstrap::CATCH_ALL);
        matching.or_else(catch_all).expect("the mandatory FlowSchemas are always in force")
    }

    /// Divides the seats anew. `look`: by what the levels needed since the last look.
    fn share(&self, metrics: &Metrics, look: bool) {
        let limited: Vec<&Configured> =
            self.levels.values().filter(|level| !level.level.exempt).collect();
        let shares: Vec<borrow::Shares> = limited.iter().map(|level| level.shares).collect();
        let mut limits = borrow::limits(SEATS, &shares);
        for (level, limits) in limited.iter().zip(&mut limits) {
            let mut demand = level.demand.lock();
            if look {
                *demand = f64::from(level.level.take_demand()).max(*demand * DEMAND_KEPT);
            }
            limits.demand = demand.round() as u32;
        }
        let seats = borrow::allocate(SEATS, &limits);
        for ((level, limits), seats) in limited.iter().zip(&limits).zip(seats) {
            if level.level.load().seats != seats {
                level.level.set_seats(seats);
            }
            let &borrow::Level { nominal, least, most, .. } = limits;
            let seats = LevelSeats { nominal, least, most, current: seats };
            metrics.level_seats(&level.name, seats);
        }
    }
}

/// The level of an object; the one at work goes on when its form stays.
fn configured(object: &Value, earlier: Option<&Configured>) -> Option<Configured> {
    let spec: PriorityLevelConfigurationSpec =
        serde_json::from_value(object["spec"].clone()).ok()?;
    let exempt = spec.type_ == "Exempt";
    let (shape, shares) = match (&spec.limited, exempt) {
        (Some(limited), false) => (shape(limited), shares(limited)),
        (None, false) => return None,
        (_, true) => (
            Shape { queues: 0, hand: 0, length_max: 0 },
            borrow::Shares { shares: 0, lendable_percent: 0, borrowing_percent: Some(0) },
        ),
    };
    let kept = earlier.filter(|old| old.level.shape == shape && old.level.exempt == exempt);
    Some(Configured {
        name: object.name().into(),
        uid: header(object.uid()),
        shares,
        level: kept.map_or_else(|| Level::new(exempt, shape, 0), |old| old.level.clone()),
        demand: kept.map(|old| old.demand.clone()).unwrap_or_default(),
    })
}

fn shape(limited: &LimitedPriorityLevelConfiguration) -> Shape {
    let queuing = limited.limit_response.as_ref().and_then(|response| response.queuing.as_ref());
    let Some(queuing) = queuing else { return Shape { queues: 0, hand: 0, length_max: 0 } };
    let number = |value: Option<i32>, absent: usize| {
        value.and_then(|value| usize::try_from(value).ok()).unwrap_or(absent)
    };
    Shape {
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
