//! Automations that submissions start: lead to Slack, deduplicated subscribers, delayed follow-up.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use harness::{Answer, until};
use serde_json::{Value, json};

use super::run_log::{Automation, Run};
use super::scene::Scene;
use super::story::{Middle, Story, play_both, start_system};

#[tokio::test(flavor = "multi_thread")]
async fn automations_of_forms_do_all_their_steps_also_when_the_job_runner_is_killed() -> Result<()> {
    let (mut system, owner) = start_system().await?;
    play_both::<LeadToSlack>(&mut system, &owner).await?;
    play_both::<Subscribers>(&mut system, &owner).await?;
    play_both::<FollowUp>(&mut system, &owner).await
}

/// Tells a chat channel about leads that are worth it.
struct LeadToSlack {
    form: Value,
    automation: Automation,
}

const LEAD_NAME: &str = r#"Ana "the boss" \ Ruiz"#;
const LEAD_MESSAGE: &str = "First line\nsecond </script> {{ env.SLACK_URL }} \u{1f680}";

impl Story for LeadToSlack {
    const NAME: &'static str = "lead to Slack";
    const MIDDLE: Middle = Middle::Request("/services", 0);
    type Answer = ();

    async fn create(scene: &Scene) -> Result<Self> {
        scene.peer.answer("/services", |_, _| Answer::new(200, "ok"));
        let fields = [("name", "text"), ("email", "email"), ("budget", "number"), ("message", "textarea")];
        let form = scene.owner.form("Leads", &fields).await?;
        let automation = json!({
            "name": "Lead to Slack",
            "slug": scene.slug("lead-to-slack"),
            "trigger": {"type": "form_submission", "formId": form["formId"]},
            "env": {"SLACK_URL": format!("{}/services/T024BE7LD/B07FKT8/xGq1c9ZsW", scene.peer.url)},
            "steps": [
                {"id": "qualified", "type": "condition", "branches": [{
                    "if": "trigger.payload.budget >= 1000 || contains(lower(trigger.payload.message), \"urgent\")",
                    "steps": [{
                        "id": "notify", "type": "fetch", "method": "POST", "url": "{{ env.SLACK_URL }}",
                        "headers": {"Content-Type": "application/json"},
                        "body": "{\"text\": \"New lead: {{ trigger.payload.name }} ({{ trigger.payload.email }}), \
                                 budget {{ trigger.payload.budget }}\\n{{ trigger.payload.message }}\", \"unfurl_links\": false}",
                    }],
                }], "else": [
                    {"id": "ignore", "type": "stop", "status": "success",
                     "message": "{{ trigger.payload.email }} has only {{ trigger.payload.budget }}"},
                ]},
            ],
        });
        let automation = Automation::create(&scene.owner, &automation).await?;
        Ok(Self { form, automation })
    }

    fn automation(&self) -> &Automation {
        &self.automation
    }

    async fn start(&self, scene: &Scene) -> Result<()> {
        let lead =
            json!({"name": LEAD_NAME, "email": "ana@example.com", "budget": 5000, "message": LEAD_MESSAGE});
        scene.owner.submit(&self.form, &lead).await
    }

