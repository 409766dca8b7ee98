//! Which connections yield to which.

use futures::FutureExt;

use super::*;

fn address(n: u32) -> Option<IpAddr> {
    Some(IpAddr::V4(n.into()))
}

fn is_cut(ticket: &Ticket) -> bool {
    ticket.cut().now_or_never().is_some()
}

#[tokio::test(start_paused = true)]
async fn a_flood_from_a_hundred_addresses_closes_its_own_connections() {
    let strangers = Strangers::default();
    let owner = strangers.admit(address(1)).unwrap();
    tokio::time::advance(BUSY_SPARED).await;
    let mut flood = Vec::new();
    for n in 0..10_000 {
        tokio::time::advance(Duration::from_millis(10)).await;
        flood.extend(strangers.admit(address(1_000 + n % 100)));
    }
    assert!(!is_cut(&owner), "the oldest of all, and idle");
    assert_eq!(strangers.0.lock().count, STRANGERS_MAX);
    assert!(strangers.admit(address(2)).is_some(), "there is room for other addresses");
    let open = flood.iter().filter(|ticket| !is_cut(ticket)).count();
    assert!(open <= STRANGERS_MAX, "{open}");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_young_connections_excludes_no_other_address() {
    let strangers = Strangers::default();
    let flood: Vec<_> = (0..STRANGERS_MAX as u32)
        .map(|n| strangers.admit(address(1_000 + n % 100)).unwrap())
        .collect();
    let behind_proxy: Vec<_> = (0..3).map(|_| strangers.admit(None).unwrap()).collect();
    let users: Vec<_> = (0..10).map(|n| strangers.admit(address(n)).unwrap()).collect();
    assert_eq!(flood.iter().filter(|ticket| is_cut(ticket)).count(), 13);
    assert!(!users.iter().chain(&behind_proxy).any(is_cut));
    let more = (0..1_000).filter_map(|n| strangers.admit(address(1_000 + n % 100))).count();
    assert!(more < 100, "those with most get no more while all are young: {more}");
    assert!(!users.iter().chain(&behind_proxy).any(is_cut));
}

#[tokio::test(start_paused = true)]
async fn the_oldest_idle_connection_of_a_crowded_address_yields() {
    let strangers = Strangers::default();
    let all: Vec<_> =
        (0..STRANGERS_PER_ADDRESS_MAX).map(|_| strangers.admit(address(1)).unwrap()).collect();
    assert!(strangers.admit(address(1)).is_none(), "all are in their handshakes");
    let busy = all[0].begin(1).unwrap();
    tokio::time::advance(YOUNG).await;
    let next = strangers.admit(address(1)).unwrap();
    assert!(!is_cut(&all[0]) && is_cut(&all[1]) && !is_cut(&next));
    for ticket in &all[2..] {
        ticket.mark_authenticated();
    }
    tokio::time::advance(BUSY_SPARED).await;
    assert!((0..STRANGERS_PER_ADDRESS_MAX).all(|_| strangers.admit(address(1)).is_some()));
    assert!(!all[2..].iter().any(is_cut), "they count no more");
    drop(busy);
}

#[tokio::test(start_paused = true)]
async fn slow_bodies_yield_when_nothing_is_idle() {
    let strangers = Strangers::default();
    let all: Vec<_> = (0..STRANGERS_PER_ADDRESS_MAX)
        .map(|_| {
            let ticket = strangers.admit(address(1)).unwrap();
            let under_way = ticket.begin(1).unwrap();
            (ticket, under_way)
        })
        .collect();
    tokio::time::advance(YOUNG).await;
    assert!(strangers.admit(address(1)).is_none());
    tokio::time::advance(BUSY_SPARED).await;
    assert!(strangers.admit(address(1)).is_some());
    assert!(is_cut(&all[0].0));
}

#[test]
fn a_connection_has_few_requests_until_a_caller_authenticates() {
    let strangers = Strangers::default();
    let ticket = strangers.admit(None).unwrap();
    let open: Vec<_> = (0..3).map(|_| ticket.begin(3).unwrap()).collect();
    assert!(ticket.begin(3).is_none());
    ticket.mark_authenticated();
    assert!(ticket.begin(3).is_some());
    drop(open);
    assert!(ticket.guest.is_idle());
    drop(ticket);
    let state = strangers.0.lock();
    assert!(state.count == 0 && state.by_address.is_empty());
}

#[tokio::test(start_paused = true)]
async fn connections_of_a_trusted_proxy_count_in_all_only() {
    let strangers = Strangers::default();
    let all: Vec<_> = (0..STRANGERS_MAX).map(|_| strangers.admit(None).unwrap()).collect();
    assert!(strangers.admit(None).is_none());
    tokio::time::advance(YOUNG).await;
    assert!(strangers.admit(None).is_some() && is_cut(&all[0]));
    assert!(strangers.yield_one() && is_cut(&all[1]));
}
