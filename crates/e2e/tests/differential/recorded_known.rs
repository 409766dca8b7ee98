//! Known differences in the responses to recorded requests, with reasons; and counts of all
//! results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Drover differs from today's kube-apiserver: prefix of the request's id, a part of the
/// difference, and the reason.
const KNOWN: [(&str, &str, &str); 80] = [
    ("A1-status", ".status.", "the state that the controllers of each report"),
    ("W22-tinytimeout", "status 504", "within a microsecond this server may be done"),
    ("W22-write-timeout", "status 504", "within a microsecond this server may be done"),
    ("W6-proto-", ".message", "what is wrong with the bytes has another text"),
    ("W11-cbor-apply", ".details", "415 of a patch without empty details"),
    ("P1-", ".details", "415 of a patch without empty details"),
    ("W25-microtime", ".message", "which of several errors is reported"),
    ("W4-yaml-cr", "status", "YAML 1.2, where 'y' is a text"),
    ("W20-depth", "", "nesting ends at 100"),
    ("D1-", "", "only what is offered is listed"),
    ("D3-", "", "only what is offered is listed"),
    ("D6-", ".items", "only what is offered is listed"),
    ("D6-", ".groups", "only what is offered is listed"),
    ("D-", "", "only what is offered is listed"),
    ("D10-", ".paths", "only what is offered is listed"),
    ("D11-", "", "names its own compiler and commit"),
    ("Q1-anon-version", "", "names its own compiler and commit"),
    ("D9-", "deletecollection", "verbs of a definition that ends"),
    ("Y", "", "APIServices are not offered"),
    ("K5-", "", "each has keys and an address of its own"),
    ("O", "", "schemas name what is offered, in JSON"),
    ("Q1/", "", "this server has checks of its own"),
    ("Q3-", "", "metrics are not offered"),
    ("L11-all", "remainingItemCount", "each has configuration of its own"),
    ("M9-ct-put", ".details.causes", "which of several errors are reported"),
    ("M3-gencollision", ".details.name", "a generated name"),
    ("M4-badgen", "", "a generated name"),
    ("F1-", "", "duplicate fields are reported before unknown ones"),
    ("F2-strict-smp", "", "the patched object is shown as JSON"),
    ("V12-precond-rv", ".message", "the versions of each"),
    ("V3-put-norv-Pod", ".details.causes", "the fields that differ are not shown"),
    ("V3-put-norv-Persistent", ".status", "no controller of volumes"),
    ("V11-delete-Persistent", ".status", "no controller of volumes"),
    ("V11-delete-Persistent", ".metadata.finalizers", "when a controller has come by"),
    ("V11-delete-Persistent", ".metadata.deletion", "when a controller has come by"),
    ("V3-put-norv-", ".status", "when a controller has come by"),
    ("V11-delete-", ".status", "when a controller has come by"),
    ("V3-put-norv-Deployment", ".metadata", "when a controller has come by"),
    ("P5-smp-", ".status", "when a controller has come by"),
    ("P5-smp-", ".metadata", "when a controller has come by"),
    ("V11-delete-Job", "", "the warning about pods, and names of the job's own"),
    ("C7-", ".status", "the end is reported at once"),
    ("C7-", ".metadata", "instances are marked at once"),
    ("V2-put-missing-Z", "", "a definition without instances is deleted at once"),
    ("V3-put-norv-Z", "", "a definition without instances is deleted at once"),
    ("V11-delete-Z", "", "a definition without instances is deleted at once"),
    ("V14-", "", "pods on nodes that are not there are removed"),
    ("P8-mgr-nonprint", ".message", "quoted as JSON"),
    ("C1-create", ".status.conditions", "no conditions are an empty list"),
    ("C4-conflict", ".status.conditions", "no conditions are an empty list"),
    ("C1-twostorage", "", "the whole definition in the words of Go"),
    ("E8-", "", "what is wrong with a rule has another text"),
    ("T11-", "", "each has names of its own; the administrator here has a token"),
    ("T5-xremote", "", "each has names of its own"),
    ("K1-", ".status", "a token"),
    ("T6-denied", "", "refused in terms of the verb 'impersonate'"),
    ("B7-bind", ".message", "the rules of the role, in another order"),
    ("B9-", "", "roles of what is offered"),
    ("B12-rules", "", "in another order"),
    ("14.1-secret-docker", ".message", "quoted as JSON"),
    ("14.1-svc-clusterip-change", "", "named as the field that was changed"),
    ("C7-gone", "", "when a controller has come by"),
    ("V13-pod-delete", ".status", "nothing schedules pods"),
    ("V13-pod-delete", ".metadata.resourceVersion", "nothing schedules pods"),
    ("K2-deleted-sa", "status", "a token ends with its account at once"),
    ("Z3-", ".details.group", "named with its group"),
    ("N3-", "", "when a controller has come by"),
    ("N5-", "", "when a controller has come by"),
    ("N8-", "", "where the server is, and endpoints"),
    ("N9-", ".metadata", "labels that the body leaves out stay"),
    ("X11-watchlist", "", "the object of a setup may come first"),
    ("X9-bookmark", "", "begins where the list did"),
    ("W25-zerotime", "", "no front proxy is configured"),
    ("K-sa-cluster", "", "controllers have no accounts here"),
    ("X17-", "", "when a controller has come by"),
    ("H15-vap-deny", "status 201", "a policy takes effect at once"),
    ("H5-compile", ".message", "what is wrong with an expression has another text"),
    ("H5-compile", ".details.causes", "what is wrong with an expression has another text"),
    ("V7-", ".status.", "the state that the controllers of each report"),
    ("V7-", ".metadata.resourceVersion", "the state that the controllers of each report"),
];

