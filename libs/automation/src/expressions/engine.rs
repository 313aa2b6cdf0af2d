//! The one rhai engine: no packages, no statements, our own functions, limits.

use std::any::TypeId;
use std::sync::LazyLock;

use rhai::{Array, Dynamic, Engine, EvalAltResult, ImmutableString, Map, OptimizationLevel, Position};

use super::functions::FUNCTIONS;
use super::limits::{DEPTH_MAX, ELEMENTS_MAX, OPERATIONS_MAX, TEXT_BYTES_MAX};
use super::{budget, values};

/// Symbols without a use in an expression. Statements are refused by rhai's expression mode too, and again when the
/// compiled expression is inspected.
const DISABLED: [&str; 32] = [
    "eval",
    "print",
    "debug",
    "Fn",
    "call",
    "curry",
    "type_of",
    "is_def_var",
    "this",
    "let",
    "const",
    "if",
    "else",
    "switch",
    "while",
    "loop",
    "do",
    "until",
    "for",
    "break",
    "continue",
    "return",
    "throw",
    "try",
    "catch",
    "fn",
    "private",
    "import",
    "export",
    "as",
    "global",
    "is_shared",
];

pub(super) static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let mut engine = Engine::new_raw();
    engine
        .set_max_operations(OPERATIONS_MAX)
        .set_max_string_size(TEXT_BYTES_MAX)
        .set_max_array_size(ELEMENTS_MAX)
        .set_max_map_size(ELEMENTS_MAX)
        .set_max_expr_depths(DEPTH_MAX)
        .set_max_variables(16)
        .set_max_strings_interned(0)
        .set_optimization_level(OptimizationLevel::None)
        .set_allow_if_expression(false)
        .set_allow_switch_expression(false)
        .set_allow_loop_expressions(false)
        .set_allow_statement_expression(false)
        .set_allow_looping(false)
        .set_fail_on_invalid_map_property(false)
        // Built-in operators are not counted in bytes; the ones below replace those that copy.
        .set_fast_operators(false)
        .on_invalid_array_index(|_, _, _| Ok(Dynamic::UNIT.into()))
        .on_progress(|operations| {
            budget::count_operation(operations);
            None
        });
    for symbol in DISABLED {
        engine.disable_symbol(symbol);
    }
    add_functions(&mut engine);
    add_operators(&mut engine);
    engine
});

type Outcome<T> = Result<T, Box<EvalAltResult>>;

fn runtime_error(message: String) -> Box<EvalAltResult> {
    Box::new(EvalAltResult::ErrorRuntime(message.into(), Position::NONE))
}

fn add_functions(engine: &mut Engine) {
    for function in FUNCTIONS {
        for count in function.arguments() {
            let any = vec![TypeId::of::<Dynamic>(); count];
            engine.register_raw_fn(function.rhai_name(), any, |_, arguments| {
                let arguments: Vec<&Dynamic> = arguments.iter().map(|argument| &**argument).collect();
                function.call(&arguments).map_err(runtime_error)
            });
        }
    }
}

fn add_operators(engine: &mut Engine) {
    engine.register_fn("+", |a: ImmutableString, b: ImmutableString| concat(&a, &b));
    engine.register_fn("+", |a: ImmutableString, b: Dynamic| concat(&a, &text(&b)?));
    engine.register_fn("+", |a: Dynamic, b: ImmutableString| concat(&text(&a)?, &b));
    engine.register_fn("-", |_: ImmutableString, _: ImmutableString| -> Outcome<Dynamic> {
        Err(runtime_error("a text can't be subtracted from a text; convert them with number()".to_owned()))
    });
    engine.register_fn("==", |a: Array, b: Array| equal(a.into(), b.into()));
    engine.register_fn("==", |a: Map, b: Map| equal(a.into(), b.into()));
    engine.register_fn("!=", |a: Array, b: Array| equal(a.into(), b.into()).map(|equal| !equal));
    engine.register_fn("!=", |a: Map, b: Map| equal(a.into(), b.into()).map(|equal| !equal));
    engine.register_fn("-", |a: i64| {
        a.checked_neg().ok_or_else(|| runtime_error("the number is too large".into()))
    });
    engine.register_fn("-", |a: f64| -a);
    engine.register_fn("+", |a: i64| a);
    engine.register_fn("+", |a: f64| a);
    engine.register_fn("!", |a: Dynamic| !values::is_true(&a));
    // A member of null, true or a number is null. Of lists and texts, `variables` takes care.
    engine.register_indexer_get(|_: &mut (), _: Dynamic| Dynamic::UNIT);
    engine.register_indexer_get(|_: &mut bool, _: Dynamic| Dynamic::UNIT);
    engine.register_indexer_get(|_: &mut f64, _: Dynamic| Dynamic::UNIT);
}

fn text(value: &Dynamic) -> Outcome<String> {
    values::to_text(value).map_err(runtime_error)
}

fn concat(a: &str, b: &str) -> Outcome<Dynamic> {
    let bytes = a.len() + b.len();
    if bytes > TEXT_BYTES_MAX {
        return Err(runtime_error(format!("a text may have at most {TEXT_BYTES_MAX} bytes")));
    }
    budget::charge(bytes).map_err(runtime_error)?;
    Ok(format!("{a}{b}").into())
}

fn equal(a: Dynamic, b: Dynamic) -> Outcome<bool> {
    budget::charge(values::weight(&a) + values::weight(&b)).map_err(runtime_error)?;
    Ok(values::equal(&a, &b))
}

/// Returns rhai's message without positions, which refer to rewritten text.
pub(super) fn sentence(message: &str) -> String {
    let message = message.split(" (line ").next().unwrap_or(message);
    message.replace("object map", "object").replace("array/BLOB", "list")
}

/// Translates rhai's names of types.
pub(super) fn type_name(name: &str) -> &'static str {
    match name {
        "()" => "null",
        "bool" => "true or false",
        "i64" | "f64" | "int" | "float" => "a number",
        "string" | "char" | "&str | ImmutableString | String" => "a text",
        "array" => "a list",
        "map" => "an object",
        _ => "another type",
    }
}

/// Translates the signature of a missing operator, such as `+ (map, i64)`.
pub(super) fn signature(signature: &str) -> String {
    let Some((name, types)) = signature.split_once(" (") else { return signature.to_owned() };
    let types: Vec<_> = types.trim_end_matches(')').split(", ").map(type_name).collect();
    format!("`{name}` of {}", types.join(" and "))
}
