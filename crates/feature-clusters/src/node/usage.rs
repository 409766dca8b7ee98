//! What pods request and are limited to, summed by node; and sums of what nodes have. Pure.
//!
//! Of each pod only its node and two short lists stay in memory.

use std::collections::BTreeMap;

use api_meta::quantity::Quantity;
use controller::Projection;
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

/// Amounts by resource name.
pub type Amounts = BTreeMap<String, Quantity>;

/// Keeps of a pod what the sums need.
pub struct PodUse;

/// What one pod takes.
pub struct PodAmounts {
    /// Empty while it is not scheduled or when it has ended.
    pub node: Box<str>,
    pub requests: Box<[(Box<str>, Quantity)]>,
    pub limits: Box<[(Box<str>, Quantity)]>,
}

impl Projection for PodUse {
    type Object = Pod;
    type Projected = PodAmounts;

    fn project(pod: Pod) -> PodAmounts {
        let spec = pod.spec.unwrap_or_default();
        let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
        let ended = phase == "Succeeded" || phase == "Failed";
        let node = if ended { None } else { spec.node_name };
        let init = spec.init_containers.unwrap_or_default();
        let of = |pick: fn(&Container) -> Option<&BTreeMap<String, KubeQuantity>>| {
            let mut running = Amounts::new();
            for container in &spec.containers {
                add(&mut running, pick(container));
            }
            let mut before = Amounts::new();
            for container in &init {
                if container.restart_policy.as_deref() == Some("Always") {
                    add(&mut running, pick(container));
                } else {
                    let mut one = Amounts::new();
                    add(&mut one, pick(container));
                    raise(&mut before, one);
                }
            }
            raise(&mut running, before);
            running
        };
        let mut requests = of(|c| c.resources.as_ref()?.requests.as_ref());
        let limits = of(|c| c.resources.as_ref()?.limits.as_ref());
        add(&mut requests, spec.overhead.as_ref());
        let flat = |amounts: Amounts| {
            amounts.into_iter().map(|(name, amount)| (name.into_boxed_str(), amount)).collect()
        };
        PodAmounts {
            node: node.unwrap_or_default().into_boxed_str(),
            requests: flat(requests),
            limits: flat(limits),
        }
    }
}

fn parse(quantity: &KubeQuantity) -> Option<Quantity> {
    quantity.0.parse().ok()
}

/// Adds `more` to the sums; what is no quantity counts as nothing.
pub fn add(sums: &mut Amounts, more: Option<&BTreeMap<String, KubeQuantity>>) {
    for (name, quantity) in more.into_iter().flatten() {
        if let Some(quantity) = parse(quantity) {
            add_one(sums, name, &quantity);
        }
    }
}

/// Adds a quantity to the sum of its name, which may be new.
pub fn add_one(sums: &mut Amounts, name: &str, quantity: &Quantity) {
    match sums.get_mut(name) {
        Some(sum) => *sum = sum.plus(quantity),
        None => drop(sums.insert(name.to_owned(), *quantity)),
    }
}

/// Makes each amount at least that of `floor`.
fn raise(amounts: &mut Amounts, floor: Amounts) {
    for (name, least) in floor {
        match amounts.get_mut(&name) {
            Some(amount) if *amount >= least => {}
            _ => drop(amounts.insert(name, least)),
        }
    }
}

/// As text, for a status.
pub fn texts(amounts: &Amounts) -> BTreeMap<String, String> {
    amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string())).collect()
}

/// What the pods of one node take together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub requests: Amounts,
    pub limits: Amounts,
    pub pods: i64,
}

impl Taken {
    /// Adds the requests and limits of one pod, and counts it.
    pub fn count(&mut self, pod: &PodAmounts) {
        for (name, amount) in &pod.requests {
            add_one(&mut self.requests, name, amount);
        }
        for (name, amount) in &pod.limits {
            add_one(&mut self.limits, name, amount);
        }
        self.pods += 1;
    }
    /// Adds the sums and the number of other pods.
    pub fn merge(&mut self, other: &Self) {
        for (name, amount) in &other.requests {
            add_one(&mut self.requests, name, amount);
        }
        for (name, amount) in &other.limits {
            add_one(&mut self.limits, name, amount);
        }
        self.pods += other.pods;
    }
    /// Requests as text, with the number of pods among them.
    pub fn requested(&self) -> BTreeMap<String, String> {
        let mut texts = texts(&self.requests);
        texts.insert("pods".to_owned(), self.pods.to_string());
        texts
    }
}
