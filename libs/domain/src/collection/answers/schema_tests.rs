//! Compares the validation with a JSON Schema of the same form, evaluated by a third-party library: both agree on
//! every form and all answers.

use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::check;
use crate::fields::{self, Field};

/// The HTML standard's expression for `<input type=email>`, with a dot in the domain. Of the letters beyond ASCII that a
/// domain may have, these tests generate one.
const EMAIL: &str = "^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9é](?:[a-zA-Z0-9é-]{0,61}[a-zA-Z0-9é])?(?:\\.[a-zA-Z0-9é](?:[a-zA-Z0-9é-]{0,61}[a-zA-Z0-9é])?)+$";
/// A telephone number alone, and one with an extension.
const TEL: [&str; 2] = [
    "^(?:[-+().x/#* \u{a0}\u{202f}\u{2011}]*[0-9]){3}[-0-9+().x/#* \u{a0}\u{202f}\u{2011}]*$",
    "^(?:[-+().x/#* \u{a0}\u{202f}\u{2011}]*[0-9]){3}[-0-9+().x/#* \u{a0}\u{202f}\u{2011}]*(?:;[eE][xX][tT]=|[eE][xX][tT](?:[.:]|[nN][.]?|[eE][nN][sS][iI][oO][nN])?|,)[ \u{a0}\u{202f}]*[0-9]+$",
];
/// Covers only the URLs that these tests generate: no expression describes all that browsers open.
const URL: &str = "^[Hh][Tt][Tt][Pp][Ss]?://(?:[a-z]+@)?(?:[a-z][a-z0-9]*(?:[.][a-z][a-z0-9]*)*|(?:(?:[1-9]?[0-9]|1[0-9][0-9])[.]){3}[1-9]?[0-9]|\\[::1\\])(?::(?:[1-9][0-9]{0,3})?)?(?:[/?#][^\\p{White_Space}\\p{Cc}]*)?$";
/// Patterns that mean the same in our dialect and in JSON Schema's.
const PATTERNS: [&str; 7] = ["[a-z]+", "[0-9]{2,4}", "a|ab", "[A-Z]{2}-[0-9]+", "(a|b)*c?", "[^@]*", "^x?$"];

/// Returns the JSON Schema of the answers that a form accepts.
fn schema_of(fields: &[Value]) -> Value {
    let mut conditions: BTreeMap<&str, Value> = BTreeMap::new();
    let mut rules = Vec::new();
    for field in fields {
        let rule = &field["showIf"];
        let shown = match rule["field"].as_str() {
            Some(other) => json!({"allOf": [conditions[other], answered_with(other, &rule["equals"])]}),
            None => json!(true),
        };
        conditions.insert(field["name"].as_str().unwrap(), shown.clone());
        rules.push(json!({"if": shown, "then": answered_rightly(field)}));
    }
    json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "allOf": rules})
}

fn blank() -> Value {
    json!({"anyOf": [
        {"type": "null"},
        {"type": "string", "pattern": "^\\p{White_Space}*$"},
        {"type": "array", "maxItems": 0},
    ]})
}

fn answered_with(name: &str, equals: &Value) -> Value {
    let same = match equals {
        Value::Array(_) => json!({"const": equals}),
        _ => {
            json!({"if": {"type": "array"}, "then": {"contains": {"const": equals}}, "else": {"const": equals}})
        }
    };
    let mut ways =
        vec![json!({"required": [name], "properties": {name: {"allOf": [{"not": blank()}, same]}}})];
    // Browsers submit nothing for an unchecked checkbox.
    let of_none = json!({"anyOf": [blank(), {"const": false}]});
    if jsonschema::is_valid(&of_none, equals) {
        ways.push(json!({"properties": {name: blank()}}));
    }
    json!({"anyOf": ways})
}

fn answered_rightly(field: &Value) -> Value {
    let name = field["name"].as_str().unwrap();
    if field["required"] == true {
        return json!({"required": [name],
                      "properties": {name: {"allOf": [{"not": blank()}, value_of(field)]}}});
    }
    json!({"properties": {name: {"anyOf": [blank(), value_of(field)]}}})
}

