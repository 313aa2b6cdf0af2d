//! Renderings of fields, and the look of a form's pages.

use http::StatusCode;
use serde_json::json;
use uuid::Uuid;

use crate::client::TestResponse;
use crate::fixtures::submit_path;
use crate::harness::Edge;

fn policy(page: &TestResponse) -> String {
    page.header("content-security-policy").to_owned()
}

#[tokio::test]
async fn a_field_has_help_radios_a_scale_and_a_pattern_hint() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let fields = json!([
        {"name": "zip", "label": "Postcode", "type": "text", "required": true, "pattern": "[0-9]{5}",
         "patternHint": "five digits <b>", "help": "As on the <i>envelope</i>"},
        {"name": "plan", "label": "Plan", "type": "select", "options": ["A", "B"], "display": "radio"},
        {"name": "nps", "label": "How likely?", "type": "number", "min": 0, "max": 10, "display": "scale", "required": true},
    ]);
    let form = account.form(fields).await;
    let page = edge.visitor.get("localhost", &format!("/f/{form}?nps=7")).await;
    let html = page.text();
    for part in [
        "aria-describedby=\"field-zip-help\"",
        "id=\"field-zip-help\" dir=\"auto\">As on the &lt;i&gt;envelope&lt;",
        "<input type=\"radio\" id=\"field-plan-2\" name=\"plan\" value=\"B\">",
        "<input type=\"radio\" id=\"field-plan-0\" name=\"plan\" value=\"\" checked>",
        "<input type=\"radio\" id=\"field-nps-1\" name=\"nps\" value=\"0\" required>",
        "<input type=\"radio\" id=\"field-nps-8\" name=\"nps\" value=\"7\" checked required>",
        "<input type=\"radio\" id=\"field-nps-11\" name=\"nps\" value=\"10\" required>",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("id=\"field-nps-0\""), "a required scale must be answered");
    let wrong = [("zip", "1234"), ("nps", "7"), ("plan", "")];
    let refused = edge.visitor.post_form(&submit_path(form), &wrong).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.text().contains("Expected: five digits &lt;b&gt;"), "{}", refused.text());
    let refused = edge.visitor.post(&submit_path(form), &json!({"zip": "1", "nps": 7})).await;
    let problem = refused.problem(400, "validation_failed");
    assert!(problem.to_string().contains("five digits <b>"), "{problem}");
    let right = [("zip", "12345"), ("nps", "7"), ("plan", "")];
    assert_eq!(edge.visitor.post_form(&submit_path(form), &right).await.status, StatusCode::SEE_OTHER);
    assert_eq!(account.submissions(form).await, [json!({"zip": "12345", "nps": 7})]);
}

#[tokio::test]
async fn the_owners_look_is_on_every_page_and_the_embedding_page_overrides_it() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let logo = Uuid::from_u128(7);
    let form = account
        .form_with(crate::fixtures::one_text_field(), |form| {
            form.appearance.accent = Some("#0f766e".to_owned());
            form.appearance.radius = Some(4);
            form.appearance.logo_asset_id = Some(logo);
        })
        .await;
    for path in [format!("/f/{form}"), format!("/f/{form}/thanks")] {
        let page = edge.visitor.get("localhost", &path).await;
        assert!(
            page.text().contains("--accent:#0f766e") && page.text().contains("--radius:4px"),
            "{}",
            page.text()
        );
        let url = format!("/{logo}/logo");
        // The template escapes slashes too.
        let html = page.text().replace("&#x2f;", "/");
        assert!(html.contains(&format!("{url}\" alt=\"\" referrerpolicy=\"no-referrer\"")), "{html}");
        let images = policy(&page);
        let images = images.split_once("img-src ").unwrap().1.split(';').next().unwrap();
        assert!(
            images.starts_with("'self' data: http") && images.ends_with(&url),
            "only this image: {images}"
        );
    }
    let query = "embed=1&form.popup=1&form.theme=dark&form.background=solid&form.accent=abc&form.radius=12";
    let page = edge.visitor.get("localhost", &format!("/f/{form}?{query}")).await;
    assert!(
        page.text().contains("--accent:#aabbcc") && page.text().contains("--radius:12px"),
        "{}",
        page.text()
    );
    assert!(
        page.text().contains("data-theme=\"dark\"") && page.text().contains("class=\"embedded popup solid\"")
    );
    assert!(page.text().contains("name=\"form.look\" value=\"embed=1&amp;form.popup=1"), "{}", page.text());
    let kept = query.replace("=abc", "=aabbcc");
    let pairs = [("a", "x"), ("form.look", query), ("form.embed", "1")];
    let sent = edge.visitor.post_form(&submit_path(form), &pairs).await;
    assert_eq!(sent.header("location"), format!("/f/{form}/thanks?{kept}"));
    let plain = edge.visitor.get("localhost", &format!("/f/{form}?embed=1&form.theme=light")).await;
    assert!(plain.text().contains("--accent:#0f766e"), "overrides are not cached: {}", plain.text());
}

#[tokio::test]
async fn css_injection_through_the_address_of_an_embedded_form_writes_no_rule() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(crate::fixtures::one_text_field()).await;
    let clean = edge.visitor.get("localhost", &format!("/f/{form}?embed=1")).await;
    for attack in [
        "form.accent=red%3B%7Dbody%7Bbackground%3Aurl(https%3A%2F%2Fevil.test)%7D",
        "form.accent=%3C%2Fstyle%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "form.radius=4px%3B%7D*%7Bdisplay%3Anone%7D",
        "form.theme=dark%22%20onload%3D%22alert(1)",
        "form.background=url(https%3A%2F%2Fevil.test)",
    ] {
        let page = edge.visitor.get("localhost", &format!("/f/{form}?embed=1&{attack}")).await;
        assert!(
            !page.text().contains("evil") && !page.text().contains("alert(1)"),
            "{attack}: {}",
            page.text()
        );
        assert!(!page.text().contains("--accent:#") && !page.text().contains("*{display"), "{attack}");
        assert_eq!(policy(&page), policy(&clean), "{attack}");
    }
}
