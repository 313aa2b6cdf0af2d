//! The functions of expressions: all of them pure, each with a bound on what it reads and returns.

mod arguments;
mod dates;
mod encodings;
mod lists;
mod numbers;
mod texts;

use std::ops::RangeInclusive;

use rhai::Dynamic;

use super::{budget, rewrite, values};
use crate::definition::did_you_mean;
use arguments::Outcome;

pub(crate) use encodings::for_url;

type Body = fn(&[&Dynamic]) -> Outcome;

/// A function of expressions. It can be called as `name(x, …)` or `x.name(…)`.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Its arguments; those in brackets may be left out.
    pub signature: &'static str,
    /// What it returns.
    pub summary: &'static str,
    counts: RangeInclusive<usize>,
    body: Body,
}

impl Function {
    const fn new(
        name: &'static str,
        counts: RangeInclusive<usize>,
        signature: &'static str,
        summary: &'static str,
        body: Body,
    ) -> Self {
        Self { name, signature, summary, counts, body }
    }

    /// Returns the numbers of arguments that it takes.
    pub(super) fn arguments(&self) -> RangeInclusive<usize> {
        self.counts.clone()
    }

    pub(super) fn rhai_name(&self) -> &'static str {
        if self.name == "default" { rewrite::DEFAULT } else { self.name }
    }

    pub(super) fn call(&self, arguments: &[&Dynamic]) -> Outcome {
        budget::charge(arguments.iter().map(|argument| values::weight(argument)).sum())?;
        let result = (self.body)(arguments).map_err(|message| format!("{}: {message}", self.name))?;
        budget::charge(values::weight(&result))?;
        Ok(result)
    }
}

/// Every function, by topic.
pub const FUNCTIONS: &[Function] = &[
    Function::new(
        "default",
        2..=2,
        "x, other",
        "`x`, or `other` if `x` is null or an empty text",
        lists::default,
    ),
    Function::new("choose", 3..=3, "condition, a, b", "`a` if the condition holds, else `b`", lists::choose),
    Function::new("len", 1..=1, "x", "number of characters, elements or members; 0 of null", lists::len),
    Function::new(
        "contains",
        2..=2,
        "x, part",
        "whether a text has a part, a list an element, an object a member; also `part in x`",
        lists::contains,
    ),
    Function::new("between", 3..=3, "x, low, high", "whether `low <= x` and `x <= high`", numbers::between),
    Function::new("lower", 1..=1, "text", "the text in lowercase", texts::lower),
    Function::new("upper", 1..=1, "text", "the text in uppercase", texts::upper),
    Function::new("trim", 1..=1, "text", "the text without spaces around it", texts::trim),
    Function::new("replace", 3..=3, "text, part, by", "the text with every `part` replaced", texts::replace),
    Function::new("split", 2..=2, "text, separator", "the list of the text's pieces", texts::split),
    Function::new(
        "join",
        1..=2,
        "list, [separator]",
        "the elements as one text; default separator `, `",
        texts::join,
    ),
    Function::new(
        "starts_with",
        2..=2,
        "text, part",
        "whether the text begins with the part",
        texts::starts_with,
    ),
    Function::new("ends_with", 2..=2, "text, part", "whether the text ends with the part", texts::ends_with),
    Function::new(
        "slice",
        2..=3,
        "x, from, [to]",
        "characters or elements from `from` (0 is the first, -1 the last) to before `to`",
        lists::slice,
    ),
    Function::new("first", 1..=1, "x", "the first element or character; null if empty", lists::first),
    Function::new("last", 1..=1, "x", "the last element or character; null if empty", lists::last),
    Function::new("pluck", 2..=2, "list, name", "the list of one member of each element", lists::pluck),
    Function::new("keys", 1..=1, "object", "the list of the member names", lists::keys),
    Function::new("values", 1..=1, "object", "the list of the members", lists::values),
    Function::new(
        "merge",
        2..=2,
        "a, b",
        "an object with the members of both; those of `b` win",
        lists::merge,
    ),
    Function::new("concat", 2..=2, "a, b", "a list with the elements of both", lists::concat),
    Function::new("unique", 1..=1, "list", "the list without repeated elements", lists::unique),
    Function::new("reverse", 1..=1, "list", "the list in reverse order", lists::reverse),
    Function::new("sum", 1..=1, "list", "the sum of the numbers", numbers::sum),
    Function::new("round", 1..=2, "number, [digits]", "the number rounded, half away from 0", numbers::round),
    Function::new("floor", 1..=1, "number", "the largest whole number that is not greater", numbers::floor),
    Function::new("ceil", 1..=1, "number", "the smallest whole number that is not less", numbers::ceil),
    Function::new("abs", 1..=1, "number", "the number without its sign", numbers::abs),
    Function::new("min", 1..=2, "a, [b]", "the smaller one, or the smallest of a list", numbers::min),
    Function::new("max", 1..=2, "a, [b]", "the larger one, or the largest of a list", numbers::max),
    Function::new(
        "number",
        1..=1,
        "x",
        "the number that a text holds; null if it holds none",
        numbers::number,
    ),
    Function::new(
        "string",
        1..=1,
        "x",
        "the value as a text; null is empty, lists and objects are JSON",
        texts::string,
    ),
    Function::new("bool", 1..=1, "x", "false for null, false, 0 and what is empty; else true", numbers::bool),
    Function::new(
        "date",
        1..=2,
        "x, [zone]",
        "the UTC timestamp of a date, a timestamp or Unix seconds; a time without offset is read in the zone",
        dates::date,
    ),
    Function::new(
        "date_add",
        3..=4,
        "date, amount, unit, [zone]",
        "the date moved by `seconds`, `minutes`, `hours`, `days`, `weeks`, `months` or `years`",
        dates::date_add,
    ),
    Function::new(
        "date_diff",
        3..=3,
        "a, b, unit",
        "whole units from `a` to `b`: `seconds` to `weeks`",
        dates::date_diff,
    ),
    Function::new(
        "date_format",
        2..=3,
        "date, format, [zone]",
        "the date as text, by strftime: `%Y-%m-%d %H:%M`; default zone UTC",
        dates::date_format,
    ),
    Function::new("unix", 1..=1, "date", "the date as Unix seconds", dates::unix),
    Function::new("json", 1..=1, "x", "the value as JSON", encodings::json),
    Function::new(
        "parse_json",
        1..=1,
        "text",
        "the value that JSON holds; null if it is not JSON",
        encodings::parse_json,
    ),
    Function::new("url_encode", 1..=1, "text", "the text for a part of a URL", encodings::url_encode),
    Function::new("html_escape", 1..=1, "text", "the text for HTML", encodings::html_escape),
    Function::new("base64", 1..=1, "text", "the text in base64", encodings::base64),
    Function::new("sha256", 1..=1, "text", "the SHA-256 of the text, in hexadecimal", encodings::sha256),
    Function::new(
        "hmac_sha256",
        2..=2,
        "key, text",
        "the HMAC-SHA-256 of the text, in hexadecimal",
        encodings::hmac_sha256,
    ),
];

/// Checks the name and the number of arguments of a call.
pub(super) fn check_call(name: &str, count: usize) -> Result<(), String> {
    match FUNCTIONS.iter().find(|function| function.rhai_name() == name) {
        Some(function) if function.counts.contains(&count) => Ok(()),
        Some(function) => {
            Err(format!("write {}({}); this has {count} arguments", function.name, function.signature))
        }
        None => {
            let hint = did_you_mean(name, FUNCTIONS.iter().map(|function| function.name));
            Err(format!("there is no function {name}{hint}"))
        }
    }
}
