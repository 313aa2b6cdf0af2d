//! Automations that call other servers: retry, fan-out over a list, import from a JSON API.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Answer, Response, until};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::run_log::Automation;
use super::scene::Scene;
use super::story::{Middle, Story, play_both, start_system};

#[tokio::test(flavor = "multi_thread")]
async fn automations_with_peers_repeat_requests_under_one_key_also_when_the_job_runner_is_killed()
-> Result<()> {
    let (mut system, owner) = start_system().await?;
    play_both::<Charge>(&mut system, &owner).await?;
    play_both::<Newsletter>(&mut system, &owner).await?;
    play_both::<Import>(&mut system, &owner).await
}

/// Charges a card through a server that fails twice.
struct Charge {
    automation: Automation,
}

impl Story for Charge {
    const NAME: &'static str = "retry on 500";
    const MIDDLE: Middle = Middle::Request("/charges", 2);
    type Answer = Response;

    async fn create(scene: &Scene) -> Result<Self> {
        scene.peer.answer("/charges", |_, answered| match answered {
            0 | 1 => Answer::new(500, json!({"error": "try again"})),
            _ => Answer::new(201, json!({"id": "ch_1"})),
        });
        let automation = json!({
            "name": "Charge",
            "slug": scene.slug("charge"),
            "trigger": {"type": "http"},
            "env": {"PAYMENT_KEY": "sk_test_4eC39HqLyjW"},
            "steps": [
                {"id": "charge", "type": "fetch", "method": "POST", "url": format!("{}/charges", scene.peer.url),
                 "headers": {"Authorization": "Bearer {{ env.PAYMENT_KEY }}"},
                 "body": {"amount": "{{ trigger.payload.amount }}", "order": "{{ trigger.payload.order }}"},
                 "retry": {"max": 3, "backoff": "exponential"}, "timeoutMs": 30_000},
                {"id": "result", "type": "set", "values": {"charge": "{{ steps.charge.body.id }}"}},
            ],
        });
        Ok(Self { automation: Automation::create(&scene.owner, &automation).await? })
    }

    fn automation(&self) -> &Automation {
        &self.automation
    }

    async fn start(&self, scene: &Scene) -> Result<Response> {
        let order = json!({"amount": 1999, "order": "o-17"});
        scene.owner.call(Method::POST, &self.automation.trigger_url, &[], &order).await
    }

    async fn check(&self, scene: &Scene, answer: Response) -> Result<Value> {
        let run = self.automation.only_run(&scene.owner).await?;
        ensure!(
            answer.status == StatusCode::ACCEPTED && answer.json()["runId"] == run.id(),
            "{}",
            answer.text()
        );
        let attempts = scene.peer.requests("/charges");
        ensure!(attempts.len() == if scene.is_killed { 4 } else { 3 }, "{attempts:?}");
        for attempt in &attempts {
            let (first, this) = (attempts[0].header("idempotency-key"), attempt.header("idempotency-key"));
            ensure!(this == format!("{}-charge", run.id()), "the attempts have the keys {first} and {this}");
            ensure!(attempt.json() == json!({"amount": 1999, "order": "o-17"}), "{attempt:?}");
        }
        for (at, pause) in [(1, 1), (2, 2)] {
            let waited = attempts[at].received_at - attempts[at - 1].received_at;
            ensure!(waited >= Duration::from_secs(pause), "attempt {at} came after {waited:?}");
        }
        let charge = run.step("charge")?;
        ensure!(charge["input"]["headers"]["Authorization"] == "Bearer ***", "{charge}");
        ensure!(scene.is_killed || charge["attempts"] == 3, "{charge}");
        ensure!(run.step("result")?["output"] == json!({"charge": "ch_1"}), "{run:?}");
        run.final_state()
    }
}

/// Sends a message to each of many recipients, three at a time.
struct Newsletter {
    automation: Automation,
}

const RECIPIENTS: usize = 12;

impl Story for Newsletter {
    const NAME: &'static str = "fan-out over a list";
    const MIDDLE: Middle = Middle::Request("/messages", 5);
    type Answer = Response;

    async fn create(scene: &Scene) -> Result<Self> {
        // Later recipients are answered sooner. The first ones wait for each other, however slow the machine is.
        scene.peer.answer("/messages", |request, _| {
            let n = request.json()["n"].as_u64().unwrap_or_default();
            let body = json!({"id": format!("message-{n}")});
            Answer::new(200, body)
                .after(Duration::from_millis(150_u64.saturating_sub(10 * n)))
                .once_in_flight(3)
        });
        let automation = json!({
            "name": "Newsletter",
            "slug": scene.slug("newsletter"),
            "trigger": {"type": "http"},
            "steps": [
                {"id": "each", "type": "for_each", "items": "{{ trigger.payload.recipients }}", "as": "recipient",
                 "concurrency": 3, "steps": [
                    {"id": "send", "type": "fetch", "method": "POST", "url": format!("{}/messages", scene.peer.url),
                     "body": {"to": "{{ recipient.email }}", "n": "{{ index }}"}},
                ]},
                {"id": "answer", "type": "respond", "status": 201,
                 "body": {"sent": "{{ steps.each.count }}",
                          "ids": "{{ pluck(pluck(steps.each.items, \"body\"), \"id\") }}"}},
            ],
        });
        Ok(Self { automation: Automation::create(&scene.owner, &automation).await? })
    }

    fn automation(&self) -> &Automation {
        &self.automation
    }

