//! `demo`: a small real site, made with the calls anybody would make: three pages, a form with submissions,
//! and a week of visits, sent through the collector like all others.
#![expect(clippy::print_stdout, reason = "this command answers a person")]

use anyhow::{Context, Result, bail};
use chrono::{DateTime, TimeDelta, Utc};
use http::Method;
use serde_json::{Value, json};
use service::{Clock, Rng};

use crate::client::Client;
use crate::folder::Folder;
use crate::progress::Progress;
use crate::settings::Secrets;
use crate::stack_file::StackFile;

const STYLE: &str = include_str!("demo/style.css");
const PAGES: [(&str, &str, &str); 3] = [
    ("index", "Kettle & Crumb", include_str!("demo/index.html")),
    ("about", "About us", include_str!("demo/about.html")),
    ("contact", "Contact", include_str!("demo/contact.html")),
];
const REFERRERS: [&str; 5] = [
    "",
    "https://www.google.com/",
    "https://duckduckgo.com/",
    "https://news.ycombinator.com/",
    "https://t.co/x",
];
const BROWSERS: [&str; 3] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
    "Mozilla/5.0 (Android 15; Mobile; rv:143.0) Gecko/143.0 Firefox/143.0",
];
/// Visitors of a day, Monday first: fewer at the weekend.
const VISITORS: [u32; 7] = [64, 71, 66, 58, 73, 41, 35];
const AT_ONCE: usize = 16;

/// Makes it, on the system that runs in the folder.
pub(crate) async fn run(folder: Folder) -> Result<()> {
    let file = StackFile::read(&folder)?.context("nothing runs here; start it with `up`")?;
    let (client, progress) = (Client::new()?, Progress::new());
    let base = &file.base_url;
    progress.step("making an account");
    let trial = client.call("", Method::POST, &format!("{base}/api/trial"), None).await?;
    let key = trial["key"].as_str().context("the trial has no key")?;
    let call = async |path: &str, body: &Value| {
        client.call(key, Method::POST, &format!("{base}{path}"), Some(body)).await
    };

    progress.step("making a form and its submissions");
    let form = json!({
        "name": "Write to us",
        "successMessage": "Thank you! We answer within a day.",
        "fields": [
            {"name": "name", "label": "Your name", "type": "text", "required": true},
            {"name": "email", "label": "E-mail", "type": "email", "required": true},
            {"name": "topic", "label": "About", "type": "select", "options": ["An order", "A job", "Something else"]},
            {"name": "message", "label": "Message", "type": "textarea", "required": true},
        ],
    });
    let form = call("/api/forms", &form).await?;
    let submit_url = form["submitUrl"].as_str().context("the form has no submitUrl")?;
    let hosted = form["hostedFormUrl"].as_str().context("the form has no hostedFormUrl")?;
    for (name, topic) in [("Ada", "An order"), ("Grace", "A job"), ("Edsger", "Something else")] {
        let email = format!("{}@example.com", name.to_lowercase());
        let answers = json!({"name": name, "email": email, "topic": topic, "message": "Is there rye bread on Mondays?"});
        client.call("", Method::POST, submit_url, Some(&answers)).await?;
    }

    progress.step("publishing three pages");
    let mut site = String::new();
    for (slug, title, html) in PAGES {
        let html = html.replace("{{form}}", hosted);
        let page = json!({"slug": slug, "title": title, "html": html, "css": STYLE});
        let page = call("/api/pages", &page).await?;
        if slug == "index" {
            page["subdomainUrl"].as_str().context("the page has no subdomainUrl")?.clone_into(&mut site);
        }
    }

    let counted = call("/api/analytics/sites", &json!({"name": "Kettle & Crumb"})).await?;
    let token = counted["site"]["siteToken"].as_str().context("the site has no token")?;
    let site_id = counted["site"]["id"].as_str().context("the site has no id")?;
    let collector = file.services.get("collector").context("there is no collector")?;
    let visits = visits(&site, token, Clock::system().now(), &Rng::system());
    let total = visits.len();
    progress.step(format!("sending a week of visits: {total} page views"));
    send(&format!("{}/api/collect", collector.url), Secrets::of(&folder)?.edge_token, visits).await?;

    progress.step("waiting until they are counted");
    let question = format!("{base}/api/analytics/query?siteId={site_id}&metric=page_views&period=7d");
    let mut turns = tokio::time::interval(std::time::Duration::from_millis(100));
    let mut counted = 0;
    for _ in 0..300 {
        turns.tick().await;
        let answer = client.call(key, Method::GET, &question, None).await?;
        counted = answer["total"].as_u64().unwrap_or_default();
        if counted == total as u64 {
            break;
        }
    }
    progress.done();
    if counted != total as u64 {
        bail!("{counted} of {total} page views were counted after 30 seconds; see `logs collector`");
    }
    println!("The site       {site}");
    println!("Its form       {hosted}");
    println!("Its key        {key}");
    println!("{total} page views of the last week are counted. Ask about them:\n");
    println!("  curl -s '{question}' -H 'Authorization: Bearer {key}'\n");
    Ok(())
}