/// Missing features: prefix of the ids of requests that show it, and the feature.
const NOT_YET: [(&str, &str); 1] = [("Q7-", "what counts quotas runs beside kube-apiserver alone")];

/// Today's kube-apiserver differs from the recorded one: prefix of the request's id, and the
/// reason.
const DRIFTED: [(&str, &str); 31] = [
    ("Q1/readyz/etcd", "the storage is a check of its own at /readyz"),
    ("W2-legacy-watch-item", "the watch had ended before there was a second event"),
    ("A10-cr", "who owned the field was named by its program"),
    ("W12-table", "the namespace had one object more"),
    ("W12-poml", "the namespace had one object more"),
    ("L1-", "the namespace had one object more"),
    ("L6-", "the namespace had one object more"),
    ("L7-", "the namespace had one object more"),
    ("L9-", "the namespace had one object more"),
    ("L10-", "the namespace had one object more"),
    ("L11-all", "other namespaces"),
    ("D3-proto", "the list of groups is longer"),
    ("L3-future", "the store could not report progress"),
    ("W12-pom-watchlist", "the store could not report progress"),
    ("W15-table", "somebody wrote during the watch, or the store could not report progress"),
    ("C7-", "when a controller has come by"),
    ("P5-", "when a controller has come by"),
    ("V3-put-norv-", "when a controller has come by"),
    ("V11-delete-", "when a controller has come by"),
    ("X1-rvN", "somebody wrote before the watch"),
    ("X9-", "the watch begins at another version"),
    ("X11-", "somebody wrote during the watch, or the store could not report progress"),
    ("X18-", "somebody wrote before the watch, or the store could not report progress"),
    ("B12-", "in another order"),
    ("C4-", "names of roles and times"),
    ("H15-", "a policy holds some moments after it was made"),
    ("N1-list", "other namespaces"),
    ("Q7-", "when a controller has come by"),
    ("N3-", "when a controller has come by"),
    ("N5-", "when a controller has come by"),
    ("Z3-", "ages of events, and when they end"),
];

/// Requests whose preparation this server refuses; the tables above have the reasons.
const REFUSED: [&str; 2] = ["A6-ancient", "Q7-quota"];