fn value_of(field: &Value) -> Value {
    let options = &field["options"];
    let text = |rest: Value| {
        let bounds: Vec<Value> = [("minLength", "minLength"), ("maxLength", "maxLength")]
            .into_iter()
            .filter(|(ours, _)| !field[ours].is_null())
            .map(|(ours, theirs)| json!({theirs: field[ours]}))
            .collect();
        let pattern = field["pattern"].as_str().map(|pattern| json!({"pattern": format!("^(?:{pattern})$")}));
        let always = json!({"type": "string", "maxLength": 20_000, "not": {"pattern": "\\x00"}});
        let all: Vec<Value> = [always, rest].into_iter().chain(bounds).chain(pattern).collect();
        json!({ "allOf": all })
    };
    match field["type"].as_str().unwrap() {
        "email" => text(json!({"pattern": EMAIL, "maxLength": 254})),
        "url" => text(json!({"pattern": URL})),
        "tel" => text(json!({"anyOf": TEL.map(|pattern| json!({"pattern": pattern}))})),
        // The library's own check accepts `+200-01-01`.
        "date" => text(json!({"format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"})),
        "number" => {
            let mut schema = json!({"type": "number"});
            for (ours, theirs) in [("min", "minimum"), ("max", "maximum")] {
                if !field[ours].is_null() {
                    schema[theirs] = field[ours].clone();
                }
            }
            schema
        }
        "checkbox" if field["required"] == true => json!({"const": true}),
        "checkbox" => json!({"type": "boolean"}),
        "select" => json!({"enum": options}),
        "multiselect" => json!({"type": "array", "uniqueItems": true, "items": {"enum": options}}),
        _ => text(json!({})),
    }
}

/// Generates texts that are nearly valid, and any others.
fn texts() -> BoxedStrategy<Value> {
    let known = [
        "",
        " ",
        "\u{85}",
        "\u{feff}",
        "\u{2003}\n",
        "a",
        "ab",
        "abc",
        "x",
        "y y",
        "éé",
        "😀a",
        "12",
        "123",
        "AB-1",
        "a\u{0}b",
        "true",
        "1",
        "option 1",
        "Option 1",
    ];
    prop_oneof![
        6 => select(known.to_vec()).prop_map(Value::from),
        3 => select(KINDS.as_slice()).prop_flat_map(texts_like),
        1 => any::<String>().prop_map(Value::from),
        1 => (19_999_usize..20_002).prop_map(|n| "a".repeat(n).into()),
    ]
    .boxed()
}

/// Generates texts that are nearly valid for this type of field.
fn texts_like(kind: &str) -> BoxedStrategy<Value> {
    match kind {
        "email" => prop_oneof![
            "[a-c.+']{0,3}@?[a-c-]{0,2}[.]?[a-c]{0,3}( |é)?",
            Just("ana.b+c@mail.example.com".to_owned()),
            (250_usize..256).prop_map(|n| format!("{}@b.co", "a".repeat(n - 5))),
            (62_usize..65).prop_map(|n| format!("a@{}.co", "b".repeat(n))),
            "( |\t|\u{a0})?a@[bé]{1,2}[.](c|é|é-|-é)(\n|\u{202f})?",
        ]
        .prop_map(Value::from)
        .boxed(),
        "url" => "(https?|HTTPS|ftp|javascript)(://|:/|:///|:)(u@)?(x[.]test|a1|10[.]0[.]0[.]7|256[.]1[.]1[.]1|\\[::1\\]|\\[::g\\]||a b|x%)(:80|:99999|:0x|:)?(/a[|]b|\\?q=[{]z[}]|#é|/ |/\n)?( |\n\u{a0})?"
            .prop_map(Value::from)
            .boxed(),
        "date" => prop_oneof![
            "[+ 0-2]?(0000|2024|1900|202)-(0[0-9]|1[0-3]|2)-(2[789]|3[0-2]|00|1)",
            "[-+ 2]20[0-9]-(0[0-9]|1[0-3])-(2[789]|3[01])",
        ]
        .prop_map(Value::from)
        .boxed(),
        "tel" => {
            "[+]?[(]?[0-9x]{0,3}[)]?[ -\u{a0}\u{2011}]?[0-9a٣]{0,3}( ?(ext[.:]?|EXTN|;ext=|extension|,|p)[ \u{202f}]?[0-9]{0,2})?"
                .prop_map(Value::from)
                .boxed()
        }
        _ => "[ab1]{0,4}".prop_map(Value::from).boxed(),
    }
}

