//! Tests of validation by example.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;
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
        (of("tel"), json!("+44\u{a0}20\u{202f}7946\u{2011}0000"), Ok(())),
        (of("tel"), json!("+1 555 010 0000 ext. 12"), Ok(())),
        (of("tel"), json!("555-0100 Extension 4"), Ok(())),
        (of("tel"), json!("tel:+1-555-0100"), Err("tel")),
        (of("tel"), json!("+1-555-0100;ext=12"), Ok(())),
        (of("tel"), json!("555-0100 x12"), Ok(())),
        (of("tel"), json!("555-0100 ext"), Err("tel")),
        (of("tel"), json!("ext 555"), Err("tel")),
        (of("email"), json!(" a@b.co\n"), Ok(())),
        (of("email"), json!("a@bücher.example"), Ok(())),
        (of("email"), json!("a@例え.テスト"), Ok(())),
        (of("email"), json!("ä@b.co"), Err("email")),
        (of("email"), json!("a@bücher"), Err("email")),
        (of("email"), json!("a@-ü.co"), Err("email")),
        (of("email"), json!("a@b\u{200b}.co"), Err("email")),
        (of("email"), json!("a@ü%41.co"), Err("email")),
        (of("email"), json!("a@ü b.co"), Err("email")),
        (of("email"), json!(format!("a@{}.co", "ü".repeat(60))), Err("email")),
        (of("url"), json!("https://bücher.example/käse?q=ü"), Ok(())),
        (of("url"), json!("https://xn--bcher-kva.example"), Ok(())),
        (of("url"), json!(" https://x.test\u{a0}"), Ok(())),
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
fn blanks_around_addresses_are_not_stored_and_do_not_count() {
    let fields: Vec<Field> = serde_json::from_value(json!([
        {"name": "mail", "label": "M", "type": "email", "maxLength": 6},
        {"name": "site", "label": "S", "type": "url"},
        {"name": "note", "label": "N", "type": "text", "showIf": {"field": "mail", "equals": "a@b.co"}},
    ]))
    .unwrap();
    let given = json!({"mail": "\u{a0} a@b.co ", "site": "https://x.test\n", "note": " kept "});
    let stored = json!({"mail": "a@b.co", "site": "https://x.test", "note": " kept "});
    assert_eq!(Value::Object(check(&fields, given.as_object().unwrap()).unwrap()), stored);
}

#[test]
fn json_made_of_a_form_is_converted_like_the_form() {
    let fields: Vec<Field> = serde_json::from_value(json!([
        {"name": "n", "label": "N", "type": "number"},
        {"name": "c", "label": "C", "type": "checkbox"},
        {"name": "m", "label": "M", "type": "multiselect", "options": ["x", "y"]},
        {"name": "t", "label": "T", "type": "text"},
        {"name": "s", "label": "S", "type": "select", "options": ["x", "y"]},
    ]))
    .unwrap();
    let converted = |given: Value| Value::Object(from_json(&fields, given.as_object().unwrap()));
    assert_eq!(
        converted(json!({"n": " 7", "c": "on", "m": "x", "t": "z", "s": "y", "other": "1"})),
        json!({"n": 7, "c": true, "m": ["x"], "t": "z", "s": "y"})
    );
    assert_eq!(
        converted(json!({"n": ["7"], "c": ["false", "on"], "m": ["", "x", "y"], "t": ["z"], "s": []})),
        json!({"n": 7, "c": true, "m": ["x", "y"], "t": "z", "s": null})
    );
    let typed = json!({"n": 7, "c": true, "m": ["x"], "t": "z", "s": null});
    assert_eq!(converted(typed.clone()), typed);
    for text in ["on", "true", "yes", "1", "ON", "True", " yes "] {
        assert_eq!(converted(json!({"c": text})), json!({"c": true}), "{text}");
    }
    for text in ["", " ", "false", "off", "no", "0", "NO", "Off"] {
        assert_eq!(converted(json!({"c": text})), json!({"c": false}), "{text}");
        assert_eq!(converted(json!({"c": [text, "on"]})), json!({"c": true}), "{text}");
    }
    for wrong in [
        json!({"n": "seven"}),
        json!({"n": true}),
        json!({"n": [7]}),
        json!({"c": 1}),
        json!({"c": "never"}),
        json!({"c": "x"}),
        json!({"c": ["on", "never"]}),
        // No answer vanishes.
        json!({"t": ["z", "w"]}),
        json!({"t": ["z", ""]}),
        json!({"n": ["7", "8"]}),
        json!({"s": ["x", "y"]}),
        json!({"c": [true]}),
        json!({"m": "z"}),
        json!({"m": [1]}),
        json!({"m": {"x": true}}),
        json!({"t": 7}),
        json!({"t": [7, "z"]}),
    ] {
        let answers = from_json(&fields, wrong.as_object().unwrap());
        assert!(check(&fields, &answers).is_err(), "{wrong}");
    }
}

