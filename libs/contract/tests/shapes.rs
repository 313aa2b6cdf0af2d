//! Locks the shapes of jobs and signals.
//!
//! A change here means that services of the previous release can't communicate with this one: add a new variant
//! instead.

use contract::{Change, DatedSignal, Job, Signal};
use serde_json::json;
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(1);

#[test]
fn jobs_keep_their_shape() {
    insta::assert_json_snapshot!(Job::MailWebhookV1 { webhook_id: ID }, @r#"
    {
      "job": "mail_webhook_v1",
      "webhook_id": "00000000-0000-0000-0000-000000000001"
    }
    "#);
    insta::assert_json_snapshot!(Job::MailCertificateV1 { domain_id: ID }, @r#"
    {
      "job": "mail_certificate_v1",
      "domain_id": "00000000-0000-0000-0000-000000000001"
    }
    "#);
    insta::assert_json_snapshot!(Job::MailAutomationV1 { automation_id: ID }, @r#"
    {
      "job": "mail_automation_v1",
      "automation_id": "00000000-0000-0000-0000-000000000001"
    }
    "#);
    insta::assert_json_snapshot!(Job::PurgeEventsV1, @r#"
    {
      "job": "purge_events_v1"
    }
    "#);
    insta::assert_json_snapshot!(Job::MailHelpV1 { help_id: ID }, @r#"
    {
      "job": "mail_help_v1",
      "help_id": "00000000-0000-0000-0000-000000000001"
    }
    "#);
    insta::assert_json_snapshot!(Job::NotifyOwnerV1 { submission_id: ID }, @r#"
    {
      "job": "notify_owner_v1",
      "submission_id": "00000000-0000-0000-0000-000000000001"
    }
    "#);
    insta::assert_json_snapshot!(Job::AskRecipientV1 { recipient_id: ID }, @r#"
    {
      "job": "ask_recipient_v1",
      "recipient_id": "00000000-0000-0000-0000-000000000001"
    }
    "#);
    insta::assert_json_snapshot!(Job::MailDomainV1 { domain_id: ID }, @r#"
    {
      "job": "mail_domain_v1",
      "domain_id": "00000000-0000-0000-0000-000000000001"
    }
    "#);
}

#[test]
fn signals_keep_their_shape() {
    let signals = [
        Signal::OutboxFilled,
        Signal::DeliveriesDue { webhook_ids: vec![ID] },
        Signal::TriggersDue,
        Signal::RunsDue { account_ids: vec![ID] },
        Signal::RunsAnswered { run_ids: vec![ID] },
        Signal::Changed(Change::Page { subdomain_id: ID, slug: "index".into(), path: None }),
        Signal::Changed(Change::Host { host: "a.example".into() }),
        Signal::Changed(Change::SubdomainGone { subdomain_id: ID }),
        Signal::Changed(Change::Certificate { name: "*.example.com".to_owned() }),
        Signal::Changed(Change::Form { form_id: ID }),
        Signal::Changed(Change::AnalyticsSite { site_token: "site_x".into(), subdomain_id: Some(ID) }),
        Signal::Changed(Change::Asset { asset_id: ID }),
        Signal::Changed(Change::Site { subdomain_id: ID }),
        Signal::Changed(Change::AccountFiles { account_id: ID }),
    ];
    let shapes: Vec<_> = signals.iter().map(|signal| serde_json::to_value(signal).unwrap()).collect();
    assert_eq!(
        shapes,
        [
            json!({"signal": "outbox_filled"}),
            json!({"signal": "deliveries_due", "webhook_ids": [ID]}),
            json!({"signal": "triggers_due"}),
            json!({"signal": "runs_due", "account_ids": [ID]}),
            json!({"signal": "runs_answered", "run_ids": [ID]}),
            json!({"signal": "changed", "change": "page", "subdomain_id": ID, "slug": "index"}),
            json!({"signal": "changed", "change": "host", "host": "a.example"}),
            json!({"signal": "changed", "change": "subdomain_gone", "subdomain_id": ID}),
            json!({"signal": "changed", "change": "certificate", "name": "*.example.com"}),
            json!({"signal": "changed", "change": "form", "form_id": ID}),
            json!({"signal": "changed", "change": "analytics_site", "site_token": "site_x", "subdomain_id": ID}),
            json!({"signal": "changed", "change": "asset", "asset_id": ID}),
            json!({"signal": "changed", "change": "site", "subdomain_id": ID}),
            json!({"signal": "changed", "change": "account_files", "account_id": ID}),
        ]
    );
    for (shape, signal) in shapes.into_iter().zip(signals) {
        assert_eq!(serde_json::from_value::<Signal>(shape).unwrap(), signal);
    }
}

/// During an upgrade, each release reads the signals of the other.
#[test]
fn a_signal_is_read_with_and_without_its_time() {
    let change = Change::Page { subdomain_id: ID, slug: "a".to_owned(), path: None };
    for signal in [Signal::Changed(change), Signal::RunsAnswered { run_ids: vec![ID] }, Signal::OutboxFilled]
    {
        let dated = DatedSignal {
            signal: signal.clone(),
            written_at: Some("2026-01-02T03:04:05.678Z".parse().unwrap()),
        };
        let sent = serde_json::to_value(&dated).unwrap();
        assert_eq!(sent["written_at"], "2026-01-02T03:04:05.678Z");
        assert_eq!(serde_json::from_value::<DatedSignal>(sent.clone()).unwrap(), dated);
        assert_eq!(serde_json::from_value::<Signal>(sent).unwrap(), signal);
        let undated = serde_json::to_value(&signal).unwrap();
        let read: DatedSignal = serde_json::from_value(undated).unwrap();
        assert_eq!(read, DatedSignal { signal, written_at: None });
    }
}
