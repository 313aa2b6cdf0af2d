//! Tests of expressions. Hostile ones are in `tests/hostile.rs`, which counts their memory.

use serde_json::{Value, json};

use rhai::Dynamic;

use super::*;

fn data() -> (Value, Value) {
    let trigger = json!({"payload": {"email": "Ann@Example.com", "age": 20, "price": 9.5, "tags": ["a", "b"], "ok": true,
        "package": "x", "rows": [{"n": 1}, {"n": 2}], "code": "1 + 1", "token": "{{ env.TOKEN }}", "at": "a"}});
    (trigger, json!({"find": {"count": 0, "items": []}, "it": {"i": 1}}))
}

fn run(text: &str) -> Result<Value, String> {
    let (trigger, steps) = data();
    let expression = Expression::parse(text).map_err(|error| error.to_string())?;
    expression
        .evaluate(&Variables::new().with("trigger", &trigger).with("steps", &steps))
        .map_err(|error| error.to_string())
}

fn check(cases: &[(&str, Value)]) {
    for (text, expected) in cases {
        assert_eq!(run(text).as_ref(), Ok(expected), "{text}");
    }
}

#[test]
fn values_keep_their_types() {
    check(&[
        ("trigger.payload.email", json!("Ann@Example.com")),
        ("trigger.payload.age", json!(20)),
        ("trigger.payload.price", json!(9.5)),
        ("trigger.payload.tags", json!(["a", "b"])),
        ("trigger.payload.ok", json!(true)),
        ("steps.find.items", json!([])),
        ("null", json!(null)),
        ("trigger.payload.rows[1].n", json!(2)),
        ("trigger.payload['age']", json!(20)),
        ("[1, 'x', #{a: 1.5}]", json!([1, "x", {"a": 1.5}])),
        ("trigger.payload.package", json!("x")),
        ("trigger.payload.rows[steps.it.i].n", json!(2)),
        ("trigger.payload[trigger.payload.at + 'ge']", json!(20)),
        ("9223372036854775807", json!(i64::MAX)),
        ("'a' + 1 + true + null", json!("a1true")),
    ]);
}

#[test]
fn a_missing_member_is_null() {
    check(&[
        ("trigger.payload.none", json!(null)),
        ("trigger.none.deep.er", json!(null)),
        ("trigger.none.deep ?? 'x'", json!("x")),
        ("steps.find.items[0].id", json!(null)),
        ("trigger.payload.email.domain ?? 1", json!(1)),
        ("trigger.payload.age.x ?? 1", json!(1)),
        ("trigger.payload?.none?.x", json!(null)),
        ("steps.none.body.id == null", json!(true)),
        ("default(trigger.payload.none, 'd')", json!("d")),
        ("trigger.payload.none.default('d')", json!("d")),
        ("lower(trigger.payload.none)", json!("")),
        ("len(steps.none.items)", json!(0)),
        ("first(steps.find.items).id ?? 'n'", json!("n")),
        ("steps.find.items[-1]", json!(null)),
    ]);
}

#[test]
fn operators_do_what_they_say() {
    check(&[
        ("1 + 2 * 3", json!(7)),
        ("7 / 2", json!(3)),
        ("7 / 2.0", json!(3.5)),
        ("7 % 4", json!(3)),
        ("-(3) + 4", json!(1)),
        ("trigger.payload.age >= 18 && steps.find.count == 0", json!(true)),
        ("!trigger.payload.ok", json!(false)),
        ("!null", json!(true)),
        ("'a' == 1", json!(false)),
        ("'a' != 1", json!(true)),
        ("1 == 1.0", json!(true)),
        ("[1, 2] == [1, 2.0]", json!(true)),
        ("#{a: [1]} != #{a: [2]}", json!(true)),
        ("null < 5", json!(false)),
        ("'b' in trigger.payload.tags", json!(true)),
        ("'c' !in trigger.payload.tags", json!(true)),
        ("'email' in trigger.payload", json!(true)),
        ("'x' in trigger.none", json!(false)),
        ("'abc' < 'abd'", json!(true)),
    ]);
}

