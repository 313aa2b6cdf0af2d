//! The usual slips at DNS providers, as far as what was found tells them.

use serde_json::Value;

/// Returns what is probably wrong with a record, in a sentence; `None` if nothing is known.
pub(super) fn slip(domain: &str, record: &Value) -> Option<String> {
    let text = |name: &str| record[name].as_str().unwrap_or_default();
    let status = text("status");
    if status == "ok" {
        return None;
    }
    let (kind, name) = (text("type"), text("name"));
    let found: Vec<&str> =
        record["found"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(wanted) = record["value"].as_str() else {
        return (!found.is_empty()).then(|| format!("This {kind} record is in the way: remove it."));
    };
    let plain = |value: &str| value.trim().trim_matches('"').trim_end_matches('.').to_ascii_lowercase();
    let wanted = plain(wanted);
    for value in found.iter().map(|value| plain(value)) {
        let is_extended = value.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('.'));
        if kind == "CNAME" && is_extended {
            return Some(format!(
                "Your provider has added its zone to the value: {value}. End the value with a dot, or enter it as a whole name."
            ));
        }
        if kind == "TXT" && value != wanted && value.contains(&wanted) {
            return Some(
                "The value has more than it should: enter it alone, without quotation marks or spaces."
                    .to_owned(),
            );
        }
        if kind == "TXT" && value == wanted {
            return Some("The value is in quotation marks: enter it without them.".to_owned());
        }
        if kind == "CNAME" && value == plain(domain) {
            return Some("The record leads to itself.".to_owned());
        }
    }
    if found.is_empty() && status == "missing" {
        let (host, zone) = name
            .rsplit_once('.')
            .and_then(|(rest, _)| rest.rsplit_once('.'))
            .map_or((name, ""), |(host, _)| (host, &name[host.len() + 1..]));
        if !zone.is_empty() {
            return Some(format!(
                "Many providers add the zone to the name by themselves: enter {host} if yours is {zone}. The whole name would \
                 become {name}.{zone}."
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(kind: &str, value: Value, found: &[&str]) -> String {
        let status = if found.is_empty() { "missing" } else { "wrong" };
        let record = json!({ "type": kind, "name": "_check.www.x.test", "value": value, "found": found, "status": status });
        slip("www.x.test", &record).unwrap_or_default()
    }

    #[test]
    fn what_was_found_names_the_slip() {
        let target = json!("sites.example");
        assert!(named("CNAME", target.clone(), &["sites.example.x.test."]).contains("added its zone"));
        assert!(named("CNAME", target.clone(), &["www.x.test."]).contains("leads to itself"));
        assert_eq!(named("CNAME", target, &["other.example"]), "");
        assert!(named("A", Value::Null, &["203.0.113.9"]).contains("in the way"));
        assert!(named("TXT", json!("abc"), &["name=abc"]).contains("enter it alone"));
        let missing = named("TXT", json!("abc"), &[]);
        assert!(missing.contains("enter _check.www if yours is x.test"), "{missing}");
        assert!(missing.contains("_check.www.x.test.x.test"), "{missing}");
        let right = json!({ "type": "TXT", "name": "x", "value": "a", "found": ["a"], "status": "ok" });
        assert_eq!(slip("x.test", &right), None);
    }
}
