//! A form as plain HTML, for pages that bring their own style. It posts to the form's address.

use serde_json::Value;

use crate::formatting::visible_text::write_escaped;

/// Returns the HTML. Texts of the form are escaped, and no script is needed.
pub(super) fn plain_form(form: &Value) -> String {
    let fields = form["fields"].as_array().map_or(&[][..], Vec::as_slice);
    let files = if fields.iter().any(|field| field["type"] == "file") {
        " enctype=\"multipart/form-data\""
    } else {
        ""
    };
    let action = escaped(form["submitUrl"].as_str().unwrap_or_default());
    let mut html = format!("<form action=\"{action}\" method=\"post\"{files}>\n");
    for field in fields {
        html.push_str(&control(field));
    }
    let submit = form["submitLabel"].as_str().unwrap_or("Send");
    html.push_str(&format!("  <button>{}</button>\n</form>", escaped(submit)));
    html
}

/// Returns text as the content of an element or of a quoted attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    // Writing to memory does not fail.
    let _written = write_escaped(&mut html, text);
    html
}

fn control(field: &Value) -> String {
    let text = |member: &str| escaped(field[member].as_str().unwrap_or_default());
    let (name, label, kind) = (text("name"), text("label"), text("type"));
    // A field with a condition must not block the form.
    let must = field["required"] == true && field["showIf"].is_null();
    let required = if must { " required" } else { "" };
    let options = || field["options"].as_array().into_iter().flatten().filter_map(Value::as_str).map(escaped);
    match kind.as_str() {
        "hidden" => format!("  <input type=\"hidden\" name=\"{name}\">\n"),
        "textarea" => format!("  <label>{label} <textarea name=\"{name}\"{required}></textarea></label>\n"),
        "checkbox" => {
            format!(
                "  <label><input type=\"checkbox\" name=\"{name}\" value=\"true\"{required}> {label}</label>\n"
            )
        }
        "select" => {
            let options: String =
                options().map(|option| format!("    <option>{option}</option>\n")).collect();
            format!(
                "  <label>{label} <select name=\"{name}\"{required}>\n    <option value=\"\"></option>\n{options}  </select></label>\n"
            )
        }
        "multiselect" => {
            let box_of = |option: String| {
                format!(
                    "    <label><input type=\"checkbox\" name=\"{name}\" value=\"{option}\"> {option}</label>\n"
                )
            };
            let boxes: String = options().map(box_of).collect();
            format!("  <fieldset><legend>{label}</legend>\n{boxes}  </fieldset>\n")
        }
        _ => format!("  <label>{label} <input type=\"{kind}\" name=\"{name}\"{required}></label>\n"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_type_has_its_input() {
        let form = json!({ "submitUrl": "https://a.test/s", "submitLabel": null, "fields": [
            { "type": "email", "name": "mail", "label": "Mail", "required": true },
            { "type": "text", "name": "why", "label": "Why", "required": true, "showIf": { "field": "mail", "equals": "x" } },
            { "type": "select", "name": "plan", "label": "Plan", "options": ["A", "B"] },
            { "type": "multiselect", "name": "tags", "label": "Tags", "options": ["x"] },
            { "type": "file", "name": "cv", "label": "CV" }] });
        let html = plain_form(&form);
        for part in [
            "enctype=\"multipart/form-data\"",
            "<label>Mail <input type=\"email\" name=\"mail\" required></label>",
            "<label>Why <input type=\"text\" name=\"why\"></label>",
            "<option>B</option>",
            "<input type=\"checkbox\" name=\"tags\" value=\"x\"> x",
            "<input type=\"file\" name=\"cv\">",
            "<button>Send</button>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn labels_that_are_markup_stay_text_on_the_page_that_copies_them() {
        let hostile = "</label><script>alert(1)</script>\"'";
        let form = json!({ "submitUrl": "https://a.test/s", "fields": [
            { "type": "select", "name": "x", "label": hostile, "options": [hostile] },
            { "type": "multiselect", "name": "y", "label": hostile, "options": [hostile] }] });
        let html = plain_form(&form);
        assert!(!html.contains("<script>") && !html.contains("\"'"), "{html}");
    }
}
