//! Requests derived from the API document: valid ones, and ones with a single error.

use regex::Regex;
use serde_json::{Map, Value, json};

/// An id of no resource.
const UNKNOWN_ID: &str = "00000000-0000-0000-0000-000000000000";

/// Schemas that stand for the choices of their kind.
const TRIED_CHOICES: [&str; 2] = ["/HttpTrigger", "/CreateEntryStep"];

/// An operation of the document.
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) path: String,
    /// The schema of the body.
    pub(super) body: Option<Value>,
    /// Whether a request without the body is invalid.
    pub(super) requires_body: bool,
    /// The query parameters with their schemas.
    query: Vec<(String, bool, Value)>,
    document: Value,
}

/// A request with a single error.
pub(super) struct InvalidRequest {
    /// The replacement of the id in the path.
    pub(super) path: Option<String>,
    pub(super) query: String,
    pub(super) body: Option<Value>,
    /// The field that the problem must name; `None` if it may name none.
    pub(super) field: Option<String>,
}

/// Every operation of the registry that requires a key.
pub(super) fn operations() -> Vec<Operation> {
    let document = serde_json::to_value(control_plane::api::document()).unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["security"].is_null() || !operation["x-served-by"].is_null() {
                continue;
            }
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let in_query = parameters.iter().filter(|parameter| parameter["in"] == "query");
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            operations.push(Operation {
                id: operation["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase(),
                path: path.clone(),
                body: (!body.is_null()).then(|| resolve(&document, body)),
                requires_body: operation["requestBody"]["required"] == true,
                query: in_query
                    .map(|one| {
                        let name = one["name"].as_str().unwrap().to_owned();
                        (name, one["required"] == true, resolve(&document, &one["schema"]))
                    })
                    .collect(),
                document: document.clone(),
            });
        }
    }
    operations
}

fn resolve(document: &Value, schema: &Value) -> Value {
    if let Some(choices) = schema["anyOf"].as_array() {
        let one = choices.iter().find(|choice| choice["type"] != "null").unwrap();
        let may_be_null = choices.iter().any(|choice| choice["type"] == "null");
        return with(&resolve(document, one), "mayBeNull", json!(may_be_null));
    }
    if let Some([one]) = schema["allOf"].as_array().map(Vec::as_slice) {
        return resolve(document, one);
    }
    if let Some(name) = schema["$ref"].as_str() {
        return resolve(document, document.pointer(&name[1..]).unwrap());
    }
    match schema["oneOf"].as_array() {
        // Of objects that `type` tells apart, one stands for all; the others have tests of their own.
        Some(choices) if schema["discriminator"].is_object() => {
            let is_tried = |choice: &&Value| {
                TRIED_CHOICES.iter().any(|name| choice["$ref"].as_str().unwrap().ends_with(name))
            };
            resolve(document, choices.iter().find(is_tried).unwrap())
        }
        Some(words) => {
            let words: Vec<&Value> = words.iter().map(|word| &word["const"]).collect();
            json!({"type": "string", "enum": words})
        }
        None => schema.clone(),
    }
}

impl Operation {
    /// The URL; by default its ids belong to no resource.
    pub(super) fn address(&self, id: Option<&str>, query: &str) -> String {
        let path = self
            .path
            .replace("{id}", id.unwrap_or(UNKNOWN_ID))
            .replace("{entryId}", UNKNOWN_ID)
            .replace("{subId}", UNKNOWN_ID)
            .replace("{versionId}", UNKNOWN_ID)
            .replace("{deliveryId}", UNKNOWN_ID)
            .replace("{runId}", UNKNOWN_ID);
        let required = self.query.iter().filter(|(name, required, _)| {
            *required && !query.split('&').any(|pair| pair.split('=').next() == Some(name))
        });
        let mut pairs: Vec<String> = required.map(|(name, ..)| format!("{name}={UNKNOWN_ID}")).collect();
        pairs.extend((!query.is_empty()).then(|| query.to_owned()));
        if pairs.is_empty() { path } else { format!("{path}?{}", pairs.join("&")) }
    }

    /// Whether the query has this parameter.
    pub(super) fn has_query(&self, name: &str) -> bool {
        self.query.iter().any(|(known, ..)| known == name)
    }

    /// A valid body.
    pub(super) fn valid_body(&self) -> Option<Value> {
        self.body.as_ref().map(|schema| self.valid_value(schema))
    }

