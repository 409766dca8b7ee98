//! The flags of a driver: each has to become a field of the API.

use std::collections::BTreeMap;

use driver_contract::types::{DriverFlags, Empty};
use driver_contract::{FlagType, field_name};
use driver_host::RunningDriver;

use crate::{CALL_TIME_MAX, CheckOutcome, ConformanceReport, within};

/// Parts of names of what is a secret.
const SECRET_WORDS: [&str; 5] = ["password", "secret", "token", "private-key", "passphrase"];

/// Checks both lists of flags, and returns those of a new cluster.
pub(crate) async fn check(driver: &RunningDriver, report: &mut ConformanceReport) -> DriverFlags {
    let mut client = driver.client();
    let call = client.get_driver_create_options(Empty {});
    let created = match within(CALL_TIME_MAX, call).await {
        Ok(flags) => {
            report.add("GetDriverCreateOptions", fields(&flags));
            if let Some(outcome) = secrets(&flags) {
                report.add("secrets are marked", outcome);
            }
            flags
        }
        Err(status) => {
            report.add("GetDriverCreateOptions", CheckOutcome::Failed(status.to_string()));
            DriverFlags::default()
        }
    };
    let call = client.get_driver_update_options(Empty {});
    let outcome = match within(CALL_TIME_MAX, call).await {
        Ok(flags) => fields(&flags),
        Err(status) => CheckOutcome::Failed(status.to_string()),
    };
    report.add("GetDriverUpdateOptions", outcome);
    created
}

/// Whether every flag can become a field.
fn fields(flags: &DriverFlags) -> CheckOutcome {
    let mut fields = BTreeMap::new();
    for (name, flag) in &flags.options {
        let kind = match flag.flag_type(name) {
            Ok(kind) => kind,
            Err(error) => return CheckOutcome::Failed(error.to_string()),
        };
        let field = match field_name(name) {
            Ok(field) => field,
            Err(error) => return CheckOutcome::Failed(error.to_string()),
        };
        if let Some(other) = fields.insert(field.clone(), name) {
            return CheckOutcome::Failed(format!(
                "the flags \"{other}\" and \"{name}\" are the same field \"{field}\""
            ));
        }
        let is_list = kind == FlagType::StringSlice;
        if is_list && flag.default.is_some() && flag.default_list().is_none() {
            return CheckOutcome::Warning(format!(
                "the default of the list \"{name}\" has no list: managers of the original crash"
            ));
        }
    }
    CheckOutcome::Passed(format!("flags: {}", fields.len()))
}

/// Flags that look like secrets and are not marked.
fn secrets(flags: &DriverFlags) -> Option<CheckOutcome> {
    let mut shown: Vec<&str> = flags
        .options
        .iter()
        .filter(|(name, flag)| {
            let name = name.to_ascii_lowercase();
            flag.r#type == FlagType::String.as_str()
                && !flag.password
                && SECRET_WORDS.iter().any(|word| name.contains(word))
        })
        .map(|(name, _)| name.as_str())
        .collect();
    shown.sort_unstable();
    (!shown.is_empty()).then(|| {
        let list = shown.join(", ");
        CheckOutcome::Warning(format!("looks like secrets, and is shown to users: {list}"))
    })
}
