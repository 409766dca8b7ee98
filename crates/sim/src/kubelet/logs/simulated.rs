//! The log of a simulated container: a description, then a heartbeat line at intervals. A pure
//! function of the container and the time, so that every read returns the same lines.

use jiff::{SignedDuration, Timestamp};

use super::LogLine;
use crate::kubelet::container::Container;

/// Time between two heartbeat lines.
pub const SIGN_OF_LIFE_EVERY: SignedDuration = SignedDuration::from_secs(15);
/// Heartbeat lines that are retained, like rotated logs retain the newest lines.
pub const SIGNS_OF_LIFE_MAX: i64 = 20;

/// The lines written until `now`.
pub fn lines(container: &Container, now: Timestamp) -> Vec<LogLine> {
    let Some(started_at) = container.started_at else { return Vec::new() };
    let until = container.finished_at.unwrap_or(now);
    let mut lines: Vec<LogLine> =
        opening(container).into_iter().map(|text| LogLine { at: started_at, text }).collect();
    let signs = heartbeats_until(started_at, until);
    let oldest = (signs - SIGNS_OF_LIFE_MAX + 1).max(1);
    lines.extend((oldest..=signs).map(|number| heartbeat(started_at, number)));
    if let Some(at) = container.finished_at {
        lines.push(LogLine { at, text: "completed with exit code 0 (simulated)".to_owned() });
    }
    lines
}

/// The first line after `after`; none when the container has ended.
pub fn next_line(container: &Container, after: Timestamp) -> Option<LogLine> {
    let started_at = container.started_at.filter(|_| container.finished_at.is_none())?;
    Some(heartbeat(started_at, heartbeats_until(started_at, after) + 1))
}

fn opening(container: &Container) -> Vec<String> {
    let Container { name, image, node, .. } = container;
    let mut lines = vec![format!(
        "container \"{name}\" of image {image} started on node {node} (simulated: nothing is \
         executed)"
    )];
    if !container.command.is_empty() {
        lines.push(format!("would run: {}", container.command.join(" ")));
    }
    let ports = container.ports.iter();
    lines.extend(ports.map(|port| format!("listening on {port} (simulated: an echo)")));
    lines
}

fn heartbeats_until(started_at: Timestamp, until: Timestamp) -> i64 {
    (until.duration_since(started_at).as_secs() / SIGN_OF_LIFE_EVERY.as_secs()).max(0)
}

fn heartbeat(started_at: Timestamp, number: i64) -> LogLine {
    let age = SignedDuration::from_secs(number * SIGN_OF_LIFE_EVERY.as_secs());
    let seconds = age.as_secs();
    let words = match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes:02}m{seconds:02}s"),
    };
    let at = started_at.checked_add(age).unwrap_or(started_at);
    LogLine { at, text: format!("still running, up {words} (simulated)") }
}
