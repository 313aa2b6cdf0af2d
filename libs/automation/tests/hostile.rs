//! Hostile expressions and templates: each stays within 20,000 operations, 16 MB and 50 ms.
//!
//! The memory is counted by the allocator of this test program, which no other test shares.

#![expect(unsafe_code, reason = "an allocator that counts can't be written without it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use automation::expressions::{Expression, Variables};
use automation::templates::{Escape, OutputBudget, Template};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Maximum number of bytes that one case may hold at once, beside its data.
const BYTES_MAX: usize = 16 << 20;
/// Maximum processor time of one case. A debug build of these crates is about ten times slower.
const TIME_MAX: Duration =
    if cfg!(debug_assertions) { Duration::from_millis(200) } else { Duration::from_millis(50) };

struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn count(added: usize, removed: usize) {
    let held = HELD.get().saturating_add(added).saturating_sub(removed);
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: every call is passed on to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new block may exist together while the content is copied.
        count(size, 0);
        count(0, layout.size());
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the processor time of this thread: other programs on the machine don't count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Repeats `inner` around itself: `(a(a(a(…))))`.
fn nested(open: &str, center: &str, close: &str, times: usize) -> String {
    format!("{}{center}{}", open.repeat(times), close.repeat(times))
}

fn cases() -> Vec<String> {
    let many = |part: &str, times: usize| vec![part; times].join(", ");
    let sum = |part: &str, times: usize| vec![part; times].join(" + ");
    let mut cases: Vec<String> = [
        "t.big + t.big + t.big",
        "t.text * 99999999",
        "'a' * 99999999",
        "replace(t.text, 'x', t.text)",
        "replace(t.text, '', t.text)",
        "join(split(t.text, 'x'), t.text)",
        "split(t.text, 'x')",
        "split(t.text, '')",
        "json(json(json(json(t.text))))",
        "url_encode(url_encode(t.text))",
        "html_escape(html_escape(t.amps))",
        "base64(base64(base64(t.text)))",
        "parse_json(t.deep)",
        "parse_json(t.wide)",
        "json(t.list)",
        "t.list == t.list",
        "unique(t.list)",
        "sum(t.list) + max(t.list)",
        "concat(concat(t.list, t.list), t.list)",
        "merge(t.object, t.object)",
        "[t.list, t.list, t.list]",
        "#{a: t.object, b: t.object}",
        "2 ** 63",
        "2 ** 9223372036854775807",
        "-9223372036854775808 - 1",
        "9223372036854775807 * 9223372036854775807",
        "1 << 9223372036854775807",
        "1.0e308 * 1.0e308",
        "0.0 / 0.0",
        "9223372036854775807 % 0",
        "abs(-9223372036854775807 - 1)",
        "t.list[9223372036854775807]",
        "t.list[-9223372036854775807]",
        "slice(t.text, -9223372036854775807, 9223372036854775807)",
        "date_add('9999-12-31', 2147483647, 'years')",
        "date_format(0, '%999999999d')",
        "round(1.5, 9223372036854775807)",
        "0..9223372036854775807",
        "sleep(86400)",
        "eval('loop { }')",
        "loop { }",
        "while true { }",
        "let x = 'a'; x",
        "timestamp()",
        "blob(999999999)",
        "'x'.pad(999999999, 'y')",
        "t.text.pad(999999999, 'y')",
        "range(0, 999999999)",
        "Fn('eval')",
        "`${loop {}}`",
        "/* /* /* */",
        "\"",
        "#{",
        "default(t, t)",
        "t",
        "json(t)",
        "t.list.t.list",
    ]
    .map(str::to_owned)
    .to_vec();
    cases.extend([
        nested("(", "1", ")", 4_000),
        nested("[", "1", "]", 4_000),
        nested("#{a: ", "1", "}", 1_500),
        nested("-", "1", "", 8_000),
        nested("!", "1", "", 8_000),
        nested("lower(", "t.text", ")", 1_300),
        nested("lower(", "t.text", ")", 15),
        sum("t.text", 1_000),
        sum("t.list", 500),
        sum("1", 2_700),
        nested("replace(t.text + t.text, 'y', ", "t.text", ")", 14),
        nested("json([", "t.text", "])", 14),
        nested("concat(t.list, ", "[]", ")", 14),
        format!("[{}]", many("t.text", 800)),
        format!("[{}]", many("t.list", 800)),
        format!("[{}]", many("1", 2_600)),
        format!("lower({})", many("t.text", 900)),
        format!("foo({})", many("t.text + t.text", 500)),
        format!("join([{}])", many("split(t.text, 'x')", 90)),
        format!("{} == 1", "t.list == ".repeat(300)),
        format!("t{}", ".a".repeat(4_000)),
        format!("t{}", "[0]".repeat(2_600)),
        format!("t{}", "['a']".repeat(1_500)),
        "a".repeat(8_192),
        "a".repeat(1 << 20),
        format!("'{}'", "a".repeat(8_000)),
        many("len(t.list)", 400),
        sum("len(t.list)", 300),
        sum("len(t.text)", 400),
        sum("contains(t.list, 10000)", 300),
        sum("len(split(t.text, 'x'))", 200),
        format!("choose({0}, {0}, {0})", sum("t.text", 200)),
        nested("choose(true, t.text + t.text, ", "1", ")", 14),
        nested("[t.text + t.text, ", "1", "]", 14),
        "t.text - t.text - t.text".to_owned(),
        format!("({})", vec!["t.text == t.text"; 400].join(" && ")),
    ]);
    cases
}

#[test]
fn every_hostile_input_is_bounded() {
    let list: Vec<usize> = (0..10_000).collect();
    let object: serde_json::Map<String, Value> =
        (0..9_000).map(|at| (format!("key{at}"), json!(at))).collect();
    let data = json!({"text": "x".repeat(200_000), "big": "y".repeat(1 << 20), "amps": "&".repeat(60_000), "list": list, "object": object,
        "deep": nested("[", "", "]", 10_000), "wide": format!("[{}1]", "1,".repeat(100_000))});
    let variables = Variables::new().with("t", &data);
    // The engine is built by the first expression.
    assert!(Expression::parse("1 + 1").is_ok());
    let cases = cases();
    assert!(cases.len() >= 40);
    let mut slowest = Vec::new();
    let (mut failures, mut refused, mut worst) = (Vec::new(), 0, (0, Duration::ZERO));
    for case in &cases {
        let (before, begun) = (HELD.get(), processor_time());
        PEAK.set(before);
        let expression = Expression::parse(case);
        let value = expression
            .as_ref()
            .map_err(ToString::to_string)
            .and_then(|expression| expression.evaluate(&variables).map_err(|error| error.to_string()));
        refused += usize::from(value.is_err());
        drop((expression, value));
        let (bytes, time) = (PEAK.get() - before, processor_time() - begun);
        worst = (worst.0.max(bytes), worst.1.max(time));
        slowest.push((time, case.chars().take(40).collect::<String>()));
        let name: String = case.chars().take(60).collect();
        if bytes > BYTES_MAX || time > TIME_MAX {
            failures.push(format!("{name}: {bytes} bytes, {time:?}"));
        }
        // The same in a template: its output is limited further.
        PEAK.set(HELD.get());
        if let Ok(template) = Template::parse(&format!("a{{{{ {case} }}}}b")) {
            let text = template.text(&variables, Escape::Html, &mut OutputBudget::default());
            assert!(text.is_err() || text.is_ok_and(|text| text.len() <= 64 * 1024 + 2), "{name}");
        }
        let bytes = PEAK.get() - before;
        if bytes > BYTES_MAX {
            failures.push(format!("{name} in a template: {bytes} bytes"));
        }
    }
    slowest.sort();
    println!("slowest: {:?}", &slowest[slowest.len() - 5..]);
    println!("{} cases, {refused} refused, at most {} KB and {:?}", cases.len(), worst.0 >> 10, worst.1);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