/// A form's values as texts, by name.
fn texts() -> impl Strategy<Value = BTreeMap<String, Vec<String>>> {
    let text = prop_oneof![
        4 => select(vec!["7", " 7.5 ", "on", "true", "false", "x", "y", "", " ", "a@b.co ", "2027-01-31", "x; y"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let name = select(vec!["number", "checkbox", "multiselect", "text", "select", "email", "date", "other"]);
    prop::collection::btree_map(name.prop_map(str::to_owned), prop::collection::vec(text, 1..4), 0..8)
}

proptest! {
    #[test]
    fn a_json_body_is_accepted_exactly_if_the_urlencoded_body_is(mut pairs in texts()) {
        // Those of a browser: a field with one value is sent once, and a checkbox with its own value.
        for (name, texts) in &mut pairs {
            match name.as_str() {
                "multiselect" | "other" => {}
                "checkbox" => texts.retain(|text| ["on", "true", "false", "", " "].contains(&text.as_str())),
                _ => texts.truncate(1),
            }
        }
        pairs.retain(|_, texts| !texts.is_empty());
        let kinds = ["number", "checkbox", "multiselect", "text", "select", "email", "date"];
        let fields = kinds.map(|kind| {
            let options = if kind.contains("select") { json!(["x", "y", "x; y"]) } else { json!([]) };
            json!({"name": kind, "label": kind, "type": kind, "options": options})
        });
        let fields: Vec<Field> = serde_json::from_value(json!(fields)).unwrap();
        let posted = check(&fields, &from_form_data(&fields, &pairs));
        // `Object.fromEntries(formData)` has one text for each name, and `formData.getAll` a list.
        let lists = pairs.iter().map(|(name, texts)| (name.clone(), json!(texts))).collect();
        prop_assert_eq!(&check(&fields, &from_json(&fields, &lists)), &posted);
        let single = pairs.iter().map(|(name, texts)| (name.clone(), texts[..1].to_vec())).collect();
        let posted = check(&fields, &from_form_data(&fields, &single));
        let one = pairs.iter().map(|(name, texts)| (name.clone(), json!(texts[0]))).collect();
        prop_assert_eq!(&check(&fields, &from_json(&fields, &one)), &posted);
    }
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

#[test]
fn an_address_has_the_spellings_of_its_domain() {
    let spellings = |text| email_spellings(text).unwrap_or_default();
    let both = ["ana@bücher.example", "ana@xn--bcher-kva.example"];
    for address in ["Ana@bücher.example", "ana@BÜCHER.example", "ana@XN--bcher-kva.example"] {
        let found = spellings(address);
        assert!(both.iter().all(|one| found.contains(&(*one).to_owned())), "{address}: {found:?}");
    }
    assert_eq!(spellings("Ana@Example.com"), ["ana@example.com"]);
    for wrong in ["", "ana", "ä@b.co", "a@b", "a@ü b.co"] {
        assert_eq!(email_spellings(wrong), None, "{wrong}");
    }
}