fn numbers() -> BoxedStrategy<Value> {
    let known = [
        json!(0),
        json!(-0.0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(-3),
        json!(1e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(9_007_199_254_740_993_u64),
        json!(9_007_199_254_740_992.0),
    ];
    let float = any::<f64>().prop_filter_map("JSON has no others", serde_json::Number::from_f64);
    prop_oneof![
        3 => select(known.to_vec()),
        1 => any::<i64>().prop_map(Value::from),
        1 => float.prop_map(Value::from),
    ]
    .boxed()
}

fn options() -> Vec<&'static str> {
    vec!["option 1", "x", "y y", "éé", "12", "true", "a|ab"]
}

fn lists() -> BoxedStrategy<Value> {
    let of_options = subsequence(options(), 0..4).prop_map(|chosen| json!(chosen));
    let of_any = prop::collection::vec(prop_oneof![texts(), numbers(), Just(json!(["x"]))], 0..3);
    prop_oneof![3 => of_options, 1 => of_any.prop_map(Value::from), 1 => Just(json!(["x", "x"]))].boxed()
}

/// Generates any JSON value.
fn values() -> BoxedStrategy<Value> {
    prop_oneof![
        4 => texts(),
        2 => numbers(),
        2 => lists(),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(json!({"x": 1})),
    ]
    .boxed()
}

/// Generates values that the field may accept.
fn values_for(field: &Value) -> BoxedStrategy<Value> {
    match field["type"].as_str().unwrap() {
        "number" => {
            let bounds = [&field["min"], &field["max"]].into_iter().filter_map(Value::as_f64);
            let around = bounds.flat_map(|bound| {
                let whole = bound as i64;
                [
                    json!(bound),
                    json!(bound + 0.5),
                    json!(whole),
                    json!(whole.saturating_add(1)),
                    json!(whole.saturating_sub(1)),
                ]
            });
            let around: Vec<Value> = around.collect();
            if around.is_empty() { numbers() } else { prop_oneof![numbers(), select(around)].boxed() }
        }
        "checkbox" => any::<bool>().prop_map(Value::from).boxed(),
        "select" => select(options()).prop_map(Value::from).boxed(),
        "multiselect" => lists(),
        kind => prop_oneof![texts_like(kind), texts()].boxed(),
    }
}

const KINDS: [&str; 12] = [
    "text",
    "email",
    "textarea",
    "number",
    "select",
    "multiselect",
    "checkbox",
    "url",
    "tel",
    "date",
    "hidden",
    "file",
];

/// Generates a field without `showIf`.
fn field() -> impl Strategy<Value = Value> {
    let lengths = prop_oneof![
        Just((None, None)),
        (0_u32..4, 0_u32..6)
            .prop_map(|(min, more)| { ((min > 0).then_some(min), (more > 0).then_some(min + more)) })
    ];
    let bounds = prop_oneof![
        Just(vec![]),
        prop::collection::vec(
            prop_oneof![
                numbers().prop_map(|number| number.as_f64().unwrap()),
                (-4_i8..4).prop_map(f64::from)
            ],
            2
        )
    ];
    let chosen = subsequence(options(), 1..=7);
    let pattern = prop::option::weighted(0.3, select(PATTERNS.as_slice()));
    (select(KINDS.as_slice()), any::<bool>(), lengths, bounds, chosen, pattern).prop_map(
        |(kind, required, (min_length, max_length), mut bounds, options, pattern)| {
            let mut field = json!({"label": "L", "type": kind, "required": required});
            let mut set = |name: &str, value: Value| field[name] = value;
            match kind {
                "select" | "multiselect" => set("options", json!(options)),
                "number" => {
                    bounds.sort_by(f64::total_cmp);
                    if let [min, max] = bounds.as_slice() {
                        set("min", json!(min));
                        set("max", json!(max));
                    }
                }
                "text" | "email" | "textarea" | "url" | "tel" | "hidden" => {
                    set("minLength", json!(min_length));
                    set("maxLength", json!(max_length));
                    set("pattern", json!(pattern));
                }
                _ => {}
            }
            field
        },
    )
}

/// Generates a form, and an answer for each field that has one.
fn cases() -> impl Strategy<Value = (Vec<Value>, Value)> {
    let rule = prop::option::weighted(0.5, (any::<prop::sample::Index>(), any::<prop::sample::Index>()));
    let equals = prop::collection::vec(values(), 1..4);
    let form = (prop::collection::vec((field(), rule), 1..7), equals).prop_flat_map(|(parts, equals)| {
        let mut fields: Vec<Value> = Vec::new();
        let mut answers: Vec<BoxedStrategy<Option<Value>>> = Vec::new();
        for (at, (mut field, rule)) in parts.into_iter().enumerate() {
            field["name"] = json!(format!("f{at}"));
            if let Some((other, value)) = rule.filter(|_| at > 0) {
                let other = other.index(at);
                let kinds = [json!(true), json!(false), json!("option 1"), value.get(&equals).clone()];
                let value = value.get(&kinds).clone();
                field["showIf"] = json!({"field": format!("f{other}"), "equals": value});
                // Half of the cases show the field.
                let usual = std::mem::replace(&mut answers[other], Just(None).boxed());
                answers[other] = prop_oneof![usual, Just(Some(value))].boxed();
            }
            let answer = prop_oneof![
                8 => values_for(&field).prop_map(Some),
                1 => values().prop_map(Some),
                1 => Just(None),
            ];
            answers.push(answer.boxed());
            fields.push(field);
        }
        (Just(fields), answers)
    });
    (form, prop::option::of(values())).prop_map(|((fields, answers), unknown)| {
        let mut given = json!({});
        for (at, answer) in answers.into_iter().enumerate() {
            if let Some(answer) = answer {
                given[format!("f{at}")] = answer;
            }
        }
        if let Some(unknown) = unknown {
            given["unknown"] = unknown;
        }
        (fields, given)
    })
}

/// Cuts the blanks around answers to fields of the types in which they have no meaning.
fn without_blanks_around(fields: &[Value], given: &Value) -> Value {
    let mut cut = given.clone();
    for field in fields.iter().filter(|field| field["type"] == "email" || field["type"] == "url") {
        if let Some(text) = given[field["name"].as_str().unwrap()].as_str() {
            cut[field["name"].as_str().unwrap()] = json!(text.trim());
        }
    }
    cut
}

#[test]
fn validation_agrees_with_the_json_schema() {
    let (accepted, refused) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config {
        cases: 2_000,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    });
    let agree = runner.run(&cases(), |(fields, given)| {
        let form: Vec<Field> = serde_json::from_value(json!(fields)).unwrap();
        prop_assert_eq!(fields::check(&form), []);
        let schema = schema_of(&fields);
        let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let ours = check(&form, given.as_object().unwrap());
        let given = without_blanks_around(&fields, &given);
        prop_assert_eq!(ours.is_ok(), schema.is_valid(&given), "{:?}", ours);
        let Ok(answers) = ours else {
            refused.set(refused.get() + 1);
            return Ok(());
        };
        accepted.set(accepted.get() + 1);
        for (name, answer) in &answers {
            prop_assert!(form.iter().any(|field| field.name == *name));
            prop_assert_eq!(answer, &given[name]);
        }
        prop_assert_eq!(check(&form, &answers), Ok(answers), "accepted answers are accepted again unchanged");
        Ok(())
    });
    agree.unwrap();
    let (accepted, refused) = (accepted.get(), refused.get());
    assert!(accepted > 200 && refused > 200, "{accepted} accepted, {refused} refused: one-sided cases");
}
