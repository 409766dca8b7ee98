//! How the limit of a project is shared by its namespaces. Pure.
//!
//! What a namespace was given stays its own, however much others request later: first everybody
//! gets what they have and still request, then as much of their request as the default is, and
//! last, oldest namespaces first, the rest of it. Who requests more than is left gets what is left,
//! and a message.

use std::collections::BTreeMap;

use api_management::project::Amounts;
use api_meta::quantity::Quantity;

/// Quantities by resource, in the names of `/v3`.
pub(crate) type Quantities = BTreeMap<String, Quantity>;

/// The quantities that are set and can be read.
pub(crate) fn quantities(amounts: &Amounts) -> Quantities {
    let set = amounts.iter().filter_map(|(name, text)| {
        let text = text.as_deref().filter(|text| !text.is_empty())?;
        Some((name.clone(), text.parse().ok()?))
    });
    set.collect()
}

/// What a namespace is to have.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub namespace: String,
    /// Seconds since 1970.
    pub created: i64,
    pub limit: Quantities,
    /// What it was given before.
    pub held: Quantities,
}

/// What it gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct QuotaShare {
    pub limit: Quantities,
    /// What does not fit, for people; empty when all does.
    pub excess: String,
}

/// Shares `limit`; also returns the sum of what was granted. Resources that the project does not
/// limit are not granted; those that a namespace does not name are zero.
pub(crate) fn share(
    limit: &Quantities,
    default: &Quantities,
    mut requests: Vec<Request>,
) -> (BTreeMap<String, QuotaShare>, Quantities) {
    requests.sort_by(|a, b| (a.created, &a.namespace).cmp(&(b.created, &b.namespace)));
    let mut grants: BTreeMap<String, QuotaShare> = BTreeMap::new();
    let mut used = Quantities::new();
    for (resource, total) in limit {
        let default = default.get(resource).copied().unwrap_or_else(zero);
        let amounts = amounts(total, &default, resource, &requests);
        let mut sum = zero();
        for (request, amount) in requests.iter().zip(amounts) {
            sum = sum.plus(&amount);
            let grant = grants.entry(request.namespace.clone()).or_default();
            grant.limit.insert(resource.clone(), amount);
        }
        used.insert(resource.clone(), sum);
    }
    for request in &requests {
        let grant = grants.entry(request.namespace.clone()).or_default();
        grant.excess = excess(limit, request, grant);
    }
    (grants, used)
}

fn zero() -> Quantity {
    Quantity::from_whole(0)
}

/// What each request gets of one resource, in their order.
fn amounts(
    total: &Quantity,
    default: &Quantity,
    resource: &str,
    requests: &[Request],
) -> Vec<Quantity> {
    let of = |quantities: &Quantities| quantities.get(resource).copied().unwrap_or_else(zero);
    let mut left = *total;
    let mut given = vec![zero(); requests.len()];
    let mut give_up_to = |amount: &dyn Fn(&Request) -> Quantity| {
        for (request, given) in requests.iter().zip(&mut given) {
            let more = amount(request).min(of(&request.limit)).minus(given);
            let more = more.min(left).max(zero());
            left = left.minus(&more);
            *given = given.plus(&more);
        }
    };
    give_up_to(&|request| of(&request.held));
    give_up_to(&|_| *default);
    give_up_to(&|request| of(&request.limit));
    given
}

fn excess(limit: &Quantities, request: &Request, grant: &QuotaShare) -> String {
    let over = limit.iter().filter_map(|(resource, total)| {
        let (requested, granted) = (request.limit.get(resource)?, grant.limit.get(resource)?);
        let text = format!("{resource}={requested}, of which {granted} is left of {total}");
        (requested > granted).then_some(text)
    });
    let over: Vec<String> = over.collect();
    if over.is_empty() {
        return String::new();
    }
    format!(
        "Resource quota [{}] exceeds project limit: the namespace has what is left; lower its quota, \
         or raise the limit of the project",
        over.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[(&str, &str)]) -> Quantities {
        list.iter().map(|(name, text)| ((*name).to_owned(), text.parse().unwrap())).collect()
    }

    fn request(namespace: &str, created: i64, pods: &str, held: &str) -> Request {
        let (limit, held) = (of(&[("pods", pods)]), of(&[("pods", held)]));
        Request { namespace: namespace.to_owned(), created, limit, held }
    }

    fn pods(grants: &BTreeMap<String, QuotaShare>, namespace: &str) -> String {
        grants[namespace].limit["pods"].to_string()
    }

    #[test]
    fn older_namespaces_come_first_and_a_later_one_gets_what_is_left() {
        let limit = of(&[("pods", "10")]);
        let all = vec![
            request("late", 3, "6", "0"),
            request("early", 1, "6", "0"),
            request("between", 2, "2", "0"),
        ];
        let (grants, used) = share(&limit, &Quantities::new(), all);
        assert_eq!(["early", "between", "late"].map(|it| pods(&grants, it)), ["6", "2", "2"]);
        assert!(grants["early"].excess.is_empty() && grants["between"].excess.is_empty());
        let said = "Resource quota [pods=6, of which 2 is left of 10] exceeds project limit";
        assert!(grants["late"].excess.starts_with(said), "{}", grants["late"].excess);
        assert_eq!(used, limit);
    }

    #[test]
    fn an_older_namespace_takes_nothing_that_a_later_one_has() {
        let all = vec![request("early", 1, "9", "4"), request("late", 2, "6", "6")];
        let (grants, _) = share(&of(&[("pods", "10")]), &Quantities::new(), all);
        assert_eq!(["early", "late"].map(|it| pods(&grants, it)), ["4", "6"]);
    }

    #[test]
    fn everybody_gets_the_default_before_anybody_gets_more() {
        let all = vec![request("greedy", 1, "50", "0"), request("later", 2, "2", "0")];
        let (grants, _) = share(&of(&[("pods", "10")]), &of(&[("pods", "2")]), all);
        assert_eq!(["greedy", "later"].map(|it| pods(&grants, it)), ["8", "2"]);
    }

    #[test]
    fn a_lowered_limit_takes_from_the_latest() {
        let all = vec![request("early", 1, "4", "4"), request("late", 2, "6", "6")];
        let (grants, used) = share(&of(&[("pods", "7")]), &Quantities::new(), all);
        assert_eq!(["early", "late"].map(|it| pods(&grants, it)), ["4", "3"]);
        assert_eq!(used, of(&[("pods", "7")]));
    }

    #[test]
    fn only_resources_of_the_project_are_limited_and_absent_ones_are_zero() {
        let one = Request {
            namespace: "a".to_owned(),
            created: 0,
            limit: of(&[("pods", "1"), ("services", "9")]),
            held: Quantities::new(),
        };
        let (grants, used) =
            share(&of(&[("pods", "10"), ("secrets", "5")]), &Quantities::new(), vec![one]);
        assert_eq!(grants["a"].limit, of(&[("pods", "1"), ("secrets", "0")]));
        assert_eq!(used, of(&[("pods", "1"), ("secrets", "0")]));
    }
}
