//! Tests of templates.

use serde_json::json;

use super::*;

fn render(text: &str, escape: Escape) -> Result<Value, String> {
    let trigger = json!({"n": 5, "name": "A & <b>\"x\"", "list": [1, "a"], "evil": "{{ env.TOKEN }} 1 + 1 `${eval(1)}`", "none": null,
        "url": "https://a.example/x?y=z"});
    let env = json!({"TOKEN": "secret"});
    let template = Template::parse(text).map_err(|error| error.0)?;
    let variables = Variables::new().with("trigger", &trigger).with("env", &env);
    template.render(&variables, escape, &mut OutputBudget::default()).map_err(|error| error.0)
}

#[test]
fn one_whole_expression_keeps_its_type() {
    for (text, expected) in [
        ("{{ trigger.n }}", json!(5)),
        ("{{trigger.list}}", json!([1, "a"])),
        ("{{ trigger.none }}", json!(null)),
        ("{{ #{a: #{b: 1}} }}", json!({"a": {"b": 1}})),
        ("{{#{a: #{b: 1}}}}", json!({"a": {"b": 1}})),
        (" {{ trigger.n }}", json!(" 5")),
        ("{{ trigger.n }}{{ trigger.n }}", json!("55")),
        ("", json!("")),
        ("n={{ trigger.n }}, l={{ trigger.list }}, {{ trigger.none }}.", json!("n=5, l=[1,\"a\"], .")),
        ("{{ '}}' }}", json!("}}")),
        ("{{ \"a\\\"}}\" }}", json!("a\"}}")),
        ("{{ '{{' }}", json!("{{")),
        ("a } b {", json!("a } b {")),
        ("{{ '{{' }}x", json!("{{x")),
        ("ü{{ 'ü' }}ü", json!("üüü")),
    ] {
        assert_eq!(render(text, Escape::None), Ok(expected), "{text}");
    }
}

#[test]
fn values_are_escaped_for_their_target_and_the_authors_text_is_not() {
    let text = "<p>{{ trigger.name }}</p>";
    assert_eq!(render(text, Escape::Html), Ok(json!("<p>A &amp; &lt;b&gt;&quot;x&quot;</p>")));
    assert_eq!(render("{{ trigger.name }}", Escape::Html), Ok(json!("A &amp; &lt;b&gt;&quot;x&quot;")));
    assert_eq!(
        render("{\"a\": \"{{ trigger.name }}\"}", Escape::Json),
        Ok(json!("{\"a\": \"A & <b>\\\"x\\\"\"}"))
    );
    let url = "https://b.example/{{ trigger.name }}?q={{ trigger.url }}";
    let expected = "https://b.example/A%20%26%20%3Cb%3E%22x%22?q=https%3A%2F%2Fa.example%2Fx%3Fy%3Dz";
    assert_eq!(render(url, Escape::Url), Ok(json!(expected)));
    assert_eq!(
        render("{{ trigger.url }}&r={{ trigger.url }}", Escape::Url),
        Ok(json!("https://a.example/x?y=z&r=https%3A%2F%2Fa.example%2Fx%3Fy%3Dz"))
    );
}

#[test]
fn output_is_never_scanned_again() {
    let evil = "{{ env.TOKEN }} 1 + 1 `${eval(1)}`";
    assert_eq!(render("{{ trigger.evil }}", Escape::None), Ok(json!(evil)));
    assert_eq!(render("<{{ trigger.evil }}>", Escape::None), Ok(json!(format!("<{evil}>"))));
    assert_eq!(render("{{ '{{ env.TO' + 'KEN }}' }}", Escape::None), Ok(json!("{{ env.TOKEN }}")));
    assert_eq!(render("{{ '{' }}{ env.TOKEN }}", Escape::None), Ok(json!("{{ env.TOKEN }}")));
    let tree = JsonTemplate::parse(&json!({"{{ env.TOKEN }}": "{{ trigger.evil }}"})).unwrap();
    let trigger = json!({"evil": {"{{ env.TOKEN }}": [evil]}});
    let rendered =
        tree.render(&Variables::new().with("trigger", &trigger), Escape::None, &mut OutputBudget::default());
    assert_eq!(rendered, Ok(json!({"{{ env.TOKEN }}": {"{{ env.TOKEN }}": [evil]}})));
}

#[test]
fn an_invalid_template_says_where() {
    assert_eq!(
        render("äb {{ trigger.n", Escape::None),
        Err("`{{` at character 4 is not closed by `}}`".to_owned())
    );
    assert_eq!(
        render("{{ 'a }} b", Escape::None),
        Err("`{{` at character 1 is not closed by `}}`".to_owned())
    );
    let error = render("a {{ lowr(1) }}", Escape::None).unwrap_err();
    assert_eq!(error, "in `{{ lowr(1) }}` at character 3: there is no function lowr; did you mean lower?");
    assert!(render("{{ }}", Escape::None).is_err());
    assert!(render("{% if x %}{{ if x }}", Escape::None).is_err());
    let tree = JsonTemplate::parse(&json!({"a": [1, {"b": "{{ 1 +"}]})).unwrap_err();
    assert_eq!(tree.0, "a[1].b");
}

#[test]
fn output_is_limited_by_field_and_by_step() {
    let trigger = json!({"big": "x".repeat(40_000), "list": vec!["x".repeat(1_000); 100]});
    let variables = Variables::new().with("trigger", &trigger);
    let mut budget = OutputBudget::default();
    let field = Template::parse("{{ trigger.big }}{{ trigger.big }}").unwrap();
    assert!(field.render(&variables, Escape::None, &mut budget).unwrap_err().0.contains("may write 65536"));
    let list = Template::parse("{{ trigger.list }}").unwrap();
    let mut budget = OutputBudget::default();
    assert!(list.render(&variables, Escape::None, &mut budget).is_ok());
    assert!(list.render(&variables, Escape::None, &mut budget).is_ok());
    assert!(
        list.render(&variables, Escape::None, &mut budget).unwrap_err().0.contains("262144 bytes together")
    );
}

#[test]
fn references_are_listed() {
    let tree = JsonTemplate::parse(&json!(["{{ a.b }} {{ c }}", {"x": "{{ env.T }}"}, 1, "text"])).unwrap();
    let names: Vec<_> = tree.references().iter().map(|path| path.join(".")).collect();
    assert_eq!(names, ["a.b", "c", "env.T"]);
}
