//! `drover inspect`: objects of any type, as the server shows them.

use crate::api::{self, Api, text};
use crate::args::{InspectArgs, OutputFormat};
use crate::effect;
use crate::error::CliError;
use crate::output::{self, TableColumn, age};
use crate::types::Type;

const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "NAME", cell: |object, _| api::name(object).to_owned() },
    TableColumn { heading: "ID", cell: |object, _| text(object, "id").to_owned() },
    TableColumn { heading: "STATE", cell: |object, _| effect::state(object) },
    TableColumn { heading: "AGE", cell: |object, now| age(text(object, "created"), now) },
];

/// Prints one object of a type, or all.
///
/// # Errors
/// The type or the object does not exist, or a request fails.
pub async fn run(args: InspectArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.name())?;
    let kind = Type::find(&api, &args.kind).await?;
    let Some(name) = &args.name else {
        let objects = api.list(&kind.plural, &[]).await?;
        return output::list(args.output.unwrap_or_default(), COLUMNS, &objects);
    };
    let object = api.resolve(&kind.as_named(), name).await?;
    effect::warn_if_none(&object, &format!("{} \"{}\"", kind.id, api::name(&object)));
    match args.output.unwrap_or(OutputFormat::Yaml) {
        format if format.is_table() => output::list(format, COLUMNS, &[object]),
        format => output::one(format, &[], &object),
    }
}
