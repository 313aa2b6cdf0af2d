//! The fields of a posted form.

use std::collections::HashMap;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Map, Value};

use super::field_path::{self, Step};
use super::schema::Schema;
use crate::api_client::operations::Operation;

/// Hidden fields that every form has: the account that the page was made for, and the key of the write.
const HIDDEN: [&str; 2] = ["account", "idempotency_key"];

/// Maximum number of fields. The largest form of the console is a builder with all its fields, which are fewer.
const FIELDS_MAX: usize = 20_000;
/// Maximum number of list items that the names of one form create: `a[500]` creates 501.
const ITEMS_MAX: usize = 10_000;

/// The fields of a posted form, in their order.
#[derive(Debug, Clone)]
pub(crate) struct FormSubmission {
    fields: Vec<(String, String)>,
    /// The indices of the fields of each name: a lookup takes the same time in a form of many fields.
    indices: HashMap<String, Vec<usize>>,
}

impl<S: Send + Sync> FromRequest<S> for FormSubmission {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let body = Bytes::from_request(request, state).await.map_err(IntoResponse::into_response)?;
        let fields: Vec<_> = form_urlencoded::parse(&body).into_owned().take(FIELDS_MAX + 1).collect();
        if fields.is_empty() {
            return Err((StatusCode::BAD_REQUEST, "The form was posted without fields.\n").into_response());
        }
        if fields.len() > FIELDS_MAX {
            let message = format!("A form may have at most {FIELDS_MAX} fields.\n");
            return Err((StatusCode::PAYLOAD_TOO_LARGE, message).into_response());
        }
        Ok(Self::of(fields))
    }
}

impl FormSubmission {
    /// Returns the form of these fields, such as of a form that was posted in another encoding.
    pub(crate) fn of(fields: Vec<(String, String)>) -> Self {
        let mut indices: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, (name, _)) in fields.iter().enumerate() {
            if let Some(known) = indices.get_mut(name) {
                known.push(index);
            } else {
                indices.insert(name.clone(), vec![index]);
            }
        }
        Self { fields, indices }
    }

    #[cfg(test)]
    pub(crate) fn parse(body: &str) -> Self {
        Self::of(form_urlencoded::parse(body.as_bytes()).into_owned().collect())
    }

    /// Returns the fields in their order, without those that every form has.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        fields.filter(|(name, _)| !HIDDEN.contains(name))
    }

    /// Returns the last value of a field; `None` if it is absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next_back().filter(|value| !value.is_empty())
    }

    /// Returns all values of a field, in their order.
    pub(crate) fn all(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> {
        let indices = self.indices.get(name).into_iter().flatten();
        indices.filter_map(|index| self.fields.get(*index)).map(|(_, value)| value.as_str())
    }

    /// Returns the account that the page was made for.
    pub(crate) fn account(&self) -> Option<&str> {
        self.get("account")
    }

    /// Returns the key that the page made: a second post of the same page is the same write.
    pub(crate) fn idempotency_key(&self) -> Option<&str> {
        self.get("idempotency_key")
    }

    /// Returns the last value of each field, to show the form again as it was.
    pub(crate) fn kept(&self) -> Value {
        let mut kept = Map::new();
        for (name, value) in self.fields.iter().filter(|(name, _)| !HIDDEN.contains(&name.as_str())) {
            if let Some(list) = name.strip_suffix("[]") {
                let values = kept.entry(list).or_insert_with(|| Value::Array(Vec::new()));
                values
                    .as_array_mut()
                    .map(|values| values.push(Value::String(value.clone())))
                    .unwrap_or_default();
            } else {
                kept.insert(name.clone(), Value::String(value.clone()));
            }
        }
        Value::Object(kept)
    }

    /// Returns the body of an operation. A checkbox is true if a field of its name has the value `on`; one that can be
    /// cleared has a hidden field before it.
    pub(crate) fn to_json(&self, document: &Value, operation: &Operation) -> Value {
        let schema = Schema::of(document, operation);
        let mut body = Value::Object(Map::new());
        let mut free = ITEMS_MAX;
        for (name, text) in self.fields.iter().filter(|(name, _)| !HIDDEN.contains(&name.as_str())) {
            let Some(steps) = field_path::parse(name) else { continue };
            set(&mut body, schema, &steps, text, &mut free);
        }
        body
    }
}

/// Sets the value at a path. `free` is the number of list items that may still be created; a field that needs more is left out.
fn set(target: &mut Value, schema: Schema<'_>, steps: &[Step], text: &str, free: &mut usize) {
    let Some((step, rest)) = steps.split_first() else {
        if schema.is("array") {
            append(target, schema.part(&Step::Append).value_of(text));
        } else if let Some(value) = schema.value_of(text) {
            *target = value;
        }
        return;
    };
    let part = schema.part(step);
    match step {
        Step::Member(name) => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            let Value::Object(members) = target else { return };
            let is_new = !members.contains_key(name);
            let value = members.entry(name).or_insert(Value::Null);
            set(value, part, rest, text, free);
            // A field that was left out adds no member, unless null was meant.
            if is_new && value.is_null() && !part.is_nullable {
                members.remove(name);
            }
        }
        Step::Index(index) => {
            if !target.is_array() {
                *target = Value::Array(Vec::new());
            }
            let Value::Array(items) = target else { return };
            let missing = (index + 1).saturating_sub(items.len());
            let Some(left) = free.checked_sub(missing) else { return };
            *free = left;
            items.resize(items.len() + missing, Value::Null);
            set(&mut items[*index], part, rest, text, free);
        }
        Step::Append => append(target, part.value_of(text)),
    }
}

