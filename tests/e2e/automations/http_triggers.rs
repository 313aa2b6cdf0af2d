//! Automations that requests start: an endpoint that answers from a page's entries, and an approval by link.

use anyhow::{Context, Result, ensure};
use harness::{Answer, Response};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::owner::id_of;
use super::run_log::Automation;
use super::scene::Scene;
use super::story::{Middle, Story, play_both, start_system};

#[tokio::test(flavor = "multi_thread")]
async fn automations_of_requests_answer_and_resume_also_when_the_job_runner_is_killed() -> Result<()> {
    let (mut system, owner) = start_system().await?;
    play_both::<Catalog>(&mut system, &owner).await?;
    play_both::<Approval>(&mut system, &owner).await
}

/// Answers with the products of a category, in the caller's currency.
struct Catalog {
    automation: Automation,
}

impl Story for Catalog {
    const NAME: &'static str = "HTTP endpoint answering from a page's entries";
    const MIDDLE: Middle = Middle::Request("/rates", 0);
    type Answer = Response;

    async fn create(scene: &Scene) -> Result<Self> {
        let Scene { owner, peer, .. } = scene;
        peer.answer("/rates", |_, _| Answer::new(200, json!({"rate": 1.5})));
        let page = owner.page(&scene.slug("products"), "<li>{{name}}</li>").await?;
        for (name, price, category) in
            [("Lamp", 40, "light"), ("Chair", 90, "seating"), ("Candle & \"wick\"", 6, "light")]
        {
            let entry = json!({"data": {"name": name, "price": price, "category": category}});
            owner.post(&format!("pages/{}/entries", id_of(&page)?), &entry).await?;
        }
        let automation = json!({
            "name": "Catalog",
            "slug": scene.slug("catalog"),
            "trigger": {"type": "http", "method": "GET", "cors": true},
            "steps": [
                {"id": "found", "type": "find", "in": "entries", "pageId": page["id"], "limit": 100,
                 "where": {"category": "{{ trigger.query.category }}"}},
                {"id": "rates", "type": "fetch", "url": format!("{}/rates?to={{{{ trigger.query.currency }}}}", peer.url)},
                {"id": "products", "type": "transform", "input": "{{ steps.found.items }}",
                 "sort": {"by": "item.data.price"},
                 "map": {"name": "{{ item.data.name }}",
                         "price": "{{ item.data.price * steps.rates.body.rate }}"}},
                {"id": "answer", "type": "respond",
                 "headers": {"Cache-Control": "public, max-age=60", "X-Total": "{{ steps.found.count }}"},
                 "body": {"category": "{{ trigger.query.category }}", "products": "{{ steps.products }}"}},
            ],
        });
        Ok(Self { automation: Automation::create(owner, &automation).await? })
    }

    fn automation(&self) -> &Automation {
        &self.automation
    }

    async fn start(&self, scene: &Scene) -> Result<Response> {
        let url = format!("{}?category=light&currency=a%26b", self.automation.trigger_url);
        scene.owner.call(Method::GET, &url, &[("origin", "https://shop.example")], &Value::Null).await
    }

    async fn check(&self, scene: &Scene, answer: Response) -> Result<Value> {
        let run = self.automation.only_run(&scene.owner).await?;
        ensure!(answer.status == StatusCode::OK, "{} {}", answer.status, answer.text());
        let products = json!([{"name": "Candle & \"wick\"", "price": 9.0}, {"name": "Lamp", "price": 60.0}]);
        ensure!(answer.json() == json!({"category": "light", "products": products}), "{}", answer.text());
        for (name, value) in [
            ("content-type", "application/json"),
            ("x-total", "2"),
            ("x-content-type-options", "nosniff"),
            ("access-control-allow-origin", "*"),
        ] {
            ensure!(answer.header(name).starts_with(value), "{name}: {:?}", answer.headers);
        }
        ensure!(answer.header("content-security-policy").starts_with("sandbox"), "{:?}", answer.headers);
        ensure!(scene.only_request("/rates")?.path == "/rates?to=a%26b");

        let url = &self.automation.trigger_url;
        let refused = scene.owner.call(Method::POST, url, &[], &json!({})).await?;
        ensure!(refused.status == StatusCode::METHOD_NOT_ALLOWED, "{} {}", refused.status, refused.text());
        ensure!(self.automation.runs(&scene.owner).await?.len() == 1, "a refused request started a run");
        run.final_state()
    }
}

/// Publishes a comment once a moderator has confirmed the link in a mail.
struct Approval {
    page: Value,
    automation: Automation,
}

const SECRET: (&str, &str) = ("x-secret", "sesame-4711");

