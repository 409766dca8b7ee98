//! MutatingWebhookConfiguration and ValidatingWebhookConfiguration: which webhooks are called for
//! which writes. [`apiserver::admission`] calls them.

pub(crate) mod validate;

use apiserver::admission::webhooks::{self, GROUP};
use apiserver::fields::{each, ensure, items, map, preset};
use apiserver::kind::cells;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use serde_json::Value;

/// The kind MutatingWebhookConfiguration: webhooks that may change objects before validation.
pub fn mutating() -> Kind {
    kind(
        webhooks::MUTATING,
        "mutatingwebhookconfiguration",
        "MutatingWebhookConfiguration",
        "/registry/mutatingwebhookconfigurations/",
        |object| default(object, true),
    )
}

/// The kind ValidatingWebhookConfiguration: webhooks that may refuse objects.
pub fn validating() -> Kind {
    kind(
        webhooks::VALIDATING,
        "validatingwebhookconfiguration",
        "ValidatingWebhookConfiguration",
        "/registry/validatingwebhookconfigurations/",
        |object| default(object, false),
    )
}

fn kind(
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    prefix: &'static str,
    default: fn(&mut Value),
) -> Kind {
    let mut kind = Kind {
        namespaced: false,
        categories: &["api-extensions"],
        prefix,
        columns: &[NAME, ("Webhooks", "integer", "", 0), AGE],
        hooks: Hooks {
            default,
            validate: |_, object, _| validate::configuration(object),
            cells: |object, now| {
                let count = items(&object["webhooks"]).len();
                vec![cells::name(object), count.into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, plural, singular, kind).counted()
    };
    kind.rules.unconditional_update = false;
    kind
}

fn default(object: &mut Value, mutating: bool) {
    let Some(object) = map(object) else { return };
    each(object, "webhooks", |webhook| {
        for (field, value) in [("failurePolicy", "Fail"), ("matchPolicy", "Equivalent")] {
            preset(webhook, field, value);
        }
        if mutating {
            preset(webhook, "reinvocationPolicy", "Never");
        }
        preset(webhook, "timeoutSeconds", 10);
        ensure(webhook, "namespaceSelector");
        ensure(webhook, "objectSelector");
        each(webhook, "rules", |rule| preset(rule, "scope", "*"));
        let service = ensure(webhook, "clientConfig").and_then(|config| config.get_mut("service"));
        if let Some(service) = service.and_then(map) {
            preset(service, "port", 443);
        }
    });
}
