//! The types of workloads, read from their tables in `types/`.

use std::collections::BTreeMap;

use api_management::table::{self, TypeTable};
use feature_kit::table::{field, struct_type};
use rest_view::{Field, FieldLocation, StructType};

use super::kind::WorkloadKind;

macro_rules! texts {
    ($($name:literal)*) => {
        &[$(include_str!(concat!("../../types/", $name, ".txt"))),*]
    };
}

const NESTED: &[&str] = texts!(
    "nested/configs" "nested/pods" "nested/scheduling" "nested/statuses" "nested/volumes"
);

/// The nested type with the fields that all kinds share.
pub const POD_SPEC: &str = "podSpec";

/// The fields of every kind and nested type, by id. Without what kinds have in their metadata,
/// which the REST view maps itself.
pub struct Types {
    fields: BTreeMap<String, Vec<Field>>,
}

impl Types {
    /// Reads the tables.
    pub fn read() -> Self {
        let kinds = WorkloadKind::ALL.iter().map(|kind| {
            let table = table_of(*kind);
            let fields = table.fields.iter().map(field).filter(|field| !is_metadata(field));
            (table.id.to_owned(), fields.collect())
        });
        let nested = nested().map(|nested| (nested.id, nested.fields));
        Self { fields: nested.chain(kinds).collect() }
    }
    /// The fields of a type; `None`: there is no such type.
    pub fn fields(&self, id: &str) -> Option<&[Field]> {
        self.fields.get(id).map(Vec::as_slice)
    }
}

/// Whether a field of a kind is stored in the object's metadata.
pub fn is_metadata(field: &Field) -> bool {
    match &field.location {
        Some(FieldLocation::Path(way)) => way.first().is_some_and(|first| first == "metadata"),
        Some(FieldLocation::Annotation(_)) => true,
        _ => false,
    }
}

/// The table of a kind.
pub fn table_of(kind: WorkloadKind) -> TypeTable {
    table::parse(text_of(kind)).expect("a test reads every table")
}

/// All nested types.
pub fn nested() -> impl Iterator<Item = StructType> {
    let files = NESTED.iter().map(|text| table::nested(text).expect("a test reads every table"));
    files.flatten().map(|nested| struct_type(&nested))
}

fn text_of(kind: WorkloadKind) -> &'static str {
    let [cron_job, daemon_set, deployment, job, pod, replica_set, controller, stateful_set] = texts!("cron_job" "daemon_set" "deployment" "job" "pod" "replica_set"
            "replication_controller" "stateful_set");
    match kind {
        WorkloadKind::CronJob => cron_job,
        WorkloadKind::DaemonSet => daemon_set,
        WorkloadKind::Deployment => deployment,
        WorkloadKind::Job => job,
        WorkloadKind::Pod => pod,
        WorkloadKind::ReplicaSet => replica_set,
        WorkloadKind::ReplicationController => controller,
        WorkloadKind::StatefulSet => stateful_set,
    }
}