    /// Requests with a single error each.
    pub(super) fn invalid_requests(&self) -> Vec<InvalidRequest> {
        let mut invalid = Vec::new();
        let body = self.valid_body();
        if self.path.contains("{id}") {
            for id in ["x", "0", "%00", "%ff", "..%2f..", "null", &UNKNOWN_ID[1..], &format!("{UNKNOWN_ID}0")]
            {
                let (path, query) = (Some(id.to_owned()), String::new());
                invalid.push(InvalidRequest { path, query, body: body.clone(), field: None });
            }
        }
        let mut in_query = |query: String, field: &str| {
            let field = Some(field.to_owned());
            invalid.push(InvalidRequest { path: None, query, body: body.clone(), field });
        };
        for (name, _, schema) in &self.query {
            for value in invalid_texts(schema) {
                in_query(format!("{name}={value}"), name);
            }
            let value = valid_text(schema);
            in_query(format!("{name}={value}&{name}={value}"), name);
        }
        if !self.query.is_empty() {
            in_query("colour=red".to_owned(), "colour");
        }
        if let (Some(schema), Some(valid)) = (&self.body, body) {
            for (changed, field) in self.invalid_values(schema, &valid, "") {
                invalid.push(InvalidRequest {
                    path: None,
                    query: String::new(),
                    body: Some(changed),
                    field: Some(field),
                });
            }
        }
        invalid
    }

    /// A valid value of the schema.
    fn valid_value(&self, schema: &Value) -> Value {
        let schema = resolve(&self.document, schema);
        if let Some(one) = schema["enum"].as_array() {
            return one[0].clone();
        }
        match kind(&schema).as_str() {
            "object" => {
                let required = schema["required"].as_array().cloned().unwrap_or_default();
                let member = |name: &Value| {
                    let name = name.as_str().unwrap();
                    (name.to_owned(), self.valid_value(&schema["properties"][name]))
                };
                Value::Object(required.iter().map(member).collect())
            }
            "array" => {
                let minimum = schema["minItems"].as_u64().unwrap_or(1).max(1);
                json!(vec![self.valid_value(&schema["items"]); minimum as usize])
            }
            "string" => json!(valid_text(&schema)),
            "integer" | "number" => schema["minimum"].as_i64().map_or(json!(1), |minimum| json!(minimum)),
            // A schema without a type allows any value.
            _ => json!(true),
        }
    }

    /// Copies of `valid` with a single error, each with the path of the error.
    fn invalid_values(&self, schema: &Value, valid: &Value, path: &str) -> Vec<(Value, String)> {
        let schema = resolve(&self.document, schema);
        let mut invalid = Vec::new();
        let under = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match kind(&schema).as_str() {
            "object" => {
                let members = schema["properties"].as_object().cloned().unwrap_or_else(Map::new);
                if schema["additionalProperties"] == false {
                    invalid.push((with(valid, "colour", json!(1)), under("colour")));
                }
                for name in schema["required"].as_array().into_iter().flatten() {
                    let mut less = valid.clone();
                    less.as_object_mut().unwrap().shift_remove(name.as_str().unwrap());
                    invalid.push((less, under(name.as_str().unwrap())));
                }
                for (name, member) in &members {
                    let value = valid.get(name).cloned().unwrap_or_else(|| self.valid_value(member));
                    for (wrong, field_path) in self.invalid_values(member, &value, &under(name)) {
                        invalid.push((with(valid, name, wrong), field_path));
                    }
                }
                invalid.extend([json!("x"), json!(7)].map(|wrong| (wrong, path.to_owned())));
            }
            "array" => {
                for (wrong, field_path) in
                    self.invalid_values(&schema["items"], &valid[0], &format!("{path}[0]"))
                {
                    let mut items = valid.clone();
                    items[0] = wrong;
                    invalid.push((items, field_path));
                }
                if schema["minItems"].as_u64() > Some(0) {
                    invalid.push((json!([]), path.to_owned()));
                }
                if let Some(most) = schema["maxItems"].as_u64() {
                    invalid.push((json!(vec![valid[0].clone(); most as usize + 1]), path.to_owned()));
                }
                invalid.extend([json!("x"), json!({})].map(|wrong| (wrong, path.to_owned())));
            }
            "string" => {
                invalid
                    .extend(self.invalid_strings(&schema).into_iter().map(|wrong| (wrong, path.to_owned())));
            }
            "integer" | "number" => {
                for (limit, step) in [("minimum", -1.0), ("maximum", 1.0)] {
                    if let Some(limit) = schema[limit].as_f64() {
                        invalid.push((json!((limit + step) as i64), path.to_owned()));
                    }
                }
                invalid.extend([json!("1"), json!(true), json!([])].map(|wrong| (wrong, path.to_owned())));
                if kind(&schema) == "integer" {
                    invalid.extend([json!(1.5), json!(1e300)].map(|wrong| (wrong, path.to_owned())));
                }
            }
            "anything" => {}
            _ => invalid.extend([json!("true"), json!(1)].map(|wrong| (wrong, path.to_owned()))),
        }
        // A body of the wrong type has its own test.
        invalid.into_iter().filter(|(_, field_path)| !field_path.is_empty()).collect()
    }