    async fn check(&self, scene: &Scene, (): ()) -> Result<Value> {
        let run = self.automation.only_run(&scene.owner).await?;
        let lead = json!({"name": "Bo", "email": "bo@example.com", "budget": 10, "message": "Hello"});
        scene.owner.submit(&self.form, &lead).await?;
        let runs = self.automation.ended_runs(&scene.owner, 2).await?;
        ensure!(runs.len() == 2 && runs[1].0["message"] == "bo@example.com has only 10", "{runs:?}");

        let message = scene.only_request("/services")?;
        let text = format!("New lead: {LEAD_NAME} (ana@example.com), budget 5000\n{LEAD_MESSAGE}");
        ensure!(message.json() == json!({"text": text, "unfurl_links": false}), "{:?}", message.body);
        ensure!(message.path == "/services/T024BE7LD/B07FKT8/xGq1c9ZsW", "{}", message.path);
        ensure!(message.header("idempotency-key").starts_with(run.id()), "{message:?}");
        let notify = run.step("notify")?;
        ensure!(notify["input"]["url"] == "***", "the log shows the variable: {notify}");
        ensure!(notify["output"]["status"] == 200 && notify["output"]["body"] == "ok", "{notify}");
        ensure!(scene.owner.submissions(&self.form).await? == 2);
        let shown = scene.owner.get(&format!("automations/{}", self.automation.id)).await?;
        let statistics = &shown["statistics"];
        ensure!(statistics["runs"] == 2 && statistics["failures"] == 0, "{statistics}");
        ensure!(statistics["p50Ms"].is_number() && statistics["p95Ms"].is_number(), "{statistics}");
        Ok(json!([runs[0].final_state()?, runs[1].final_state()?]))
    }
}

/// Keeps each subscriber once, greets new ones, and shows the number on a page of its own.
struct Subscribers {
    form: Value,
    page: Value,
    automation: Automation,
}

impl Story for Subscribers {
    const NAME: &'static str = "dedupe and upsert into a page";
    const MIDDLE: Middle = Middle::Request("/welcome", 0);
    type Answer = ();

    async fn create(scene: &Scene) -> Result<Self> {
        scene.peer.answer("/welcome", |_, _| Answer::new(202, json!({"queued": true})));
        let form = scene.owner.form("Newsletter", &[("name", "text"), ("email", "email")]).await?;
        let page = scene.owner.page(&scene.slug("subscribers"), "<li>{{email}}</li>").await?;
        let email = "{{ lower(trigger.payload.email) }}";
        let automation = json!({
            "name": "Subscribers",
            "slug": scene.slug("subscribers"),
            "description": "Each address once",
            "trigger": {"type": "form_submission", "formId": form["formId"]},
            "concurrency": {"limit": 1},
            "steps": [
                {"id": "known", "type": "find", "in": "entries", "pageId": page["id"], "where": {"email": email},
                 "limit": 1},
                {"id": "is_new", "type": "condition", "branches": [{"if": "steps.known.count == 0", "steps": [
                    {"id": "add", "type": "create_entry", "pageId": page["id"],
                     "data": {"email": email, "name": "{{ trigger.payload.name }}"}},
                    {"id": "welcome", "type": "fetch", "method": "POST",
                     "url": format!("{}/welcome", scene.peer.url),
                     "body": {"to": email, "entry": "{{ steps.add.id }}"}},
                ]}]},
                {"id": "all", "type": "find", "in": "entries", "pageId": page["id"], "limit": 100},
                {"id": "show", "type": "update_page", "slug": scene.slug("subscriber-count"), "upsert": true,
                 "title": "Subscribers",
                 "html": "<h1>{{ steps.all.count }} subscribers</h1><p>Latest: {{ trigger.payload.name }}</p>"},
            ],
        });
        let automation = Automation::create(&scene.owner, &automation).await?;
        Ok(Self { form, page, automation })
    }

    fn automation(&self) -> &Automation {
        &self.automation
    }

    async fn start(&self, scene: &Scene) -> Result<()> {
        // The second run of the same address waits for the first one: the limit is 1.
        for (name, email) in
            [("Ana", "ana@example.com"), ("Ana", "ANA@example.com"), ("<b>Bo</b>", "bo@example.com")]
        {
            scene.owner.submit(&self.form, &json!({"name": name, "email": email})).await?;
        }
        Ok(())
    }