#[test]
fn functions_return_what_the_table_says() {
    check(&[
        ("choose(trigger.payload.age > 18, 'adult', 'minor')", json!("adult")),
        ("upper('ä')", json!("Ä")),
        ("trim('  x ')", json!("x")),
        ("replace('a-b-c', '-', '')", json!("abc")),
        ("split('a,b', ',')", json!(["a", "b"])),
        ("join(trigger.payload.tags)", json!("a, b")),
        ("join(pluck(trigger.payload.rows, 'n'), '+')", json!("1+2")),
        ("trigger.payload.email.lower().ends_with('.com')", json!(true)),
        ("starts_with('ab', 'a')", json!(true)),
        ("slice('héllo', 1, 3)", json!("él")),
        ("slice([1, 2, 3], -2)", json!([2, 3])),
        ("first('abc')", json!("a")),
        ("last([1, 2])", json!(2)),
        ("keys(#{b: 1, a: 2})", json!(["a", "b"])),
        ("values(#{a: 2})", json!([2])),
        ("merge(#{a: 1}, #{a: 2, b: 3})", json!({"a": 2, "b": 3})),
        ("concat([1], [2])", json!([1, 2])),
        ("unique([1, 1.0, 2])", json!([1, 2])),
        ("reverse([1, 2])", json!([2, 1])),
        ("sum([1, 2.5])", json!(3.5)),
        ("round(2.5)", json!(3)),
        ("round(2.345, 2)", json!(2.35)),
        ("floor(-1.5)", json!(-2)),
        ("ceil(1.2)", json!(2)),
        ("abs(-3)", json!(3)),
        ("min(2, 1.5)", json!(1.5)),
        ("max([1, 3, 2])", json!(3)),
        ("max([])", json!(null)),
        ("number('12') + 1", json!(13)),
        ("number('1.5')", json!(1.5)),
        ("number('nan')", json!(null)),
        ("string(#{a: 1})", json!("{\"a\":1}")),
        ("bool('')", json!(false)),
        ("bool(2)", json!(true)),
        ("between(5, 1, 5)", json!(true)),
        ("contains('abc', 'bc')", json!(true)),
        ("len('héé')", json!(3)),
        ("json([1, 'a'])", json!("[1,\"a\"]")),
        ("parse_json('{\"a\": [1]}').a[0]", json!(1)),
        ("parse_json('{')", json!(null)),
        ("url_encode('a b/ü')", json!("a%20b%2F%C3%BC")),
        ("html_escape('<a b=\"c\">')", json!("&lt;a b=&quot;c&quot;&gt;")),
        ("base64('hi')", json!("aGk=")),
        ("sha256('')", json!("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")),
        (
            "hmac_sha256('key', 'The quick brown fox jumps over the lazy dog')",
            json!("f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"),
        ),
    ]);
}

