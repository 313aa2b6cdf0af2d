//! How far a domain has come: added, its records stand, its owner is proved, and it has a certificate.

use serde_json::{Value, json};

use super::record_slips::slip;
use crate::screens::sites::site::tag;

/// Adds to a domain its steps, and to its records what is wrong with them.
pub(in crate::screens::sites) fn with_steps(mut domain: Value) -> Value {
    let is_checked = domain["lastCheckedAt"].is_string();
    let stands = |proves: bool| {
        let records = domain["records"].as_array().into_iter().flatten();
        let mut of_kind = records.filter(|record| (record["type"] == "TXT") == proves).peekable();
        of_kind.peek().is_some() && of_kind.all(|record| record["status"] == "ok")
    };
    let is_verified = domain["dnsStatus"] == "verified";
    let (routes, proves) = (is_verified || stands(false), is_verified || stands(true));
    let done = [true, routes, proves, domain["sslStatus"] == "active"];
    let current = done.iter().position(|done| !done).unwrap_or(done.len());
    let failed = if current == 3 { domain["sslStatus"] == "failed" } else { is_checked };
    let step = |(at, label): (usize, &str)| {
        let (tone, icon, word) = match at {
            _ if done[at] => ("good", "done", "done"),
            _ if at == current && failed => ("bad", "failed", "not yet"),
            _ if at == current => ("warn", "retry", "waiting"),
            _ => ("", "more", "later"),
        };
        json!({ "tone": tone, "icon": icon, "label": label, "word": word })
    };
    let steps = ["Added", "DNS", "Verified", "Certificate"].into_iter().enumerate().map(step);
    let steps: Vec<Value> = steps.collect();
    let state = match (domain["status"].as_str().unwrap_or_default(), current == done.len()) {
        (_, true) => ("good", "done", "Served"),
        ("failed", _) => ("bad", "failed", "Needs you"),
        _ => ("warn", "retry", "Not yet served"),
    };
    let name = domain["domain"].as_str().unwrap_or_default().to_owned();
    for record in domain["records"].as_array_mut().into_iter().flatten() {
        let state = match record["status"].as_str().unwrap_or_default() {
            "ok" => ("good", "done", "Right"),
            "missing" if is_checked => ("bad", "failed", "Missing"),
            "missing" => ("", "retry", "Not looked up yet"),
            "extra" => ("bad", "close", "Remove it"),
            _ => ("bad", "failed", "Wrong"),
        };
        record["state"] = tag(state);
        record["slip"] = json!(slip(&name, record));
    }
    domain["steps"] = json!(steps);
    domain["state"] = tag(state);
    domain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(domain: Value) -> Vec<String> {
        let domain = with_steps(domain);
        let steps = domain["steps"].as_array().unwrap().iter();
        steps.map(|step| step["word"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_first_step_that_is_not_done_is_the_current_one() {
        let record = |kind: &str, status: &str| json!({ "type": kind, "status": status, "found": [] });
        let domain = |cname: &str, txt: &str, checked: bool| {
            let at = checked.then_some("2026-11-22T13:02:11Z");
            json!({ "domain": "www.x.test", "status": "pending", "dnsStatus": "pending", "sslStatus": "pending",
                "lastCheckedAt": at, "records": [record("CNAME", cname), record("TXT", txt)] })
        };
        assert_eq!(words(domain("missing", "missing", false)), ["done", "waiting", "later", "later"]);
        assert_eq!(words(domain("wrong", "missing", true)), ["done", "not yet", "later", "later"]);
        assert_eq!(words(domain("ok", "missing", true)), ["done", "done", "not yet", "later"]);
        let mut verified = domain("ok", "ok", true);
        verified["dnsStatus"] = json!("verified");
        verified["sslStatus"] = json!("issuing");
        assert_eq!(words(verified.clone()), ["done", "done", "done", "waiting"]);
        verified["sslStatus"] = json!("active");
        assert_eq!(with_steps(verified)["state"]["text"], "Served");
    }
}