impl Story for Approval {
    const NAME: &'static str = "approval by link";
    const MIDDLE: Middle = Middle::Waiting;
    type Answer = Response;

    async fn create(scene: &Scene) -> Result<Self> {
        let Scene { owner, peer, .. } = scene;
        peer.answer("/mail", |_, _| Answer::new(202, json!({"queued": true})));
        let page = owner.page(&scene.slug("comments"), "<p>{{text}} ({{approvedBy}})</p>").await?;
        let automation = json!({
            "name": "Approval",
            "slug": scene.slug("approval"),
            "trigger": {"type": "http", "auth": {"type": "secret", "env": "SECRET"}},
            "env": {"SECRET": SECRET.1},
            "steps": [
                {"id": "ask", "type": "fetch", "method": "POST", "url": format!("{}/mail", peer.url),
                 "body": {"to": "moderator@example.com",
                          "text": "{{ trigger.payload.text }}\n\nPublish it: {{ run.resumeUrl }}"}},
                {"id": "approval", "type": "wait", "resume": true, "timeout": "2d", "onTimeout": "continue"},
                {"id": "decided", "type": "condition", "branches": [{"if": "steps.approval.resumed", "steps": [
                    {"id": "publish", "type": "create_entry", "pageId": page["id"],
                     "data": {"text": "{{ trigger.payload.text }}",
                              "approvedBy": "{{ default(steps.approval.payload.by, \"link\") }}"}},
                ]}], "else": [{"id": "drop", "type": "stop", "status": "error", "message": "no answer"}]},
            ],
        });
        Ok(Self { page, automation: Automation::create(owner, &automation).await? })
    }

    fn automation(&self) -> &Automation {
        &self.automation
    }

    async fn start(&self, scene: &Scene) -> Result<Response> {
        let comment = json!({"text": "Nice <i>page</i>"});
        let url = &self.automation.trigger_url;
        let refused = scene.owner.call(Method::POST, url, &[("x-secret", "sesame-4712")], &comment).await?;
        ensure!(refused.status == StatusCode::UNAUTHORIZED, "{} {}", refused.status, refused.text());
        scene.owner.call(Method::POST, url, &[SECRET], &comment).await
    }

    async fn check(&self, scene: &Scene, answer: Response) -> Result<Value> {
        let Scene { owner, .. } = scene;
        ensure!(answer.status == StatusCode::ACCEPTED, "{} {}", answer.status, answer.text());
        let waiting = self.automation.until_status(owner, "waiting").await?;
        ensure!(answer.json()["runId"] == waiting.id(), "{}", answer.text());
        let mail = scene.only_request("/mail")?.json();
        let text = mail["text"].as_str().context("no text")?;
        let link = text.strip_prefix("Nice <i>page</i>\n\nPublish it: ").context("no link")?;

        // A mail scanner fetches the link, then the moderator's browser does.
        for (accept, part) in [("*/*", "\"waiting\""), ("text/html,*/*;q=0.8", "<button")] {
            let shown = owner.call(Method::GET, link, &[("accept", accept)], &Value::Null).await?;
            ensure!(shown.status == StatusCode::OK && shown.text().contains(part), "{}", shown.text());
        }
        let forged = format!("{}0", &link[..link.len() - 1]);
        let forged = if forged == link { format!("{}1", &link[..link.len() - 1]) } else { forged };
        let refused = owner.call(Method::POST, &forged, &[], &Value::Null).await?;
        ensure!(refused.status.is_client_error(), "a forged link: {}", refused.status);
        let runs = self.automation.runs(owner).await?;
        ensure!(runs.len() == 1 && runs[0].status() == "waiting", "a GET resumed the run: {runs:?}");
        ensure!(owner.entries(&self.page).await?.is_empty(), "it was published without approval");

        let resumed = owner.call(Method::POST, link, &[], &json!({"by": "Mo"})).await?;
        ensure!(resumed.status.is_success(), "{} {}", resumed.status, resumed.text());
        let again = owner.call(Method::POST, link, &[], &json!({"by": "Eve"})).await?;
        ensure!(again.status.is_client_error(), "the link worked twice: {}", again.status);
        let run = self.automation.only_run(owner).await?;
        let entries = owner.entries(&self.page).await?;
        ensure!(entries == [json!({"text": "Nice <i>page</i>", "approvedBy": "Mo"})], "{entries:?}");
        let again = owner.call(Method::POST, link, &[], &Value::Null).await?;
        ensure!(again.status.is_client_error(), "the link worked after the end: {}", again.status);
        ensure!(
            run.step("approval")?["output"] == json!({"resumed": true, "payload": {"by": "Mo"}}),
            "{run:?}"
        );
        run.final_state()
    }
}