#[test]
fn dates_follow_the_wall_clock_of_their_zone() {
    check(&[
        ("date('2026-11-23')", json!("2026-11-23T00:00:00Z")),
        ("date(0)", json!("1970-01-01T00:00:00Z")),
        ("date('2026-07-01 09:00', 'Europe/Berlin')", json!("2026-07-01T07:00:00Z")),
        ("date_add('2026-01-31', 1, 'month')", json!("2026-02-28T00:00:00Z")),
        ("date_add('2026-01-01', -1, 'seconds')", json!("2025-12-31T23:59:59Z")),
        // The clock of Berlin springs forward on 29 March 2026: the next day is 23 hours later.
        ("date_add('2026-03-28T08:00:00Z', 1, 'day', 'Europe/Berlin')", json!("2026-03-29T07:00:00Z")),
        ("date_add('2026-03-28T01:30:00Z', 1, 'day', 'Europe/Berlin')", json!("2026-03-29T01:30:00Z")),
        ("date_diff('2026-01-01', '2026-01-03T12:00:00Z', 'days')", json!(2)),
        ("date_format('2026-07-01T22:30:00Z', '%d.%m.%Y %H:%M', 'Europe/Berlin')", json!("02.07.2026 00:30")),
        ("unix('1970-01-02')", json!(86_400)),
    ]);
    for wrong in [
        "date('x')",
        "date_add('2026-01-01', 1, 'moon')",
        "date_format(0, '%Q')",
        "date(0, 'Mars/Base')",
        "date_add(0, 9223372036854775807, 'years')",
        "date_add('9999-12-31', 4000000000, 'weeks')",
        "date(9223372036854775807)",
    ] {
        assert!(run(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn statements_are_refused() {
    for text in [
        "let x = 1",
        "1; 2",
        "if true { 1 } else { 2 }",
        "while true {}",
        "loop { }",
        "for i in [1] { i }",
        "{ 1 }",
        "x = 1",
        "trigger.payload.age = 1",
        "trigger.payload.age += 1",
        "|x| x",
        "fn f() { 1 }",
        "switch 1 { 1 => 2 }",
        "import 'x'",
        "export x",
        "throw 1",
        "return 1",
        "try { 1 } catch { 2 }",
        "do { 1 } while true",
        "this",
        "`${1}`",
        "`a`",
        "#\"raw\"#",
        "1 // c",
        "1 /* c */",
        "'a' 'b'",
        "'a''b'",
        "1..5",
        "[1, 2][0..1]",
        "a::b",
        "Fn('x')",
        "call('x')",
        "trigger.call('x')",
        "1 as 2",
        "a => b",
        "$x",
        "@",
        "x\\y",
        "ünïcode",
        "",
        "  ",
        "'open",
        "\"\\x41\"",
        "const A = 1",
    ] {
        assert!(Expression::parse(text).is_err(), "{text} is accepted");
    }
}

/// Names of all functions of rhai's standard package (1.27), which `Engine::new` has and ours must not have, unless it
/// is one of our own.
#[test]
fn no_function_of_the_standard_package_can_be_called() {
    let mut names: Vec<String> = Vec::new();
    let engine = rhai::Engine::new();
    for signature in engine.gen_fn_signatures(true) {
        let name = signature.split('(').next().unwrap().trim().to_owned();
        names.push(name);
    }
    names.extend(
        ["eval", "print", "debug", "sleep", "type_of", "call", "curry", "is_def_var", "is_shared", "Fn"]
            .map(str::to_owned),
    );
    names.sort();
    names.dedup();
    let is_word = |name: &&String| name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    let words: Vec<&String> = names.iter().filter(is_word).collect();
    assert!(words.len() > 100, "the list has only {} names", words.len());
    for name in words {
        let is_ours = FUNCTIONS.iter().any(|function| function.name == name);
        for arguments in ["", "1", "'a'", "'a', 1", "[1], 1", "#{a: 1}", "1, 2, 3", "'a', 1, 2, 3"] {
            let text = format!("{name}({arguments})");
            let parsed = Expression::parse(&text);
            assert!(is_ours || parsed.is_err(), "{text} is accepted");
        }
        assert!(is_ours || Expression::parse(&format!("'a'.{name}()")).is_err(), "'a'.{name}() is accepted");
    }
    // And the engine itself has none of them, should the inspection ever miss a call.
    for script in
        ["sleep(1)", "to_string(1)", "1.to_float()", "timestamp()", "[1].push(2)", "'a'.to_upper()", "rand()"]
    {
        assert!(engine::ENGINE.eval_expression::<Dynamic>(script).is_err(), "{script} runs");
    }
}

#[test]
fn functions_that_evaluate_block_or_write_are_refused() {
    for text in [
        "sleep(1)",
        "1.sleep()",
        "eval('1')",
        "'1'.eval()",
        "print('x')",
        "debug('x')",
        "Fn('lower')",
        "call('lower', 'x')",
        "trigger.call('lower')",
        "curry('lower', 'x')",
        "lower.curry('x')",
        "import 'os'",
        "import 'os' as os",
        "os::exit()",
        "loop { }",
        "while true { }",
        "do { } while true",
        "for x in [1] { }",
        "|x| x + 1",
        "|| 1",
        "[1].map(|x| x)",
        "fn f() { 1 }",
        "private fn f() { 1 }",
    ] {
        assert!(Expression::parse(text).is_err(), "{text} is accepted");
        let template = crate::templates::Template::parse(&format!("a {{{{ {text} }}}}"));
        assert!(template.is_err(), "{text} is accepted in a template");
    }
}

#[test]
fn large_whole_numbers_are_compared_exactly() {
    // Both are the same float. Ids of other services are as large.
    check(&[
        ("contains([9007199254740993], 9007199254740992)", json!(false)),
        ("contains([9007199254740993], 9007199254740993)", json!(true)),
        (
            "unique([9007199254740993, 9007199254740992, 9007199254740992])",
            json!([9_007_199_254_740_993_i64, 9_007_199_254_740_992_i64]),
        ),
        ("[9007199254740993] == [9007199254740992]", json!(false)),
        ("9007199254740993 == 9007199254740992", json!(false)),
    ]);
}

#[test]
fn equal_elements_are_found_whatever_their_type() {
    check(&[
        (
            "unique([1, 1.0, '1', true, null, [1], [1.0], #{a: 1}, #{a: 1.0}, 'ab', first('ab'), 'a'])",
            json!([1, "1", true, null, [1], {"a": 1}, "ab", "a"]),
        ),
        ("unique(['a,b', 'a', 'b', ['a,b'], ['a', 'b']])", json!(["a,b", "a", "b", ["a,b"], ["a", "b"]])),
        ("len(unique([0.1 + 0.2, 0.3, 0.3]))", json!(2)),
        ("contains(['ab', null, [1, #{a: 2}]], [1.0, #{a: 2.0}])", json!(true)),
        ("contains([true, 'a'], 1)", json!(false)),
        ("contains([null], false)", json!(false)),
        ("contains([#{a: 1}], 'a')", json!(false)),
    ]);
}

#[test]
fn a_date_at_the_end_of_the_calendar_is_an_error_and_no_panic() {
    for (seconds, sign) in [("8210266876799", ""), ("-8334601228800", "-")] {
        for zone in ["Asia/Tokyo", "America/New_York", "UTC", "Pacific/Apia"] {
            for unit in ["seconds", "days", "weeks", "months", "years"] {
                let text = format!("date_add({seconds}, {sign}1, '{unit}', '{zone}')");
                assert!(run(&text).is_err(), "{text}");
            }
            // In a zone on the other side, the date is still in the calendar.
            assert!(run(&format!("date_format({seconds}, '%Y-%m-%dT%H:%M:%S %Z %c', '{zone}')")).is_ok());
            assert!(run(&format!("date({seconds}, '{zone}')")).is_ok());
        }
    }
}

#[test]
fn data_is_never_evaluated() {
    check(&[
        ("trigger.payload.code", json!("1 + 1")),
        ("trigger.payload.code + ''", json!("1 + 1")),
        ("trigger.payload.token + ''", json!("{{ env.TOKEN }}")),
        ("lower(trigger.payload.token)", json!("{{ env.token }}")),
        ("[trigger.payload.code]", json!(["1 + 1"])),
        ("json(trigger.payload.code)", json!("\"1 + 1\"")),
        ("parse_json('\"1 + 1\"')", json!("1 + 1")),
        ("trigger.payload[trigger.payload.code]", json!(null)),
    ]);
    for text in [
        "eval(trigger.payload.code)",
        "trigger.payload.code.eval()",
        "Fn(trigger.payload.code)",
        "call(trigger.payload.code)",
    ] {
        assert!(run(text).is_err(), "{text}");
    }
}

#[test]
fn a_text_holds_what_stands_in_its_quotes() {
    check(&[
        ("'it\\'s \"x\"'", json!("it's \"x\"")),
        ("\"a\\\\b\"", json!("a\\b")),
        ("'\\u00e4\\n\\t'", json!("ä\n\t")),
        ("'ü'", json!("ü")),
        ("'{{ env.X }} ${1} `x` // /* */'", json!("{{ env.X }} ${1} `x` // /* */")),
        ("'a\nb'", json!("a\nb")),
        ("''", json!("")),
        ("'\\u0000\\u0007'", json!("\u{0}\u{7}")),
    ]);
}

#[test]
fn references_name_the_smallest_parts() {
    let of = |text: &str| -> Vec<String> {
        Expression::parse(text).unwrap().references().iter().map(|path| path.join(".")).collect()
    };
    assert_eq!(of("steps.a.body.id + env.TOKEN"), ["env.TOKEN", "steps.a.body.id"]);
    assert_eq!(of("steps['a'].items[0].id"), ["steps.a.items"]);
    assert_eq!(of("list[item].id"), ["item", "list"]);
    assert_eq!(of("list[item.n].id"), ["item.n", "list"]);
    assert_eq!(of("list[item][other].id"), ["item", "list", "other"]);
    assert_eq!(of("a.b.lower().c"), ["a.b"]);
    assert_eq!(of("default(a.b, [c, #{x: d.e}])"), ["a.b", "c", "d.e"]);
    assert_eq!(of("'a' in b.c && !d || e?.f"), ["b.c", "d", "e.f"]);
    assert_eq!(of("1 + 1"), Vec::<String>::new());
}

#[test]
fn an_unread_variable_costs_nothing_and_a_loop_lies_over_the_rest() {
    let big = json!({"payload": {"blob": "x".repeat(60 << 20), "n": 1}});
    let (outer, inner) = (json!({"a": {"v": 1}, "b": {"v": 2}}), json!({"a": {"v": 3}}));
    let variables = Variables::new().with("trigger", &big).with("steps", &outer).with("steps", &inner);
    let value = |text: &str| Expression::parse(text).unwrap().evaluate(&variables);
    assert_eq!(value("trigger.payload.n + steps.a.v * 10 + steps.b.v * 100"), Ok(json!(231)));
    assert_eq!(value("steps"), Ok(json!({"a": {"v": 3}, "b": {"v": 2}})));
    assert!(value("len(trigger.payload.blob)").unwrap_err().0.contains("smaller part"));
    assert_eq!(value("nothing").unwrap_err().0, "there is no variable nothing");
    assert_eq!(value("nothing.x + 1").unwrap_err().0, "there is no variable nothing");
}

#[test]
fn errors_are_written_for_authors() {
    for (text, expected) in [
        ("lowr('a')", "there is no function lowr; did you mean lower?"),
        ("lower('a', 'b')", "write lower(text); this has 2 arguments"),
        ("trigger.none && true", "`&&` and `||` need true or false, this is null: write `bool(x) && …`"),
        ("[1] + 1", "it can't be applied to these types: `+` of a list and a number"),
        ("round('x')", "round: a number is needed"),
        ("9223372036854775807 + 1", "Addition overflow: 9223372036854775807 + 1"),
        ("1 / 0", "Division by zero: 1 / 0"),
    ] {
        assert_eq!(run(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn the_table_of_functions_is_complete() {
    let rows =
        FUNCTIONS.iter().map(|one| format!("| `{}({})` | {} |\n", one.name, one.signature, one.summary));
    let table = format!("| function | returns |\n| --- | --- |\n{}", rows.collect::<String>());
    let page = include_str!("../../FUNCTIONS.md");
    assert!(page.contains(&table), "FUNCTIONS.md must hold this table:\n{table}");
}

#[test]
fn the_engine_has_its_limits() {
    let engine = &engine::ENGINE;
    let limits =
        (engine.max_operations(), engine.max_string_size(), engine.max_array_size(), engine.max_map_size());
    assert_eq!(limits, (20_000, 256 << 10, 10_000, 10_000));
    assert_eq!(engine.max_expr_depth(), 32);
    let sum = vec!["1"; 40].join(" + ");
    assert!(Expression::parse(&sum).is_err(), "an expression of depth 40 is accepted");
}

#[test]
fn expressions_are_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Expression>();
}
