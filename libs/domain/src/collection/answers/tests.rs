//! Tests of validation by example.

use serde_json::json;

use super::*;

fn validate(field: Value, answer: Value) -> Result<(), &'static str> {
    let field: Field = serde_json::from_value(field).unwrap();
    let given = json!({ "a": answer });
    match check(&[field], given.as_object().unwrap()) {
        Ok(_) => Ok(()),
        Err(errors) => Err(errors[0].code),
    }
}

#[test]
fn each_type_accepts_its_own_values() {
    let of = |kind: &str| json!({"name": "a", "label": "A", "type": kind, "required": true});
    let choice = |kind: &str| json!({"name": "a", "label": "A", "type": kind, "options": ["x", "y"]});
    let cases = [
        (of("text"), json!("x"), Ok(())),
        (of("text"), json!(""), Err("required")),
        (of("text"), json!(" \n"), Err("required")),
        (of("text"), json!(3), Err("type")),
        (of("text"), json!("a\0b"), Err("nul")),
        (of("email"), json!("a@b.co"), Ok(())),
        (of("email"), json!("a@b"), Err("email")),
        (of("email"), json!("a b@c.de"), Err("email")),
        (of("number"), json!(3.5), Ok(())),
        (of("number"), json!("3.5"), Err("type")),
        (of("checkbox"), json!(true), Ok(())),
        (of("checkbox"), json!(false), Err("required")),
        (of("url"), json!("https://x.test/a?b"), Ok(())),
        (of("url"), json!("javascript:alert(1)"), Err("url")),
        (of("tel"), json!("+49 (30) 123-45"), Ok(())),
        (of("tel"), json!("call me"), Err("tel")),
        (of("date"), json!("2028-02-29"), Ok(())),
        (of("date"), json!("2027-02-29"), Err("date")),
        (of("date"), json!("2027-2-9"), Err("date")),
        (choice("select"), json!("x"), Ok(())),
        (choice("select"), json!("z"), Err("option")),
        (choice("multiselect"), json!(["y", "x"]), Ok(())),
        (choice("multiselect"), json!(["x", "x"]), Err("option")),
        (choice("multiselect"), json!(["z"]), Err("option")),
        (choice("multiselect"), json!("x"), Err("type")),
    ];
    for (field, answer, verdict) in cases {
        assert_eq!(validate(field.clone(), answer.clone()), verdict, "{field} {answer}");
    }
}

#[test]
fn limits_are_inclusive() {
    let text = json!({"name": "a", "label": "A", "type": "text", "minLength": 2, "maxLength": 3});
    let number = json!({"name": "a", "label": "A", "type": "number", "min": 0, "max": 5});
    assert_eq!(validate(text.clone(), json!("é")), Err("too_short"));
    assert_eq!(validate(text.clone(), json!("éé")), Ok(()));
    assert_eq!(validate(text, json!("abcd")), Err("too_long"));
    assert_eq!(validate(number.clone(), json!(5)), Ok(()));
    assert_eq!(validate(number.clone(), json!(5.01)), Err("max"));
    assert_eq!(validate(number, json!(-1)), Err("min"));
    // Around 2^53, where floats represent only every second integer.
    let number =
        json!({"name": "a", "label": "A", "type": "number", "min": -9e15, "max": 9_007_199_254_740_992_u64});
    assert_eq!(validate(number.clone(), json!(9_007_199_254_740_992_u64)), Ok(()));
    assert_eq!(validate(number, json!(9_007_199_254_740_993_u64)), Err("max"));
}

#[test]
fn a_pattern_matches_the_whole_text() {
    let field = json!({"name": "a", "label": "A", "type": "text", "pattern": "[a-z]+|1"});
    assert_eq!(validate(field.clone(), json!("abc")), Ok(()));
    assert_eq!(validate(field, json!("abc1")), Err("pattern"));
}

#[test]
fn uncompiled_patterns_and_long_texts_are_slow() {
    let fields: Vec<Field> = serde_json::from_value(json!([
        {"name": "a", "label": "A", "type": "text", "pattern": "[a-z]*"},
        {"name": "b", "label": "B", "type": "text"},
    ]))
    .unwrap();
    let is_slow = |given: Value| super::is_slow(&fields, given.as_object().unwrap());
    assert!(is_slow(json!({"a": "x"})), "the pattern isn't compiled");
    assert!(!is_slow(json!({"b": "x".repeat(10_000)})), "the field has no pattern");
    assert!(check(&fields, json!({"a": "x"}).as_object().unwrap()).is_ok());
    assert!(!is_slow(json!({"a": "x".repeat(256)})));
    assert!(is_slow(json!({"a": "x".repeat(257)})));
}

