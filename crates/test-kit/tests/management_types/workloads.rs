//! Compares the types of workloads with the reference, line by line.

use super::facts::{differences, facts, served};
use super::known::Reasons;
use super::rest::Rest;

const FACTS: &str = include_str!("../../fixtures/workload-types.txt");

const REASONS: Reasons = &[
    ("owners are bookkeeping and not shown", &["*.ownerReferences", "objectMeta.finalizers"]),
    ("its fields are those of each kind", &["podSpec"]),
    ("shown as environment and environmentFrom alone", &["container.env", "container.envFrom"]),
    ("so that a workload can be rolled back to a ReplicaSet", &["rollbackRevision.replicaSetId"]),
    (
        "absent is not the same as zero or off: a default would set it",
        &[
            "*.activeDeadlineSeconds",
            "*.allowPrivilegeEscalation",
            "*.automountServiceAccountToken",
            "*.backoffLimit",
            "*.collisionCount",
            "*.completions",
            "*.defaultMode",
            "*.enableServiceLinks",
            "*.exitCode",
            "*.expirationSeconds",
            "*.failedJobsHistoryLimit",
            "*.fsgid",
            "*.lun",
            "*.manualSelector",
            "*.mode",
            "*.optional",
            "*.parallelism",
            "*.partition",
            "*.priority",
            "*.privileged",
            "*.progressDeadlineSeconds",
            "*.readOnly",
            "*.revisionHistoryLimit",
            "*.runAsGroup",
            "*.runAsNonRoot",
            "*.scale",
            "*.shareProcessNamespace",
            "*.started",
            "*.startingDeadlineSeconds",
            "*.successfulJobsHistoryLimit",
            "*.suspend",
            "*.terminationGracePeriodSeconds",
            "*.tolerationSeconds",
            "*.ttlSecondsAfterFinished",
            "*.uid",
        ],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_schema_of_workloads_equals_the_reference() {
    let rest = Rest::start().await;
    let facts = facts(FACTS);
    let mut served = served(&rest.schemas("/v3/project").await);
    served.retain(|key, _| facts.contains_key(key.split(['.', '?']).next().unwrap()));
    let (wrong, compared) = differences(&facts, &served, REASONS);
    assert!(wrong.is_empty(), "{wrong}");
    assert!(compared > 1_000, "{compared} lines");
}
