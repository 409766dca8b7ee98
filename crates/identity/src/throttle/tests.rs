//! One key's attempts, one after the other and at once.

use futures::FutureExt;
use futures::future::join_all;

use super::*;

fn throttle() -> Throttle {
    Throttle::new(ThrottlePolicy { free_failures: 5, under_way_max: 5 })
}

fn key(text: &str) -> ThrottleKey {
    ThrottleKey::new("test", &[text.as_bytes()])
}

async fn fail(throttle: &Throttle, text: &str) -> Result<(), Refusal> {
    let mut attempt = throttle.attempt(key(text)).await?;
    attempt.begin();
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn guessing_gets_slower_and_success_forgives() {
    let throttle = throttle();
    for expected in [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        let wait = match fail(&throttle, "admin").await {
            Ok(()) => continue,
            Err(Refusal::Slowed(wait)) => wait,
            Err(Refusal::Busy) => panic!("nobody else tries"),
        };
        assert_eq!(wait, Duration::from_secs(expected));
        tokio::time::advance(wait).await;
        fail(&throttle, "admin").await.unwrap();
    }
    fail(&throttle, "other").await.unwrap();
    fail(&throttle, "admin").await.unwrap_err();
    tokio::time::advance(WAIT_MAX).await;
    throttle.attempt(key("admin")).await.unwrap().succeed();
    fail(&throttle, "admin").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hundred_wrong_guesses_at_once_get_no_further_than_one_after_the_other() {
    let throttle = throttle();
    let guesses = (0..60).map(async |_| {
        let mut attempt = throttle.attempt(key("admin")).await?;
        attempt.begin();
        tokio::task::yield_now().await;
        Ok::<_, Refusal>(())
    });
    let judged = join_all(guesses).await.into_iter().filter(Result::is_ok).count();
    assert_eq!(judged, 5);
}

#[tokio::test(start_paused = true)]
async fn forty_correct_logins_at_once_are_all_correct() {
    let throttle = throttle();
    let logins = (0..40).map(async |_| {
        let mut attempt = throttle.attempt(key("ci")).await.unwrap();
        attempt.begin();
        tokio::task::yield_now().await;
        attempt.succeed();
    });
    join_all(logins).await;
    assert_eq!(throttle.key_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_success_of_one_does_not_cover_the_guesses_of_another_at_the_same_address() {
    let throttle = throttle();
    for _ in 0..5 {
        fail(&throttle, "office").await.unwrap();
        if let Ok(attempt) = throttle.attempt(key("office")).await {
            attempt.withdraw();
        }
    }
    fail(&throttle, "office").await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn who_is_turned_away_by_overload_has_not_failed_and_who_gives_up_while_compared_has() {
    let throttle = throttle();
    for _ in 0..100 {
        drop(throttle.attempt(key("admin")).await.unwrap());
    }
    assert_eq!(throttle.key_count(), 0);
    for _ in 0..5 {
        let mut attempt = throttle.attempt(key("admin")).await.unwrap();
        attempt.begin();
        drop(attempt);
    }
    assert!(matches!(throttle.attempt(key("admin")).await, Err(Refusal::Slowed(_))));
}

#[tokio::test(start_paused = true)]
async fn the_queue_of_a_key_has_an_end() {
    let throttle = throttle();
    let held: Vec<_> = join_all((0..5).map(|_| throttle.attempt(key("admin")))).await;
    let mut queue: Vec<_> =
        (0..QUEUED_PER_KEY_MAX).map(|_| Box::pin(throttle.attempt(key("admin")))).collect();
    assert!(queue.iter_mut().all(|one| one.now_or_never().is_none()));
    let refused = throttle.attempt(key("admin")).now_or_never().map(|one| one.err());
    assert_eq!(refused, Some(Some(Refusal::Busy)));
    let first = queue.remove(0);
    assert_eq!(first.await.err(), Some(Refusal::Busy), "after a time");
    drop((held, queue));
    assert!(throttle.attempt(key("admin")).now_or_never().is_some_and(|one| one.is_ok()));
}

#[tokio::test(start_paused = true)]
async fn names_of_strangers_do_not_stay_in_memory() {
    let throttle = throttle();
    for n in 0..KEYS_MAX + 500 {
        fail(&throttle, &n.to_string()).await.unwrap();
    }
    assert!(throttle.key_count() <= KEYS_MAX);
    tokio::time::advance(FORGET_AFTER).await;
    fail(&throttle, "one more").await.unwrap();
    assert_eq!(throttle.key_count(), 1, "purged by time, without being full");
}