    fn invalid_strings(&self, schema: &Value) -> Vec<Value> {
        let mut invalid = vec![json!(7), json!(true), json!(["x"]), json!({"x": "x"})];
        if !schema["type"].is_array() && schema["mayBeNull"] != true {
            invalid.push(Value::Null);
        }
        if schema["minLength"].as_u64() > Some(0) {
            invalid.push(json!(""));
        }
        if let Some(most) = schema["maxLength"].as_u64() {
            invalid.push(json!("x".repeat(most as usize + 1)));
        }
        let rule = schema["pattern"].as_str().map(|rule| Regex::new(rule).unwrap());
        if schema["enum"].is_array() || rule.is_some() {
            let words = ["?", "ABC DEF", "x\u{202e}yz"].into_iter();
            let is_wrong = |word: &&str| rule.as_ref().is_none_or(|rule| !rule.is_match(word));
            invalid.extend(words.filter(is_wrong).map(|word| json!(word)));
        }
        if schema["pattern"] == r"\S" {
            invalid.extend([json!("   "), json!("\u{2003}\n\t")]);
        }
        if schema["format"].is_string() {
            invalid.extend([json!("(?"), json!("\u{1f600} \\")].into_iter().take(1));
        }
        invalid.push(json!("nul\0nul"));
        invalid
    }
}

fn kind(schema: &Value) -> String {
    let kinds = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    let known = kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null");
    known.unwrap_or("anything").to_owned()
}

fn with(object: &Value, name: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[name] = value;
    object
}

/// A valid text of the schema.
fn valid_text(schema: &Value) -> String {
    if let Some(one) = schema["enum"].as_array() {
        return one[0].as_str().unwrap().to_owned();
    }
    if let Some(only) = schema["const"].as_str() {
        return only.to_owned();
    }
    let text = match (schema["format"].as_str(), schema["pattern"].as_str()) {
        (Some("uuid"), _) => UNKNOWN_ID,
        (Some("date" | "day-or-time"), _) => "2026-03-29",
        (Some("date-time"), _) => "2026-03-29T00:00:00Z",
        (Some("uri"), _) => "https://example.com/hook",
        (Some("idn-hostname"), _) => "www.example.com",
        (Some("timezone"), _) => "UTC",
        (_, Some(rule)) if rule.starts_with(r"^(\*|") => "*",
        (_, Some(rule)) if !Regex::new(rule).unwrap().is_match("abc") => "image/png",
        _ if kind(schema) == "integer" => "1",
        _ => "abc",
    };
    text.to_owned()
}

/// Query texts that the schema excludes.
fn invalid_texts(schema: &Value) -> Vec<&'static str> {
    let mut invalid = vec!["%00", "a%00b"];
    match (kind(schema).as_str(), schema["format"].as_str()) {
        ("integer", _) => {
            invalid.extend(["", "x", "-1", "1.5", "1e2", "9223372036854775808", "%ff"]);
            invalid.extend(Some("0").filter(|_| schema["minimum"].as_i64() > Some(0)));
            invalid.extend(Some("101").filter(|_| schema["maximum"].as_i64() == Some(100)));
        }
        (_, Some("uuid")) => invalid.extend(["", "x", "null", "0000", "%f0%9f%98%80"]),
        (_, Some("cursor")) => invalid.extend(["", "x", "%ff", "%f0%9f%98%80", "AAAA"]),
        _ if schema["enum"].is_array() => invalid.extend(["", "x", "PAGE_VIEWS", "%ff"]),
        _ => {}
    }
    invalid
}
