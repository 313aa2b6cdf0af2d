//! What an owner copies to share a form: its address, and code for other pages.

use serde::Serialize;
use serde_json::Value;

use super::plain_form::{escaped, plain_form};

/// A text to copy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Snippet {
    id: &'static str,
    title: &'static str,
    note: &'static str,
    code: String,
}

/// Returns the texts for a form.
pub(super) fn snippets(form: &Value) -> Vec<Snippet> {
    let text = |member: &str| form[member].as_str().unwrap_or_default();
    let (hosted, embed) = (text("hostedFormUrl"), text("embedCode"));
    let popup = embed.replacen("></script>", " data-mode=\"popup\"></script>", 1);
    let frame = format!(
        "<iframe src=\"{}?embed=1\" title=\"{}\" width=\"100%\" height=\"640\" style=\"border:0\"></iframe>",
        escaped(hosted),
        escaped(text("name"))
    );
    let snippet = |id, title, note, code| Snippet { id, title, note, code };
    vec![
        snippet(
            "address",
            "Address",
            "The form’s own page. Answers can stand in its address: ?name=Ada",
            hosted.to_owned(),
        ),
        snippet(
            "script",
            "In a page",
            "As high as the form, and in the theme of the page around it.",
            embed.to_owned(),
        ),
        snippet("popup", "Behind a button", "The same script opens the form over the page.", popup),
        snippet("frame", "Frame", "For pages that allow no script.", frame),
        snippet(
            "plain",
            "Plain HTML",
            "Your own form, in your own style. Its inputs have the names of the answers.",
            plain_form(form),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_way_leads_to_this_form() {
        let form = json!({ "name": "A \"B\" <c>", "hostedFormUrl": "https://a.test/f/1", "submitUrl": "https://a.test/s",
            "embedCode": "<script src=\"https://a.test/embed.js\" data-form=\"1\"></script>", "fields": [] });
        let code: Vec<_> = snippets(&form).into_iter().map(|one| one.code).collect();
        assert_eq!(code[0], "https://a.test/f/1");
        assert_eq!(
            code[2],
            "<script src=\"https://a.test/embed.js\" data-form=\"1\" data-mode=\"popup\"></script>"
        );
        assert!(code[3].contains("title=\"A &quot;B&quot; &lt;c&gt;\""), "{}", code[3]);
        assert!(code[4].starts_with("<form action=\"https://a.test/s\" method=\"post\">"), "{}", code[4]);
    }
}