/// A page view that happened.
struct Visit {
    at: DateTime<Utc>,
    ip: String,
    browser: &'static str,
    body: Value,
}

/// A week of page views up to `now`: visitors come by day, each looks at one to four pages.
fn visits(site: &str, token: &str, now: DateTime<Utc>, rng: &Rng) -> Vec<Visit> {
    let pick = |count: usize| (rng.fraction() * count as f64) as usize;
    let mut visits = Vec::new();
    for (days_ago, visitors) in (0..7).zip(VISITORS) {
        let day = now - TimeDelta::days(days_ago);
        let midnight = day.date_naive().and_time(chrono::NaiveTime::MIN).and_utc();
        let open = (day - midnight).num_seconds().max(1);
        let span = if days_ago == 0 { open } else { 86_400 };
        for _ in 0..visitors {
            let [a, b, c] = rng.bytes();
            let (ip, browser) = (format!("11.{a}.{b}.{c}"), BROWSERS[pick(BROWSERS.len())]);
            let came = midnight + TimeDelta::seconds((rng.fraction() * span as f64) as i64);
            let referrer = REFERRERS[pick(REFERRERS.len())];
            for step in 0..=pick(4) {
                let at = (came + TimeDelta::seconds(step as i64 * 40)).min(now);
                let (slug, title, _) = PAGES[if step == 0 { 0 } else { pick(PAGES.len()) }];
                let url = if slug == "index" { site.to_owned() } else { format!("{site}{slug}") };
                let referrer = if step == 0 { referrer } else { site };
                let width = [390, 1440, 1920][pick(3)];
                let body = json!({
                    "siteToken": token, "name": "page_view", "url": url, "title": title, "referrer": referrer,
                    "screenWidth": width,
                });
                visits.push(Visit { at, ip: ip.clone(), browser, body });
            }
        }
    }
    visits
}

async fn send(url: &str, edge_token: String, visits: Vec<Visit>) -> Result<()> {
    let client = std::sync::Arc::new(Client::new()?);
    let mut sending = tokio::task::JoinSet::new();
    for visit in visits {
        if sending.len() == AT_ONCE
            && let Some(sent) = sending.join_next().await
        {
            sent??;
        }
        let (client, url, token) = (std::sync::Arc::clone(&client), url.to_owned(), edge_token.clone());
        sending.spawn(async move {
            let at = visit.at.to_rfc3339();
            let headers = [
                (contract::edge::TOKEN, token.as_str()),
                (contract::edge::CLIENT_IP, visit.ip.as_str()),
                ("user-agent", visit.browser),
                ("x-event-time", at.as_str()),
            ];
            let answer = client.ask(Method::POST, &url, &headers, Some(&visit.body)).await?;
            anyhow::ensure!(
                answer.status == http::StatusCode::NO_CONTENT,
                "the collector answered {}",
                answer.status
            );
            Ok(())
        });
    }
    while let Some(sent) = sending.join_next().await {
        sent??;
    }
    Ok(())
}