    async fn check(&self, scene: &Scene, (): ()) -> Result<Value> {
        let Scene { owner, .. } = scene;
        let runs = self.automation.ended_runs(owner, 3).await?;
        ensure!(runs.len() == 3 && runs.iter().all(|run| run.status() == "success"), "{runs:?}");
        let entries = owner.entries(&self.page).await?;
        let mut emails: Vec<_> = entries.iter().map(|data| data["email"].clone()).collect();
        emails.sort_by_key(Value::to_string);
        ensure!(emails == ["ana@example.com", "bo@example.com"], "{entries:?}");
        let mut greeted: Vec<_> =
            scene.requests("/welcome")?.iter().map(|request| request.json()["to"].clone()).collect();
        greeted.sort_by_key(Value::to_string);
        ensure!(greeted == emails, "{greeted:?}");

        let made = owner.pages_with(&scene.slug("subscriber-count")).await?;
        ensure!(made.len() == 1, "the page was made {} times", made.len());
        let url = made[0]["subdomainUrl"].as_str().unwrap_or_default().to_owned();
        let html = until("the number of subscribers to be shown", async || {
            let answer = owner.visitor().get(&url).await.ok()?.text();
            answer.starts_with("<h1>2 subscribers</h1>").then_some(answer)
        })
        .await?;
        ensure!(!html.contains("<b>"), "{html}");
        let created: Vec<_> =
            runs.iter().filter_map(|run| Some(run.step("show").ok()?["output"]["created"] == true)).collect();
        ensure!(created.iter().filter(|created| **created).count() == 1, "{created:?}");
        // Which of two addresses is first depends on nothing but the order of submissions.
        Ok(json!({"emails": emails, "html": html,
                  "runs": runs.iter().map(Run::final_state).collect::<Result<Vec<_>>>()?}))
    }
}

/// Writes to a customer some time after the submission.
struct FollowUp {
    form: Value,
    automation: Automation,
}

impl Story for FollowUp {
    const NAME: &'static str = "delayed follow-up";
    const MIDDLE: Middle = Middle::Waiting;
    type Answer = Instant;

    async fn create(scene: &Scene) -> Result<Self> {
        scene.peer.answer("/mail", |_, _| Answer::new(202, json!({"id": "m1"})));
        let form = scene.owner.form("Orders", &[("email", "email"), ("item", "text")]).await?;
        let automation = json!({
            "name": "Follow-up",
            "slug": scene.slug("follow-up"),
            "trigger": {"type": "form_submission", "formId": form["formId"]},
            "env": {"MAIL_KEY": "key-3f9a0c71d2"},
            "steps": [
                // Long enough for the test to see that the run waits, and to kill.
                {"id": "pause", "type": "wait", "for": if scene.is_killed { "8s" } else { "3s" }},
                {"id": "ask", "type": "fetch", "method": "POST", "url": format!("{}/mail", scene.peer.url),
                 "headers": {"Authorization": "Bearer {{ env.MAIL_KEY }}"},
                 "body": {"to": "{{ trigger.payload.email }}",
                          "subject": "How is your {{ trigger.payload.item }}?",
                          "ordered": "{{ date_format(trigger.createdAt, \"%Y\") }}"}},
            ],
        });
        let automation = Automation::create(&scene.owner, &automation).await?;
        Ok(Self { form, automation })
    }

    fn automation(&self) -> &Automation {
        &self.automation
    }

    async fn start(&self, scene: &Scene) -> Result<Instant> {
        let began = Instant::now();
        let order = json!({"email": "ana@example.com", "item": "lamp & shade"});
        scene.owner.submit(&self.form, &order).await?;
        Ok(began)
    }

    async fn check(&self, scene: &Scene, began: Instant) -> Result<Value> {
        let run = self.automation.only_run(&scene.owner).await?;
        let mail = scene.only_request("/mail")?;
        ensure!(mail.received_at - began >= Duration::from_secs(3), "it did not wait");
        ensure!(mail.header("authorization") == "Bearer key-3f9a0c71d2", "{mail:?}");
        let body = mail.json();
        ensure!(body["to"] == "ana@example.com" && body["subject"] == "How is your lamp & shade?", "{body}");
        let headers = &run.step("ask")?["input"]["headers"];
        ensure!(headers["Authorization"] == "Bearer ***", "{headers}");
        ensure!(run.step("pause")?["status"] == "success", "{run:?}");
        run.final_state()
    }
}
