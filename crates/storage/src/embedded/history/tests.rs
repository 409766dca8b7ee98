//! Which revisions are history, at times that the test sets.

use std::time::{Duration, Instant};

use super::HistoryWindow;
use crate::embedded::EmbeddedConfig;

const SECOND: Duration = Duration::from_secs(1);

fn config() -> EmbeddedConfig {
    EmbeddedConfig {
        history_keep: 300 * SECOND,
        history_revisions_min: 10,
        history_revisions_max: 10_000,
        history_bytes_max: 1_000_000,
        ..EmbeddedConfig::default()
    }
}

#[test]
fn young_revisions_are_history_and_old_ones_are_not() {
    let start = Instant::now();
    let mut window = HistoryWindow::new(&config(), 0, start);
    for second in 1..=1000 {
        window.record_commit(u64::from(second), 1, start + second * SECOND);
    }
    let target = window.target(start + 1000 * SECOND);
    assert!((695..=700).contains(&target), "{target}");
    assert_eq!(window.target(start + 1100 * SECOND), 800);
}

#[test]
fn the_newest_revisions_are_history_at_any_age() {
    let start = Instant::now();
    let mut window = HistoryWindow::new(&config(), 5, start);
    assert_eq!(window.target(start + 1000 * SECOND), 0);
    window.record_commit(25, 1, start + SECOND);
    assert_eq!(window.target(start + 1000 * SECOND), 15);
}

#[test]
fn too_many_revisions_are_compacted_at_any_age() {
    let start = Instant::now();
    let mut window = HistoryWindow::new(&config(), 0, start);
    window.record_commit(25_000, 1, start);
    assert_eq!(window.target(start), 15_000);
}

#[test]
fn too_many_bytes_are_compacted_at_any_age() {
    let start = Instant::now();
    let mut window = HistoryWindow::new(&config(), 0, start);
    for revision in 1..=200 {
        window.record_commit(revision, 10_000, start);
    }
    assert_eq!(window.target(start), 100);
}

#[test]
fn revisions_of_a_former_process_count_as_new() {
    let start = Instant::now();
    let mut window = HistoryWindow::new(&config(), 500, start);
    assert_eq!(window.target(start + 299 * SECOND), 0);
    assert_eq!(window.target(start + 300 * SECOND), 490);
}

#[test]
fn a_server_stores_only_young_history() {
    let config = EmbeddedConfig::default();
    let start = Instant::now();
    let mut window = HistoryWindow::new(&config, 0, start);
    window.record_commit(400, 1, start + SECOND);
    window.record_commit(401, 1, start + 10 * SECOND);
    assert_eq!(window.target(start + 300 * SECOND), 0);
    assert_eq!(window.target(start + 301 * SECOND), 400);
    assert_eq!(window.target(start + 310 * SECOND), 401);
}

#[test]
fn a_revision_right_after_a_mark_is_compacted_at_its_age_when_nothing_follows() {
    let start = Instant::now();
    let config = EmbeddedConfig { history_revisions_min: 0, ..config() };
    let mut window = HistoryWindow::new(&config, 0, start);
    window.record_commit(1, 1, start + SECOND);
    window.record_commit(400, 1, start + SECOND + SECOND / 10);
    assert_eq!(window.target(start + 301 * SECOND), 1);
    assert_eq!(window.target(start + 302 * SECOND), 400);
}

#[test]
fn the_marks_are_bounded() {
    let start = Instant::now();
    let mut window = HistoryWindow::new(&config(), 0, start);
    for number in 1..100_000u32 {
        window.record_commit(u64::from(number), 0, start + number * SECOND / 100);
        if number % 100 == 0 {
            window.target(start + number * SECOND / 100);
        }
    }
    assert!(window.marks.len() <= 310, "{}", window.marks.len());
}
