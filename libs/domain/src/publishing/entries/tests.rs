//! Tests of page entries rendered through a template: a browser engine's parser finds no element, attribute or URL that the
//! template does not have, whatever the entry contains.

use std::fmt::Write as _;

use proptest::prelude::*;
use scraper::{Html, Node};
use serde_json::json;

use super::*;

const TEMPLATES: [&str; 14] = [
    "<li>{{a}} and {{b}}</li>",
    "<p title=\"{{a}}\" class='c {{b}}'>{{ a }}</p>",
    "<p title={{a}} id=y>z</p>",
    "<p title={{ a }}>z</p><p lang={{b}}/>",
    "<a href=\"{{a}}\">{{b}}</a><img src='{{b}}' alt={{a}}>",
    "<a href={{a}}>x</a><form action={{b}}><button formaction=\"{{a}}\">y</button></form>",
    "<a href=\"/search?q={{a}}&amp;r={{b}}#{{a}}\">x</a>",
    "<a href=\"https://a.example/{{a}}/{{b}}\">x</a>",
    "<a href=\"{{a}}{{b}}\">x</a><a href=\"{{a}}:{{b}}\">y</a><a href=\"java{{a}}\">z</a>",
    "<textarea>{{a}}</textarea><div><b>{{b}}</b></div>",
    "<table><tr><td>{{a}}</td><td data-x={{b}}>y</td></tr></table>",
    "<p style=\"color: {{a}}; width: {{b}}%\">x</p>",
    "<svg><a xlink:href=\"{{a}}\"><text>{{b}}</text></a></svg><img srcset=\"{{a}} 2x, {{b}}\">",
    "<iframe src=\"{{a}}\"></iframe><video poster={{b}}></video><blockquote cite={{a}}>x</blockquote>",
];

/// Returns the elements, their attribute names, and the values of attributes without placeholders.
fn structure(html: &str) -> String {
    let mut shown = String::new();
    for node in Html::parse_fragment(html).tree.root().descendants() {
        let depth = node.ancestors().count();
        match node.value() {
            Node::Element(element) => {
                let mut names: Vec<&str> = element.attrs().map(|(name, _)| name).collect();
                names.sort_unstable();
                writeln!(shown, "{depth} <{} {names:?}>", element.name()).unwrap();
            }
            Node::Comment(_) | Node::ProcessingInstruction(_) | Node::Doctype(_) => {
                writeln!(shown, "{depth} {:?}", node.value()).unwrap();
            }
            _ => {}
        }
    }
    shown
}

/// Returns the URLs that a browser would execute.
fn running(html: &str) -> Vec<String> {
    let page = url::Url::parse("https://site.example/page").unwrap();
    let (mut found, addresses) = (Vec::new(), ["href", "src", "action", "formaction", "poster", "cite"]);
    for node in Html::parse_fragment(html).tree.nodes() {
        let Some(element) = node.value().as_element() else { continue };
        for (_, value) in element.attrs().filter(|(name, _)| addresses.contains(name)) {
            let scheme = page.join(value).map(|url| url.scheme().to_owned()).unwrap_or_default();
            if ["javascript", "vbscript", "data", "blob", "file"].contains(&scheme.as_str()) {
                found.push(value.to_owned());
            }
        }
    }
    found
}

