//! Validation of a RuntimeClass, with kube-apiserver's messages and order.

use api_meta::status::Cause;
use api_meta::{labels, names};
use apiserver::fields::{items, str_of};
use serde_json::{Value, json};

use crate::kinds::pod;

/// Fields that identify a toleration.
const KEYS: [&str; 4] = ["key", "operator", "value", "effect"];

/// Returns all causes to refuse `class`. `old` is the class before an update.
pub fn validate(class: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let handler = Value::from(str_of(&class["handler"]));
    if handler == "" {
        causes.push(Cause::required("handler", ""));
    } else {
        let problems = names::dns1123_label(str_of(&handler));
        causes.extend(problems.iter().map(|why| Cause::invalid("handler", &handler, why)));
    }
    let overhead = &class["overhead"];
    if overhead.is_object() {
        let costs = json!({"limits": overhead["podFixed"]});
        pod::validate::of_container("overhead", &costs, &mut causes);
    }
    let scheduling = &class["scheduling"];
    causes.extend(labels::validate_labels("scheduling.nodeSelector", &scheduling["nodeSelector"]));
    causes.extend(tolerations("scheduling.tolerations", &scheduling["tolerations"]));
    if old.is_some_and(|old| str_of(&old["handler"]) != str_of(&handler)) {
        causes.push(Cause::invalid("handler", &handler, "field is immutable"));
    }
    causes
}

fn tolerations(field: &str, list: &Value) -> Vec<Cause> {
    let mut causes = pod::validate::tolerations(field, list);
    let list = items(list);
    let key = |one: &Value| KEYS.map(|part| str_of(&one[part]).to_owned());
    for (index, one) in list.iter().enumerate() {
        if list[..index].iter().any(|before| key(before) == key(one)) {
            // In the notation of upstream's internal type.
            let [name, operator, value, effect] = key(one).map(Value::from);
            let message = format!(
                "Duplicate value: {{\"Key\":{name},\"Operator\":{operator},\"Value\":{value},\
                 \"Effect\":{effect},\"TolerationSeconds\":{}}}",
                one["tolerationSeconds"],
            );
            causes.push(Cause::new("FieldValueDuplicate", format!("{field}[{index}]"), message));
        }
    }
    causes
}
