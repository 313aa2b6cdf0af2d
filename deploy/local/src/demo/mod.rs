//! `demo`: creates a small site through the public API: three pages, a form with submissions, and a week of visits, which
//! the collector receives like any others.
#![expect(clippy::print_stdout, reason = "this command prints its result")]

mod example_queries;
mod visitors;
mod visits;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http::Method;
use serde_json::{Value, json};
use service::{Clock, Rng};
use tokio::task::JoinSet;

use crate::client::Client;
use crate::folder::Folder;
use crate::progress::Progress;
use crate::stack::{self, Secrets};
use crate::stack_file::StackFile;
use visits::{DemoSite, Event};

const STYLE: &str = include_str!("style.css");
const PAGES: [(&str, &str, &str); 3] = [
    ("index", "Kettle & Crumb", include_str!("index.html")),
    ("about", "About us", include_str!("about.html")),
    ("contact", "Contact", include_str!("contact.html")),
];
const MAX_CONCURRENT: usize = 16;
/// Time without progress after which the demo fails. How long all visits take depends on the machine.
const COUNTING_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of events between two progress messages.
const PROGRESS_INTERVAL: usize = 250;

/// Creates the site on the running system.
pub(crate) async fn run(folder: Folder) -> Result<()> {
    let file = StackFile::read(&folder)?.context("nothing runs in this directory; start it with `up`")?;
    let (client, progress) = (Client::trusting(&folder)?, Progress::new());
    let base = &file.base_url;
    progress.step("creating an account");
    let trial = client.call("", Method::POST, &format!("{base}/api/trial"), None).await?;
    let key = trial["key"].as_str().context("the trial has no key")?;
    let call = async |path: &str, body: &Value| {
        client.call(key, Method::POST, &format!("{base}{path}"), Some(body)).await
    };

    progress.step("creating a form and its submissions");
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

    let subdomains = client.call(key, Method::GET, &format!("{base}/api/account/subdomains"), None).await?;
    let analytics_site = json!({"name": "Kettle & Crumb", "subdomainId": subdomains["subdomains"][0]["id"]});
    let counted = call("/api/analytics/sites", &analytics_site).await?;
    let token = counted["site"]["siteToken"].as_str().context("the site has no token")?;
    let site_id = counted["site"]["id"].as_str().context("the site has no id")?;
    let collector = file.services.get("collector").context("there is no collector")?;
    let (now, rng) = (Clock::system().now(), Rng::system());
    let pages = PAGES.map(|(slug, title, _)| (slug, title));
    let site_data = DemoSite { url: &site, token, pages: &pages };
    let events = visits::all(&site_data, visitors::of_a_week(now, &rng), now, &rng);
    let views = events.iter().filter(|event| event.body["name"] == "page_view").count();
    send(&format!("{}/api/collect", collector.url), &Secrets::of(&folder)?.edge_token, events, &progress)
        .await?;

    progress.step("waiting until the visits are counted");
    let query = format!("{base}/api/analytics/query?siteId={site_id}&metric=page_views&period=7d");
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let (mut counted, mut last_progress) = (0, Instant::now());
    while counted < views as u64 {
        ticks.tick().await;
        let total = client.call(key, Method::GET, &query, None).await?["total"].as_u64().unwrap_or_default();
        if total > counted {
            (counted, last_progress) = (total, Instant::now());
        } else if last_progress.elapsed() > COUNTING_TIMEOUT {
            bail!("{counted} of {views} page views are counted, and no more came; see `logs collector`");
        }
    }
    progress.done();
    if counted > views as u64 {
        bail!("{counted} page views are counted, but only {views} were sent");
    }
    println!("The site       {site}   (your visits are counted too)");
    println!("Its form       {hosted}");
    println!("Its key        {key}");
    println!("{views} page views of the last week are counted. Example queries:");
    let authority = folder.part(stack::AUTHORITY);
    let must_trust = base.starts_with("https://") && authority.exists();
    let authority = must_trust.then(|| authority.display().to_string());
    for query in example_queries::about(site_id) {
        println!("\n# {}\n{}", query.title, query.command(base, key, authority.as_deref()));
    }
    Ok(())
}

/// Sends the events as an edge would, concurrently and in approximate order.
async fn send(url: &str, edge_token: &str, events: Vec<Event>, progress: &Progress) -> Result<()> {
    let client = std::sync::Arc::new(Client::new()?);
    let (total, mut pending) = (events.len(), VecDeque::from(events));
    let (mut sending, mut reported) = (JoinSet::new(), 0);
    loop {
        while sending.len() < MAX_CONCURRENT
            && let Some(event) = pending.pop_front()
        {
            let (client, url, token) =
                (std::sync::Arc::clone(&client), url.to_owned(), edge_token.to_owned());
            sending.spawn(async move { send_one(&client, &url, &token, &event).await });
        }
        let sent = total - pending.len();
        if sent >= reported + PROGRESS_INTERVAL {
            progress.step(format!("sending a week of visits: {sent} of {total} events"));
            reported = sent;
        }
        match sending.join_next().await {
            Some(sent) => sent??,
            None => return Ok(()),
        }
    }
}

async fn send_one(client: &Client, url: &str, edge_token: &str, event: &Event) -> Result<()> {
    let at = event.at.to_rfc3339();
    let headers = [
        (contract::edge::TOKEN, edge_token),
        (contract::edge::CLIENT_IP, event.ip.as_str()),
        ("user-agent", event.agent),
        (contract::edge::EVENT_TIME, at.as_str()),
    ];
    let response = client.send(Method::POST, url, &headers, Some(&event.body)).await?;
    anyhow::ensure!(
        response.status == http::StatusCode::NO_CONTENT,
        "the collector returned {}",
        response.status
    );
    Ok(())
}