/// Generates hostile input: fragments with a meaning to some parser, in any order.
fn hostile() -> impl Strategy<Value = String> {
    let bits = prop::sample::select(vec![
        "<",
        ">",
        "\"",
        "'",
        "`",
        "=",
        "/",
        "&",
        ";",
        ":",
        "-",
        "--",
        "!",
        "?",
        "#",
        "{{a}}",
        "{{",
        "}}",
        " ",
        "\t",
        "\n",
        "\r",
        "\u{c}",
        "\u{1}",
        "\u{a0}",
        "\u{202e}",
        "]]>",
        "<![CDATA[",
        "<!--",
        "-->",
        "</",
        "<script>",
        "</script>",
        "alert(1)",
        "javascript:",
        "JaVa",
        "script:",
        "java\tscript:",
        "data:text/html,",
        "vbscript:",
        "&colon;",
        "&#58;",
        "&lt;",
        "&amp",
        "&#x3c",
        "onerror=",
        "src=x",
        "<img ",
        "</textarea>",
        "</title>",
        "</p>",
        "<p>",
        "<svg>",
        "<style>",
        "expression(",
        "url(",
        "\\",
        "\u{2028}",
        "é",
        "x",
        "0",
        ",",
        "%",
        "%3a",
        "<a href=",
        "<!-- service:entries -->",
        "\u{feff}",
        "\u{fffd}",
        "</table>",
        "<plaintext>",
    ]);
    prop::collection::vec(bits, 0..12).prop_map(|bits| bits.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn hostile_input_adds_no_markup_and_executes_nothing(
        at in 0..TEMPLATES.len(), a in prop_oneof![hostile(), ".{0,20}"], b in hostile(),
    ) {
        let template = Template::parse(TEMPLATES[at]).unwrap();
        let render = |a: &str, b: &str| template.render(json!({"a": a, "b": b}).as_object().unwrap());
        // The preceding text keeps elements from being empty, which have no text node.
        let (a, b) = (a.replace('\0', ""), b);
        let html = render(&a, &b);
        prop_assert_eq!(structure(&html), structure(&render("x", "x")), "{}", html);
        prop_assert_eq!(running(&html), Vec::<String>::new(), "{}", html);
    }

    #[test]
    fn text_round_trips(text in prop_oneof![hostile(), ".{0,20}"]) {
        let template = Template::parse("<p title={{a}}>{{a}}</p>").unwrap();
        // Every parser normalizes line ends and NUL.
        let text = text.replace(['\r', '\0'], "");
        let html = Html::parse_fragment(&template.render(json!({"a": text}).as_object().unwrap()));
        let p = html.tree.nodes().find(|node| node.value().as_element().is_some_and(|it| it.name() == "p")).unwrap();
        prop_assert_eq!(p.value().as_element().unwrap().attr("title"), Some(text.as_str()));
        let shown: String = p.descendants().filter_map(|node| node.value().as_text().map(|text| text.to_string())).collect();
        prop_assert_eq!(shown, text);
    }

    #[test]
    fn parsing_any_template_fails_only_with_a_message(template in hostile()) {
        if let Ok(read) = Template::parse(&template) {
            let once = read.render(&Map::new());
            prop_assert!(!once.contains("{{a}}"), "{}", once);
        }
    }
}

#[test]
fn placeholders_without_data_render_nothing() {
    let data =
        json!({"text": "a<b", "number": 1.5, "yes": true, "none": null, "list": ["a", 2], "a.b-c_1": "x"});
    let template = "{{text}}|{{ number }}|{{yes}}|{{none}}|{{missing}}|{{list}}|{{a.b-c_1}}";
    let shown = Template::parse(template).unwrap().render(data.as_object().unwrap());
    assert_eq!(shown, "a&lt;b|1.5|true|||a, 2|x");
}

#[test]
fn parts_of_urls_stay_in_their_place() {
    for (template, value, shown) in [
        ("<a href=\"{{a}}\">", "https://a.example/?b=c&d", "<a href=\"https://a.example/?b=c&amp;d\">"),
        ("<a href={{a}}>", "a b", "<a href=\"a%20b\">"),
        ("<a href={{a}}>", " javascript:alert(1)", "<a href=\"about:invalid\">"),
        ("<a href={{a}}>", "", "<a href=\"\">"),
        ("<a href='/s?q={{a}}'>", "x&y=z#'", "<a href='/s?q=x%26y%3Dz%23%27'>"),
        ("<a href='mailto:{{a}}'>", "a@b.co", "<a href='mailto:a@b.co'>"),
        ("<img srcset='{{a}}'>", "a.jpg 1x, b.jpg 2x", "<img srcset='a.jpg 1x, b.jpg 2x'>"),
        ("<img srcset='{{a}}'>", "a.jpg, javascript:x", "<img srcset='about:invalid'>"),
        ("<p style='color: {{a}}'>", "#fff", "<p style='color: #fff'>"),
        ("<p style='color: {{a}}'>", "red; background: url(x)", "<p style='color: '>"),
    ] {
        let html = Template::parse(&format!("{template}x"))
            .unwrap()
            .render(json!({"a": value}).as_object().unwrap());
        assert_eq!(html, format!("{shown}x"), "{template} {value}");
    }
}

#[test]
fn rejects_templates_that_would_execute_input() {
    for template in [
        "<script>{{a}}</script>",
        "<style>{{a}}</style>",
        "<!-- {{a}} -->",
        "<xmp>{{a}}</xmp>",
        "<noscript>{{a}}</noscript>",
        "<iframe>{{a}}</iframe>",
        "<svg><script>{{a}}</script></svg>",
        "<svg><style>{{a}}</style></svg>",
        "<{{a}}>x",
        "<p {{a}}=x>y",
        "<p {{a}}>y",
        "</{{a}}>",
        "<p onclick=\"f('{{a}}')\">",
        "<p OnClick={{a}}>",
        "<p @click='{{a}}'>",
        "<p x-on:click='{{a}}'>",
        "<p v-html='{{a}}'>",
        "<iframe srcdoc='{{a}}'></iframe>",
        "<script src='{{a}}'></script>",
        "<link href='{{a}}'>",
        "<meta content='{{a}}'>",
        "<base href='{{a}}'>",
        "<object data='{{a}}'></object>",
        "<svg><animate to='{{a}}'/></svg>",
        "<a href='javascript:f({{a}})'>",
        "<a href='java&#115;cript:f({{a}})'>",
        "<a href='{{a}}&colon;{{b}}'>",
        "<img srcset='{{a}}&#58;b'>",
        "<p title='x' title='{{a}}'>",
        "<p title=a\"{{a}}>",
    ] {
        assert!(check_template(template).is_some(), "{template}");
    }
}

#[test]
fn rejects_templates_that_would_swallow_the_next_entry() {
    for template in [
        "<script>",
        "<style>",
        "<!-- ",
        "<p title=\"",
        "<p title=x ",
        "<p",
        "<textarea>{{a}}",
        "<title>",
        "<plaintext>",
        "<noscript>",
        "<svg><![CDATA[",
        "</p",
        "<xmp>",
    ] {
        assert!(check_template(template).is_some(), "{template}");
    }
    for template in ["", "x", "<p>{{a}}", "</p>", "<ul><li>{{a}}", "a < b", "<script>f()</script>{{a}}", "}}"]
    {
        assert_eq!(check_template(template), None, "{template}");
    }
}

#[test]
fn reports_invalid_placeholders() {
    for template in [
        "{{",
        "{{}}",
        "{{ }}",
        "{{a b}}",
        "{{#if x}}",
        "{{{a}}}",
        "{{é}}",
        &format!("{{{{{}}}}}", "a".repeat(65)),
    ] {
        let error = check_template(template).unwrap();
        assert_eq!((error.field.as_str(), error.code), ("entryTemplate", "template"), "{template}");
    }
}

#[test]
fn data_is_a_flat_object_of_at_most_16_kib() {
    let data = |value: Value| json!({"a": 1, "b": value}).as_object().unwrap().clone();
    for right in [json!("x"), json!(1.5), json!(true), json!(null), json!([]), json!(["a", 1, null])] {
        assert_eq!(check_data(&data(right)), []);
    }
    for wrong in [json!({}), json!({"c": 1}), json!([{}]), json!([[]])] {
        assert_eq!(check_data(&data(wrong))[0].field, "data.b");
    }
    let around = data(json!("")).len() + r#"{"a":1,"b":""}"#.len() - 2;
    assert!(!is_too_large(&data(json!("x".repeat(DATA_BYTES_MAX - around)))));
    assert!(is_too_large(&data(json!("x".repeat(DATA_BYTES_MAX - around + 1)))));
}

#[test]
fn rendered_entries_stay_within_the_byte_limit() {
    let template = Template::parse(&"{{a}}".repeat(1_000)).unwrap();
    let entries = vec![json!({"a": "<".repeat(1_000)}); 500];
    let RenderedEntries { html, count } = template.render_newest(&entries);
    assert_eq!(html.len(), 1_000 * 1_000 * "&lt;".len(), "one of four million bytes fits");
    assert_eq!(count, 1);
    let too_large = template.render_newest(&vec![json!({"a": "<".repeat(16_000)}); 500]);
    assert_eq!((&*too_large.html, too_large.count), ("", 0));
    // A value that renders to nothing counts all the same.
    let template = Template::parse(&format!("x<p style='{}'></p>", "{{a}}".repeat(1_000))).unwrap();
    let RenderedEntries { html, count } = template.render_newest(&vec![json!({"a": ";".repeat(4_000)}); 500]);
    assert_eq!((html.matches('x').count(), count), (1, 1));
}

#[test]
fn a_template_of_many_placeholders_or_attributes_is_parsed_quickly() {
    let many = [
        "{{a}}".repeat(13_000),
        "<i a={{a}}>".repeat(5_900),
        format!("<p {}>", "a ".repeat(32_000)),
        format!("<p {} title={{{{a}}}}>", (0..9_000).map(|at| format!("a{at} ")).collect::<String>()),
    ];
    let began = std::time::Instant::now();
    for template in many {
        assert_eq!(check_template(&template), None);
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn names_come_once_in_the_order_of_their_first_use() {
    let names = |template| {
        Template::parse(template).unwrap().names().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        names("<a href=\"/{{page}}?q={{query}}\" style=\"color: {{ colour }}\">{{name}}, {{page}}</a>"),
        ["page", "query", "colour", "name"]
    );
    assert_eq!(names("<p>plain</p>"), [""; 0]);
}