#[test]
fn hidden_fields_are_neither_validated_nor_stored_along_the_whole_chain() {
    let fields: Vec<Field> = serde_json::from_value(json!([
        {"name": "a", "label": "A", "type": "checkbox"},
        {"name": "b", "label": "B", "type": "text", "required": true, "showIf": {"field": "a", "equals": true}},
        {"name": "c", "label": "C", "type": "text", "required": true, "showIf": {"field": "b", "equals": "x"}},
    ]))
    .unwrap();
    let validate = |given: Value| check(&fields, given.as_object().unwrap());
    assert_eq!(validate(json!({"a": false, "b": "x", "c": "y"})).unwrap().len(), 1);
    assert_eq!(validate(json!({"a": true, "b": "z"})).unwrap().len(), 2);
    assert_eq!(validate(json!({"a": true, "b": "x"})).unwrap_err()[0].field, "c");
    assert_eq!(validate(json!({})).unwrap().len(), 0);
}

#[test]
fn values_of_html_forms_are_converted_by_type() {
    let fields: Vec<Field> = serde_json::from_value(json!([
        {"name": "n", "label": "N", "type": "number"},
        {"name": "c", "label": "C", "type": "checkbox"},
        {"name": "m", "label": "M", "type": "multiselect", "options": ["x", "y"]},
        {"name": "t", "label": "T", "type": "text"},
    ]))
    .unwrap();
    let pairs = |pairs: &[(&str, &[&str])]| {
        let owned = |values: &[&str]| values.iter().map(ToString::to_string).collect();
        pairs.iter().map(|(name, values)| (name.to_string(), owned(values))).collect()
    };
    let posted = from_form_data(
        &fields,
        &pairs(&[("n", &["2.5"]), ("c", &["true"]), ("m", &["x", "y"]), ("t", &["z"])]),
    );
    assert_eq!(Value::Object(posted), json!({"n": 2.5, "c": true, "m": ["x", "y"], "t": "z"}));
    for (text, number) in [(".5", json!(0.5)), ("+7", json!(7.0)), ("1e2", json!(100.0)), ("-3", json!(-3))] {
        assert_eq!(from_form_data(&fields, &pairs(&[("n", &[text])]))["n"], number);
    }
    for text in ["inf", "NaN", "1_0", "0x1", "1e999"] {
        assert_eq!(from_form_data(&fields, &pairs(&[("n", &[text])]))["n"], json!(text));
    }
    let posted = from_form_data(&fields, &pairs(&[("n", &["two"]), ("other", &["1"])]));
    assert_eq!(check(&fields, &posted).unwrap_err()[0].code, "type");
}

#[test]
fn a_rule_can_require_no_answer() {
    let shown = |equals: Value, given: Value| {
        let fields: Vec<Field> = serde_json::from_value(json!([
            {"name": "a", "label": "A", "type": "text"},
            {"name": "b", "label": "B", "type": "text", "required": true, "showIf": {"field": "a", "equals": equals}},
        ]))
        .unwrap();
        check(&fields, given.as_object().unwrap()).is_err()
    };
    for none in [json!({}), json!({"a": null}), json!({"a": ""}), json!({"a": " "})] {
        assert!(shown(json!(false), none.clone()) && shown(json!(""), none.clone()), "{none}");
        assert!(!shown(json!("x"), none.clone()), "{none}");
    }
    assert!(!shown(json!(""), json!({"a": "x"})));
}

#[test]
fn a_merge_retains_answers_to_removed_fields_unless_it_sets_them_to_null() {
    let fields: Vec<Field> =
        serde_json::from_value(json!([{"name": "a", "label": "A", "type": "text"}])).unwrap();
    let read = |value: Value| value.as_object().unwrap().clone();
    let before = read(json!({"a": "x", "gone": "y"}));
    for (changes, left) in [
        (json!({"a": "z"}), json!({"a": "z", "gone": "y"})),
        (json!({"gone": null}), json!({"a": "x"})),
        (json!({"gone": "new"}), json!({"a": "x", "gone": "y"})),
    ] {
        let changes = read(changes);
        let kept = check(&fields, &merge(&before, changes.clone())).unwrap();
        assert_eq!(Value::Object(retain_removed_fields(kept, &fields, &before, &changes)), left);
    }
}

#[test]
fn unknown_keys_are_dropped() {
    let fields: Vec<Field> =
        serde_json::from_value(json!([{"name": "a", "label": "A", "type": "text"}])).unwrap();
    let given = json!({"a": "x", "is_admin": true});
    assert_eq!(Value::Object(check(&fields, given.as_object().unwrap()).unwrap()), json!({"a": "x"}));
}
