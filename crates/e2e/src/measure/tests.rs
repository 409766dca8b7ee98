//! Evaluation and formatting of numbers.

use super::*;

#[test]
fn a_missed_target_is_marked_and_a_met_one_is_not() {
    let rows = [
        Row::new("start", 250.0, "ms", Target::AtMost(300.0)),
        Row::new("memory", 60.0, "MB", Target::AtMost(50.0)).note("idle"),
        Row::new("rate", 0.5, "of direct", Target::AtLeast(0.8)),
        Row::new("direct", 1.0, "ms", Target::Context),
    ];
    let text = table(&rows);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[2], "| start | 250 ms | ≤ 300 ms | 0.83 |  |");
    assert_eq!(lines[3], "| memory | 60.00 MB | ≤ 50 MB | 1.20 **missed** | idle |");
    assert!(lines[4].contains("0.62 **missed**"), "{}", lines[4]);
    assert_eq!(lines[5], "| direct | 1.00 ms |  |  |  |");
}

#[test]
fn percentiles_are_samples_that_were_seen() {
    let mut samples = Samples::default();
    for millis in (1..=100).rev() {
        samples.push(Duration::from_millis(millis));
    }
    assert!((samples.median() - 50.0).abs() < 1e-9);
    assert!((samples.percentile(99) - 99.0).abs() < 1e-9);
    assert!((samples.percentile(100) - 100.0).abs() < 1e-9);
    assert!(Samples::default().median().is_nan());
}

#[test]
fn memory_of_this_process_is_seen_and_of_no_process_is_an_error() {
    assert!(memory(std::process::id()).unwrap() > 0.5);
    assert!(memory(u32::MAX).is_err());
}

#[test]
fn processor_time_of_this_process_grows_with_its_work() {
    let process = std::process::id();
    let before = processor_time(process).unwrap();
    let grown = crate::poll_until(Duration::from_secs(30), Duration::ZERO, || {
        let used = processor_time(process).unwrap() - before;
        if used > 0.05 { Ok(used) } else { Err(used) }
    });
    assert!(grown.unwrap() < 30.0);
    assert!(processor_time(u32::MAX).is_err());
}

#[test]
fn the_history_gets_one_line_with_the_main_figures_of_a_measurement() {
    let rows = [
        Row::new("first page of 1,000, sees all: p99", 6.25, "ms", Target::AtMost(50.0)),
        Row::new("list, direct", 1_721.0, "MB/s", Target::Context).recorded(false),
        Row::new("list, Drover", 430.4, "MB/s", Target::Context).recorded(true),
        Row::new("exec, Drover", f64::NAN, "MB/s", Target::Context).recorded(true),
    ];
    assert_eq!(
        history::line("2026-11-26\tabcdef1\t2 cores", "lists", &rows).unwrap(),
        "2026-11-26\tabcdef1\t2 cores\tlists\t\
         first-page-of-1000-sees-all-p99=6.25ms list-drover=430MB/s\n"
    );
    assert_eq!(history::line("", "lists", &rows[1..2]), None);
}
