//! Prints the measurements of `e2e::measure` as a table on stdout, progress on stderr.
//!
//! Arguments name the measurements; without any, all of `PARTS` are made. Exits with 1 when a
//! measurement cannot be made; a missed target is only marked.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use e2e::measure::{
    Row, access, apiserver, fleet, flood, history, kinds, lists, provisioning, proxied, proxy,
    rights, start, subscribers, table,
};

type Measure = fn() -> Result<Vec<Row>>;

const PARTS: [(&str, Measure); 17] = [
    ("start", start::times),
    ("idle", start::idle_memory),
    ("sim", fleet::single_import),
    ("proxy", proxy::measure),
    ("proxied", proxied::measure),
    ("audit", proxy::measure_audit),
    ("bulk", proxy::measure_bulk),
    ("fleet", fleet::measure),
    ("flood", flood::of_strangers),
    ("hostile", flood::of_clusters),
    ("lists", lists::measure),
    ("kinds", kinds::measure),
    ("rights", rights::measure),
    ("access", access::measure),
    ("subscribers", subscribers::measure),
    ("provisioning", provisioning::measure),
    ("apiserver", apiserver::measure),
];

/// Moves the process into a network of its own, so it is made alone, and only when it is named.
const ALONE: (&str, Measure) = ("proxied-long", proxied::long_way::measure);

fn main() -> ExitCode {
    let requested: Vec<String> = std::env::args().skip(1).collect();
    let parts = if requested == [ALONE.0] { vec![ALONE] } else { PARTS.to_vec() };
    let known: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = requested.iter().find(|name| !known.contains(&name.as_str())) {
        eprintln!(
            "error: '{unknown}' is not measured; there are {}, and alone {}",
            known.join(", "),
            ALONE.0
        );
        return ExitCode::from(2);
    }
    if cfg!(debug_assertions) {
        eprintln!("these are debug builds: the numbers say nothing");
    }
    let mut rows = Vec::new();
    let mut failed = false;
    for (name, measure) in parts {
        if !requested.is_empty() && !requested.iter().any(|one| one == name) {
            continue;
        }
        eprint!("measuring {name} … ");
        let since = Instant::now();
        match measure() {
            Ok(found) => {
                eprintln!("{:.0} s", since.elapsed().as_secs_f64());
                if let Err(cause) = history::record(name, &found) {
                    eprintln!("not recorded: {cause:#}");
                    failed = true;
                }
                rows.extend(found);
            }
            Err(cause) => {
                eprintln!("failed: {cause:#}");
                failed = true;
            }
        }
    }
    print!("{}", table(&rows));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
