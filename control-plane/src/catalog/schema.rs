//! Makes schemas of the document self-contained: what they refer to goes into their own `$defs`.

use serde_json::{Map, Value};

const COMPONENTS: &str = "#/components/schemas/";

/// Returns a schema with everything it refers to. A reference at the top is replaced by its target.
pub(super) fn self_contained(schema: &Value, components: &Map<String, Value>) -> Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix(COMPONENTS));
    let target = target.and_then(|name| components.get(name));
    let mut schema = target.unwrap_or(schema).clone();
    add_definitions(&mut schema, components);
    schema
}

/// Moves the references of a schema to its own `$defs`.
pub(super) fn add_definitions(schema: &mut Value, components: &Map<String, Value>) {
    let (mut due, mut definitions) = (Vec::new(), Map::new());
    redirect(schema, &mut due);
    while let Some(name) = due.pop() {
        if let Some(component) = components.get(&name)
            && !definitions.contains_key(&name)
        {
            let mut component = component.clone();
            redirect(&mut component, &mut due);
            definitions.insert(name, component);
        }
    }
    if let Value::Object(schema) = schema
        && !definitions.is_empty()
    {
        definitions.sort_keys();
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
}

/// Points the references in a value at `$defs`, and collects their names. Beside `$ref`, a discriminator has some.
fn redirect(value: &mut Value, names: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            if let Some(name) = text.strip_prefix(COMPONENTS).map(str::to_owned) {
                *text = format!("#/$defs/{name}");
                names.push(name);
            }
        }
        Value::Object(members) => members.values_mut().for_each(|member| redirect(member, names)),
        Value::Array(items) => items.iter_mut().for_each(|item| redirect(item, names)),
        _ => {}
    }
}
