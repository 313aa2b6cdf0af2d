//! Hostile expressions and templates: each stays within 20,000 operations, 16 MB and 50 ms.
//!
//! The memory is counted by the allocator of this program, which no other test shares. `examples/hostile_table.rs` holds
//! this file too, and prints what each input costs.

#![expect(unsafe_code, reason = "an allocator that counts can't be written without it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use automation::expressions::{Expression, OPERATIONS_MAX, Variables, last_operations, work};
use automation::templates::{Escape, OutputBudget, Template};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Maximum number of bytes that one case may hold at once, beside its data.
const BYTES_MAX: usize = 16 << 20;
/// Maximum processor time of one case. A debug build of these crates is about ten times slower, and both take twice as long while
/// another program uses the same core.
const TIME_MAX: Duration =
    if cfg!(debug_assertions) { Duration::from_millis(500) } else { Duration::from_millis(50) };

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

fn expressions() -> Vec<String> {
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
        "contains(t.objects, t.text)",
        "contains(t.text, t.text)",
        "t.text in t.lists",
        "unique(t.objects)",
        "unique(t.lists)",
        "unique(t.prefixes)",
        "unique(concat(t.prefixes, t.prefixes))",
        "min(t.prefixes) + max(t.prefixes)",
        "join(t.lists)",
        "t.objects == t.objects",
        "sum(t.objects)",
        "pluck(t.objects, 'a')",
        "date_add(8210266876799, 1, 'day', 'Asia/Tokyo')",
        "date_add(-8334601228800, -1, 'month', 'America/New_York')",
        "date_format(8210266876799, '%c', 'Asia/Tokyo')",
        "date_format(-8334601228800, '%c', 'America/New_York')",
        "date('+262142-12-31 23:59', 'America/New_York')",
        "date('-262143-01-01 00:00', 'Asia/Tokyo')",
        "date_diff(-8334601228800, 8210266876799, 'seconds')",
        "date_format(0, t.text)",
        "date(t.text)",
        "date(0, t.text)",
        "slice(t.umlauts, 1, 2)",
        "slice(t.umlauts, -1, -2)",
        "t.umlauts[1]",
        "t.umlauts[-9223372036854775808]",
        "[1][-9223372036854775807 - 1]",
        "split(t.umlauts, 'ü')",
        "replace(t.umlauts, 'ü', t.umlauts)",
        "number(t.text)",
        "number('1e999999')",
        "parse_json('1e999999')",
        "parse_json('\"\\ud800\"')",
        "'\\ud800'",
        "'\\u00'",
        "'a' in 'b' in 'c'",
        "print(t.text)",
        "debug(t.text)",
        "call('eval')",
        "curry(1)",
        "import 'x' as y",
        "fn f() { f() }",
        "|x| x",
        "do { } until false",
        "throw 1",
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

fn templates() -> Vec<String> {
    vec![
        "{{".repeat(30_000),
        "}}".repeat(30_000),
        "{".repeat(60_000),
        "{{ ' ".repeat(10_000),
        "{{ #{ ".repeat(10_000),
        "{{ 1 }}".repeat(500),
        "{{ 1 }}".repeat(501),
        "{{ '}}' }}".repeat(500),
        "{{ len(t.text) }}".repeat(20),
        "{{ t.amps }}".to_owned(),
        "<{{ t.amps }}>".to_owned(),
        "{{ t.big }}{{ t.big }}".to_owned(),
        "<{{ t.list }}>".to_owned(),
        "{{ t.object }}".to_owned(),
        "<{{ t }}>".to_owned(),
        "{{ t }}".to_owned(),
        "{{ t.markup }}".to_owned(),
        "<{{ t.markup }}>".to_owned(),
        "{{ {{ 1 }} }}".to_owned(),
        "{{ \u{0} }}".to_owned(),
        "{% for x in t.list %}{{ x }}{% endfor %}".to_owned(),
        "${t.text} #{t.text} <%= t.text %>".to_owned(),
    ]
}

/// What one input costs.
pub struct Cost {
    input: String,
    is_refused: bool,
    operations: u64,
    /// Operations and, converted to them, copied bytes: what counts for the limit of a run.
    work: u64,
    bytes: usize,
    time: Duration,
}

impl Cost {
    /// Measures an evaluation, which returns its number of operations, and whether it has a value.
    fn of(input: &str, evaluate: impl FnOnce() -> (u64, bool)) -> Self {
        let (before, done, begun) = (HELD.get(), work(), processor_time());
        PEAK.set(before);
        let (operations, has_value) = evaluate();
        let (bytes, time, work) = (PEAK.get() - before, processor_time() - begun, work() - done);
        let visible = |char: char| if char.is_control() { '.' } else { char };
        let mut shown: String = input.chars().map(visible).take(48).collect();
        if shown.len() < input.len() {
            shown += &format!("… ({} bytes)", input.len());
        }
        Self { input: shown, is_refused: !has_value, operations, work, bytes, time }
    }

    fn is_bounded(&self) -> bool {
        self.operations <= OPERATIONS_MAX && self.bytes <= BYTES_MAX && self.time <= TIME_MAX
    }
}

/// Evaluates every hostile input once.
pub fn costs() -> Vec<Cost> {
    let list: Vec<usize> = (0..10_000).collect();
    let object: serde_json::Map<String, Value> =
        (0..9_000).map(|at| (format!("key{at}"), json!(at))).collect();
    let objects: Vec<Value> = (0..3_000).map(|at| json!({"a": at, "b": [at]})).collect();
    let lists: Vec<Vec<usize>> =
        (0..380).map(|at| (0..25).map(|of| if of < 24 { of } else { at }).collect()).collect();
    let prefixes: Vec<String> = (0..450).map(|at| format!("{}{at}", "p".repeat(2_000))).collect();
    let data = json!({"text": "x".repeat(200_000), "big": "y".repeat(1 << 20), "amps": "&".repeat(60_000),
        "umlauts": "ü€😀".repeat(10_000), "list": list, "object": object, "objects": objects, "lists": lists,
        "prefixes": prefixes, "markup": vec!["<'\"&>"; 20_000],
        "deep": nested("[", "", "]", 10_000), "wide": format!("[{}1]", "1,".repeat(100_000))});
    let variables = Variables::new().with("t", &data);
    // The engine is built by the first expression.
    assert!(Expression::parse("1 + 1").is_ok());
    let mut costs = Vec::new();
    for text in expressions() {
        costs.push(Cost::of(&text, || match Expression::parse(&text) {
            Ok(expression) => {
                let has_value = expression.evaluate(&variables).is_ok();
                (last_operations(), has_value)
            }
            Err(_) => (0, false),
        }));
    }
    // The same in templates: their output is limited further.
    let in_templates = expressions().into_iter().map(|text| format!("a{{{{ {text} }}}}b"));
    for text in in_templates.chain(templates()) {
        costs.push(Cost::of(&text, || {
            let Ok(template) = Template::parse(&text) else { return (0, false) };
            let value = template.render(&variables, Escape::Html, &mut OutputBudget::default());
            let bytes = value.as_ref().map(|value| value.to_string().len()).unwrap_or_default();
            assert!(bytes <= 300 << 10, "{text} writes {bytes} bytes");
            (last_operations(), value.is_ok())
        }));
    }
    costs
}

/// Returns the costs as a Markdown table, and whether all are bounded.
pub fn table(costs: &[Cost]) -> (String, bool) {
    let mut text =
        "| input | outcome | operations | work | KB | µs |\n| --- | --- | ---: | ---: | ---: | ---: |\n"
            .to_owned();
    for cost in costs {
        let outcome = if cost.is_refused { "refused" } else { "value" };
        let mark = if cost.is_bounded() { "" } else { " **too much**" };
        let input = cost.input.replace('|', "\\|").replace('`', "'");
        let (kilobytes, micros) = (cost.bytes.div_ceil(1024), cost.time.as_micros());
        text += &format!(
            "| `{input}` | {outcome}{mark} | {} | {} | {kilobytes} | {micros} |\n",
            cost.operations, cost.work
        );
    }
    let most = |of: fn(&Cost) -> u128| costs.iter().map(of).max().unwrap_or_default();
    let (bytes, time) = (most(|cost| cost.bytes as u128), most(|cost| cost.time.as_micros()));
    let (operations, refused) =
        (most(|cost| cost.operations.into()), costs.iter().filter(|cost| cost.is_refused).count());
    text += &format!(
        "\n{} inputs, {refused} refused; at most {operations} operations, {} KB and {time} µs.\n",
        costs.len(),
        bytes.div_ceil(1024)
    );
    (text, costs.iter().all(Cost::is_bounded))
}

#[test]
fn every_hostile_input_is_bounded() {
    let costs = costs();
    assert!(costs.len() >= 40);
    let excessive: Vec<Cost> = costs.into_iter().filter(|cost| !cost.is_bounded()).collect();
    assert!(excessive.is_empty(), "{}", table(&excessive).0);
}
