//! Random expressions, templates and definitions: whatever they hold, reading and evaluating them ends without a panic.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::collections::BTreeSet;

use automation::check::check;
use automation::definition::AutomationDefinition;
use automation::expressions::{FUNCTIONS, Variables};
use automation::masking::Masking;
use automation::schedule::{Schedule, parse_duration, parse_zone};
use automation::templates::{Escape, OutputBudget, Template};
use domain::plans::Plan;
use serde_json::{Value, json};

/// Numbers that look random and are the same in every run.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const VALUES: [&str; 44] = [
    "t.text",
    "t.list",
    "t.object",
    "t.nested",
    "t.none.x",
    "t.list[1]",
    "t.list[-1]",
    "t.text[2]",
    "t.nested[0].a",
    "t['ü']",
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "1.5",
    "1e308",
    "-0.0",
    "null",
    "true",
    "false",
    "''",
    "'ü€😀'",
    "\"\\u00e9\"",
    "'2026-03-29'",
    "'2026-10-25 02:30'",
    "8210266876799",
    "-8334601228800",
    "'Europe/Berlin'",
    "'days'",
    "'months'",
    "'%Y %j %Z %+'",
    "'%'",
    "'%Q'",
    "[]",
    "#{}",
    "[1, 'a', null]",
    "#{a: [1], b: #{}}",
    "'{\"a\": [1]}'",
    "' '",
    "','",
    "t",
    "t.big",
    "'\\n'",
    "[[[[1]]]]",
];

const NOISE: [&str; 40] = [
    "{{", "}}", "{", "}", "(", ")", "[", "]", "#{", "'", "\"", "\\", "ü", "😀", "\u{0}", "\n", "+", "-", "*",
    "/", "%", "**", "==", "&&", "||", "!", "??", "?.", ".", "..", ",", ":", ";", "in", "t", "lower", "1",
    " ", "//", "|",
];

fn expression(sequence: &mut Sequence, depth: usize) -> String {
    match sequence.below(if depth == 0 { 2 } else { 8 }) {
        0 | 1 => sequence.one(&VALUES).to_owned(),
        2 => {
            let operator = sequence.one(&[
                "+", "-", "*", "/", "%", "**", "==", "!=", "<", ">=", "&&", "||", "??", "in", "<<", ">>",
                "^", "&",
            ]);
            format!("({} {operator} {})", expression(sequence, depth - 1), expression(sequence, depth - 1))
        }
        3 => format!("[{}, {}]", expression(sequence, depth - 1), expression(sequence, depth - 1)),
        4 => format!("#{{a: {}}}.a", expression(sequence, depth - 1)),
        _ => {
            let function = &FUNCTIONS[sequence.below(FUNCTIONS.len())];
            let count = 1 + sequence.below(4);
            let arguments: Vec<String> = (0..count).map(|_| expression(sequence, depth - 1)).collect();
            format!("{}({})", function.name, arguments.join(", "))
        }
    }
}

fn data() -> Value {
    json!({"text": "aü€😀 <b>&'\"", "list": [3, "b", null, 1.5, [2]], "object": {"b": 1, "ü": "x"}, "nested": [{"a": {"b": [1]}}],
        "big": "€".repeat(30_000), "ü": -1})
}

#[test]
fn no_random_expression_panics() {
    let data = data();
    let variables = Variables::new().with("t", &data);
    let mut sequence = Sequence(1);
    let mut values = 0;
    for round in 0..30_000 {
        let mut text = format!("{{{{ {} }}}}", expression(&mut sequence, 3));
        if round % 3 == 0 {
            text = format!("ü{text}{text}");
        }
        let escape = [Escape::None, Escape::Html, Escape::Json, Escape::Url][sequence.below(4)];
        let Ok(template) = Template::parse(&text) else { continue };
        values += usize::from(template.render(&variables, escape, &mut OutputBudget::default()).is_ok());
    }
    assert!(values > 5_000, "only {values} have a value");
}

#[test]
fn no_random_text_panics() {
    let data = data();
    let variables = Variables::new().with("t", &data);
    let mut sequence = Sequence(2);
    for _ in 0..60_000 {
        let count = sequence.below(14);
        let noise: String = (0..count).map(|_| sequence.one(&NOISE)).collect();
        for text in [format!("{{{{{noise}}}}}"), format!("{{{{ t.text + {noise} }}}}"), noise] {
            if let Ok(template) = Template::parse(&text) {
                // Only that it ends without a panic counts.
                drop(template.render(&variables, Escape::Html, &mut OutputBudget::default()));
            }
        }
    }
}

