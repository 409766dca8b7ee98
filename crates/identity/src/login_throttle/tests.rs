//! Who is slowed down by whose failures.

use futures::future::join_all;

use super::*;

fn address(n: u32) -> Option<IpAddr> {
    Some(IpAddr::V4((0xcb00_7100 + n).into()))
}

/// A login with a wrong password.
async fn guess(throttle: &LoginThrottle, name: &str, from: u32) -> Result<(), Refusal> {
    throttle.attempt(name, address(from)).await?.begin();
    Ok(())
}

async fn login(throttle: &LoginThrottle, name: &str, from: u32) -> Result<(), Refusal> {
    let mut attempt = throttle.attempt(name, address(from)).await?;
    attempt.begin();
    tokio::task::yield_now().await;
    attempt.succeed();
    Ok(())
}

#[test]
fn an_address_is_one_key_in_all_its_forms() {
    let key = |text: &str| address_key(text.parse().unwrap());
    assert_eq!(key("192.0.2.1"), key("::ffff:192.0.2.1"));
    assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
    assert_eq!(key("2001:db8::1"), key("2001:db8::2"));
    assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
}

#[tokio::test(start_paused = true)]
async fn guesses_from_other_addresses_do_not_lock_out_the_owner_at_a_known_address() {
    let throttle = LoginThrottle::default();
    login(&throttle, "admin", 1).await.unwrap();
    for n in 0..10_000 {
        let _ = guess(&throttle, "admin", 100 + n % 100).await;
        if n % 100 == 0 {
            login(&throttle, "admin", 1).await.unwrap();
        }
    }
    assert!(matches!(guess(&throttle, "admin", 5).await, Err(Refusal::Slowed(_))));
}

#[tokio::test(start_paused = true)]
async fn guesses_from_one_address_do_not_lock_out_the_owner_at_others() {
    let throttle = LoginThrottle::default();
    for _ in 0..1_000 {
        let _ = guess(&throttle, "admin", 9).await;
    }
    login(&throttle, "admin", 1).await.unwrap();
    assert!(matches!(guess(&throttle, "admin", 9).await, Err(Refusal::Slowed(_))));
}

#[tokio::test(start_paused = true)]
async fn a_hundred_addresses_get_at_a_name_no_faster_than_its_budget() {
    let throttle = LoginThrottle::default();
    let mut guesses = 0;
    for _ in 0..3600 {
        for from in 0..100 {
            guesses += u32::from(guess(&throttle, "admin", from).await.is_ok());
        }
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!((100..=FAILURES_OF_NAME_AT_ONCE + 1_800).contains(&guesses), "{guesses} in an hour");
}

#[tokio::test(start_paused = true)]
async fn one_address_guesses_twelve_times_an_hour() {
    let throttle = LoginThrottle::default();
    let mut guesses = 0;
    for _ in 0..2 * 3600 {
        guesses += u32::from(guess(&throttle, "admin", 1).await.is_ok());
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!((24..=5 + 9 + 24).contains(&guesses), "{guesses} in two hours");
}

#[tokio::test(start_paused = true)]
async fn twelve_correct_logins_at_once_from_a_new_address_all_succeed() {
    let throttle = LoginThrottle::default();
    let all = join_all((0..12).map(|_| login(&throttle, "ci", 1))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_one_name_in_an_office_slows_the_others_only_after_a_hundred() {
    let throttle = LoginThrottle::default();
    login(&throttle, "anna", 1).await.unwrap();
    for n in 0..FREE_FAILURES_OF_ADDRESS {
        guess(&throttle, &format!("user-{n}"), 1).await.unwrap();
    }
    assert!(matches!(guess(&throttle, "one-more", 1).await, Err(Refusal::Slowed(_))));
    login(&throttle, "anna", 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_user_cannot_displace_the_known_addresses_of_another() {
    let throttle = LoginThrottle::default();
    login(&throttle, "anna", 1).await.unwrap();
    for from in 0..1_000 {
        login(&throttle, "mallory", from).await.unwrap();
    }
    assert!(throttle.attempt("anna", address(1)).await.unwrap().is_known());
    assert!(!throttle.attempt("mallory", address(1)).await.unwrap().is_known());
    assert!(!throttle.attempt("anna", None).await.unwrap().is_known());
}
