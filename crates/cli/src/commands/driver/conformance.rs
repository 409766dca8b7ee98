//! `drover driver conformance`: whether a program keeps to the contract of drivers.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use driver_conformance::{CheckOutcome, ConformanceReport};
use driver_host::{Confinement, DriverProgram};

use crate::args::ConformanceArgs;
use crate::error::{CliError, Failure};
use crate::output;

/// What starts a driver that is part of this program.
const DRIVER_PROCESS: &str = "driver-process";

/// Runs the checks; the exit code is 1 if the driver does not keep to the contract.
pub async fn run(args: ConformanceArgs) -> Result<ExitCode, CliError> {
    let options = args.options.iter().map(|pair| option(pair)).collect::<Result<Vec<_>, _>>()?;
    let environment = args.environment.iter().map(|pair| {
        let (name, value) = split("--env", pair)?;
        Ok((OsString::from(name), OsString::from(value)))
    });
    let mut program = program(&args.driver)?;
    program.environment = environment.collect::<Result<_, CliError>>()?;
    program.confinement =
        args.confined.then(|| Confinement::by_this_program(args.may_reach.as_slice()));
    let makes_cluster = args.create || !options.is_empty();
    let check = driver_conformance::check(&program, makes_cluster.then_some(options.as_slice()));
    // The driver is in a process group of its own, which the terminal does not interrupt.
    let report = tokio::select! {
        report = check => report,
        _ = tokio::signal::ctrl_c() => return Err(interrupted(makes_cluster)),
    };
    output::print(&table(&report))?;
    if args.log {
        output::print(&format!("\nLog of the driver:\n{}\n", report.log.join("\n")))?;
    }
    output::notify(&summary(&report, makes_cluster));
    Ok(if report.is_conformant() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn interrupted(made_cluster: bool) -> CliError {
    let error = CliError::new(Failure::Other, "interrupted; the driver was ended");
    if made_cluster {
        let name = driver_conformance::CLUSTER_NAME;
        return error.hint(format!("the cluster \"{name}\" may remain at the provider: remove it"));
    }
    error
}

/// The program of the driver: a file, or this program for one of its own.
fn program(driver: &Path) -> Result<DriverProgram, CliError> {
    let own = driver.to_str().filter(|name| drivers::NAMES.contains(name));
    let (file, arguments) = match own {
        Some(name) => {
            let file = std::env::current_exe().map_err(|error| {
                CliError::new(Failure::Other, format!("cannot find this program: {error}"))
            })?;
            (file, vec![OsString::from(DRIVER_PROCESS), OsString::from(name)])
        }
        None => (driver.to_owned(), Vec::new()),
    };
    Ok(DriverProgram { file, arguments, environment: Vec::new(), confinement: None })
}

fn split<'a>(flag: &str, pair: &'a str) -> Result<(&'a str, &'a str), CliError> {
    pair.split_once('=')
        .ok_or_else(|| CliError::usage(format!("{flag} needs NAME=VALUE, and got \"{pair}\"")))
}

/// An option; the text of a file for `@FILE`.
fn option(pair: &str) -> Result<(String, String), CliError> {
    let (name, value) = split("--option", pair)?;
    let value = match value.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| CliError::usage(format!("cannot read \"{file}\": {error}")))?,
        None => value.to_owned(),
    };
    Ok((name.to_owned(), value))
}

fn table(report: &ConformanceReport) -> String {
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for check in &report.checks {
        let (word, detail) = match &check.outcome {
            CheckOutcome::Passed(detail) => ("ok", detail),
            CheckOutcome::Warning(detail) => ("warning", detail),
            CheckOutcome::Failed(detail) => ("FAILED", detail),
        };
        // Details come from the driver.
        let detail = output::harmless(detail);
        text.push_str(&format!("{word:<8} {:<width$}  {detail}\n", check.name));
    }
    text
}

fn summary(report: &ConformanceReport, made_cluster: bool) -> String {
    let count = |is_counted: fn(&CheckOutcome) -> bool| {
        report.checks.iter().filter(|check| is_counted(&check.outcome)).count()
    };
    let failed = count(|outcome| matches!(outcome, CheckOutcome::Failed(_)));
    let warnings = count(|outcome| matches!(outcome, CheckOutcome::Warning(_)));
    let next = match (failed, made_cluster) {
        (0, true) => "the driver keeps to the contract",
        (0, false) => {
            "nothing was made yet: give the driver's options with --option NAME=VALUE to make a \
             cluster, change it and remove it"
        }
        _ => "managers fail with this driver",
    };
    format!("{} checks, {failed} failed, {warnings} warnings: {next}", report.checks.len())
}
