//! Compares one write with one quota.

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::Value;

use super::amounts::{self, Amounts};
use super::{pod, scope, usage};
use crate::resource::Resource;

/// A write whose usage is charged.
pub struct QuotaRequest<'a> {
    /// Of the object, for errors.
    pub name: &'a str,
    pub resource: &'a Resource,
    pub object: &'a Value,
    /// Absent on create.
    pub old: Option<&'a Value>,
}

impl QuotaRequest<'_> {
    /// `status.used` of the quota after the write; `None` when the write does not change it.
    ///
    /// # Errors
    /// 403 when the write does not fit, or the quota has not been counted yet.
    pub fn used_with(&self, quota: &Value) -> Result<Option<Value>, Status> {
        let hard = amounts::of(&quota["status"]["hard"]);
        let limited: Vec<&String> =
            hard.keys().filter(|name| usage::is_measured(self.resource, name)).collect();
        if limited.is_empty() || !scope::covers(quota, self.resource, self.object) {
            return Ok(None);
        }
        if usage::is_pod(self.resource) {
            let missing = pod::missing_amounts(self.object, &limited);
            if !missing.is_empty() {
                let text = format!("failed quota: {}: must specify {missing}", quota.name());
                return Err(self.refusal(&text));
            }
        }
        let used = amounts::of(&quota["status"]["used"]);
        if limited.iter().any(|name| !used.contains_key(*name)) {
            let names = limited.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(",");
            let text = format!("status unknown for quota: {}, resources: {names}", quota.name());
            return Err(self.refusal(&text));
        }
        let more = self.more(quota)?;
        let requested: Amounts =
            more.into_iter().filter(|(name, _)| hard.contains_key(name)).collect();
        if requested.is_empty() {
            return Ok(None);
        }
        let mut after = used.clone();
        amounts::add(&mut after, &requested);
        let exceeded: Vec<&String> =
            requested.keys().filter(|name| after.get(*name) > hard.get(*name)).collect();
        if exceeded.is_empty() {
            return Ok(Some(amounts::to_json(&after)));
        }
        let format = |amounts: &Amounts| amounts::format_amounts(amounts, exceeded.iter().copied());
        Err(self.refusal(&format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            quota.name(),
            format(&requested),
            format(&used),
            format(&hard)
        )))
    }

    /// What the object uses beyond what it used of this quota before.
    fn more(&self, quota: &Value) -> Result<Amounts, Status> {
        let now = usage::of(self.resource, self.object);
        let negative: Vec<&str> = now
            .iter()
            .filter(|(_, amount)| amount.is_negative())
            .map(|(name, _)| name.as_str())
            .collect();
        if !negative.is_empty() {
            let names = negative.join(",");
            let text = format!("quota usage is negative for resource(s): {names}");
            return Err(self.refusal(&text));
        }
        let counted = self.old.filter(|old| scope::covers(quota, self.resource, old));
        let before = counted.map(|old| usage::of(self.resource, old)).unwrap_or_default();
        Ok(amounts::increase(&now, &before))
    }

    fn refusal(&self, text: &str) -> Status {
        Status::forbidden(&self.resource.group, &self.resource.plural, self.name, text)
    }
}
