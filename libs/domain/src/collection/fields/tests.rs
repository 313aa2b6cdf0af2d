//! Tests of the validation of fields.

use serde_json::json;

use super::*;

fn errors(fields: Value) -> Vec<String> {
    let fields: Vec<Field> = serde_json::from_value(fields).unwrap();
    check(&fields).into_iter().map(|error| error.field).collect()
}

#[test]
fn an_error_has_the_path_of_the_field() {
    let name = json!({"name": "a", "label": "A", "type": "text"});
    assert_eq!(errors(json!([name])), Vec::<String>::new());
    assert_eq!(errors(json!([])), ["fields"]);
    assert_eq!(errors(json!([name, name])), ["fields[1].name"]);
    let cases = [
        (json!({"name": "b c", "label": "B", "type": "text"}), "fields[1].name"),
        (json!({"name": "b", "label": "", "type": "text"}), "fields[1].label"),
        (json!({"name": "b", "label": "B", "type": "select"}), "fields[1].options"),
        (json!({"name": "b", "label": "B", "type": "text", "options": ["x"]}), "fields[1].options"),
        (json!({"name": "b", "label": "B", "type": "select", "options": ["x", "x"]}), "fields[1].options"),
        (json!({"name": "b", "label": "B", "type": "text", "pattern": "("}), "fields[1].pattern"),
        (json!({"name": "b", "label": "B", "type": "number", "min": 2, "max": 1}), "fields[1].min"),
        (
            json!({"name": "b", "label": "B", "type": "text", "showIf": {"field": "c", "equals": 1}}),
            "fields[1].showIf.field",
        ),
    ];
    for (field, place) in cases {
        assert_eq!(errors(json!([name, field])), [place]);
    }
}

#[test]
fn rejects_a_constraint_that_does_not_apply_to_the_type() {
    let set = [
        ("minLength", json!(1)),
        ("maxLength", json!(2)),
        ("pattern", json!("a")),
        ("min", json!(1)),
        ("max", json!(2)),
        ("accept", json!("image/*")),
        ("maxFileSize", json!(5)),
    ];
    let accepted = |kind: &str| {
        let is_accepted = |(part, value): &&(&str, Value)| {
            let mut field = json!({"name": "a", "label": "A", "type": kind, *part: value});
            if kind.contains("select") {
                field["options"] = json!(["x"]);
            }
            let wrong = errors(json!([field]));
            assert!(wrong.is_empty() || wrong == [format!("fields[0].{part}")], "{kind} {part}: {wrong:?}");
            wrong.is_empty()
        };
        set.iter().filter(is_accepted).map(|(part, _)| *part).collect::<Vec<_>>()
    };
    for kind in ["text", "textarea", "email", "url", "tel", "hidden"] {
        assert_eq!(accepted(kind), ["minLength", "maxLength", "pattern"], "{kind}");
    }
    for kind in ["select", "multiselect", "checkbox", "date"] {
        assert!(accepted(kind).is_empty(), "{kind}");
    }
    assert_eq!(accepted("number"), ["min", "max"]);
    assert_eq!(accepted("file"), ["accept", "maxFileSize"]);
}

#[test]
fn rejects_a_display_of_another_type_and_a_scale_of_unknown_points() {
    let of = |kind: &str, display: &str, more: Value| {
        let mut field = json!({"name": "a", "label": "A", "type": kind, "display": display});
        field.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        errors(json!([field]))
    };
    let (options, points) = (json!({"options": ["x"]}), json!({"min": 0, "max": 10}));
    assert_eq!(of("select", "radio", options.clone()), [""; 0]);
    assert_eq!(of("select", "dropdown", options.clone()), [""; 0]);
    assert_eq!(of("number", "scale", points.clone()), [""; 0]);
    assert_eq!(of("multiselect", "radio", options.clone()), ["fields[0].display"]);
    assert_eq!(of("select", "scale", options), ["fields[0].display"]);
    for wrong in [
        json!({}),
        json!({"min": 0}),
        json!({"min": 0, "max": 11}),
        json!({"min": 0.5, "max": 5.5}),
        json!({"min": 3, "max": 3}),
    ] {
        assert_eq!(of("number", "scale", wrong), ["fields[0].display"]);
    }
    let scale: Field =
        serde_json::from_value(json!({"name": "a", "label": "A", "type": "number", "display": "scale",
                                      "min": -2, "max": 2}))
        .unwrap();
    assert_eq!(scale.scale(), Some(-2..=2));
}

#[test]
fn help_and_pattern_hints_belong_to_fields_that_use_them() {
    let of = |kind: &str, more: Value| {
        let mut field = json!({"name": "a", "label": "A", "type": kind});
        field.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        errors(json!([field]))
    };
    assert_eq!(
        of("text", json!({"help": "h", "pattern": "[0-9]{5}", "patternHint": "Five digits"})),
        [""; 0]
    );
    assert_eq!(of("hidden", json!({"help": "h"})), ["fields[0].help"]);
    assert_eq!(of("text", json!({"patternHint": "Five digits"})), ["fields[0].patternHint"]);
    assert_eq!(of("text", json!({"help": "h".repeat(MAX_HELP + 1)})), ["fields[0].help"]);
}

#[test]
fn rejects_impossible_lengths_and_accepts_integers_with_a_point() {
    let of = |min: Value, max: Value| json!([{"name": "a", "label": "A", "type": "text", "minLength": min, "maxLength": max}]);
    assert_eq!(errors(of(json!(2.0), json!(20_000))), Vec::<String>::new());
    assert_eq!(errors(of(json!(3), json!(2))), ["fields[0].minLength"]);
    assert_eq!(errors(of(json!(1), json!(20_001))), ["fields[0].maxLength"]);
    for wrong in [json!(1.5), json!(-1), json!("1"), json!(1e300)] {
        assert!(serde_json::from_value::<Vec<Field>>(of(wrong, Value::Null)).is_err());
    }
}

#[test]
fn rejects_patterns_that_need_much_memory_or_escape_their_group() {
    let check = |text: &str| Pattern::from(text.to_owned()).check();
    for wrong in [r"(\w{1000}){1000}", "a)|(?:b", "(", "(?x)a # b", &"a".repeat(501)] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
    for right in [r"[a-z]+\d?", "a|b", "(?x)a # b\n", "(?i)a", ""] {
        assert_eq!(check(right), Ok(()), "{right}");
    }
}