#[test]
fn no_random_schedule_or_duration_panics() {
    let mut sequence = Sequence(3);
    let parts = [
        "*",
        "/",
        "-",
        ",",
        "0",
        "5",
        "59",
        "60",
        "L",
        "W",
        "#",
        "?",
        "MON",
        "JAN",
        " ",
        "@",
        "ü",
        "99999999999",
        "1d",
        "h",
    ];
    for _ in 0..3_000 {
        let field = |sequence: &mut Sequence| -> String {
            (0..1 + sequence.below(4)).map(|_| sequence.one(&parts)).collect()
        };
        let fields: Vec<String> = (0..5)
            .map(|_| if sequence.below(3) == 0 { field(&mut sequence) } else { "*".to_owned() })
            .collect();
        let line = fields.join(" ");
        if let Ok(schedule) = Schedule::parse(&line, parse_zone("Europe/Berlin").unwrap()) {
            assert!(schedule.next_after("2026-03-29T00:30:00Z".parse().unwrap()).is_some(), "{line}");
        }
        assert!(parse_duration(&field(&mut sequence)).is_none_or(|duration| duration.as_secs() < u64::MAX));
        drop(parse_zone(&field(&mut sequence)));
    }
}

/// Replaces one random value inside another one.
fn change(value: &mut Value, sequence: &mut Sequence) {
    let members = match value {
        Value::Array(list) => list.len(),
        Value::Object(object) => object.len(),
        _ => 0,
    };
    if members == 0 || sequence.below(6) == 0 {
        let wrong = [
            json!(null),
            json!(-1),
            json!(1.5),
            json!(u64::MAX),
            json!(""),
            json!("ü{{"),
            json!("{{ steps.ü }}"),
            json!([]),
            json!({}),
            json!([null]),
            json!({"type": "set"}),
            json!("{{ trigger.payload }}"),
            json!(true),
            json!({"": {"": []}}),
            json!("30d"),
        ];
        *value = wrong[sequence.below(wrong.len())].clone();
        return;
    }
    let at = sequence.below(members);
    match value {
        Value::Array(list) => change(&mut list[at], sequence),
        Value::Object(object) if sequence.below(8) == 0 => {
            let name = object.keys().nth(at).unwrap().clone();
            let member = object.remove(&name).unwrap();
            object.insert(format!("{name}ü"), member);
        }
        Value::Object(object) => change(object.values_mut().nth(at).unwrap(), sequence),
        _ => {}
    }
}

#[test]
fn no_changed_definition_panics_and_each_error_names_its_path() {
    let schema =
        schemars::SchemaGenerator::default().into_root_schema_for::<AutomationDefinition>().to_value();
    let example = &schema["examples"][0];
    let mut sequence = Sequence(4);
    let (limits, env) = (Plan::Free.limits(), BTreeSet::new());
    let mut accepted = 0;
    for _ in 0..10_000 {
        let mut changed = example.clone();
        for _ in 0..=sequence.below(3) {
            change(&mut changed, &mut sequence);
        }
        let errors = match AutomationDefinition::read(&changed) {
            Ok(definition) => check(&definition, &limits, &env),
            Err(errors) => {
                assert!(!errors.is_empty(), "{changed}");
                errors
            }
        };
        accepted += usize::from(errors.is_empty());
        for error in errors {
            assert!(!error.field.is_empty() && !error.message.is_empty(), "{changed}");
            let roots = ["body", "trigger", "steps", "concurrency", "env"];
            let is_path =
                error.field.starts_with('"') || roots.iter().any(|root| error.field.starts_with(root));
            assert!(is_path || changed.get(&error.field).is_some(), "{}: {changed}", error.field);
        }
    }
    assert!(accepted > 50, "only {accepted} changes of 10,000 are accepted");
}

#[test]
fn no_random_value_panics_when_it_is_masked() {
    let mut sequence = Sequence(5);
    let parts = ["sécret", "s", "é", "\"", "\\", "\n", "%C3%A9", "&quot;", "+", "😀", "123456"];
    for _ in 0..5_000 {
        let text = |sequence: &mut Sequence| -> String {
            (0..sequence.below(12)).map(|_| sequence.one(&parts)).collect()
        };
        let (secret, other) = (text(&mut sequence), text(&mut sequence));
        let masking = Masking::new([secret.as_str(), other.as_str()]);
        let value = json!({text(&mut sequence): [text(&mut sequence), secret, {other: 123_456}]});
        drop(masking.logged(&value));
    }
}