    async fn start(&self, scene: &Scene) -> Result<Response> {
        let recipients: Vec<_> =
            (0..RECIPIENTS).map(|n| json!({"email": format!("reader{n}@example.com")})).collect();
        let body = json!({"recipients": recipients});
        scene.owner.call(Method::POST, &self.automation.trigger_url, &[], &body).await
    }

    async fn check(&self, scene: &Scene, answer: Response) -> Result<Value> {
        let run = self.automation.only_run(&scene.owner).await?;
        let ids: Vec<_> = (0..RECIPIENTS).map(|n| format!("message-{n}")).collect();
        ensure!(answer.status == StatusCode::CREATED, "{} {}", answer.status, answer.text());
        ensure!(answer.json() == json!({"sent": RECIPIENTS, "ids": ids}), "{}", answer.text());
        let mut sent: Vec<_> = scene.requests("/messages")?.iter().map(harness::PeerRequest::json).collect();
        sent.sort_by_key(|body| body["n"].as_u64());
        let expected: Vec<_> =
            (0..RECIPIENTS).map(|n| json!({"to": format!("reader{n}@example.com"), "n": n})).collect();
        ensure!(sent == expected, "{sent:?}");
        let most = scene.peer.most_at_once("/messages");
        ensure!(most == 3, "{most} requests were in flight at the same time");
        ensure!(run.step("each[11].send")?["attempts"] == 1, "{run:?}");
        run.final_state()
    }
}

/// Imports the products of a shop that are in stock into a page.
struct Import {
    page: Value,
    automation: Automation,
}

impl Story for Import {
    const NAME: &'static str = "import from a JSON API";
    const MIDDLE: Middle = Middle::Request("/products", 3);
    type Answer = Response;

    async fn create(scene: &Scene) -> Result<Self> {
        let Scene { owner, peer, .. } = scene;
        peer.answer("/products", |request, _| match request.path.strip_prefix("/products/") {
            Some(id) => Answer::new(200, json!({"id": id, "text": format!("All about {id}")})),
            None => Answer::new(
                200,
                json!({"products": [
                    {"id": "p3", "name": "Lamp ", "cents": 4050, "stock": 2, "internal": "x"},
                    {"id": "p1", "name": "<b>Chair</b>", "cents": 9050, "stock": 1},
                    {"id": "p4", "name": "Sold", "cents": 100, "stock": 0},
                    {"id": "p2", "name": "{{ env.SHOP }}", "cents": 5, "stock": 7},
                ]}),
            ),
        });
        let page = owner.page(&scene.slug("imported"), "<li>{{name}}|{{price}}|{{text}}</li>").await?;
        let automation = json!({
            "name": "Import",
            "slug": scene.slug("import"),
            "trigger": {"type": "http", "method": "PUT"},
            "env": {"SHOP": peer.url},
            "steps": [
                {"id": "list", "type": "fetch", "url": "{{ env.SHOP }}/products?page={{ trigger.query.page }}"},
                {"id": "available", "type": "transform", "input": "{{ steps.list.body.products }}",
                 "filter": "item.stock > 0", "sort": {"by": "item.id"},
                 "map": {"id": "{{ item.id }}", "name": "{{ trim(item.name) }}",
                         "price": "{{ round(item.cents / 100.0, 2) }}", "stock": "{{ item.stock }}"},
                 "pick": ["id", "name", "price"]},
                {"id": "each", "type": "for_each", "items": "{{ steps.available }}", "as": "product", "steps": [
                    {"id": "detail", "type": "fetch", "url": "{{ env.SHOP }}/products/{{ product.id }}"},
                    {"id": "keep", "type": "create_entry", "pageId": page["id"],
                     "data": {"name": "{{ product.name }}", "price": "{{ product.price }}",
                              "text": "{{ steps.detail.body.text }}"}},
                ]},
            ],
        });
        Ok(Self { page, automation: Automation::create(owner, &automation).await? })
    }

    fn automation(&self) -> &Automation {
        &self.automation
    }

    async fn start(&self, scene: &Scene) -> Result<Response> {
        let url = format!("{}?page=1", self.automation.trigger_url);
        scene.owner.call(Method::PUT, &url, &[], &Value::Null).await
    }

    async fn check(&self, scene: &Scene, answer: Response) -> Result<Value> {
        ensure!(answer.status == StatusCode::ACCEPTED, "{} {}", answer.status, answer.text());
        let run = self.automation.only_run(&scene.owner).await?;
        let paths: Vec<_> = scene.requests("/products")?.into_iter().map(|request| request.path).collect();
        ensure!(paths == ["/products?page=1", "/products/p1", "/products/p2", "/products/p3"], "{paths:?}");
        let entries = scene.owner.entries(&self.page).await?;
        let entry = |name: &str, price: f64, id: &str| json!({"name": name, "price": price, "text": format!("All about {id}")});
        let expected = [
            entry("<b>Chair</b>", 90.5, "p1"),
            entry("{{ env.SHOP }}", 0.05, "p2"),
            entry("Lamp", 40.5, "p3"),
        ];
        ensure!(entries == expected, "{entries:?}");

        let url = self.page["subdomainUrl"].as_str().context("no subdomainUrl")?;
        let html = until("the products to be shown", async || {
            let html = scene.owner.visitor().get(url).await.ok()?.text();
            (html.matches("<li>").count() == expected.len()).then_some(html)
        })
        .await?;
        ensure!(html.contains("<li>&lt;b&gt;Chair&lt;/b&gt;|90.5|All about p1</li>"), "{html}");
        Ok(json!({"run": run.final_state()?, "html": html}))
    }
}