pub fn is_refused_here(before: &str) -> bool {
    REFUSED.contains(&before)
}

/// The result of every recorded request.
#[derive(Default)]
pub struct Tally {
    as_recorded: usize,
    as_today: BTreeMap<&'static str, usize>,
    known: BTreeMap<&'static str, usize>,
    not_yet: BTreeMap<&'static str, usize>,
    lost: BTreeMap<String, Vec<String>>,
    partial: usize,
    unexplained: usize,
    /// Lines of [`KNOWN`].
    used: BTreeSet<usize>,
}

impl Tally {
    /// Counts a request that cannot be repeated.
    pub fn lost(&mut self, id: &str, reason: &str) {
        self.lost.entry(reason.to_owned()).or_default().push(id.to_owned());
    }

    /// Counts a response whose recorded body is incomplete, or has bytes that name its own objects.
    pub fn count_partial(&mut self) {
        self.partial += 1;
    }

    /// Counts a response. `between`: differences between Drover and today's kube-apiserver;
    /// `drift`: between today's and the recorded one; `since`: between Drover and the recorded one.
    /// Returns a complaint about unexplained ones.
    pub fn count(
        &mut self,
        id: &str,
        between: &[String],
        drift: &[String],
        since: &[String],
    ) -> Option<String> {
        let mut reason = None;
        let unknown: Vec<&String> = between
            .iter()
            .filter(|difference| {
                let known = KNOWN.iter().position(|(begins, contains, _)| {
                    id.starts_with(begins) && difference.contains(contains)
                });
                if let Some(known) = known {
                    self.used.insert(known);
                    reason = Some(KNOWN[known].2);
                }
                known.is_none()
            })
            .collect();
        if !unknown.is_empty()
            && let Some((_, missing)) = NOT_YET.iter().find(|(begins, _)| id.starts_with(begins))
        {
            *self.not_yet.entry(missing).or_default() += 1;
            return None;
        }
        if !unknown.is_empty() {
            self.unexplained += 1;
            let unknown: Vec<&str> = unknown.into_iter().map(String::as_str).collect();
            return Some(unknown.join("\n    "));
        }
        if let Some(reason) = reason {
            *self.known.entry(reason).or_default() += 1;
            return None;
        }
        if since.is_empty() {
            self.as_recorded += 1;
            return None;
        }
        match DRIFTED.iter().find(|(begins, _)| id.starts_with(begins)) {
            Some((_, reason)) => {
                *self.as_today.entry(reason).or_default() += 1;
                None
            }
            None => {
                self.unexplained += 1;
                Some(format!("(recorded | kube-apiserver of today) {}", drift.join("\n    ")))
            }
        }
    }

    pub fn total(&self) -> usize {
        let lost: usize = self.lost.values().map(Vec::len).sum();
        let explained =
            self.as_today.values().chain(self.known.values()).chain(self.not_yet.values());
        let explained: usize = explained.sum();
        self.as_recorded + explained + lost + self.unexplained
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} as recorded", self.as_recorded)?;
        writeln!(
            f,
            "{} of all by status and headers alone: no whole body is recorded",
            self.partial
        )?;
        for (reason, count) in &self.as_today {
            writeln!(f, "{count} as kube-apiserver responds today: {reason}")?;
        }
        for (reason, count) in &self.known {
            writeln!(f, "{count} differ, known: {reason}")?;
        }
        for (missing, count) in &self.not_yet {
            writeln!(f, "{count} differ, not here yet: {missing}")?;
        }
        for (reason, ids) in &self.lost {
            writeln!(f, "{} cannot be made again: {reason}: {}", ids.len(), ids.join(", "))?;
        }
        for (index, (begins, contains, _)) in KNOWN.iter().enumerate() {
            if !self.used.contains(&index) {
                writeln!(f, "not needed this time: {begins:?}, {contains:?}")?;
            }
        }
        write!(f, "{} unexplained", self.unexplained)
    }
}