fn append(target: &mut Value, value: Option<Value>) {
    if !target.is_array() {
        *target = Value::Array(Vec::new());
    }
    // An empty value of a list is a hidden field that makes an empty list possible.
    if let (Value::Array(items), Some(value)) = (target, value)
        && value != ""
    {
        items.push(value);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::api_client::operations::{KEYS_CREATE, SUBMISSIONS_MARK};

    fn document() -> Value {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../control-plane/openapi.json");
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    }

    #[test]
    fn a_field_has_its_last_value_and_all_values_their_order() {
        let form = FormSubmission::parse("a=1&b=&a=2&b[]=x&a=3&b[]=y");
        assert_eq!((form.get("a"), form.get("b"), form.get("c")), (Some("3"), None, None));
        assert_eq!(form.all("a").collect::<Vec<_>>(), ["1", "2", "3"]);
        assert_eq!(form.all("b[]").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(form.all("c").count(), 0);
    }

    #[test]
    fn memory_exhaustion_by_many_fields_is_prevented() {
        let post = |fields: usize| {
            let request = Request::post("/").body("a=&".repeat(fields).into()).unwrap();
            let form = futures::executor::block_on(FormSubmission::from_request(request, &()));
            form.map(|form| form.fields.len()).map_err(|refused| refused.status())
        };
        assert_eq!(post(FIELDS_MAX), Ok(FIELDS_MAX));
        for (fields, status) in
            [(0, StatusCode::BAD_REQUEST), (FIELDS_MAX + 1, StatusCode::PAYLOAD_TOO_LARGE)]
        {
            assert_eq!(post(fields), Err(status), "{fields} fields");
        }
    }

    #[test]
    fn memory_exhaustion_by_nested_indices_is_prevented() {
        fn items(value: &Value) -> usize {
            match value {
                Value::Array(list) => list.len() + list.iter().map(items).sum::<usize>(),
                Value::Object(members) => members.values().map(items).sum(),
                _ => 0,
            }
        }
        let name = |number: usize| (format!("a{number}{}", "[500]".repeat(15)), "x".to_owned());
        let form = FormSubmission::of((0..5_000).map(name).collect());
        let made = items(&form.to_json(&document(), &KEYS_CREATE));
        assert!((ITEMS_MAX / 2..=ITEMS_MAX).contains(&made), "{made}");
    }

    #[test]
    fn the_schema_of_the_operation_gives_each_field_its_type() {
        let form = FormSubmission::parse(
            "account=a&idempotency_key=k&label=Site&scopes[]=pages:read&scopes[]=forms:read&expiresAt=&folderId=",
        );
        assert_eq!(
            form.to_json(&document(), &KEYS_CREATE),
            json!({ "label": "Site", "scopes": ["pages:read", "forms:read"], "expiresAt": null, "folderId": null })
        );
        assert_eq!((form.account(), form.idempotency_key()), (Some("a"), Some("k")));
        assert_eq!(form.kept()["scopes"], json!(["pages:read", "forms:read"]));
        let mark = FormSubmission::parse("status=spam").to_json(&document(), &SUBMISSIONS_MARK);
        assert_eq!(mark, json!({ "status": "spam" }));
    }

    #[test]
    fn nested_names_numbers_and_checkboxes_follow_a_schema() {
        let document = json!({ "paths": { "/x": { "post": { "requestBody": { "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/X" } } } } } } },
            "components": { "schemas": { "X": { "type": "object", "properties": {
                "spam": { "anyOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Spam" }] },
                "fields": { "type": "array", "items": { "type": "object", "properties": {
                    "label": { "type": "string" }, "required": { "type": "boolean" }, "min": { "type": ["number", "null"] } } } },
                "max": { "type": "integer" } } },
                "Spam": { "type": "object", "properties": { "honeypot": { "type": "boolean" } } } } } });
        static X: Operation = Operation { id: "x", method: http::Method::POST, path: "/x" };
        let form = FormSubmission::parse(
            "fields[1].label=B&fields[0].label=&fields[0].required=&fields[0].required=on&fields[1].min=2.5&fields[0].min=\
             &spam.honeypot=&max=seven",
        );
        assert_eq!(
            form.to_json(&document, &X),
            json!({ "fields": [{ "label": "", "required": true, "min": null }, { "label": "B", "min": 2.5 }],
                "spam": { "honeypot": false }, "max": "seven" })
        );
        let empty = FormSubmission::parse("max=").to_json(&document, &X);
        assert_eq!(empty, json!({}), "an empty number is left out");
    }
}
