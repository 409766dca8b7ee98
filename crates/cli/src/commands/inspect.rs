//! `drover inspect`: objects of any type, as the server shows them.

use crate::api::{self, Api, text};
use crate::args::{Format, InspectArgs};
use crate::effect;
use crate::error::CliError;
use crate::output::{self, Column, age};
use crate::types::Type;

const COLUMNS: &[Column] = &[
    Column { heading: "NAME", cell: |object, _| api::name(object).to_owned() },
    Column { heading: "ID", cell: |object, _| text(object, "id").to_owned() },
    Column { heading: "STATE", cell: |object, _| effect::state(object) },
    Column { heading: "AGE", cell: |object, now| age(text(object, "created"), now) },
];

pub async fn run(args: InspectArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.name())?;
    let kind = Type::find(&api, &args.kind).await?;
    let Some(name) = &args.name else {
        let objects = api.list(&kind.plural, &[]).await?;
        return output::list(args.output.unwrap_or_default(), COLUMNS, &objects);
    };
    let object = api.resolve(&kind.named(), name).await?;
    effect::warn_if_none(&object, &format!("{} \"{}\"", kind.id, api::name(&object)));
    match args.output.unwrap_or(Format::Yaml) {
        format if format.is_table() => output::list(format, COLUMNS, &[object]),
        format => output::one(format, &[], &object),
    }
}
